"""Check that a sampler's draws on a line have the density exp(-f) of their potential.

The potential is the one that the mechanism asks its view for; that it moves by no more than was
accounted for is what the replay measures. Here its integral is taken by quadrature, and the draws
are compared with the distribution function [Kolmogorov-Smirnov].
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import kolmogorov

from dperm_cli.audit.opened_cell import OK, OpenedCell
from dperm_cli.views.central import CentralView

LEVEL = 1e-9
TRIALS = 3000
SAMPLER_ERROR = "sampler_error"  # the law of the event that accompanies such draws
_NODES = 20_001


class PotentialView(CentralView):
    """A view that keeps the potentials that are asked for."""

    def __init__(self, problem: Any) -> None:
        super().__init__(problem)
        self.potentials: list[Any] = []

    def potential(self, target: Any) -> Any:
        found = super().potential(target)
        self.potentials.append(found)
        return found


def is_applicable(one: OpenedCell) -> bool:
    """Whether a plan is one draw from a law on a line."""
    laws = [event for event in one.plan.events if event.law != SAMPLER_ERROR]
    drawn = len(laws) == 1 and laws[0].draws_from_law and laws[0].count == 1
    return drawn and one.status == OK and not one.secure and one.coordinates == 1


def find_faults(one: OpenedCell, trials: int, seed: int = 0) -> list[str]:
    """What is wrong with the draws, in words.

    The plan must be one draw on a line (``is_applicable``).
    """
    assert one.release is not None
    looking = PotentialView(one.problem)
    theta = np.asarray(one.release(trials, seed, None, looking).theta, dtype=float)[:, 0]
    if not looking.potentials:
        return []
    cdf = _distribution(looking.potentials[0], one.problem.constraint)
    if cdf is None:
        return []
    at = np.interp(np.sort(theta), *cdf)
    ranks = np.arange(1, len(at) + 1) / len(at)
    far = float(np.max(np.maximum(ranks - at, at - ranks + 1.0 / len(at))))
    allowed = sum(e.amount for e in one.plan.events if e.law == SAMPLER_ERROR)
    chance = float(kolmogorov(math.sqrt(len(at)) * max(far - allowed, 0.0)))
    if chance >= LEVEL:
        return []
    return [f"a sampler's draws do not have their density: distance {far:.3g}, chance {chance:.1g}"]


def _distribution(potential: Any, body: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Points of the set and the distribution function there, or None beyond float64."""
    ends = [float(body.project(np.array([[side * 1e3 * body.radius]]))[0, 0]) for side in (-1, 1)]
    low, high = ends
    for _ in range(60):  # to where the density is
        theta = np.linspace(low, high, _NODES)
        energy = np.asarray(potential.value(theta[:, None]), dtype=float).reshape(-1)
        if not np.all(np.isfinite(energy)):
            return None
        near = np.flatnonzero(energy - energy.min() < 60.0)
        first, last = max(near[0] - 1, 0), min(near[-1] + 1, _NODES - 1)
        if last - first > _NODES // 8:
            break
        low, high = float(theta[first]), float(theta[last])
    density = np.exp(energy.min() - energy)
    mass = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))])
    return theta, mass / mass[-1]
