"""Dual points and second derivatives of the losses at a parameter."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import softmax

from dperm_cli.losses.shared.margin_loss import margins
from dperm_cli.problem.problem import Problem

_BLOCK_ENTRIES = 1_000_000


def has_curvature(loss: Any) -> bool:
    """Whether the loss is twice differentiable, or once with bounded curvature."""
    return hasattr(loss, "curvature") or loss.name == "multinomial"


def is_median(loss: Any) -> bool:
    """Whether the loss is a distance from the record."""
    return loss.name in ("l1_median", "l2_median")


def has_kinks(loss: Any) -> bool:
    """Whether the loss has kinks, and a Moreau envelope that ``make_dual_point`` knows."""
    return hasattr(loss, "pieces") or is_median(loss)


def curvature_bound(problem: Problem) -> float | None:
    """Bound on the second derivative in a record's margin(s), or None."""
    loss: Any = problem.loss
    return 0.5 if loss.name == "multinomial" else getattr(loss, "smoothness", None)


def gradient(problem: Problem, dual: np.ndarray) -> np.ndarray:
    """The slope [p] of the summed loss where its records' slopes are ``dual``."""
    if is_median(problem.loss):
        return np.sum(dual, axis=0)
    if dual.ndim == 1:
        return np.asarray(problem.data.x.T @ dual)
    return problem.loss.minorant(dual, problem.data).slope


def make_dual_point(problem: Problem, theta: np.ndarray, width: float = 0.0) -> np.ndarray:
    """A dual point that certifies ``theta`` to first order; kinks are rounded off to ``width``."""
    loss: Any = problem.loss
    data = problem.data
    if width > 0 and has_kinks(loss):
        return _envelope_slopes(problem, theta, width)
    return loss.dual(theta, data) if hasattr(loss, "dual") else loss.slope(data.x @ theta, data.y)


def _envelope_slopes(problem: Problem, theta: np.ndarray, width: float) -> np.ndarray:
    """Slopes of the Moreau envelope with parameter ``width``."""
    loss: Any = problem.loss
    data = problem.data
    if loss.name == "l1_median":
        return np.clip((theta - _dense(data.x)) / width, -1.0, 1.0)
    if loss.name == "l2_median":
        steps = theta - _dense(data.x)
        return steps / np.maximum(np.linalg.norm(steps, axis=1, keepdims=True), width)
    sign, offset, up, down = loss.pieces(data.y)
    return sign * np.clip((sign * margins(theta, data) + offset) / width, -down, up)


def hessian(problem: Problem, theta: np.ndarray) -> np.ndarray:
    """Of the objective but for its l1 norm, [p, p]."""
    data, loss = problem.data, problem.loss
    if loss.name == "multinomial":
        matrix = _softmax_hessian(data.x, _probabilities(problem, theta))
    else:
        z = margins(theta, data)
        matrix = _gram(data.x, loss.curvature(z, data.y))  # type: ignore[attr-defined]
    matrix[np.diag_indices(problem.p)] += problem.penalty.ridge
    return matrix


def _probabilities(problem: Problem, theta: np.ndarray) -> np.ndarray:
    data = problem.data
    return softmax(np.asarray(data.x @ theta.reshape(data.p, -1)), axis=1)


def _softmax_hessian(x: Any, probabilities: np.ndarray) -> np.ndarray:
    """sum_i x_i x_i^T kron (diag(p_i) - p_i p_i^T), for theta [columns, classes] flattened."""
    p, k = x.shape[1], probabilities.shape[1]
    matrix = np.empty((p, k, p, k))
    for a in range(k):
        for b in range(a + 1):
            own = probabilities[:, a] * ((a == b) - probabilities[:, b])
            matrix[:, a, :, b] = matrix[:, b, :, a] = _gram(x, own)
    return matrix.reshape(p * k, p * k)


def _gram(x: Any, weights: np.ndarray) -> np.ndarray:
    """X^T diag(weights) X, dense, a block of rows at a time."""
    n, p = x.shape
    step = max(1, _BLOCK_ENTRIES // p)
    total = np.zeros((p, p))
    for start in range(0, n, step):
        rows = _dense(x[start : start + step])
        total += rows.T @ (rows * weights[start : start + step, None])
    return total


def _dense(x: Any) -> np.ndarray:
    return x.toarray() if sparse.issparse(x) else x
