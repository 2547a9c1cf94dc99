"""Prepare cells on made-up neighbouring data sets for the audit, as a run would.

Records are written to files and read back by the data set's own reader, so that the row rules, the
feature maps, the padding of a declared population and the runner's own steps are attacked with the
mechanism.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from dperm_cli.audit import declared_grid, hard_pairs
from dperm_cli.audit.case_report import Case, Neighbours
from dperm_cli.audit.first_difference import list_differences
from dperm_cli.audit.hard_pairs import Pair, Records, Shape
from dperm_cli.audit.opened_cell import FAILED, OK, UNSUPPORTED, OpenedCell
from dperm_cli.core import catalogue, registry
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import DpermError, InputError, Unsupported, describe_error
from dperm_cli.datasets.shared.file_options import FileOptions
from dperm_cli.losses.base import to_dense
from dperm_cli.problem.data import Data
from dperm_cli.runner.cells import cell_budget, kernel_cells, prepared_cell
from dperm_cli.runner.cells import run_cell as cells
from dperm_cli.runner.cells.prepared_cell import Prepared
from dperm_cli.runner.compose import cell_schema, study_plan
from dperm_cli.runner.compose.composer import Composer

# in a row of the grid
_OF_A_MAP = {"constraint": catalogue.defaults()["constraint"], "radius": 10.0, "lasso": 0.0}
_HELD_OUT = 8  # rows that come with every data set: queries and landmarks are taken from them


@dataclass(frozen=True)
class Subject:
    """A cell to audit, with the public facts that made-up records have to fit.

    ``words`` name the case. ``like`` are the records of a user's cell, of which public facts are
    taken.
    """

    cell: cell_schema.Cell
    shape: Shape
    words: str
    like: Data | None = None


def of_grid(name: str, row: Mapping[str, Any], composer: Composer) -> Subject:
    """The subject of a row of the grid's design; InputError where no run has such keys."""
    _check_stand_in(row)
    if row.get("map", "none") != "none" and any(row[key] != v for key, v in _OF_A_MAP.items()):
        raise InputError("map", row["map"], "is attacked on the ball of its own kernel")
    values = declared_grid.settings(name, row)
    words = " ".join(f"{key}={_format_value(value)}" for key, value in values.items())
    files = {"dataset.path": "records", "dataset.test_path": "held out"}
    config = copy.deepcopy(study_plan.configure(values | files, composer))
    cell = cell_schema.build_cell(config)
    task = declared_grid.find_task(row["loss"])
    shape = Shape(
        n=row["n"],
        p=row["p"],
        task=task,
        row_bound=float(row["row_bound"]),
        classes=declared_grid.CLASSES if task == "multiclass" else 2,
        nonnegative=row.get("kernel") == "histogram_intersection",
    )
    return Subject(cell, shape, f"{words} (p={row['p']})")


def _check_stand_in(row: Mapping[str, Any]) -> None:
    """InputError where no row stands for a record that is not there, or records are too few."""
    n = row["n"]
    if row.get("mechanism.batch", 1) > n:
        raise InputError("mechanism.batch", row["mechanism.batch"], f"is more than {n} records")
    if row["relation"] == "replace_one":
        return
    if n == 1 and row["relation"] != "add_remove":
        allowed = "is attacked with two records and more: a file without a record is refused"
        raise InputError("privacy.population", declared_grid.POPULATION, allowed)
    if declared_grid.find_task(row["loss"]) == "location":
        allowed = "is not attacked on location data: a row of zeros is a record there"
        raise InputError("privacy.relation", "add_remove", allowed)
    mapped = row.get("rows") == "intercept" or row.get("kernel", "linear") != "linear"
    mapped = mapped or row.get("map", "none") != "none"
    if mapped and row["relation"] == "add_remove":
        allowed = "is attacked with a declared population: here a row of zeros is a record"
        raise InputError("privacy.relation", "add_remove", allowed)


def _format_value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).replace(" ", "")


def of_cell(prepared: Prepared) -> Subject:
    """The subject of a cell that a user typed: its records are made up, its public facts kept."""
    cell, data = prepared.cell, prepared.data
    dense = isinstance(data.x, np.ndarray)
    bound = data.row_bound if data.entry_bound is None else data.entry_bound
    shape = Shape(data.n, data.p, data.task, float(bound), data.classes)
    options: dict[str, Any] = {
        "task": data.task, "rows": "clip", "row_bound": float(bound), "test_fraction": 0.0,
        "intercept": False,  # the rows have all their coordinates
        "norm": 2 if data.entry_bound is None else "inf",
    } | ({} if dense else {"n_features": data.p})  # fmt: skip
    if data.task == "regression":
        options["target_bounds"] = (-data.target_bound, data.target_bound)
    if data.task == "multiclass":
        options["labels"] = [str(label) for label in range(data.classes)]
    reader = registry.load("dataset", "npz" if dense else "svmlight")
    dataset = reader(path="records", **options)
    words = f"{cell.mechanism_name} on {data.name}"
    return Subject(replace(cell, dataset=dataset), shape, words, data)


