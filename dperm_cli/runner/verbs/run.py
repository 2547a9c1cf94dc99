"""``dperm run``: plan, validate, look up or run each cell, report from the store.

What only some runs need is imported by need: a study that is shown again takes no longer than that.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from threadpoolctl import threadpool_limits

from dperm_cli.core import checks, plugin_sources
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.digests import hash_facts
from dperm_cli.core.errors import EXIT_FAILED, EXIT_OK, InputError
from dperm_cli.core.files import find_special
from dperm_cli.core.foreign_errors import refuse_errors, suppress_warnings
from dperm_cli.core.memory_limits import hold_memory_to
from dperm_cli.core.operands import refuse_repeated
from dperm_cli.datasets.shared.invalid_records import count_zero_rows
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem
from dperm_cli.results.kept_report import Report
from dperm_cli.results.records import given_names, manifest
from dperm_cli.results.records.schema import json_lines
from dperm_cli.results.records.store import Store
from dperm_cli.results.records.study_lease import hold_lease
from dperm_cli.results.records.written_rows import hold_rows
from dperm_cli.results.study_files import EVERY, MANIFEST
from dperm_cli.runner.cells import prepared_cell
from dperm_cli.runner.cells.prepared_cell import Prepared
from dperm_cli.runner.compose import cell_schema, study_plan
from dperm_cli.runner.compose.command_line import Request
from dperm_cli.runner.models import machine_file
from dperm_cli.runner.studies import study_report
from dperm_cli.runner.sweep import data_storage, preflight
from dperm_cli.runner.sweep.progress import Tally
from dperm_cli.runner.sweep.sweep import run_cells

if TYPE_CHECKING:
    from dperm_cli.runner.models.study_model import StudyModel


def run(
    arguments: list[str], request: Request, study: study_plan.Study, figures: bool = True
) -> int:
    """Run a study that was planned from these arguments; returns the exit code.

    Without ``figures`` none is drawn, which takes longer than a small study itself.
    """
    if any(cell.noise == "secure" for cell in study.cells):  # its releases cannot be called back
        refuse_repeated(arguments)
    with hold_machine(study):
        return _run(arguments, request, study, figures)


@contextlib.contextmanager
def hold_machine(study: study_plan.Study) -> Iterator[None]:
    """What a study may take of the machine, and no warnings, while the block runs.

    One BLAS thread: more would change last bits from machine to machine, and fight the loops.
    """
    with threadpool_limits(1), suppress_warnings(), hold_memory_to(study.keys.memory):
        yield


def _run(arguments: list[str], request: Request, study: study_plan.Study, figures: bool) -> int:
    if request.show:
        print(json_lines(cell.config for cell in study.cells))
        return EXIT_OK
    out, form = Path(study.out), study.keys.format
    if request.preflight:
        needs = preflight.list_needs(study.cells, study.keys, out, study.keys.data_storage)
        rows = json_lines(need.plain() for need in needs)
        print(rows if form == "json" else preflight.format_needs(needs))
        return EXIT_OK

    def print_tables() -> Report:
        made = study_report.report_run(out, figures)
        return study_report.print_report(made, out, form)

    done = run_study(arguments, study, print_tables)
    if done.is_unsupported:
        from dperm_cli.runner.compose import fitting_mechanism

        fitting_mechanism.print_advice("every cell", done.find_fitting())
    if done.tally.failed_count or done.is_unsupported or done.unsaved:
        return EXIT_FAILED
    return study_report.exit_code(done.report)


@dataclass(frozen=True)
class StudyRun:
    """How a study ended.

    Attributes:
        first: the first cell with its data.
        tally: how its cells ended.
        report: of the files that were written.
        unsaved: whether ``save=`` asked for a predictor, and there is none.
    """

    first: Prepared
    tally: Tally
    report: Report
    unsaved: bool = False

    @property
    def is_unsupported(self) -> bool:
        """Whether no cell has a guarantee."""
        return {row["status"] for row in self.report.summary} == {"unsupported"}

    def find_fitting(self) -> str | None:
        """A mechanism that can do what no cell can."""
        from dperm_cli.runner.compose import fitting_mechanism

        return fitting_mechanism.find_for_cell(self.first)


def run_study(
    arguments: Sequence[str], study: study_plan.Study, make_report: Callable[[], Report]
) -> StudyRun:
    """Run or look up all cells of a study; nothing is printed on stdout but by ``make_report``.

    Args:
        arguments: The words that the manifest keeps.
        study: The cells, and where they go.
        make_report: Writes the tables, figures and ledger of the study's folder.
    """
    with hold_machine(study), hold_rows():
        return _run_study(arguments, study, make_report)


def _run_study(
    arguments: Sequence[str], study: study_plan.Study, make_report: Callable[[], Report]
) -> StudyRun:
    model = _open_model(study)
    prepared = _prepare_study(study)
    if model is not None:
        model.describe(prepared[0])
    out = Path(study.out)
    check_folder(out)
    store, keys, is_new = Store(out), [item.key for item in prepared], not out.exists()
    states = {} if study.keys.force else {key: store.status(key) for key in keys}
    todo = [item for item in prepared if states.get(item.key, "absent") in ("absent", "broken")]
    if model is not None and todo:
        model.check_free()
    preflight.check_loaded(todo, study.keys, out)
    warn_of_columns(prepared)
    warn_of_records(prepared)
    with leave_nothing_new(out if is_new else None), hold_lease(out):
        words = study_plan.drop_study_keys(arguments)
        names = given_names.write_names({item.key: item.cell.names for item in prepared})
        facts = {"study": study.name, **names, **_list_plugins()}
        store.write_manifest(manifest.build(keys, words, facts))
        tally = run_cells(prepared, store, study.keys.force, study.keys, states)
        made = make_report()
        kept = model is None or (not tally.failed_count and model.save(store))
        return StudyRun(prepared[0], tally, made, not kept)


def _open_model(study: study_plan.Study) -> StudyModel | None:
    """The predictor that ``save=`` asks for, if any."""
    if study.keys.save is None or study.keys.save == "none":
        return None
    from dperm_cli.runner.models.study_model import StudyModel

    return StudyModel.open(study.keys.save, study.cells)


def _prepare_study(study: study_plan.Study) -> list[Prepared]:
    """The cells with their data, which can be run as the study asks for."""
    if study.keys.split != "rows":
        return prepare(study.cells, study.keys.data_storage)
    from dperm_cli.runner.sweep import split_run

    split_run.check_cells(study.cells)
    prepared = prepare(study.cells, study.keys.data_storage)
    split_run.check_loaded(prepared)
    return prepared


@contextlib.contextmanager
def leave_nothing_new(out: Path | None) -> Iterator[None]:
    """Take away a new folder that holds a manifest alone, where a back end refuses to start."""
    try:
        yield
    except InputError:
        if out is not None and [path.name for path in out.glob("*")] == [MANIFEST]:
            with contextlib.suppress(OSError):
                (out / MANIFEST).unlink()
                out.rmdir()
        raise


def _list_plugins() -> dict[str, list[str]]:
    """What of plug-ins from outside stands in the manifest; nothing where there are none."""
    found = [f"{s.label}, sha256 {s.digest}" for s in plugin_sources.list_sources()]
    return {"plugins": found} if found else {}


def check_folder(out: Path) -> None:
    """InputError when the output folder is a file, or holds files of that name by somebody else."""
    checks.folder("out", str(out))
    ours = (*EVERY, machine_file.IN_STUDY)
    for name in ours:
        special = find_special(out / name)
        if special is not None:
            allowed = f"holds {special} by the name of {name}; choose another folder"
            raise InputError("out", str(out), allowed)
    found = [name for name in ours if (out / name).exists()]
    if found and Store(out).read_manifest() is None and not Store(out).cells():
        allowed = f"holds a {found[0]} that is no study's; choose another folder"
        raise InputError("out", str(out), allowed)


def prepare(
    study_cells: tuple[cell_schema.Cell, ...], storage: str = data_storage.AUTO
) -> list[Prepared]:
    """Load every data set and join it to its cells; nothing has run or been written yet.

    Args:
        study_cells: The cells.
        storage: Where records are while they are used: ``auto``, ``memory`` or ``mapped``.
    """
    mapped = data_storage.choose_storage(study_cells, storage)
    preflight.check_declared(study_cells, mapped)
    loaded: dict[str, Data] = {}
    prepared = []
    for item in study_cells:
        name = hash_facts(item.config["dataset"])
        with refuse_errors():
            if name not in loaded:
                loaded[name] = data_storage.load_records(item.dataset, mapped[name])
            data = loaded[name]
            _check_scaling(item, data)
            prepared.append(prepared_cell.prepare(item, data))
            _check_constants(item, prepared[-1].problem)
    return prepared


def warn_of_columns(prepared: Sequence[Prepared]) -> None:
    """A line on stderr for each data set whose rows are scaled on raw columns: it follows from what
    is declared."""
    raw = [item.cell for item in prepared if item.cell.dataset.is_raw]
    for item in {hash_facts(cell.config["dataset"]): cell for cell in raw}.values():
        words = item.dataset.warn_of_columns()
        print(f"warning: {item.name_of('dataset')}: {words}", file=sys.stderr)


def warn_of_records(prepared: Sequence[Prepared]) -> None:
    """A line on stderr for each data set most of whose records cannot be used.

    It is a fact of the records, as the optimum and metrics that it is printed beside.
    """
    zeroed = [one for one in prepared if one.cell.dataset.invalid == "zero"]
    for one in {hash_facts(item.cell.config["dataset"]): item for item in zeroed}.values():
        n, zero = one.data.n, count_zero_rows(one.data.x)
        if 2 * zero > n:
            name = one.cell.name_of("dataset")
            words = "a label or a cell of them cannot be used, and the figures say nothing"
            way = "compare labels, words and bounds that are declared with the table"
            told = f"{zero} of {n} training records are rows of zeros: {words}; {way}"
            print(f"warning: {name}: {told}", file=sys.stderr)


def _check_constants(item: cell_schema.Cell, problem: Problem) -> None:
    """InputError where bounds that follow from data set and set are beyond what can be computed."""
    low, high = cell_schema.CONSTANTS
    bound, radius = problem.data.row_bound, problem.constraint.radius
    for key, value, given in (
        ("dataset.row_bound", bound, bound),
        ("constraint.radius", radius, item.constraint_config.get("radius")),
    ):
        if not low <= value <= high:
            raise InputError(key, given, f"must make a bound between {low:g} and {high:g}")


def _check_scaling(item: cell_schema.Cell, data: Data) -> None:
    if data.data_dependent and not item.dataset.unsafe_scaling:
        allowed = (
            "is fitted to the data, which no guarantee covers; set dataset.unsafe_scaling=true"
        )
        raise InputError("dataset.scaling", data.preprocessing, allowed)
