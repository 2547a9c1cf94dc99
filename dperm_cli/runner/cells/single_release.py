"""Make one release of a cell, and nothing beside it: no optimum, no risk, no metric.

What comes out is the released point and the plan, which was fixed from public facts before a record
was used. So a document that is made of it says nothing of the records that the guarantee does not
cover.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError, PrivacyError
from dperm_cli.mechanisms.base import Plan
from dperm_cli.privacy.budget import Budget, Guarantee
from dperm_cli.runner.cells import cell_budget, run_cell
from dperm_cli.runner.cells.prepared_cell import Prepared
from dperm_cli.runner.cells.run_cell import Planned


@dataclass(frozen=True, eq=False)
class SingleRelease:
    """One release.

    Attributes:
        theta: the released point [p].
        plan: what was fixed before it.
        guarantee: of the plan's events, for one record.
        mechanism: the name of the one that made it, which ``auto`` chose where it was asked for.
        arithmetic: what values and noise are made of.
        chosen: the candidate of a private choice that was released too, if there was one.
    """

    theta: np.ndarray
    plan: Plan
    guarantee: Guarantee
    mechanism: str
    arithmetic: str
    chosen: Mapping[str, Any] | None = None


def plan_release(prepared: Prepared, budget: Budget) -> Planned:
    """The plan of one release, checked against its budget.

    Args:
        prepared: a cell with its data, of one trial and without plug-ins from outside.
        budget: for one record.

    Raises:
        InputError: the cell is of several trials, or rests on plug-ins.
        Unsupported: the mechanism has no such plan.
        PrivacyError: the plan exceeds the budget, or gives no guarantee.
    """
    cell = prepared.cell
    if cell.trials != 1:
        raise InputError("trials", cell.trials, "must be 1: a release is made once")
    if prepared.plugins is not None:
        raise InputError("--plugin", prepared.plugins, "cannot take part in a release")
    kind = cell_budget.kind_of(
        cell.mechanism_name, cell.mechanism, cell.privacy, cell.delta, cell.relation
    )
    _ = prepared.spec  # Unsupported where the parts do not fit
    plan, grid = run_cell.plan_of(prepared, budget)
    guarantee = run_cell.check(plan, budget, kind)
    if guarantee.kind == "none":
        raise PrivacyError(f"{cell.mechanism_name} gives no guarantee: nothing of it is released")
    return Planned(budget, kind, plan, grid, guarantee)


def draw_release(
    prepared: Prepared, planned: Planned, reserve: Callable[[], None] = lambda: None
) -> SingleRelease:
    """Draw the noise and release, once.

    Args:
        prepared: the cell that ``planned`` is of.
        planned: as ``plan_release`` gives it.
        reserve: called before any noise is drawn; a budget keeps its entry here.

    Raises:
        FloatingPointError: the released point is not finite.
    """
    cell = prepared.cell
    view, plan, gate = run_cell.open_release(prepared, planned.plan, planned.budget, planned.grid)
    reserve()
    with run_cell.close_view(view, False):
        released = cell.mechanism.release(view, plan, gate.fix())
    run_cell.check_drawn(cell.mechanism, gate)
    held = prepared.problem.constraint if cell.kernel is None else None
    (theta,) = run_cell.read_points(cell.mechanism, released, 1, held)
    if not np.all(np.isfinite(theta)):
        raise FloatingPointError("the released point is not finite")
    return SingleRelease(
        theta, planned.plan, planned.guarantee,
        name_mechanism(prepared, planned.plan),
        run_cell.describe_arithmetic(cell, planned.kind, planned.grid),
        next(iter(released.info.get("chosen", ())), None),
    )  # fmt: skip


def name_mechanism(prepared: Prepared, plan: Plan) -> str:
    """The mechanism of a plan: the one that ``auto`` chose, where it was asked for."""
    chosen = plan.settings.get("chosen")
    return chosen if isinstance(chosen, str) else prepared.cell.mechanism_name
