"""``dperm audit fuzz=10m``: random configurations and neighbours, each run end to end.

Every draw is a configuration and two data files one record apart. A whole ``dperm run`` is carried
out on both with the same noise (``neighbour_runs``), the values at the gate are replayed
(``audit.replay``), the plans, public facts and feature maps are compared, and the claim is held
against what was asked. A draw follows from (seed, number), so that a finding can be had again.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import secrets
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from dperm_cli.audit.first_difference import first_difference
from dperm_cli.audit.fuzz_draws import Draw, draw, targets
from dperm_cli.audit.replay import replace_record, replay
from dperm_cli.audit.shifted_rounding import shift_maps, shift_problem
from dperm_cli.core import checks, plugin_sources
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import EXIT_FAILED, EXIT_OK, DpermError, InputError, Unsupported
from dperm_cli.core.files import write_atomically
from dperm_cli.core.foreign_errors import suppress_warnings
from dperm_cli.core.operands import Syntax
from dperm_cli.runner.audits.neighbour_runs import RunOutput, run_on_both
from dperm_cli.runner.cells import kernel_cells, prepared_cell, run_cell
from dperm_cli.runner.cells.prepared_cell import Prepared
from dperm_cli.runner.compose import study_plan
from dperm_cli.runner.sweep.progress import open_meter
from dperm_cli.runner.verbs import run

KEYS = ("fuzz", "seed", "draw", "mechanism", "out")
TIMES = {"s": 1, "m": 60, "h": 3600}
MAX_SECONDS = 7 * 24 * 3600
FIGURES = 16  # one draw of so many draws its figures, which takes longest
_CLOSE = 1e-9  # relative room of an accounted number
_MEMORY = "/dev/shm"  # nothing of a draw is kept: files need not reach a disk


@dataclass(frozen=True)
class Finding:
    """What is wrong in one draw, and the draw."""

    draw: Draw
    seed: int
    mechanism: str
    fault: str

    @property
    def kind(self) -> str:
        """The fault without its numbers: of each kind the first is told."""
        return re.sub(r"\d[\d.e+-]*", "#", self.fault)[:60]

    def line(self) -> str:
        """The finding and the command that reproduces it."""
        where = " > ".join(self.draw.target.chain)
        only = "" if self.mechanism == "all" else f" mechanism={self.mechanism}"
        again = f"dperm audit fuzz=1s seed={self.seed} draw={self.draw.number}{only}"
        fault = " ".join(self.fault.split())
        return f"finding: {where}, {self.draw.target.mode}: {fault} | {again}"


@dataclass
class Search:
    """What a search came to: findings in order, and how its draws ended."""

    findings: list[Finding] = field(default_factory=list)
    ended: Counter[str] = field(default_factory=Counter)

    def words(self) -> str:
        """One line for the whole."""
        counts = [f"{self.ended['ok']} replayed"]
        counts += [f"{self.ended[name]} {name}" for name in ("unsupported", "failed", "refused")]
        kinds = len({finding.kind for finding in self.findings})
        found = f"{len(self.findings)} findings" + (f" of {kinds} kinds" if kinds else "")
        return f"{self.ended.total()} draws: {', '.join(counts)}; {found}"


def is_asked(arguments: Sequence[str]) -> bool:
    """Whether a command line of ``dperm audit`` is one of the fuzzer's."""
    return any(word.partition("=")[0] == "fuzz" for word in arguments)


def fuzz(arguments: Sequence[str]) -> int:
    """Search for as long as was asked, printing findings as they come; 1 where there is one."""
    asked = parse(arguments)
    found = search(**asked, tell=lambda finding: print(finding.line(), flush=True))
    print(f"fuzz: seed {asked['seed']}, {found.words()}")
    return EXIT_FAILED if found.findings else EXIT_OK


