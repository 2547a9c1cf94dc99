"""The noise of an evaluation: Laplace or Gaussian, whichever has less variance within a budget."""

from __future__ import annotations

import math

from dperm_cli.core.errors import PrivacyError, Unsupported
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Gaussian, Laplace
from dperm_cli.privacy.secure_grid import Grid, grid_for

LEAST_RATIO = 2.0**16  # noise scale over grid step


def choose_noise(l1: float, l2: float, budget: Budget) -> Laplace | Gaussian:
    """The event of one release of sums, certified to keep to a budget.

    Args:
        l1, l2: how far a neighbour moves the sums, at most, in both norms.
        budget: of central trust.

    Raises:
        Unsupported: for local trust.
    """
    if budget.trust != "central":
        raise Unsupported("held-out records are evaluated under central trust alone")
    relation, replaces = budget.relation, budget.relation == "replace_one"

    def add_laplace(scale: float) -> Laplace:
        return Laplace(scale, l1, gap=l1 if replaces else None, relation=relation)

    event: Laplace | Gaussian = add_laplace(calibrate.pure_scale(budget.epsilon, l1))
    if budget.delta > 0:
        level = {"epsilon": budget.epsilon, "delta": budget.delta}
        less = calibrate.scale_for(lambda scale: [add_laplace(scale)], **level, relation=relation)
        event = add_laplace(less)
        deviation = calibrate.gaussian_scale(**level, sensitivity=l2)
        if deviation**2 < 2 * less**2:
            event = Gaussian(deviation, l2, gap=l2 if replaces else None, relation=relation)
    spent = account([event], delta=budget.delta, relation=relation)
    if not spent.epsilon <= budget.epsilon:
        raise PrivacyError(f"the evaluation would spend epsilon {spent.epsilon}")
    return event


def find_grid(event: Laplace | Gaussian, records: int, step: float = 1.0) -> Grid:
    """The grid of secure noise on sums over so many records of multiples of ``step``."""
    fine = grid_for([event], float(records))
    return Grid(min(fine.exponent, math.frexp(step)[1] - 1))


def check_grid(event: Laplace | Gaussian, grid: Grid, records: int) -> None:
    """Unsupported where the grid cannot hold the noise."""
    if not LEAST_RATIO <= event.scale / grid.step <= 2.0**44:
        raise Unsupported(f"noise of scale {event.scale:.3g} on counts to {records} has no grid")
