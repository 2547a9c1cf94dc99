"""A quadratic function below f on the whole set, from the curvature of each record's loss."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from dperm_cli.core.dataclass import dataclass
from dperm_cli.losses.shared.margin_loss import margins
from dperm_cli.problem.problem import Problem, ProblemSpec
from dperm_cli.samplers.base import Target
from dperm_cli.solvers import optimum

_EPS = float(np.finfo(float).eps)
_SECONDS = 600.0


@dataclass(frozen=True)
class Minorant:
    """value + <slope, d> + d' H d / 2 <= f(at + d) wherever at + d is in the set.

    ``slack`` >= -min over the set of <slope, theta - at>: how far ``at`` is from a minimiser.
    """

    at: np.ndarray
    value: float
    slope: np.ndarray
    hessian: np.ndarray
    slack: float

    def __call__(self, theta: np.ndarray) -> np.ndarray:
        """The function at each row of [..., p]."""
        d = theta - self.at
        return self.value + d @ self.slope + 0.5 * np.sum((d @ self.hessian) * d, axis=-1)


def has_minorant(spec: ProblemSpec) -> bool:
    """Whether the loss is one whose second derivative rises once and falls once."""
    return spec.form is not None and spec.form.curvature_ratio is not None


def find_minorant(potential: Any, target: Target, gap: float) -> Minorant:
    """A minorant of f at a point whose f is within about ``gap`` of the least over the set.

    The minorant is valid at any point; near the minimiser it is tight.
    """
    data, spec, a = potential.data, target.spec, target.exponent
    ridge, constraint = target.ridge / (a * data.n), target.constraint
    problem = Problem(data, potential.loss, constraint, ridge, spec.lasso)
    range_ = max(float(problem.objective(constraint.centre())), 1.0)
    goal = max(min(1e-6, 0.1 * gap / (a * range_)), 1e-12)
    at = optimum.solve(problem, relative_gap=goal, seconds=_SECONDS).theta
    c = a * record_curvatures(potential.loss, data, constraint, at)
    hessian = gram(data.x, c) + target.ridge * np.eye(len(at))
    value, slope = potential.both(at)
    slope = _least(np.asarray(slope), at, target.lasso)
    slack = float(slope @ at) + float(constraint.support(-slope))
    return Minorant(at, float(value), slope, hessian, max(slack, 0.0))


def record_curvatures(loss: Any, data: Any, constraint: Any, at: np.ndarray) -> np.ndarray:
    """c [n]: l(m) >= l(m_i) + l'(m_i) (m - m_i) + c_i (m - m_i)^2 / 2 at all margins of the set."""
    here = margins(at, data)
    if loss.quadratic:
        return np.full(data.n, float(loss.smoothness))
    low, high = margin_ranges(data.x, constraint)
    return curvatures(loss, here, data.y, low, high)


def curvatures(
    loss: Any, here: np.ndarray, y: np.ndarray, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """The largest c [n] with a parabola of curvature c through (here, l) below l on [low, high].

    That is the least of 2 (l(m) - l(here) - l'(here) (m - here)) / (m - here)^2, which is reached
    at an end or in the limit m -> here where l'' rises and then falls [docs/proofs/_samplers.md,
    Lemma 2]. It is rounded down; never below the least l'', that of an end.
    """
    least = np.minimum(loss.curvature(low, y), loss.curvature(high, y))
    c = loss.curvature(here, y)
    value, slope = loss.value(here, y), loss.slope(here, y)
    for end in (low, high):
        d, there = end - here, loss.value(end, y)
        rounding = 16.0 * _EPS * (value + there + np.abs(slope * d) + np.abs(end) + np.abs(here))
        with np.errstate(divide="ignore", invalid="ignore"):
            found = 2.0 * (there - value - slope * d - rounding) / (d * d)
        c = np.where(np.isfinite(found), np.minimum(c, found), np.minimum(c, least))
    return np.maximum(c, least) * (1.0 - 1e-12)


def margin_ranges(x: Any, constraint: Any) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest <x_i, theta> over the set, [n] each."""
    if constraint.is_ball:
        square = x.multiply(x).sum(axis=1) if sparse.issparse(x) else np.sum(x * x, axis=1)
        reach = constraint.radius * np.sqrt(np.asarray(square).ravel())
        return -reach, reach
    rows = x.toarray() if sparse.issparse(x) else x
    return -np.asarray(constraint.support(-rows)), np.asarray(constraint.support(rows))


def gram(x: Any, c: np.ndarray) -> np.ndarray:
    """X' diag(c) X, [p, p]."""
    if sparse.issparse(x):
        return np.asarray((x.T @ sparse.diags_array(c) @ x).todense())
    return (x.T * c) @ x


def least_ratio(spec: ProblemSpec) -> float:
    """A lower bound on a record's minorant curvature over the largest l''.

    Margins are at most M = row_bound * radius.
    """
    assert spec.form is not None
    return spec.form.curvature_ratio(spec.row_bound * spec.constraint.radius)


def log_uniform_acceptance(oscillation: float, dim: int) -> float:
    """log of a lower bound on the mean over the set of exp(-(f - min f)), f convex.

    The set shrunk by t about a minimiser holds t^dim of the volume and f - min f <= t F there;
    t = min(1, dim / F) is the best [docs/proofs/_samplers.md, Lemma 4].
    """
    t = 1.0 if oscillation <= dim else dim / oscillation
    return dim * math.log(t) - t * oscillation


def _least(slope: np.ndarray, at: np.ndarray, lasso: float) -> np.ndarray:
    """The subgradient at ``at`` that is least in each coordinate where the l1 norm has a kink."""
    if lasso == 0.0:
        return slope
    smooth = slope - lasso * np.sign(at)
    kink = np.abs(at) <= 1e-12
    pulled = np.sign(smooth) * np.maximum(np.abs(smooth) - lasso, 0.0)
    return np.where(kink, pulled, slope)