def search(
    seed: int,
    numbers: Iterator[int] | range,
    *,
    mechanism: str = "all",
    out: Path | None = None,
    tell: Callable[[Finding], None] = lambda finding: None,
    most: int | None = None,
) -> Search:
    """Examine the draws of these numbers, at most until ``most`` findings.

    ``out`` keeps the files of draws with a finding; ``tell`` hears of the first finding of a kind.
    """
    found = Search()
    told: set[str] = set()
    # more threads change last bits of what is accounted from one call to the next
    place = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    kept = tempfile.TemporaryDirectory(prefix="dperm-fuzz-", dir=place)
    with threadpool_limits(1), open_meter(1) as shown, kept as name:
        scratch = Path(name)
        for number in numbers:
            drawn = draw(seed, number, mechanism)
            shown.step(f"{found.words()}; {' > '.join(drawn.target.chain)}", 0.0, 0.0)
            folder = scratch / str(number)
            status, faults = examine(drawn, folder, scratch / "cache")
            found.ended[status] += 1
            if status == "failed" and not faults:
                shown.note(f"failed on both files: draw {number}, {' > '.join(drawn.target.chain)}")
            for fault in faults:
                finding = Finding(drawn, seed, mechanism, fault)
                found.findings.append(finding)
                if finding.kind not in told:
                    told.add(finding.kind)
                    tell(finding)
            if faults and out is not None:
                _keep(folder, out, drawn)
            shutil.rmtree(folder, ignore_errors=True)
            if most is not None and len(found.findings) >= most:
                break
    return found


def examine(drawn: Draw, folder: Path, cache: Path) -> tuple[str, list[str]]:
    """How one draw ended (``ok``, ``unsupported``, ``failed``, ``refused``) and its faults."""
    first, second = drawn.write(folder)
    figures = drawn.number % FIGURES == 0
    fault, one, other = run_on_both(drawn.words, first, second, cache=cache, figures=figures)
    faults = [] if fault is None else [fault]
    if one.status == "refused" or one.code != other.code:
        return one.status, faults
    faults += find_excess(one) or find_excess(other)
    with _hide_output():
        faults += _check_plans_and_gate(drawn, first, second)
    return one.status, faults


def find_excess(made: RunOutput) -> list[str]:
    """A claim of more than was asked for."""
    for row in made.records:
        if row["status"] != "ok" or row["guarantee"] == "none":
            continue
        for name in ("epsilon", "delta"):
            claimed, asked = row[f"{name}_accounted"], row[name]
            if not claimed <= asked * (1.0 + _CLOSE):
                return [f"{name} accounted {claimed!r} is above the {asked!r} asked for"]
    return []


def _check_plans_and_gate(drawn: Draw, first: Path, second: Path) -> list[str]:
    """Plans, public facts and maps of both files, and what the gate hears of both."""
    one, other = _prepare_cell(drawn.words, first), _prepare_cell(drawn.words, second)
    try:
        facts = one.spec, other.spec
    except Unsupported:
        return []
    fault = first_difference(*facts, "public facts")
    maps = kernel_cells.basis_of(one.problem), kernel_cells.basis_of(other.problem)
    fault = fault or first_difference(*maps, "feature map")
    if fault:
        return [fault]
    plans = [_plan_or_reason(item) for item in (one, other)]
    fault = first_difference(plans[0], plans[1], "plan")
    if fault or isinstance(plans[0], str):
        return [fault] if fault else []
    if drawn.split and drawn.drops_record:
        return []  # another part of the records trains: more than one of them differs
    return _replay_at_gate(drawn, plans[0], one, other)


def _prepare_cell(words: Sequence[str], folder: Path) -> Prepared:
    with contextlib.chdir(folder):
        _, study = study_plan.parse_request(list(words))
        (found,) = run.prepare(study.cells)
        return prepared_cell.make_feature_rows(found) if found.cell.kernel is not None else found


