"""``save=``: from a finished run to the file of its predictor.

What is written is a ``Publishable`` (``runner/models/publishable.py``) and nothing else; this
module picks the public parts of a cell and of its record that one is made of.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dperm_cli.core.candidate_lists import SCALING
from dperm_cli.core.errors import InputError, PrivacyError
from dperm_cli.core.files import OutputFile
from dperm_cli.kernels.shared.feature_maps import Landmarks
from dperm_cli.mechanisms.base import Plan
from dperm_cli.mechanisms.shared import tuning_candidates
from dperm_cli.results.records.row_facts import read_map
from dperm_cli.runner.cells import kernel_cells
from dperm_cli.runner.cells.ledger_accountant import Accounting, events_of, read_claim
from dperm_cli.runner.cells.prepared_cell import Prepared
from dperm_cli.runner.compose import cell_schema
from dperm_cli.runner.models import model_file
from dperm_cli.runner.models.input_schema import TASKS, InputSchema, build_schema
from dperm_cli.runner.models.publishable import FeatureMap, Publishable


def check_path(word: Any) -> OutputFile | None:
    """Where to save, or None; InputError for what is no file name ending in .npz."""
    if word is None or word == "none":
        return None
    if not isinstance(word, str) or not word.endswith(".npz") or "\0" in word:
        raise InputError("save", word, "must be a file name ending in .npz, or none")
    return OutputFile.of("save", word)


def check_cell(cell: cell_schema.Cell) -> None:
    """InputError where nothing of the cell may be given away."""
    if cell.mechanism.is_unprotected:
        raise InputError("save", cell.mechanism_name, "gives no guarantee: it is not saved")
    if cell.dataset.task not in TASKS:
        raise InputError("save", cell.dataset.task, "saves models that predict labels or targets")
    if cell.kernel is not None and cell.kernel.name in model_file.NO_KERNEL:
        allowed = "cannot be saved: its matrix says more than the guarantee covers"
        raise InputError("save", f"kernel={cell.kernel.name}", allowed)
    if cell.dataset.unsafe_scaling:
        allowed = "cannot be saved: the scaling was fitted to the records"
        raise InputError("save", "dataset.unsafe_scaling", allowed)
    if getattr(cell.dataset, "phi", None) is not None:
        allowed = "cannot be saved: new rows are not taken through the projection of the records"
        raise InputError("save", "dataset.phi", allowed)
    if cell.relation == "add_remove" and cell.population is None:
        allowed = "under add_remove the number of records is private, and noise, steps and delta "
        allowed += "follow it: declare privacy.population to save a model"
        raise InputError("save", "privacy.population=auto", allowed)


def schema_of(item: Prepared) -> InputSchema:
    """What raw rows of the cell's data set look like; InputError where that cannot be written.

    Where a run chooses among scalings, the first one's rows.
    """
    dataset, width, bound = item.cell.dataset, item.data.p, item.data.row_bound
    if item.data.blocks:
        first = item.data.blocks[0]
        dataset, width, bound = dataset.take_scaling(first.name), first.width, first.row_bound
    found = build_schema(dataset, width=width, row_bound=bound)
    names = found.columns or ()
    for name in (*names, *([found.target] if found.target else [])):
        if not name.isprintable() or not name or names.count(name) > 1:
            allowed = "must be a column name of its own that can be printed: rows are read by name"
            raise InputError("save", f"column {name!r}", allowed)
    return found


def publishable(item: Prepared, found: InputSchema, row: Mapping[str, Any]) -> Publishable:
    """What may leave of a record: its point, its plan and the public facts of its cell.

    Of the record nothing is read but theta and the candidate chosen, which were released, and of
    the plan the events, the relation, delta, the guarantee's kind, steps and scale, noise and
    arithmetic: all of them fixed before a record of the data set was seen.

    Raises:
        PrivacyError: the record's epsilon does not follow from its events.
    """
    fault = Accounting().fault(row)
    if fault is not None:
        raise PrivacyError(f"not saved: the record {fault}")
    plan = Plan(events_of(row), row["noise_scale"], row["steps"], guarantee=read_claim(row))
    chosen = read_map(read_map(row["settings"]).get("tuning")).get("chosen")
    theta, spec, found = take_chosen(item, found, np.asarray(row["theta"]), chosen)
    try:
        return Publishable.of(
            plan, theta, spec, found, mechanism=item.cell.mechanism_name,
            noise=item.cell.noise, arithmetic=row["arithmetic"], population=item.cell.population,
            features=features_of(item), plugins=row["plugins"],
        )  # fmt: skip
    except ValueError as error:
        raise PrivacyError(f"not saved: {error}") from None


def take_chosen(
    item: Prepared, found: InputSchema, theta: np.ndarray, chosen: Any
) -> tuple[np.ndarray, Any, InputSchema]:
    """A point with the spec and the schema of its own columns, where scalings were candidates.

    Args:
        item: the cell with its records.
        found: its schema, as ``schema_of`` gives it.
        theta: the released point [p].
        chosen: the candidate that was released with it; without one, the start was, which is zero
            under every scaling.

    Returns:
        The three as they are given where rows are of one scaling.
    """
    spec: Any = item.spec
    if not item.data.blocks:
        return theta, spec, found
    choice = {SCALING: (chosen or {}).get(SCALING, item.data.blocks[0].name)}
    block = tuning_candidates.find_block(item.data, choice)
    assert block is not None
    own = build_schema(
        item.cell.dataset.take_scaling(block.name), width=block.width, row_bound=block.row_bound
    )
    coordinates = tuning_candidates.take_coordinates(spec, block)
    return theta[coordinates], tuning_candidates.change_facts(spec, choice), own


def features_of(item: Prepared) -> FeatureMap | None:
    """The public map of a cell with a kernel."""
    basis = kernel_cells.basis_of(item.problem)
    if basis is None:
        return None
    kernel, own = item.cell.kernel, item.kernel
    asked = own is not None and isinstance(basis, Landmarks) and basis.points is own.queries
    return FeatureMap.of(basis, kernel.queries if asked else kernel.landmarks)


def check_free(to: OutputFile) -> None:
    """InputError where a file of this name holds something: a release replaces nothing."""
    if to.read_existing():
        allowed = "exists, and a release replaces nothing: choose another name, or remove it"
        raise InputError("save", str(to.path), allowed)


def save(to: OutputFile, found: Publishable) -> None:
    """Write the model file, unless it is there already.

    Raises:
        StorageError: it cannot be written.
        InputError: there is a file of this name that holds something else.
    """
    model = model_file.bytes_of(found)
    if to.read_existing() != model:
        check_free(to)
        to.write(model)
