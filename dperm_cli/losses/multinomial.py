"""Multinomial logistic loss."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, softmax, xlog1py, xlogy

from dperm_cli.core.dataclass import dataclass
from dperm_cli.losses.base import PerRecord, gram, row_norm, weighted_gram
from dperm_cli.losses.shared import logistic_gap
from dperm_cli.problem.data import Bounds, Data, Minorant, PublicFacts
from dperm_cli.problem.row_products import add_rows, multiply_rows
from dperm_cli.problem.split_rows import sum_parts

_SLACK = 1e-9
_BLOCK_SCORES, _LEAST_BLOCK, _MOST_BLOCK = 1 << 16, 256, 4096
_ROOT2 = math.sqrt(2.0)


@dataclass(frozen=True)
class Multinomial(PerRecord):
    """l(W; x, y) = log sum_k exp(z_k - z_y) with z = x W, for labels y in 0 .. classes - 1.

    W [columns, classes] is a parameter [columns * classes], row after row. In z the gradient is
    q - e_y with q the softmax of z; all norms of W are those of the flat parameter.

    >>> labels = np.array([0.0, 2.0])
    >>> data = Data.of_records("toy", "multiclass", np.eye(2), labels, 1.0, 1.0, "", classes=3)
    >>> loss = Multinomial()
    >>> loss.dimension(data.facts()), loss.values(np.zeros(6), data).round(3).tolist()
    (6, [1.099, 1.099])
    """

    audit_place: ClassVar[int] = 6
    tasks: ClassVar[tuple[str, ...]] = ("multiclass",)
    default_of: ClassVar[tuple[str, ...]] = ("multiclass",)
    smoothness: ClassVar[float] = 0.5
    softmax: ClassVar[bool] = True
    by_parts: ClassVar[bool] = True

    def dimension(self, facts: PublicFacts) -> int:
        """columns * classes."""
        return facts.p * facts.classes

    def chances(self, scores: np.ndarray) -> np.ndarray:
        """The probability of each class at scores [m, classes]: their softmax."""
        return softmax(scores, axis=1)

    def values(self, theta: np.ndarray, data: Data) -> np.ndarray:
        """Each record's loss at each row of [..., p], shape [..., n]."""
        found = _find_values(_find_leads(theta, data.classes, data.x, data.y))
        return found.reshape(*theta.shape[:-1], data.n)

    def gradient(self, theta: np.ndarray, data: Data) -> np.ndarray:
        """Sum over records of the gradient, [..., p]."""
        add = partial(_add_gradients, theta.reshape(-1, theta.shape[-1]), data.classes)
        return sum_parts(data.x, add, data.y).reshape(theta.shape)

    def sum_values(self, theta: np.ndarray, data: Data) -> np.ndarray:
        """The summed loss at each row of [..., p], shape [...]."""
        add = partial(_add_values, theta.reshape(-1, theta.shape[-1]), data.classes)
        return sum_parts(data.x, add, data.y).reshape(theta.shape[:-1])

    def lipschitz(self, bounds: Bounds) -> float:
        """sqrt(2) row (1 - least), least bounding the label's probability from below."""
        return self.lipschitz_norm(bounds, 2)

    def lipschitz_norm(self, bounds: Bounds, norm: float) -> float:
        """sup |g|_norm over gradients g [DJW12, Def. 2]: |x|_norm (1 - least) times 2, sqrt(2), 1
        for norm 1, 2, inf."""
        scale = 2.0 if norm == 1 else _ROOT2 if norm == 2 else 1.0
        return row_norm(bounds, norm) * scale * _largest_miss_chance(bounds)

    def curvature_bound(self, bounds: Bounds) -> float:
        """row^2 / 2: diag(q) - q q^T has no eigenvalue above 1/2."""
        return 0.5 * (bounds.row * bounds.row)

    def majorant(self, theta: np.ndarray, data: Data) -> np.ndarray:
        """Sum over records of x x^T times (I - 1 1^T / classes) / 2, at each row: [..., p, p].

        diag(q) - q q^T is nowhere above the second factor [Boehning 1992].
        """
        k = data.classes
        whole = np.kron(gram(data.x), (np.eye(k) - np.full((k, k), 1.0 / k)) / 2.0)
        return np.broadcast_to(whole, (*theta.shape, theta.shape[-1]))

    def oscillation(self, bounds: Bounds, constraint: Any) -> float:
        """min(2 span, 2 L diameter)."""
        return min(2.0 * _span(bounds, constraint), super().oscillation(bounds, constraint))

    def variation(self, bounds: Bounds, constraint: Any) -> float:
        """min(span, L diameter)."""
        return min(_span(bounds, constraint), super().variation(bounds, constraint))

    def gradient_gap(self, bounds: Bounds) -> float:
        """2 L; with two classes, where the loss is the logistic one of w_0 - w_1, its exact gap."""
        if bounds.classes != 2:
            return super().gradient_gap(bounds)
        margin = _ROOT2 * bounds.row * bounds.radius
        gap = logistic_gap.on_the_line if bounds.columns == 1 else logistic_gap.in_the_plane
        return _ROOT2 * bounds.row * gap(margin)

    def hessian(self, theta: np.ndarray, data: Data) -> np.ndarray:
        """sum_i x_i x_i^T kron (diag(q_i) - q_i q_i^T), [p, p]."""
        add = partial(_add_hessian, theta.reshape(data.p, -1))
        return sum_parts(data.x, add, entries=theta.size**2)

    def hessian_rank(self, bounds: Bounds) -> int:
        """That of diag(q) - q q^T."""
        return bounds.classes - 1

    def dual(self, theta: np.ndarray, data: Data) -> np.ndarray:
        """Each record's class probabilities [n, classes] at theta [p], where ``minorant`` touches
        the summed loss."""
        slopes = _find_slopes(_find_leads(theta, data.classes, data.x, data.y), data.y)[0]
        slopes[np.arange(data.n), data.y.astype(np.int64)] += 1.0
        return slopes

    def minorant(self, dual: np.ndarray, data: Data) -> Minorant:
        """From class probabilities [n, classes]: log sum exp(z) >= <q, z> + entropy(q).

        The label's own entry is not read: it is what the others leave of 1, so that q - e_y, the
        slopes in z, serves as well.
        """
        slopes = np.array(dual, dtype=float)
        labels = data.y.astype(np.int64)
        slopes[np.arange(data.n), labels] = 0.0
        missed = np.sum(slopes, axis=1)
        if not (np.min(slopes) >= 0 and np.max(missed) <= 1.0 + _SLACK):
            return Minorant(np.zeros(data.p * data.classes), -math.inf, 0.0, 0.0)
        slopes /= np.maximum(missed, 1.0)[:, None]
        missed = np.minimum(missed, 1.0)
        entropies = -np.sum(xlogy(slopes, slopes), axis=1) - xlog1py(1.0 - missed, -missed)
        slopes[np.arange(data.n), labels] = -missed
        return Minorant(
            slope=add_rows(data.x, slopes).reshape(-1),
            constant=math.fsum(entropies),
            slopes=data.row_bound * math.fsum(np.linalg.norm(slopes, axis=1)),
            terms=math.fsum(entropies),
        )