def _plan_or_reason(item: Prepared) -> Any:
    """The plan under seeded noise, or why there is none."""
    try:
        spec: Any = item.spec
        return run_cell.plan_with_reserve(
            item.cell.mechanism, spec, prepared_cell.find_budget(item)[0]
        )
    except Unsupported as reason:
        return str(reason)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _replay_at_gate(drawn: Draw, made: Any, one: Prepared, other: Prepared) -> list[str]:
    mechanism = one.cell.mechanism
    problems: list[Any] = [item.viewed_problem for item in (one, other)]
    if one.cell.relation == "add_remove":
        problems[1] = _drop_record(drawn, made, *problems)
    if one.cell.kernel is not None and mechanism.space != "kernel":
        problems = [shift_problem(problem) for problem in problems]
    try:
        with shift_maps():
            found = replay(mechanism, run_cell.drop_reserve(made), *problems, seed=drawn.number)
    except Exception as error:
        # a solver that runs out of time fails in both runs
        late = isinstance(error, DpermError) and "not proved" in str(error)
        return [] if late else [f"replay: {type(error).__name__}: {error}"]
    faults = found.faults
    if found.worst <= 1.0 + _rounding(one.spec):
        faults = tuple(fault for fault in faults if "moved by" not in fault)
    return [f"replay: {fault}" for fault in faults[:1]]


def _rounding(spec: Any) -> float:
    """What float64 sums of n losses may be off by, in units of a record's slope.

    Research noise promises nothing below it (docs/threats.md); it is far below the replay's own
    tolerance but where a set is so wide that the regulariser's slope there dwarfs a record's.
    """
    if spec.space == "kernel" or not spec.lipschitz > 0.0:
        return 0.0
    return 2.0**-46 * spec.n * spec.lipschitz_total / spec.lipschitz


def _drop_record(drawn: Draw, made: Any, first: Any, second: Any) -> Any:
    """The neighbour without the record: the file without it, or nothing in its place.

    Where batches are drawn by number, the others must keep theirs: which number a record has is as
    random as what is drawn.
    """
    by_number = any(event.samples_records for event in made.events)
    if drawn.drops_record and not by_number:
        return second
    return replace_record(first, drawn.index, np.zeros(first.data.p), 1.0)


def parse(arguments: Sequence[str]) -> dict[str, Any]:
    """What a command line asks ``search`` for; InputError for what it cannot."""
    given = {"seed": "fresh", "draw": "", "mechanism": "all", "out": ""}
    given |= Syntax(keys=KEYS, operands=False).split(arguments).settings
    known = list(dict.fromkeys(target.chain[0] for target in targets()))
    mechanism = plugin_sources.choose("mechanism", given["mechanism"], ("all", *known))
    number = _whole("draw", given["draw"]) if given["draw"] else None
    seed = secrets.randbits(32) if given["seed"] == "fresh" else _whole("seed", given["seed"])
    out = Path(checks.path("out", given["out"])) if given["out"] else None
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError("out", given["out"], "must be a new or an empty folder")
    seconds = duration("fuzz", given["fuzz"])
    numbers = _count_until(seconds) if number is None else iter([number])
    return {"seed": seed, "numbers": numbers, "mechanism": mechanism, "out": out}


def duration(key: str, word: str) -> float:
    """Seconds of a time such as 30s, 10m or 1h; InputError for anything else."""
    found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?)([smh])", word)
    seconds = float(found[1]) * TIMES[found[2]] if found else 0.0
    if not 0.0 < seconds <= MAX_SECONDS:
        raise InputError(key, word, "must be a time such as 30s, 10m or 1h, at most 168h")
    return seconds


def _whole(key: str, word: str) -> int:
    if not re.fullmatch(r"\d{1,18}", word):
        words = "must be an integer >= 0" + (", or fresh" if key == "seed" else "")
        raise InputError(key, word, words)
    return int(word)


def _count_until(seconds: float) -> Iterator[int]:
    """0, 1, .. until the time is over; one at least."""
    end, number = time.monotonic() + seconds, 0
    while not number or time.monotonic() < end:
        yield number
        number += 1


@contextlib.contextmanager
def _hide_output() -> Iterator[None]:
    """Hide output and warnings: those of the runs were compared already."""
    nowhere = io.StringIO()
    told = contextlib.redirect_stderr(nowhere)
    with contextlib.redirect_stdout(nowhere), told, suppress_warnings():
        yield


def _keep(folder: Path, out: Path, drawn: Draw) -> None:
    to = out / f"draw-{drawn.number}"
    for path in folder.rglob("*"):
        if path.is_file():
            write_atomically(to / path.relative_to(folder), path.read_bytes())
    command = " ".join(["dperm", "run", *drawn.words])
    write_atomically(to / "command.txt", f"{command}\n".encode())