def load(subject: Subject, records: Records, dense: bool = False) -> Data:
    """The records as a run would have them: through a file and the data set's reader.

    ``dense``: through the reader of dense rows, whatever the data set's is.
    """
    reader: Any = subject.cell.dataset
    if dense:
        reader = _make_dense_reader(reader)
    files = {"path": records}
    like = subject.like
    if like is None:
        files["test_path"] = _make_held_out(subject.shape)
    with tempfile.TemporaryDirectory(prefix="dperm-audit-") as folder:
        for key, found in files.items():
            # all files have one name, so that messages about them are equal on neighbours
            path = Path(folder, key, f"records.{reader.name}")
            path.parent.mkdir()
            found.write(path)
            reader = replace(reader, **{key: str(path)})
        data = reader.load(None)
    if like is None:
        return data
    public = ("x_test", "y_test", "entry_bound", "phi", "phi_row_bound", "row_bound",
              "target_bound", "name", "blocks")  # fmt: skip
    return replace(data, **{name: getattr(like, name) for name in public})


def _make_dense_reader(reader: Any) -> Any:
    """The reader of dense rows, with the same rules for rows."""
    options = {field.name: getattr(reader, field.name) for field in fields(FileOptions)}
    return registry.load("dataset", "npz")(**options)


def _make_held_out(shape: Shape) -> Records:
    """Rows that are public and the same for all neighbours."""
    other = replace(shape, n=_HELD_OUT)
    return hard_pairs.make("zero row", other, "replace_one", seed=977).first


def check_kind(subject: Subject) -> None:
    """Unsupported where the mechanism has no such guarantee, or needs what the cell has not."""
    cell = subject.cell
    cell_budget.kind_of(
        cell.mechanism_name, cell.mechanism, cell.privacy, cell.delta, cell.relation
    )
    inner = cell.mechanism.inner or cell.mechanism
    if inner.sampling == "fixed" and cell.relation == "add_remove":
        raise Unsupported("fixed-size batches need relation replace_one")
    if cell.noise == "secure" and not cell.mechanism.secure:
        raise Unsupported("no secure form")


def open_records(
    subject: Subject,
    records: Records,
    like: OpenedCell | None = None,
    plan: bool = True,
) -> OpenedCell:
    """The same from raw records; a reader that refuses them is a cell that failed.

    Without ``plan`` only the checks before planning are made, which take next to no time.
    """
    try:
        data = load(subject, records)
        if not plan:
            return _check_cell(subject, data)
    except Unsupported as reason:
        return OpenedCell(UNSUPPORTED, str(reason))
    except DpermError as error:
        return OpenedCell(FAILED, str(error))
    return open_on(subject, data, like)


def _check_cell(subject: Subject, data: Data) -> OpenedCell:
    cell = subject.cell
    prepared = prepared_cell.prepare(cell, data)
    cell.mechanism.check(prepared.spec, prepared_cell.find_budget(prepared)[0])
    return OpenedCell(OK)


def open_on(
    subject: Subject, data: Data, like: OpenedCell | None = None, noise_name: str | None = None
) -> OpenedCell:
    """What a run of the cell would do on these records, up to its release.

    Args:
        subject: the cell.
        data: the records.
        like: the same cell opened on other records, whose plan is taken where all public facts are
            equal: a plan is a function of these, which is checked on one pair of every case.
        noise_name: what the noise is named by instead of the records, so that two ways to store
            them have the same noise.
    """
    cell = subject.cell
    try:
        prepared = prepared_cell.prepare(cell, data)
        if noise_name is not None:
            prepared = replace(prepared, noise_name=noise_name)
        budget, kind = prepared_cell.find_budget(prepared)
        spec: Any = prepared.spec
        prepared = prepared_cell.make_feature_rows(prepared)
        is_known = like is not None and like.status == OK and like.budget == budget
        if like is not None and is_known and not list_differences(like.spec, spec):
            (made, step), guarantee = like.planned, like.guarantee
        else:
            made, step = cells.plan_of(prepared, budget)
            guarantee = cells.check(made, budget, kind, cell.mechanism.is_unprotected)
    except Unsupported as reason:
        return OpenedCell(UNSUPPORTED, str(reason))
    except DpermError as error:
        return OpenedCell(FAILED, str(error))
    except Exception as error:
        return OpenedCell(FAILED, describe_error(error)[:200])

    def release(trials: int, seed: int, tape: Any = None, view: Any = None) -> Any:
        """``trials`` releases as a run makes them; a tape hears them, if there is one."""
        fields = {"trials": trials} | ({} if cell.noise == "secure" else {"seed": seed})
        asked = replace(prepared, cell=replace(cell, **fields))
        own, planned, gate = cells.open_release(asked, made, budget, step)
        gate.tape = tape
        return cell.mechanism.release(own if view is None else view, planned, gate)

    def view() -> Any:
        return cells.open_release(
            replace(prepared, cell=replace(cell, trials=1)), made, budget, step
        )[0]

    return OpenedCell(
        status=OK,
        mechanism=cell.mechanism,
        problem=prepared.viewed_problem,
        spec=spec,
        data=data,
        plan=replace(made, events=cells.drop_reserve(made).events),
        budget=budget,
        guarantee=guarantee,
        public=_public(prepared, step),
        release=release,
        view=view,
        planned=(made, step),
        recheck=lambda other: cells.check(made, other, kind),
        noise_name=prepared.noise_name,
        secure=cell.noise == "secure",
        step=None if step is None else step.step,
    )