def _find_leads(theta: np.ndarray, classes: int, x: Any, y: np.ndarray) -> np.ndarray:
    """z_k - z_y for every k but y, where it is -inf: [m, n, classes] for m rows of theta."""
    n, p = x.shape
    w = np.moveaxis(theta.reshape(-1, p, classes), 0, 1).reshape(p, -1)
    scores = multiply_rows(x, w).reshape(n, -1, classes)
    z = np.ascontiguousarray(np.moveaxis(scores, 0, 1))
    rows, labels = np.arange(n), y.astype(np.int64)
    z -= z[:, rows, labels][:, :, None]
    z[:, rows, labels] = -np.inf
    return z


def _find_values(leads: np.ndarray) -> np.ndarray:
    """The loss of each record, [m, n]."""
    top = np.maximum(0.0, np.max(leads, axis=-1))
    others = np.sum(np.exp(leads - top[..., None]), axis=-1)
    # less 1 where it is a whole class: so that log1p serves
    return top + np.log1p(np.where(top > 0, others - 1.0 + np.exp(-top), others))


def _find_slopes(leads: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The gradient q - e_y in z, [m, n, classes]; its label entry is minus the sum of the rest."""
    top = np.maximum(0.0, np.max(leads, axis=-1))[..., None]
    weights = np.exp(leads - top)
    slopes = weights / (np.sum(weights, axis=-1, keepdims=True) + np.exp(-top))
    slopes[:, np.arange(len(y)), y.astype(np.int64)] = -np.sum(slopes, axis=-1)
    return slopes


def _list_blocks(x: Any, scores: int) -> Iterator[slice]:
    """Slices of the rows of a part, each with as many scores as stay in cache."""
    step = min(max(_LEAST_BLOCK, _BLOCK_SCORES // scores), _MOST_BLOCK)
    return (slice(start, start + step) for start in range(0, x.shape[0], step))


def _add_gradients(theta: np.ndarray, classes: int, x: Any, y: np.ndarray) -> np.ndarray:
    """The sum over the records of a part of the gradient at points [m, p]."""
    total = np.zeros((x.shape[1], len(theta) * classes))
    for block in _list_blocks(x, len(theta) * classes):
        rows, labels = x[block], y[block]
        slopes = _find_slopes(_find_leads(theta, classes, rows, labels), labels)
        total += add_rows(rows, np.swapaxes(slopes, 0, 1).reshape(len(labels), -1))
    found = np.swapaxes(total.reshape(x.shape[1], -1, classes), 0, 1)
    return np.ascontiguousarray(found).reshape(theta.shape)


def _add_values(theta: np.ndarray, classes: int, x: Any, y: np.ndarray) -> np.ndarray:
    """The sum over the records of a part of the loss at points [m, p]: [m]."""
    total = np.zeros(len(theta))
    for block in _list_blocks(x, len(theta) * classes):
        leads = _find_leads(theta, classes, x[block], y[block])
        total += np.sum(_find_values(leads), axis=-1)
    return total


def _add_hessian(w: np.ndarray, x: Any) -> np.ndarray:
    """sum_i x_i x_i^T kron (diag(q_i) - q_i q_i^T) over the records of a part, for w [p, k]."""
    q = softmax(multiply_rows(x, w), axis=1)
    p, k = w.shape
    matrix = np.empty((p, k, p, k))
    for a in range(k):
        for b in range(a + 1):
            own = q[:, a] * ((a == b) - q[:, b])
            matrix[:, a, :, b] = matrix[:, b, :, a] = weighted_gram(x, own)
    return matrix.reshape(p * k, p * k)


def _largest_miss_chance(bounds: Bounds) -> float:
    """sup of 1 - q_y: every z_k - z_y is at most sqrt(2) row radius."""
    others = bounds.classes - 1
    if others < 1:
        return 0.0
    return float(expit(_ROOT2 * bounds.row * bounds.radius + math.log(others)))


def _span(bounds: Bounds, constraint: Any) -> float:
    """Largest less least loss on the set: no z_k - z_y is beyond +-sqrt(2) row radius."""
    gap, others = _ROOT2 * bounds.row * constraint.radius, bounds.classes - 1
    # gap + ln(others + e^-gap) - ln(1 + others e^-gap), whose logs cancel where the gap is small
    above = -(others - 1) * math.expm1(-gap) / (1.0 + others * math.exp(-gap))
    return gap + math.log1p(above)
