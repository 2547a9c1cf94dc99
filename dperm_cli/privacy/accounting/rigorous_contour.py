"""delta(epsilon) of a composition by a contour integral, in ball arithmetic.

The integral is that of ``fourier_inversion``, by the trapezoid rule with spacing h = 2 pi / B on
the line with real part ``tilt``. Nothing is estimated:

aliases      the rule over the whole line gives delta(epsilon) and positive terms: an upper bound.
truncation   the terms beyond t_K add up to at most M(tilt) e^(-tilt epsilon) g(t_K) / (pi t_K), g
             a bound on |M(tilt + iu)| / M(tilt) for all u >= t_K that falls in t.
slow decay   where g falls too slowly, a Gaussian release of a tiny ``extra`` mu is added to the
             composition. That can only raise its delta, and g gets a factor e^(-mu^2 t^2 / 2).
rounding     and quadrature are in the balls.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from flint import acb, arb

from dperm_cli.core.dataclass import dataclass
from dperm_cli.privacy.accounting.rigorous_balls import Ball, ComplexBall, make_ball
from dperm_cli.privacy.accounting.rigorous_transforms import SampledTransform, Transform
from dperm_cli.privacy.accounting.saddle_point import Saddle

# Points of the rule at most: of closed forms, and where each point is an integral.
_MOST_POINTS, _MOST_INTEGRALS = 4000, 160
# Exponent of the decay at the last point, and where only an extra release brings it about.
_EXPONENT, _EXPONENT_OF_EXTRA = 26.0, 13.0
# Share of the saddle's period that will do where points are dear: aliases are then 1e-6 of delta.
_SHARE_OF_PERIOD = 0.75


@dataclass(frozen=True)
class Step:
    """The transform of a law, and how many steps have it."""

    transform: Transform
    count: int


@dataclass(frozen=True)
class ContourBound:
    """The rule's coefficients on the line; ``delta`` bounds delta at any epsilon."""

    tilt: Ball
    log_m: Ball
    spacing: Ball
    coefficients: tuple[ComplexBall, ...]
    tail: Ball
    method = "contour"

    def delta(self, epsilon: Ball) -> Ball:
        """The bound; its upper end is proved at every epsilon, sharp where the tilt was chosen."""
        total = self.coefficients[0].real
        for k, coefficient in enumerate(self.coefficients[1:], start=1):
            turned = acb(0, -k * self.spacing * epsilon).exp()
            total = total + (coefficient * turned).real
        whole = self.spacing / (2 * arb.pi()) * total + self.tail
        return ((self.log_m - self.tilt * epsilon).exp() * whole).nonnegative_part()


def make_contour(steps: Sequence[Step], mu2: Ball, saddle: Saddle) -> ContourBound:
    """The contour through a saddle, wherever that is: it only decides how sharp the bound is.

    Args:
        steps: The laws of the composition, but for the Gaussian.
        mu2: Of the Gaussian.
        saddle: Of the same composition, in float64.
    """
    tilt = make_ball(saddle.tilt)
    spacing, points, most = _lay_out(steps, mu2, saddle)
    if points == most:
        spacing = spacing / _SHARE_OF_PERIOD
    end = spacing * points
    missing = _EXPONENT_OF_EXTRA - _find_exponent(steps, mu2, tilt, end)
    if missing > 0.0:
        mu2 = mu2 + 2 * make_ball(missing) / end**2
    peaks = [step.transform.compute(acb(tilt)).real for step in steps]
    log_m = mu2 / 2 * tilt * (1 + tilt)
    for step, peak in zip(steps, peaks, strict=True):
        log_m = log_m + step.count * peak.log()
    coefficients = []
    for k in range(points + 1):
        z = acb(tilt, k * spacing)
        value = (mu2 / 2 * (z * (1 + z) - tilt * (1 + tilt))).exp()
        for step, peak in zip(steps, peaks, strict=True):
            value = value * (step.transform.compute(z) / peak) ** step.count
        coefficients.append((2 if k else 1) * value / (z * (z + 1)))
    decay = _bound_decay(steps, mu2, tilt, end)
    tail = decay / (arb.pi() * end)
    return ContourBound(tilt, log_m, spacing, tuple(coefficients), tail)


def decays_slowly(steps: Sequence[Step], mu2: Ball, saddle: Saddle) -> bool:
    """Whether ``make_contour`` would add a release to the composition, and so lose digits."""
    _, points, most = _lay_out(steps, mu2, saddle)
    return points == most


def _lay_out(steps: Sequence[Step], mu2: Ball, saddle: Saddle) -> tuple[Ball, int, int]:
    """The spacing, the number of points and how many there may be."""
    sampled = any(isinstance(step.transform, SampledTransform) for step in steps)
    most = _MOST_INTEGRALS if sampled else _MOST_POINTS
    period = saddle.period if saddle.period < math.inf else 60.0 / saddle.tilt
    spacing = 2 * arb.pi() / make_ball(period)
    return spacing, _count_points(steps, mu2, make_ball(saddle.tilt), spacing, most), most


def _count_points(steps: Sequence[Step], mu2: Ball, tilt: Ball, spacing: Ball, most: int) -> int:
    """The least number of points after which the decay has its exponent, at most ``most``."""
    low, high = 0, 8
    while high < most and _find_exponent(steps, mu2, tilt, spacing * high) < _EXPONENT:
        low, high = high, 2 * high
    high = min(high, most)
    while high - low > max(1, high // 16):
        middle = (low + high) // 2
        enough = _find_exponent(steps, mu2, tilt, spacing * middle) >= _EXPONENT
        low, high = (low, middle) if enough else (middle, high)
    return high


def _find_exponent(steps: Sequence[Step], mu2: Ball, tilt: Ball, t: Ball) -> float:
    """Minus the logarithm of the decay at t, as a float."""
    decay = _bound_decay(steps, mu2, tilt, t)
    return -float(decay.upper().log().mid()) if decay.upper() > 0 else math.inf


def _bound_decay(steps: Sequence[Step], mu2: Ball, tilt: Ball, t: Ball) -> Ball:
    """At least |M(tilt + iu)| / M(tilt) of the whole composition for all u >= t."""
    found = (-mu2 * t * t / 2).exp()
    for step in steps:
        found = found * step.transform.bound_decay(tilt, t) ** step.count
    return found
