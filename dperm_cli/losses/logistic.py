"""Logistic loss."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.special import expit, xlogy

from dperm_cli.core.dataclass import dataclass
from dperm_cli.loops import log_odds
from dperm_cli.losses.shared import logistic_gap
from dperm_cli.losses.shared.margin_loss import Glm
from dperm_cli.problem.data import Bounds


@dataclass(frozen=True)
class Logistic(Glm):
    """l(z; y) = log(1 + exp(-y z)) for labels y in {-1, +1}: 1-Lipschitz, 1/4-smooth in z.

    >>> at = Bounds(row=1.0, target=1.0, radius=1.0, columns=5)
    >>> round(Logistic().lipschitz(at), 3), Logistic().curvature_bound(at)
    (0.731, 0.25)
    """

    audit_place: ClassVar[int] = 1
    tasks: ClassVar[tuple[str, ...]] = ("binary",)
    default_of: ClassVar[tuple[str, ...]] = ("binary",)
    code: ClassVar[int] = 0
    transcendental: ClassVar[bool] = True
    wide_margin: ClassVar[float] = 10.0

    def chances(self, scores: np.ndarray) -> np.ndarray:
        """The probability of the label +1 at scores [m]: 1 / (1 + exp(-score))."""
        return expit(scores)

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The loss at margins [..., n] for labels [n]; no overflow at any finite margin."""
        return np.logaddexp(0.0, -y * z)

    def slope(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """l'(z) = -y / (1 + exp(y z)), [..., n]."""
        return -y * expit(-y * z)

    def curvature(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """l''(z) = s (1 - s) with s = 1 / (1 + exp(-z)), [..., n]."""
        return expit(z) * expit(-z)

    def majoriser(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """tanh(z / 2) / (2 z), at most 1/4: the least possible one [Jaakkola and Jordan 2000]."""
        half = 0.5 * np.abs(np.broadcast_to(z, np.broadcast_shapes(np.shape(z), np.shape(y))))
        small = half < 1e-4
        return np.where(small, 0.25, np.tanh(half) / (4.0 * np.where(small, 1.0, half)))

    def slope_bound(self, margin: float, target: float) -> float:
        """sup |l'| = 1 / (1 + exp(-margin)), reached at y z = -margin."""
        return float(expit(margin))

    def span(self, margin: float, target: float) -> float:
        """l(-margin) - l(margin) = margin."""
        return float(margin)

    @property
    def smoothness(self) -> float:
        """1/4: the second derivative at z = 0, where it is largest."""
        return 0.25

    def gradient_gap(self, bounds: Bounds) -> float:
        """Exact: the row bound times the supremum of ``logistic_gap`` for the number of columns."""
        margin = bounds.row * bounds.radius
        if bounds.columns == 1:
            return bounds.row * logistic_gap.on_the_line(margin)
        return bounds.row * logistic_gap.in_the_plane(margin)

    def curvature_ratio(self, margin: float) -> float:
        """4 s(M) s(-M) for margins up to M: the second derivative at M over that at 0."""
        return 4.0 * float(expit(margin)) * float(expit(-margin))

    def radial_slope_bound(self, target: float) -> float:
        """max -z l'(z), a constant (``logistic_gap``)."""
        return 0.2784645427610738

    def sign_mean(self, bias: np.ndarray, z: np.ndarray) -> np.ndarray:
        """The mean loss at z where the label is 1 with chance (1 + bias) / 2 and else -1."""
        return np.logaddexp(0.0, -z) + 0.5 * (1.0 - bias) * z

    def best_mean(self, bias: np.ndarray) -> np.ndarray:
        """The z where ``sign_mean`` is least: the log odds of the labels."""
        with np.errstate(divide="ignore"):
            return np.log1p(bias) - np.log1p(-bias)

    def odds_excess(
        self, points: np.ndarray, best: np.ndarray, dimension: int, radius: float
    ) -> np.ndarray:
        """By integrals over an angle (``loops.log_odds``)."""
        return log_odds.find_excess(points, best, dimension, radius)

    def conjugate(self, a: np.ndarray, y: np.ndarray) -> np.ndarray:
        """l*(a) = u log u + (1 - u) log(1 - u) with u = -a y in [0, 1], +inf outside."""
        u = -np.asarray(a) * y
        inside = (u >= 0) & (u <= 1)
        u = np.where(inside, u, 0.0)
        entropy = xlogy(u, u) + xlogy(1.0 - u, 1.0 - u)
        return np.where(inside, entropy, np.inf)
