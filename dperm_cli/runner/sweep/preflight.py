"""What a study needs of memory, disk and time, from public facts, before any of its cells runs.

Needs of memory and disk are about right: their constants were measured, and a study that is refused
might at best have run with nothing to spare. Time is a guess: the arithmetic of the gradients of
the cells' plans, at one speed for all machines.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.digests import hash_facts
from dperm_cli.core.errors import StorageError, Unsupported
from dperm_cli.core.memory_limits import MemoryLimit, current_limit, format_bytes
from dperm_cli.datasets.base import Size
from dperm_cli.mechanisms.base import Plan
from dperm_cli.privacy.budget import Budget
from dperm_cli.problem.problem import spec_of
from dperm_cli.problem.public_facts import PublicFacts, bound_joint_rows, list_blocks
from dperm_cli.problem.regulariser import Regulariser
from dperm_cli.results.tables.summary_table import Field, Section, format_grid
from dperm_cli.runner.cells.cell_budget import delta_of, kind_of, plan_with_reserve
from dperm_cli.runner.cells.prepared_cell import Prepared
from dperm_cli.runner.compose.cell_schema import Cell
from dperm_cli.runner.sweep.backends import Options, cores
from dperm_cli.runner.sweep.data_storage import AUTO, choose_storage, count_bytes, find_size

STUDY = "the study"
INSTEAD = "take fewer records, columns, trials or workers, or set limits.memory to what there is"
_NUMBER = 8  # bytes
_RECORD = 24  # bytes of a record besides its row: name, target, end of a sparse row
# Measured: arrays of [trials, p], of [n] and of [p, p] (or [n, p] where p > n) that release and
# optimum hold at once. Larger squares are not formed.
_POINTS, _VECTORS, _SQUARES = 3, 8, 3
_MOST_SQUARE = 1 << 26
_LOADED = 10**8  # bytes of compiled loops and figures, which are loaded as the cells run
_WORKER = 150 * 10**6  # bytes of a worker process before it has any data
_RECORD_FILE = 4096  # bytes of the least record of a cell
_PRODUCTS = 2e8  # multiplications and additions a second
_READ = 2e7  # numbers that are read from a file or drawn in a second
_CELL_SECONDS = 0.1  # of a cell that computes next to nothing: plan, optimum, record
_PLANS = 32  # cells whose plans are made; the others are taken to be like them


@dataclass(frozen=True)
class Need:
    """One line of the preflight: a data set with its cells, or the whole study.

    None is unknown. Sizes are in bytes: ``memory`` and ``disk`` are about what is needed.
    """

    dataset: str
    n: int | None
    p: int | None
    nonzeros: int | None
    unpacked: int | None
    cells: int
    trials: int
    workers: int
    memory: int | None
    memory_allowed: int
    disk: int | None
    disk_free: int
    seconds: float | None

    def plain(self) -> dict[str, Any]:
        """The line as a JSON-able map."""
        return vars(self) | {"fits": self.fits}

    @property
    def fits(self) -> bool | None:
        """Whether memory and disk suffice; None where a need is unknown."""
        if self.memory is not None and self.memory > self.memory_allowed:
            return False
        if self.disk is not None and self.disk > self.disk_free:
            return False
        return None if None in (self.memory, self.disk) else True


def list_needs(
    cells: Sequence[Cell], options: Options, out: Path, storage: str = AUTO
) -> list[Need]:
    """A line for each data set of a study, and one for the whole; nothing is loaded or written."""
    limit, free, workers = current_limit(), _free_bytes(out), count_workers(options, len(cells))
    lines, held, work = [], [], []
    mapped = choose_storage(cells, storage)
    for group in group_by_data(cells):
        size = find_size(group[0].dataset, count=True)
        stored, own = count_bytes(size), [_work_bytes(cell, size) for cell in group]
        data = stored if not _takes_none(group[0], mapped) or stored is None else 0
        records = sum(_record_bytes(cell, size) for cell in group)
        population = group[0].population
        line = Need(
            dataset=group[0].name_of("dataset"),
            n=size.n if population is None else population,
            p=size.p,
            nonzeros=size.entries,
            unpacked=size.unpacked,
            cells=len(group),
            trials=max(cell.trials for cell in group),
            workers=workers,
            memory=None if data is None else data + max(own),
            memory_allowed=limit.bytes,
            disk=None if stored is None else records + (stored if workers > 1 else 0),
            disk_free=free,
            seconds=_guess_seconds(group, size, workers),
        )
        lines.append(line)
        held.append(data)
        work.append(max(own))
    data = _total(held)
    seconds = [line.seconds for line in lines]
    whole = Need(
        dataset=STUDY, n=None, p=None, nonzeros=None, unpacked=None,
        cells=len(cells), trials=max(cell.trials for cell in cells), workers=workers,
        memory=None if data is None else limit.used + data + _at_work(limit, max(work), workers),
        memory_allowed=limit.bytes, disk=_total([line.disk for line in lines]),
        disk_free=free, seconds=None if None in seconds else sum(filter(None, seconds)),
    )  # fmt: skip
    return [*lines, whole]


def format_needs(needs: Sequence[Need]) -> str:
    """The lines as a table for a terminal."""

    def column(top: str, low: str, text: Callable[[Need], str], left: bool = False) -> Field:
        return Field(top, low, text, left)  # type: ignore[arg-type]

    def size(value: int | None) -> str:
        return "?" if value is None else format_bytes(value)

    def count(value: int | None) -> str:
        return "" if value is None else f"{value:,}"

    words = {True: "yes", False: "no", None: "?"}
    fields = (
        column("dataset", "", lambda need: need.dataset, left=True),
        column("n", "", lambda need: count(need.n)),
        column("p", "", lambda need: count(need.p)),
        column("nonzeros", "at most", lambda need: count(need.nonzeros)),
        column("unpacked", "", lambda need: "" if need.unpacked is None else size(need.unpacked)),
        column("cells", "", lambda need: count(need.cells)),
        column("trials", "", lambda need: count(need.trials)),
        column("workers", "", lambda need: count(need.workers)),
        column("memory", "about", lambda need: size(need.memory)),
        column("memory", "allowed", lambda need: size(need.memory_allowed)),
        column("disk", "about", lambda need: size(need.disk)),
        column("disk", "free", lambda need: size(need.disk_free)),
        column("time", "about", lambda need: _in_words(need.seconds)),
        column("fits", "", lambda need: words[need.fits], left=True),
    )
    body = tuple(tuple(field.text(need) for field in fields) for need in needs)  # type: ignore
    return format_grid(Section((), fields, body))


def _in_words(seconds: float | None) -> str:
    if seconds is None:
        return "?"
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:,.0f} h"


def check_declared(cells: Sequence[Cell], mapped: Mapping[str, bool]) -> None:
    """Refuse data sets and cells that need too much, as far as is known before they are loaded.

    Args:
        cells: Of a study.
        mapped: Of ``choose_storage``.

    Raises:
        InputError: They need more memory than is allowed.
    """
    limit = current_limit()
    data = work = 0
    for group in group_by_data(cells):
        size = find_size(group[0].dataset)
        data += 0 if _takes_none(group[0], mapped) else count_bytes(size) or 0
        work = max(work, *(_work_bytes(cell, size) for cell in group))
    limit.check(data + work, STUDY, INSTEAD)


def check_loaded(todo: Sequence[Prepared], options: Options, out: Path) -> None:
    """Refuse cells that cannot run beside the data, which are in memory by now.

    Args:
        todo: the cells that have no record yet.
        options: where they run.
        out: the study's folder.

    Raises:
        InputError: memory does not suffice.
        StorageError: the disk does not.
    """
    if not todo:
        return
    limit, workers = current_limit(), count_workers(options, len(todo))
    if limit.addresses:
        _reserve_arrow()
    work = max(
        _release_bytes(item.population, item.data.p, item.problem.p, item.cell.trials)
        + (_NUMBER * item.data.x.size if item.data.blocks else 0)
        for item in todo
    )
    limit.check(_at_work(limit, work, workers), STUDY, INSTEAD)
    needed = sum(_RECORD_FILE + _NUMBER * item.cell.trials * item.problem.p for item in todo)
    if workers > 1:
        shared = {id(item.data): item.data for item in todo}.values()
        needed += sum(_NUMBER * data.x.size + _RECORD * data.n for data in shared)
    free = _free_bytes(out)
    if needed > free:
        words = f"the study needs about {format_bytes(needed)} on the disk, and "
        raise StorageError(f"{out}: {words}{format_bytes(free)} are free; set out=FOLDER elsewhere")


def _takes_none(cell: Cell, mapped: Mapping[str, bool]) -> bool:
    """Whether the records of a cell's data set are never in memory as a whole."""
    return mapped[hash_facts(cell.config["dataset"])] and cell.dataset.split_later is not None


