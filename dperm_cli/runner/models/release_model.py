"""From a prepared cell to what may leave of one release."""

from __future__ import annotations

from collections.abc import Callable

from dperm_cli.privacy.accounting.group_privacy import budget_for_record
from dperm_cli.runner.cells import prepared_cell
from dperm_cli.runner.cells.prepared_cell import Prepared
from dperm_cli.runner.cells.run_cell import Planned
from dperm_cli.runner.cells.single_release import SingleRelease, draw_release, plan_release
from dperm_cli.runner.models import save_model
from dperm_cli.runner.models.publishable import Publishable


def release_model(
    prepared: Prepared, reserve: Callable[[Planned], None]
) -> tuple[SingleRelease, Publishable]:
    """Plan from public facts, reserve, draw, and keep what may leave.

    Args:
        prepared: a cell of one trial with its records.
        reserve: called with the plan before any noise is drawn.

    Raises:
        InputError: nothing of such a cell may be given away.
        Unsupported: the mechanism has no such plan.
        PrivacyError: it has no guarantee, or ``reserve`` finds no room for it.
    """
    cell = prepared.cell
    save_model.check_cell(cell)
    described = save_model.schema_of(prepared)
    budget = prepared_cell.find_budget(prepared)[0]
    features = save_model.features_of(prepared)  # of the rows that are still to be made
    prepared = prepared_cell.make_feature_rows(prepared)
    size = 1 if described.table is None else described.table.unit.at_most
    planned = plan_release(prepared, budget_for_record(budget, size))
    single = draw_release(prepared, planned, lambda: reserve(planned))
    theta, spec, described = save_model.take_chosen(
        prepared, described, single.theta, single.chosen
    )
    found = Publishable.of(
        single.plan, theta, spec, described, mechanism=single.mechanism,
        noise=cell.noise, arithmetic=single.arithmetic, population=cell.population,
        features=features,
    )  # fmt: skip
    return single, found
