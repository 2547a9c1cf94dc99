"""Attack any mechanism's releases, with statistics that fit all of them.

Releases on two neighbouring data sets are told apart by the best of several numbers: how the two
losses differ at the released point, how the two gradients do, its distance along what separates the
two means. Which number, which threshold and which side is chosen on one half of the releases; on
the other half the false and true positive rates are bounded, and epsilon with them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dperm_cli.audit.error_rates import AnyOutputs
from dperm_cli.audit.statistical_attack import choose, rates_of
from dperm_cli.core.dataclass import dataclass
from dperm_cli.problem.problem import Problem

ERROR = 1e-7  # chance that the bound of one attack is wrong
LEAST = 100  # releases a side below which nothing is attacked


@dataclass(frozen=True)
class AttackResult:
    """``bound`` <= epsilon, but for a chance of ``ERROR``; by which statistic."""

    bound: float
    by: str
    trials: int


Statistic = Callable[[np.ndarray], np.ndarray]


def attack(
    first: np.ndarray, second: np.ndarray, problems: tuple[Any, Any], delta: float
) -> AttackResult:
    """The largest epsilon that releases [trials, p] on both sides prove."""
    trials = min(len(first), len(second))
    if trials < LEAST:
        return AttackResult(0.0, "too few releases", trials)
    finite = [bool(np.all(np.isfinite(side))) for side in (first, second)]
    if not all(finite):
        bound = math.inf if any(finite) else 0.0
        return AttackResult(bound, "points that are not finite", trials)
    half = trials // 2
    how = AnyOutputs(delta)
    best, chosen = -math.inf, None
    for name, statistic in _statistics(first[:half], second[:half], problems):
        scores = [np.asarray(statistic(side), dtype=float) for side in (first, second)]
        if not all(np.all(np.isfinite(score)) for score in scores):
            continue
        cut = choose(scores[0][:half], scores[1][:half], how)
        value = how.epsilon(rates_of(scores[0][:half], scores[1][:half], *cut, ERROR))
        if value > best:
            best, chosen = value, (name, scores, cut)
    if chosen is None:
        return AttackResult(0.0, "no statistic is finite", trials)
    name, scores, cut = chosen
    bound = how.epsilon(rates_of(scores[0][half:], scores[1][half:], *cut, ERROR))
    return AttackResult(bound, name, trials)


def _statistics(
    first: np.ndarray, second: np.ndarray, problems: tuple[Any, Any]
) -> list[tuple[str, Statistic]]:
    """Numbers of a released point, learnt from some releases and from the two data sets."""
    apart = second.mean(axis=0) - first.mean(axis=0)
    spread = np.concatenate([first - first.mean(axis=0), second - second.mean(axis=0)])
    away = apart / np.maximum(np.var(spread, axis=0), 1e-300)
    found: list[tuple[str, Statistic]] = [
        ("the way between the means", lambda theta: theta @ _unit(apart)),
        ("the way between the means in units of the noise", lambda theta: theta @ _unit(away)),
        ("the length of the point", lambda theta: np.linalg.norm(theta, axis=1)),
        ("its first coordinate", lambda theta: theta[:, 0]),
    ]
    if all(isinstance(problem, Problem) for problem in problems):
        one, other = problems
        found += [
            ("the two losses", lambda theta: one.objective(theta) - other.objective(theta)),
            ("the two gradients", lambda theta: _length(one, theta) - _length(other, theta)),
        ]
        row = _difference(one, other)
        if row is not None:
            found.append(("the margin of the record", lambda theta: theta @ row))
    return found


def _length(problem: Problem, theta: np.ndarray) -> np.ndarray:
    """The norm of the gradient: of a perturbed minimiser, that of the noise it is made of."""
    return np.linalg.norm(problem.gradient(theta), axis=1)


def _difference(one: Problem, other: Problem) -> np.ndarray | None:
    """What the sums of the labelled rows differ by, where parameters are as many as columns."""
    sums = [np.asarray(side.data.x.T @ side.data.y).ravel() for side in (one, other)]
    if sums[0].shape != sums[1].shape or len(sums[0]) != one.p:
        return None
    found = sums[0] - sums[1]
    return _unit(found) if float(np.linalg.norm(found)) > 0.0 else None


def _unit(vector: np.ndarray) -> np.ndarray:
    length = float(np.linalg.norm(vector))
    return vector / length if length > 0.0 else vector
