"""Minimisers of released quadratic models over a set: post-processing."""

from __future__ import annotations

from typing import Any

import numpy as np

from dperm_cli.bounds.noisy_moments import NOISE_SHARE
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem, ProblemSpec
from dperm_cli.solvers import optimum, trust_region

_SECONDS = 30.0  # for one minimiser whose gap does not close


def minimise_models(
    values: np.ndarray, basis: np.ndarray, b: np.ndarray, spec: ProblemSpec
) -> np.ndarray:
    """argmin over the set of theta^T M theta / 2 - b^T theta + n r(theta), r the regulariser.

    Exact on a ball without a lasso; elsewhere to the certified gap of every optimum.

    Args:
        values: the eigenvalues of each M, [trials, p], above 0.
        basis: its eigenvectors in columns, [trials, p, p].
        b: linear terms [trials, p].
        spec: the public facts; the set, the regulariser and n are used.

    Returns:
        The points [trials, p].
    """
    constraint, penalty = spec.constraint, spec.penalty
    if constraint.is_ball and not penalty.lasso > 0.0:
        curved = values + penalty.ridge
        at = np.zeros_like(b)
        found = trust_region.minimise_in_ball(curved, basis, -b, at, constraint.radius)
        return constraint.project(found)
    models = zip(values, basis, b, strict=True)
    return np.stack(
        [optimum.solve(_as_records(*one, spec), seconds=_SECONDS).theta for one in models]
    )


def shrink_to_centre(
    theta: np.ndarray,
    values: np.ndarray,
    basis: np.ndarray,
    b: np.ndarray,
    variance: np.ndarray,
    spec: ProblemSpec,
) -> np.ndarray:
    """Draw each minimiser towards the set's centre c, by how much of what it gains is noise.

    The model falls along c + t (theta - c) by t gain - t^2 curve / 2. Its noise, to which theta was
    fitted, has a part in gain: of about variance tr(M^-1), and not more than the noise's norm times
    |theta - c|. With ``NOISE_SHARE`` of it taken off, the fall is largest at the t taken here. So
    noise alone ends near c, and a clear signal is left as it is.

    Args:
        theta: the minimisers [trials, p].
        values: the eigenvalues of each M, [trials, p], above 0.
        basis: its eigenvectors in columns, [trials, p, p].
        b: linear terms [trials, p].
        variance: of the noise of the model's gradient at theta, per coordinate [trials].
        spec: the public facts; the set, the regulariser and n are used.

    Returns:
        Points of the set [trials, p].
    """
    centre, penalty = spec.constraint.centre(), spec.penalty
    way = theta - centre
    curved = values + penalty.ridge
    turned = np.einsum("tij,ti->tj", basis, way)
    at_centre = np.einsum("tij,i->tj", basis, centre)
    slope = np.sum(turned * curved * at_centre, axis=1) - np.sum(b * way, axis=1)
    slope += penalty.lasso * (np.sum(np.abs(theta), axis=1) - np.sum(np.abs(centre)))
    curve = np.sum(turned**2 * curved, axis=1)
    reach = np.sqrt(variance * theta.shape[1] * np.sum(way**2, axis=1))
    part = np.minimum(variance * np.sum(1.0 / curved, axis=1), reach)
    share = np.clip((-slope - NOISE_SHARE * part) / np.where(curve > 0.0, curve, 1.0), 0.0, 1.0)
    return centre + share[:, None] * way


def _as_records(values: np.ndarray, basis: np.ndarray, b: np.ndarray, spec: ProblemSpec) -> Problem:
    """The model as p records of the same loss, X^T X = M over its curvature, and a linear term.

    The targets are 0; what the loss's slope is there goes into the linear term.
    """
    loss: Any = spec.form
    x = np.sqrt(values / loss.smoothness)[:, None] * basis.T
    y = np.zeros(len(b))
    bound = float(np.sqrt(np.max(np.sum(x * x, axis=1))))
    data = Data.of_records("model", spec.task, x, y, bound, 0.0, fingerprint="model")
    share = spec.n / len(y)  # the regulariser counts for each record
    tilt = -b - x.T @ loss.slope(y, y)
    return Problem(data, loss, spec.constraint, share * spec.ridge, share * spec.lasso, tilt)
