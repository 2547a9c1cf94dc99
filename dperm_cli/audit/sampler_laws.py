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
from scipy.stats import kstest

from dperm_cli.audit.law_replay import WatchedView
from dperm_cli.audit.opened_cell import OpenedCell
from dperm_cli.samplers.shared.potential import Records

LEVEL = 1e-9
TRIALS = 3000
SAMPLER_ERROR = "sampler_error"  # the law of the event that accompanies such draws
_NODES = 20_001


def is_applicable(one: OpenedCell) -> bool:
    """Whether a plan is one draw from a law on a line."""
    laws = [event for event in one.plan.events if event.law != SAMPLER_ERROR]
    drawn = len(laws) == 1 and laws[0].draws_from_law and laws[0].count == 1
    return drawn and not one.secure and one.coordinates == 1


def find_faults(one: OpenedCell, trials: int, seed: int = 0) -> list[str]:
    """What is wrong with the draws, in words.

    The plan must be one draw on a line (``is_applicable``).
    """
    seen: list[Any] = []
    view = WatchedView(one.problem, seen)
    theta = np.asarray(one.release(trials, seed, None, view).theta, dtype=float)[:, 0]
    potential = next((look for look in seen if isinstance(look, Records)), None)
    cdf = None if potential is None else find_distribution(potential, one.problem.constraint)
    if cdf is None:
        return []
    far = float(kstest(theta, lambda x: np.interp(x, *cdf), method="asymp").statistic)
    allowed = sum(e.amount for e in one.plan.events if e.law == SAMPLER_ERROR)
    chance = float(kolmogorov(math.sqrt(len(theta)) * max(far - allowed, 0.0)))
    if chance >= LEVEL:
        return []
    return [f"a sampler's draws do not have their density: distance {far:.3g}, chance {chance:.1g}"]


def find_distribution(potential: Any, body: Any) -> tuple[np.ndarray, np.ndarray] | None:
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
