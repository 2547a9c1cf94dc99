"""One release of records that a call is given, through the same code as ``dperm release``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dperm_cli.api.requests import open_call
from dperm_cli.core.errors import InputError
from dperm_cli.runner.cells.run_cell import Planned
from dperm_cli.runner.cells.single_release import name_mechanism
from dperm_cli.runner.compose import study_plan
from dperm_cli.runner.models import save_model
from dperm_cli.runner.models.publishable import Publishable
from dperm_cli.runner.models.release_model import release_model
from dperm_cli.runner.verbs.run import hold_machine, prepare

Reserve = Callable[[Planned, str, str], None]


def release_arrays(
    X: np.ndarray | None, y: np.ndarray | None, keys: Mapping[str, Any], reserve: Reserve
) -> Publishable:
    """Make one release.

    Args:
        X: rows [n, p]; None where ``dataset=frame`` has one at hand.
        y: labels or targets [n].
        keys: of a run, with their values.
        reserve: called with plan, relation and mechanism before any noise is drawn.

    Raises:
        InputError: a key makes no sense.
        Unsupported: no mechanism has such a plan.
    """
    with open_call((), keys, X=X, y=y, progress=False) as call:
        study = study_plan.plan_release(call.requests)
        if len(study.cells) != 1:
            allowed = "give one value for each parameter"
            raise InputError("fit", f"{len(study.cells)} problems", allowed)
        with hold_machine(study):
            (prepared,) = prepare(study.cells)
            relation = prepared.cell.relation

            def write(planned: Planned) -> None:
                reserve(planned, relation, name_mechanism(prepared, planned.plan))

            return release_model(prepared, write)[1]


def save(path: str, found: Publishable) -> None:
    """Write the model file; InputError for a name that does not end in .npz."""
    to = save_model.check_path(path)
    if to is None:
        raise InputError("path", path, "must be a file name ending in .npz")
    save_model.save(to, found)