def _public(prepared: Prepared, step: Any) -> dict[str, Any]:
    """What must not depend on a record: maps, bounds, the set, names of steps, what is held out."""
    data, problem = prepared.data, prepared.padded_problem
    found = {
        "row_bound": data.row_bound, "target_bound": data.target_bound, "classes": data.classes,
        "preprocessing": data.preprocessing, "x_test": data.x_test, "p": problem.data.p,
        "constraint": problem.constraint, "population": prepared.population, "grid": step,
        "phi": data.phi,
    }  # fmt: skip
    x = prepared.padded_problem.data.x
    found["features"] = kernel_cells.basis_of(prepared.problem) or getattr(x, "features", None)
    if prepared.kernel is not None:
        own = prepared.kernel.spec()
        found |= {"basis": own.basis, "queries": own.queries}
    return found


def case(
    subject: Subject, kinds: Sequence[str], seed: int,
    planned: OpenedCell | None = None, given: tuple[Any, Any] | None = None,
) -> Case:  # fmt: skip
    """The case of a subject: neighbours of these kinds, rows of zeros, and twins of the first.

    ``planned`` is what is known of its plan; ``given`` two records of the user's.
    """
    cell, shape = subject.cell, subject.shape
    drop = cell.population is not None
    if cell.population is not None and subject.like is not None:
        shape = replace(shape, n=min(shape.n, cell.population))
    pairs = [
        hard_pairs.make(kind, shape, cell.relation, seed + place, drop, last=not place)
        for place, kind in enumerate(kinds)
    ]
    if given is not None:
        pairs.append(_make_user_pair(shape, cell, given, seed, drop))
    neighbours: list[Neighbours] = []
    for pair in pairs:
        # the second side of the first pair is planned for by itself
        like = neighbours[0].first if neighbours else None
        first = open_records(subject, pair.first, like or planned)
        neighbours.append(Neighbours(pair, first, open_records(subject, pair.second, like)))
    if given is not None:
        neighbours.insert(0, neighbours.pop())
    silent = None
    if shape.task != "location":
        silent = open_records(subject, hard_pairs.zeros(shape), neighbours[0].first)
    pure = cell.privacy in ("pure", "local") or cell.mechanism.guarantees == ("local",)
    asked = (cell.epsilon, 0.0 if pure else cell.delta, cell.relation)
    twins = _open_twins(subject, neighbours[0], silent)
    return Case(cell.mechanism_name, subject.words, neighbours, silent, twins, asked)


def _make_user_pair(
    shape: Shape, cell: cell_schema.Cell, given: tuple[Any, Any], seed: int, drop: bool
) -> Pair:
    """The user's two records among made-up ones; under add_remove the second is no record."""
    base = hard_pairs.make("zero row", shape, "replace_one", seed).first
    index = seed % shape.n
    first = base.replace(index, given[0])
    if cell.relation == "add_remove":
        return hard_pairs.leave_out("yours", first, index, drop)
    return Pair("yours", first, first.replace(index, given[1]), index)


def _open_twins(
    subject: Subject, first: Neighbours, silent: OpenedCell | None
) -> dict[str, tuple[OpenedCell, OpenedCell]]:
    """The first data set stored the other way, and secure noise beside seeded noise."""
    one = first.first
    if one.status != OK:
        return {}
    if subject.cell.noise == "secure":
        seeded = replace(subject, cell=replace(subject.cell, noise="research", seed=0))
        if silent is None:
            return {"seeded": (one, open_records(seeded, first.pair.first))}
        return {"seeded": (silent, open_records(seeded, hard_pairs.zeros(subject.shape)))}
    if subject.cell.dataset.name == "svmlight" and subject.like is None:
        dense = load(subject, first.pair.first, dense=True)
        # scaling of columns may round otherwise
        if np.array_equal(to_dense(one.data.x), dense.x):
            return {"sparse": (one, open_on(subject, dense, one, one.noise_name))}
    return {}