def count_workers(options: Options, cells: int) -> int:
    """How many processes of this machine compute cells at the same time."""
    if options.backend == "submitit" or options.address != "auto":
        return 1  # the others are on other machines
    if options.workers != "auto":
        return min(options.workers, max(1, cells))
    backend = options.choose_backend(cells)
    return 1 if backend is None else min(backend.workers, cores())


def group_by_data(cells: Sequence[Cell]) -> list[list[Cell]]:
    """The cells of each data set, in order."""
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        found.setdefault(hash_facts(cell.config["dataset"]), []).append(cell)
    return list(found.values())


def _work_bytes(cell: Cell, size: Size) -> int:
    """What a release takes beside the records."""
    facts, parameters = _facts(cell, size), _count_parameters(cell, size)
    if facts is None or parameters is None:
        return 0
    copies = (count_bytes(size) or 0) if cell.dataset.scalings else 0  # columns of each candidate
    return copies + _release_bytes(facts.n, facts.p, parameters, cell.trials)


def _release_bytes(n: int, p: int, parameters: int, trials: int) -> int:
    square = min(n, p) * p
    numbers = _POINTS * trials * parameters + _VECTORS * n
    if square <= _MOST_SQUARE:
        numbers += _SQUARES * square
    return _LOADED + _NUMBER * numbers


