"""``dperm data list | path NAME | fetch NAME | verify NAME | store NAME [key=value ...]``."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from dperm_cli.core import checks, progress
from dperm_cli.core.errors import EXIT_FAILED, EXIT_INPUT, EXIT_OK, NOTHING, InputError
from dperm_cli.core.operands import refuse_operands
from dperm_cli.datasets.shared import data_commands
from dperm_cli.datasets.shared.stored_rows import PRECISIONS, Target
from dperm_cli.runner.compose import plugin_objects
from dperm_cli.runner.compose.command_line import parse
from dperm_cli.runner.compose.composer import Composer
from dperm_cli.runner.sweep.data_storage import (
    StoreMeter,
    describe_source,
    identify_records,
    store_told,
)

VERBS = ("list", "path", "fetch", "verify", "store")
HOLDER_NOTICE = (
    "For the holder of the data only: what follows are exact facts of the records (counts, labels, "
    "digests). No guarantee covers them: do not publish them."
)


def data(arguments: list[str]) -> int:
    """Dispatch; ``verify`` exits with 1 when it finds a problem."""
    verb, rest = arguments[0], arguments[1:]
    checks.choice("data", verb, VERBS)
    if verb == "list":
        if rest:
            raise InputError("data list", " ".join(rest), "takes no arguments")
        return _list()
    if not rest or "=" in rest[0]:
        raise refuse_operands(f"data {verb}", rest, "needs the name of a data set")
    if verb == "verify":
        return _verify(rest[0], rest[1:])
    if verb == "store":
        return _store(rest[0], rest[1:])
    if len(rest) > 1:
        raise InputError(f"data {verb}", " ".join(rest), "takes one name")
    if verb == "fetch":
        return _fetch(rest[0])
    print(data_commands.path(rest[0]))
    return EXIT_OK


def _list() -> int:
    print(f"{'name':<22}{'task':<22}{'n':>8}{'p':>9}  where")
    for row in data_commands.list_datasets():
        n, p = ("-" if size is None else size for size in (row.n, row.p))
        where = row.where if row.present else f"not here ({row.where})"
        print(f"{row.name:<22}{row.task:<22}{n:>8}{p:>9}  {where}")
    return EXIT_OK


def _fetch(name: str) -> int:
    with progress.listen(_DownloadMeter().step):
        paths = data_commands.fetch(name)
    for path in paths:
        print(path)
    return EXIT_OK


class _DownloadMeter:
    """How far a download is, on stderr: one live line on a terminal, a line now and then else."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._next = 0.0

    def step(self, label: str, done: float, total: float) -> None:
        now = time.monotonic()
        finished = total > 0 and done >= total
        if now < self._next and not finished:
            return
        self._next = now + (0.1 if self._live else 5.0)
        share = f" of {total / 1e6:.1f}" if total else ""
        start, end = ("\r\x1b[K", "\n" if finished else "") if self._live else ("", "\n")
        sys.stderr.write(f"{start}{label}: {done / 1e6:.1f}{share} MB{end}")
        sys.stderr.flush()


def _build(name: str, words: list[str]) -> tuple[Any, dict[str, Any]]:
    """The data set with the keys that were typed, and its configuration."""
    config = dict(Composer().compose({"dataset": name})["dataset"])
    for setting in parse(words).settings:
        key = setting.key.removeprefix("dataset.")
        checks.known_keys([key], (word for word in config if word != "name"), "dataset.")
        config[key] = setting.values[0]
    return plugin_objects.build("dataset", config), config


def _store(name: str, words: list[str]) -> int:
    """Write a data set to a folder of arrays, and print the folder."""
    own = {"to": "", "precision": PRECISIONS[0]}
    for word in words:
        key, equals, value = word.partition("=")
        if equals and key in own:
            own[key] = value
    left = [word for word in words if word.partition("=")[0] not in own]
    if not own["to"]:
        raise InputError("to", NOTHING, "has to be given: the folder to write")
    precision = checks.choice("precision", own["precision"], PRECISIONS)
    with progress.listen(StoreMeter().step):
        dataset, config = _build(name, left)
        about = identify_records(dataset)
        target = Target(Path(own["to"]), precision, about)
        found = store_told(dataset, target, describe_source(dataset, config))
    print(f"{own['to']}: {found.n} records, {found.p} columns, {found.x.dtype}")
    return EXIT_OK


def _verify(name: str, words: list[str]) -> int:
    findings = data_commands.verify(_build(name, words)[0])
    print(HOLDER_NOTICE)
    for found in findings:
        print(f"{found.level:<8}{found.check:<15}{found.detail}")
    if [found.check for found in findings] == ["load"]:
        return EXIT_INPUT
    return EXIT_FAILED if any(found.level == "problem" for found in findings) else EXIT_OK
