"""Run a foreign mechanism on a table: a callable, an object with ``fit``, or a program."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import io
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from dperm_cli.audit.outside.outputs import Output, describe_failure, describe_result
from dperm_cli.audit.outside.records import Table
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError, describe_error
from dperm_cli.core.files import open_atomically, write_atomically

PROGRAM = "exec:"
KEY = "target"
_FORM = "must be module:object, FILE.py:object or exec:COMMAND"
_SECONDS, _LONGEST = 120.0, 86_400.0  # least and most of one start of a program
_WORDS = ("records", "epsilon", "delta", "runs", "seed")  # what a command may have in braces


class Target(ABC):
    """A foreign mechanism.

    Attributes:
        words: What the user typed, or the callable's name.
        takes_epsilon: Whether it is told epsilon, so that its noise can be turned down.
        has_batches: Whether one start makes many runs.
    """

    words: str
    takes_epsilon: bool
    has_batches: bool = False

    @abstractmethod
    def run(self, table: Table, count: int, epsilon: float, deadline: float) -> list[Output]:
        """Independent runs on a table.

        Args:
            table: The records.
            count: How many runs are wanted.
            epsilon: What the mechanism is told, if it takes it.
            deadline: When to stop, on the clock of ``time.monotonic``; what was run is returned.
        """


@dataclass
class Function(Target):
    """A callable of rows and labels, or an object or class with ``fit``.

    It is told ``epsilon`` and ``delta`` where it has parameters of these names, and new random
    numbers by ``seed``, ``random_state`` or ``rng`` where these have no default. All runs are in
    this process, one after another: copies of it would share the state of a generator.
    """

    call: Any
    words: str
    delta: float
    rng: np.random.Generator

    def __post_init__(self) -> None:
        self._is_class = inspect.isclass(self.call)
        self._has_fit = "fit" in dir(self.call)
        if self._is_class and not self._has_fit:
            raise InputError(KEY, self.words, "is a class without fit")
        if not self._has_fit and not callable(self.call):
            raise InputError(KEY, self.words, "is neither a callable nor an object with fit")
        told = self.call.fit if self._has_fit and not self._is_class else self.call
        self._names = _list_parameters(told)
        self.takes_epsilon = "epsilon" in self._names

    def run(self, table: Table, count: int, epsilon: float, deadline: float) -> list[Output]:
        found: list[Output] = []
        while len(found) < count and time.monotonic() < deadline:
            found.append(self._run_once(table, epsilon))
        return found

    def _run_once(self, table: Table, epsilon: float) -> Output:
        printed = io.StringIO()
        with (
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
            warnings.catch_warnings(record=True) as warned,
        ):
            warnings.simplefilter("always")
            try:
                value = self._call(table, epsilon)
            except Exception as error:
                words = _add_warnings(printed, warned)
                return describe_failure(type(error).__name__, str(error), words)
        return describe_result(value, _add_warnings(printed, warned))

    def _call(self, table: Table, epsilon: float) -> Any:
        labels = () if table.labels is None else (table.labels.copy(),)
        records = (table.rows.copy(), *labels)
        told = self._list_told(epsilon)
        if not self._has_fit:
            return self.call(*records, **told)
        made = self.call(**told) if self._is_class else self.call
        result = made.fit(*records, **({} if self._is_class else told))
        return _read_attributes(made if result is None else result)

    def _list_told(self, epsilon: float) -> dict[str, Any]:
        told: dict[str, Any] = {}
        for name, needed in self._names.items():
            if name == "epsilon":
                told[name] = epsilon
            elif name == "delta":
                told[name] = self.delta
            elif needed and name in ("seed", "random_state"):
                told[name] = int(self.rng.integers(2**31))
            elif needed and name == "rng":
                told[name] = np.random.default_rng(self.rng.integers(2**63))
        return told


def _list_parameters(call: Any) -> dict[str, bool]:
    """The named parameters of a callable, and whether each has to be given."""
    try:
        found = inspect.signature(call).parameters.values()
    except (ValueError, TypeError):
        return {}
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {one.name: one.default is one.empty for one in found if one.kind in named}


def _read_attributes(made: Any) -> Any:
    """What a fitted object has learnt: attributes that end in ``_``, or the value that it is."""
    if isinstance(made, np.ndarray | Sequence | Mapping | int | float):
        return made
    try:
        fields = vars(made)
    except TypeError:
        return made
    ends = {key for key in fields if key.endswith("_") and not key.startswith("_")}
    return {key: fields[key] for key in ends if not callable(fields[key])}


def _add_warnings(printed: io.StringIO, warned: Sequence[Any] | None) -> str:
    lines = [f"{one.category.__name__}: {one.message}" for one in warned or ()]
    return "\n".join([*filter(None, [printed.getvalue()]), *lines])


@dataclass
class Program(Target):
    """A program that reads records and writes its result as JSON.

    ``{records}`` in the command is the name of a csv file, or of an npz file with arrays X and y
    where ``{records.npz}`` stands; without either the csv lines are on standard input.
    ``{epsilon}``, ``{delta}`` and ``{seed}`` are numbers. A command with ``{runs}`` makes that many
    independent runs and writes a line for each.
    """

    command: str
    delta: float
    rng: np.random.Generator
    workers: int = 1

    def __post_init__(self) -> None:
        self.words = f"{PROGRAM}{self.command}"
        try:
            self._parts = shlex.split(self.command)
        except ValueError as error:
            raise InputError(KEY, self.words, f"cannot be read: {error}") from None
        if not self._parts:
            raise InputError(KEY, self.words, "has no command")
        self.takes_epsilon = any("{epsilon}" in part for part in self._parts)
        self.has_batches = any("{runs}" in part for part in self._parts)

    def run(self, table: Table, count: int, epsilon: float, deadline: float) -> list[Output]:
        sizes = [1] * count
        if self.has_batches:
            share = -(-count // self.workers)
            sizes = [min(share, count - start) for start in range(0, count, share)]
        seeds = self.rng.integers(2**31, size=len(sizes)).tolist()
        with tempfile.TemporaryDirectory(prefix="dperm-audit-") as name:
            folder = Path(name)
            _write_records(table, folder)

            def start(size: int, seed: int) -> list[Output]:
                if time.monotonic() > deadline:
                    return []
                return self._start(table, folder, size, seed, epsilon, deadline)

            with ThreadPoolExecutor(self.workers) as pool:
                parts = list(pool.map(start, sizes, seeds))
        return [output for part in parts for output in part][:count]

    def _start(
        self, table: Table, folder: Path, size: int, seed: int, epsilon: float, deadline: float
    ) -> list[Output]:
        values = {
            "records": str(folder / "records.csv"), "records.npz": str(folder / "records.npz"),
            "epsilon": repr(epsilon), "delta": repr(self.delta), "runs": str(size),
            "seed": str(seed),
        }  # fmt: skip
        words = [_fill(part, values) for part in self._parts]
        reads = not any("{records" in part for part in self._parts)
        try:
            done = subprocess.run(
                words, input=table.format_lines() if reads else "", capture_output=True, text=True,
                timeout=min(max(_SECONDS, deadline - time.monotonic()), _LONGEST), errors="replace",
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return [describe_failure("timeout", "")]
        except OSError as error:
            raise InputError(KEY, self.words, f"cannot be started: {error.strerror}") from None
        return read_lines(
            done.stdout, done.stderr, done.returncode, size if self.has_batches else 0
        )


def _write_records(table: Table, folder: Path) -> None:
    write_atomically(folder / "records.csv", table.format_lines().encode(), sync=False)
    with open_atomically(folder / "records.npz", sync=False) as file:
        labels = np.zeros(0) if table.labels is None else table.labels
        np.savez(file, X=table.rows, y=labels)


def _fill(part: str, values: Mapping[str, str]) -> str:
    for key, value in values.items():
        part = part.replace(f"{{{key}}}", value)
    return part


def read_lines(stdout: str, stderr: str, code: int, runs: int) -> list[Output]:
    """The outputs of one start of a program.

    Args:
        stdout: JSON: one value, or a line for each of ``runs``.
        stderr: What it printed beside.
        code: Its exit code.
        runs: How many runs were asked for; 0 where the whole output is one run's.
    """
    if code != 0:
        lines = [line for line in stderr.splitlines() if line.strip()]
        return [describe_failure(f"exit {code}", lines[-1] if lines else "")] * max(1, runs)
    try:
        if not runs:
            return [describe_result(json.loads(stdout), stderr)]
        lines = [line for line in stdout.splitlines() if line.strip()]
        if len(lines) != runs:
            return [describe_failure("lines", f"{len(lines)} where {runs} were asked for")]
        return [describe_result(json.loads(line), stderr) for line in lines]
    except ValueError:
        return [describe_failure("no JSON", stdout[:80])] * max(1, runs)


def make_fresh_generator() -> np.random.Generator:
    """A generator that no earlier audit had: runs that are kept must not be drawn again."""
    return np.random.default_rng()


def make_target(word: Any, delta: float, rng: np.random.Generator, workers: int = 1) -> Target:
    """The mechanism of a word of the command line, or of a Python object.

    Args:
        word: ``module:object``, ``FILE.py:object``, ``exec:COMMAND``, a callable or an object.
        delta: Of the claim.
        rng: Draws the seeds that a mechanism asks for.
        workers: Programs that run at once.

    Raises:
        InputError: There is no such thing, or it cannot be run.
    """
    if isinstance(word, str) and word.startswith(PROGRAM):
        return Program(word.removeprefix(PROGRAM), delta, rng, workers)
    if workers > 1:
        allowed = "is for exec: alone; copies of a Python process would repeat its random numbers"
        raise InputError("workers", workers, allowed)
    if isinstance(word, str):
        return Function(load_object(word), word, delta, rng)
    return Function(word, _name_call(word), delta, rng)


def _name_call(call: Any) -> str:
    made = call if inspect.isclass(call) or inspect.isroutine(call) else type(call)
    return f"{made.__module__}:{made.__qualname__}"


def load_object(word: str) -> Any:
    """What ``module:object`` or ``FILE.py:object`` names; it is imported.

    Raises:
        InputError: There is no such module or object, or the import fails.
    """
    place, _, name = word.rpartition(":")
    if not place or not name:
        raise InputError(KEY, word, _FORM)
    try:
        found: Any = _import_file(place, word) if place.endswith(".py") else _import_name(place)
    except InputError:
        raise
    except Exception as error:
        raise InputError(KEY, word, f"cannot be imported ({describe_error(error)})") from None
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise InputError(KEY, word, f"has no {part}") from None
    return found


def _import_file(place: str, word: str) -> Any:
    if not os.path.isfile(place):
        raise InputError(KEY, word, "no such file")
    spec = importlib.util.spec_from_file_location(Path(place).stem, place)
    if spec is None or spec.loader is None:
        raise InputError(KEY, word, "cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(spec.name, module)
    spec.loader.exec_module(module)
    return module


def _import_name(place: str) -> Any:
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    return importlib.import_module(place)