def _reserve_arrow() -> None:
    """Have Arrow take the addresses, a gigabyte of them, that it takes for the first record."""
    import pyarrow

    pyarrow.allocate_buffer(1)


def _record_bytes(cell: Cell, size: Size) -> int:
    p = _count_parameters(cell, size)
    return _RECORD_FILE + (0 if p is None else _NUMBER * cell.trials * p)


def _at_work(limit: MemoryLimit, work: int, workers: int) -> int:
    """What the cells take beside process and data; ``ulimit -v`` counts each process alone."""
    return work if workers == 1 or limit.addresses else workers * (_WORKER + work)


def _facts(cell: Cell, size: Size) -> PublicFacts | None:
    """The public facts that the plan of a cell follows from; None where they are not known yet."""
    dataset = cell.dataset
    if size.p is None or cell.kernel is not None:
        return None
    n = cell.population or max(1, (size.n or 1) - size.held_out)
    bound = getattr(dataset, "row_bound", 1.0)
    row = 1.0 if isinstance(bound, str) else float(bound)
    times = len(dataset.scalings) or 1
    p = size.p + times * int(dataset.intercept)
    if dataset.norm in ("inf", math.inf):
        row *= math.sqrt(p / times)
    blocks = list_blocks(dataset.scalings, p // times, [row] * len(dataset.scalings))
    row = bound_joint_rows(blocks) if blocks else row
    classes = dataset.classes if isinstance(dataset.classes, int) else 2
    classes = len(dataset.class_labels) if dataset.classes == "all" else classes
    return PublicFacts(n, p, dataset.task, classes, row, 1.0, blocks=blocks)


def _count_parameters(cell: Cell, size: Size) -> int | None:
    facts = _facts(cell, size)
    return None if facts is None else int(cell.loss.dimension(facts))


def _guess_seconds(cells: Sequence[Cell], size: Size, workers: int) -> float | None:
    """Reading or drawing the records once, and the gradients of every cell's plan."""
    stored = size.cells
    if size.n is None or stored is None or any(cell.kernel is not None for cell in cells):
        return None
    planned = cells[:: -(-len(cells) // _PLANS)]
    products = [_count_products(cell, size, stored / max(1, size.n)) for cell in planned]
    each = _CELL_SECONDS + sum(products) / len(products) / _PRODUCTS
    return stored / _READ + len(cells) * each / workers


def _count_products(cell: Cell, size: Size, entries: float) -> float:
    """Multiplications of all trials of a cell: each gradient goes twice through its row."""
    facts = _facts(cell, size)
    assert facts is not None
    constraint = cell.constraint(facts)
    spec = spec_of(facts, cell.loss, constraint, Regulariser(cell.ridge, cell.lasso))
    try:
        kind = kind_of(cell.mechanism_name, cell.mechanism, cell.privacy, cell.delta, cell.relation)
        delta = 0.0 if kind in ("pure", "local") else delta_of(cell.delta, facts.n)
        trust = "local" if kind == "local" else "central"
        budget = Budget(cell.epsilon, delta, cell.relation, trust, cell.information)
        plan = plan_with_reserve(cell.mechanism, spec, budget)
    except Unsupported:
        return 0.0
    return _count_plan_products(plan, facts, entries) * cell.trials


def _count_plan_products(plan: Plan, facts: PublicFacts, entries: float) -> float:
    """Those of one release."""
    gradients = sum(event.gradients(facts.n) or facts.n for event in plan.events)
    per_row = facts.classes if facts.task == "multiclass" else 1
    return 2.0 * entries * per_row * gradients


def guess_release(plan: Plan, facts: PublicFacts, parameters: int) -> tuple[float, int]:
    """About the seconds and bytes of one release from dense records, which are read first."""
    products = _count_plan_products(plan, facts, facts.p)
    stored = facts.n * facts.p
    seconds = _CELL_SECONDS + stored / _READ + products / _PRODUCTS
    memory = _NUMBER * stored + _RECORD * facts.n
    return seconds, memory + _release_bytes(facts.n, facts.p, parameters, 1)


def _total(values: Sequence[int | None]) -> int | None:
    return None if None in values else sum(filter(None, values))


def _free_bytes(out: Path) -> int:
    """What is free on the disk that the folder lies on, or will."""
    place = next(folder for folder in (out.absolute(), *out.absolute().parents) if folder.exists())
    return shutil.disk_usage(place).free
