"""Risk bound of a minimiser of noisy second moments (docs/proofs/sufficient_statistics.md, Thm 4).

Moments are in units in which rows and targets are over their bounds; risks are sums over records.
"""

from __future__ import annotations

import math
from typing import Any

from dperm_cli.bounds.base import Setting, check, check_mechanism, check_settings, upper_bound
from dperm_cli.bounds.bst14_upper import gaussian_moments
from dperm_cli.core.dataclass import dataclass

TARGET_SHARE = 0.5  # s^2: the squared weight of targets beside rows, under Wishart noise
NOISE_SHARE = 0.5  # of the noise in what a model gains; the whole costs more than it saves


@dataclass(frozen=True)
class NoiseSizes:
    """How large the noise is on X^T X, N, and on X^T y, w.

    Args:
        edge: what eigenvalues of X^T X + N are raised to.
        spectrum: a bound on E max(largest eigenvalue of -N, 0).
        entry: the variance of an entry of N off the diagonal.
        length: a bound on E |w|.
        target: the variance of an entry of w.

    >>> sizes = NoiseSizes.of_gaussian(p=5, scale=1.0)
    >>> round(sizes.edge, 4), round(sizes.spectrum, 4), round(sizes.length, 4)
    (3.1623, 2.7386, 2.1277)
    """

    edge: float
    spectrum: float
    entry: float
    length: float
    target: float

    @staticmethod
    def of_gaussian(p: int, scale: float) -> NoiseSizes:
        """N with diagonal entries of deviation ``scale``, the others scale / sqrt 2."""
        length = gaussian_moments(p, scale)[0]
        entry, square = scale**2 / 2.0, scale**2
        spectrum = math.sqrt(2.0) * length + scale / math.sqrt(2.0 * math.pi)
        spectrum = min(spectrum, _frobenius_bound(p, square, entry))
        return NoiseSizes(scale * math.sqrt(2.0 * p), spectrum, entry, length, square)

    @staticmethod
    def of_wishart(p: int, scale: float, edge: float) -> NoiseSizes:
        """Blocks of scale (W - W') / 2 of order p + 1; the targets' weight is taken off w."""
        half, rows = scale / 2.0, p + 2.0
        entry = 2.0 * half**2 * rows
        spectrum = half * ((math.sqrt(rows) + math.sqrt(p)) ** 2 + 1.0)
        spectrum = min(spectrum, _frobenius_bound(p, 2.0 * entry, entry))
        length = math.sqrt(p * entry / TARGET_SHARE)
        return NoiseSizes(edge, spectrum, entry, length, entry / TARGET_SHARE)

    def add_up(self, p: int, radius: float, rows: float, cross: float) -> float:
        """The bound for a ball of this radius.

        Args:
            p: the number of columns.
            radius: of the ball.
            rows: the loss's curvature times the squared bound of rows.
            cross: the bound of rows times that of targets.
        """
        bent = rows * radius**2 / 2.0 * (self.edge + 2.0 * self.spectrum)
        tilted = cross * radius * self.length
        variance = rows**2 * self.entry * radius**2 + cross**2 * self.target
        return bent + tilted + NOISE_SHARE * math.sqrt(p * variance) * radius


def _frobenius_bound(p: int, diagonal: float, entry: float) -> float:
    """A bound on E max(largest eigenvalue, 0), of a matrix whose law is that of its negative.

    The squares of the largest and the least eigenvalue are at most that of the Frobenius norm.
    ``diagonal`` and ``entry`` are the variances of entries on the diagonal and off it.
    """
    return math.sqrt(p * (diagonal + (p - 1.0) * entry) / 2.0)


@upper_bound(
    "sufficient_statistics Thm 4",
    check_mechanism("sufficient_statistics"),
    check(
        lambda at: at.spec.constraint.is_ball and at.spec.lasso == 0, "is for a ball and no lasso"
    ),
    check(lambda at: at.spec.form is not None, "needs the loss"),
    check_settings("edge"),
)
def sufficient_statistics(at: Setting) -> float:
    """(k b^2 R^2 / 2) (edge + 2 E |N|) + b B R E |w| + half of R times the noise's length."""
    spec = at.spec
    curved: Any = spec.form
    if at.settings["noise"] == "wishart":
        edge = at.settings["edge"] / spec.row_bound**2 if spec.row_bound > 0 else 0.0
        sizes = NoiseSizes.of_wishart(spec.p, at.noise_scale, edge)
    else:
        sizes = NoiseSizes.of_gaussian(spec.p, at.noise_scale)
    target = float(curved.slope_bound(0.0, spec.target_bound))
    rows = curved.smoothness * spec.row_bound**2
    return sizes.add_up(spec.p, spec.constraint.radius, rows, spec.row_bound * target)
