"""Views that record which functions of the records a sampler's law is made of.

No noisy value passes the gate with a sampler's draw, so replay compares these functions instead.

``WatchedView`` notes the potentials, loss values and gradients that a mechanism asks for;
``LawInputs`` says how far those of neighbouring data sets are apart.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dperm_cli.core.seeds import generator, seed_sequence
from dperm_cli.kernels.shared.kernel_problem import KernelProblem
from dperm_cli.problem.problem import Problem
from dperm_cli.samplers.base import Target
from dperm_cli.samplers.shared.potential import Records
from dperm_cli.sets import make_ball
from dperm_cli.views.central import CentralView
from dperm_cli.views.kernel import KernelView

_POINTS = 200
_OUTSIDE = 1e-6  # of the set's size, that iterative projections may leave
_LAST_BITS = 32.0 * float(np.finfo(float).eps)  # of a sum of few records, twice and more
_FAR = 1e3  # radii: such points are projected to the ends of the set


class Slope(NamedTuple):
    """A gradient [..., p] and the set whose points it may score."""

    gradient: np.ndarray
    constraint: Any

    def reach(self, other: Slope) -> float:
        """max - min over the set of <v, difference>."""
        apart = other.gradient - self.gradient
        body = self.constraint
        return float(np.max(body.support(apart) + body.support(-apart)))


class Scores(NamedTuple):
    """Scores [trials, m] of public points among which a law chooses."""

    values: np.ndarray

    def reach(self, other: Scores) -> float:
        """max - min over the points of the difference."""
        return float(np.max(np.ptp(other.values - self.values, axis=1)))


class WatchedKernel(KernelView):
    """A view of a kernel problem that notes in ``seen`` what laws are made of."""

    def __init__(self, problem: KernelProblem, seen: list[Any]) -> None:
        super().__init__(problem)
        self._seen = seen

    def observe_scores(self, values: np.ndarray, radius: float | None = None) -> np.ndarray:
        found = np.array(values)
        ball = None if radius is None else make_ball(radius, found.shape[1])
        self._seen.append(Scores(found) if ball is None else Slope(found, ball))
        return values


def watch_view(
    problem: Problem | KernelProblem, seen: list[Any], outside: list[str]
) -> CentralView | KernelView:
    """The view of a problem that notes what is looked at, and in ``outside`` from where it may not
    be."""
    if isinstance(problem, KernelProblem):
        return WatchedKernel(problem, seen)
    return WatchedView(problem, seen, outside)


class WatchedView(CentralView):
    """A view that notes in ``seen`` what samplers and selections look at."""

    def __init__(self, problem: Problem, seen: list[Any], outside: list[str] | None = None) -> None:
        super().__init__(problem)
        self._seen, self._outside = seen, [] if outside is None else outside

    def potential(self, target: Target) -> Records:
        found = super().potential(target)
        self._seen.append(found)
        return found

    def objective(self, theta: np.ndarray) -> np.ndarray:
        self._look(theta)
        values = super().objective(theta)
        self._seen.append(values)
        return values

    def gradient_sum(self, theta: np.ndarray) -> np.ndarray:
        self._look(theta)
        found = super().gradient_sum(theta)
        self._seen.append(Slope(found, self._problem.constraint))
        return found

    def batch_gradient(self, theta: np.ndarray, batch: np.ndarray) -> np.ndarray:
        self._look(theta)
        return super().batch_gradient(theta, batch)

    def curvature_sum(self, theta: np.ndarray) -> np.ndarray:
        self._look(theta)
        return super().curvature_sum(theta)

    def _look(self, theta: np.ndarray) -> None:
        """The constants of the records hold on the set, and nowhere else."""
        if not np.all(self._problem.constraint.contains(theta, tolerance=_OUTSIDE)):
            self._outside.append("the records are looked at from points outside of the set")

    def _make_view(self, problem: Problem) -> WatchedView:
        return WatchedView(problem, self._seen, self._outside)


class LawInputs:
    """What a mechanism looked at before a draw from a law, in order.

    What two runs looked at is compared in the units of their event (``privacy.meters``): inf where
    they did not look at the same things.
    """

    def __init__(self, seen: list[Any]) -> None:
        self._seen = list(seen)

    def log_ratio_range(self, other: LawInputs, exponent: float) -> float:
        """The range of the log ratio of the laws exp(-exponent loss) that these looks make."""
        return self._largest(other, exponent, _oscillation)

    def slope_distance(self, other: LawInputs, scale: float) -> float:
        """What tells the strongly log-concave laws of these looks apart, at most."""
        return self._largest(other, scale, _gradients)

    def _largest(self, other: LawInputs, strength: float, compare: Any) -> float:
        first, second = self._seen, other._seen
        if [type(look) for look in first] != [type(look) for look in second]:
            return math.inf
        pairs = list(zip(first, second, strict=True))
        values = [(f, g) for f, g in pairs if isinstance(f, np.ndarray)]
        found = [compare(f, g) for f, g in pairs if isinstance(f, Records)]
        found += [strength * f.reach(g) for f, g in pairs if isinstance(f, Slope | Scores)]
        if values:
            apart = np.stack([g - f for f, g in values], axis=-1)
            found.append(strength * float(np.max(np.ptp(apart, axis=-1))))
        return max(found, default=0.0)


def _oscillation(f: Records, g: Records) -> float:
    """max - min over points of the set of the difference of two potentials."""
    theta = _points(f.target)
    mine, theirs = f.value(theta), g.value(theta)
    lost = float(np.max(_rounding(mine, theirs), initial=0.0))
    return max(float(np.ptp(theirs - mine)) - lost, 0.0)


def _gradients(f: Records, g: Records) -> float:
    """sup |grad f - grad g| / sqrt(m): what tells two m-strongly log-concave laws apart."""
    theta = _points(f.target)
    mine, theirs = f.gradient(theta), g.gradient(theta)
    # the regulariser is in both, and at far points larger than what tells them apart
    sizes = (np.linalg.norm(mine, axis=-1), np.linalg.norm(theirs, axis=-1))
    apart = np.linalg.norm(theirs - mine, axis=-1) - _rounding(*sizes)
    curved = f.target.strong_convexity
    return max(float(np.max(apart)), 0.0) / math.sqrt(curved) if curved > 0.0 else math.inf


def _rounding(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """What the last bits of two sums may do to their difference at each point, at most about."""
    return _LAST_BITS * np.maximum(np.abs(first), np.abs(second))


def _points(target: Target) -> np.ndarray:
    """Points of the set, [m, p]: ends along axes and random directions, and points between."""
    body, p = target.constraint, target.spec.p
    rng = generator(seed_sequence(0, "audit", "points", p))
    away = np.concatenate([np.eye(p), -np.eye(p), rng.standard_normal((_POINTS, p))])
    away *= body.radius / np.linalg.norm(away, axis=1, keepdims=True)
    sizes = rng.uniform(0.0, 1.0, (len(away), 1))
    ends = body.project(body.centre() + _FAR * away)
    return np.concatenate([ends, body.project(body.centre() + sizes * away)])
