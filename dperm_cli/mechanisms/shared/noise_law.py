"""Which noise a mechanism adds where it may choose: of a Gamma norm, or Gaussian."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

from dperm_cli.core.errors import Unsupported
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.budget import Budget

Planned = TypeVar("Planned")


def noise_moment(p: int, scale: float, gamma: bool) -> float:
    """E |b|^2 of one draw: p (p + 1) scale^2 for a Gamma norm, p scale^2 for a Gaussian."""
    return p * scale**2 * (p + 1.0 if gamma else 1.0)


def list_laws(asked: str, budget: Budget) -> tuple[bool, ...]:
    """Whether the noise may be of a Gamma norm, for each law that may be taken.

    Args:
        asked: ``gamma``, ``gaussian`` or ``auto``.
        budget: what may be spent; epsilon is infinite where a noise scale is asked about.

    Raises:
        Unsupported: Gaussian noise at delta = 0; ``auto`` with a noise scale in place of epsilon.
    """
    if asked == "gaussian" and budget.delta == 0.0:
        raise Unsupported("Gaussian noise needs delta > 0; use mechanism.noise=gamma")
    if asked == "gamma" or budget.delta == 0.0:
        return (True,)
    if asked == "gaussian":
        return (False,)
    if math.isinf(budget.epsilon):
        raise Unsupported(
            "a noise scale does not say which noise it is of: set mechanism.noise to gamma or "
            "gaussian, or give epsilon instead"
        )
    return (True, False)


def is_gamma_smaller(p: int, budget: Budget) -> bool:
    """Whether one release of p numbers has less noise, E |b|^2, of a Gamma norm than Gaussian.

    The first has scale S / epsilon and delta 0, the second S / mu(epsilon, delta), with one
    sensitivity S: Gamma norms win below p = (epsilon / mu)^2 - 1.
    """
    gamma = noise_moment(p, calibrate.pure_scale(budget.epsilon, 1.0), True)
    gaussian = calibrate.gaussian_scale(budget.epsilon, budget.delta, 1.0)
    return gamma < noise_moment(p, gaussian, False)


def choose_least(
    laws: tuple[bool, ...],
    plan: Callable[[bool], Planned],
    moment: Callable[[Planned], float],
) -> Planned:
    """The plan with the least E |b|^2 among those of the laws that may be taken.

    Args:
        laws: from ``list_laws``.
        plan: makes the plan of a law, with its own split of the budget.
        moment: E |b|^2 of a plan.

    Raises:
        Unsupported: no law has a plan; the words are those of the last.
    """
    found: list[Planned] = []
    for gamma in laws:
        try:
            found.append(plan(gamma))
        except Unsupported:
            if gamma is laws[-1] and not found:
                raise
    return min(found, key=moment)
