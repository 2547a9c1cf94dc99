"""Moment generating functions of loss laws in ball arithmetic, and how fast they decay.

A transform is M(z) = E_P e^{z loss} of one step, for complex z with real part at least 0. Laws of
bounded loss and the Gaussian have it in closed form; of a random batch it is an integral, which
``acb.integral`` encloses with its quadrature error. What lies beyond the ends of the integral is
bounded by a normal tail. Proofs: docs/proofs, accounting page.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Protocol

from flint import acb, arb

from dperm_cli.core.dataclass import dataclass
from dperm_cli.privacy.accounting.rigorous_balls import (
    Ball,
    ComplexBall,
    compute_density,
    compute_normal,
)
from dperm_cli.privacy.accounting.rigorous_losses import LAPLACE, RANGE, BoundedLaw, SampledLaw

# The integral ends where what is beyond is below e^-_DEPTH.
_DEPTH = 76.0
# Bits of the integral that are asked for, beside those of the count: what it has is in the ball.
_BITS = 60
# The parts of an interval of x on which a density is bounded from below, and such intervals.
_PIECES = 24
_WIDTHS = (0.5, 1.0, 2.0, 3.0)


class Transform(Protocol):
    """M(z) of one step, and a bound on its decay."""

    def compute(self, z: ComplexBall) -> ComplexBall:
        """M(z)."""
        ...

    def bound_decay(self, tilt: Ball, t: Ball) -> Ball:
        """At least |M(tilt + iu)| / M(tilt) for all u >= t. Falls as t rises."""
        ...


@dataclass(frozen=True)
class BoundedTransform:
    """Of a pure, a Laplace or a bounded-range step."""

    law: BoundedLaw

    @cached_property
    def share(self) -> Ball:
        """The weight of randomised response in the mixture."""
        if self.law.law == LAPLACE:
            return (1 + (-self.law.reach).exp()) / 2
        return arb(0 if self.law.law == RANGE else 1)

    @property
    def is_atomic(self) -> bool:
        """Whether it is randomised response, and nothing decays."""
        return self.law.law not in (LAPLACE, RANGE)

    def compute(self, z: ComplexBall) -> ComplexBall:
        e = self.law.reach
        turned = (z + 0.5) * e
        if self.is_atomic:
            return turned.cosh() / (e / 2).cosh()
        smooth = turned.sinh() / ((2 * z + 1) * (e / 2).sinh())
        if self.law.law == RANGE:
            return smooth
        return self.share * turned.cosh() / (e / 2).cosh() + (1 - self.share) * smooth

    def bound_decay(self, tilt: Ball, t: Ball) -> Ball:
        if self.is_atomic:
            return arb(1)
        e = self.law.reach
        peak = ((tilt + 0.5) * e).cosh()
        size = ((2 * tilt + 1) ** 2 + 4 * t * t).sqrt()
        found = (1 - self.share) * peak / (size * (e / 2).sinh())
        found = found + self.share * peak / (e / 2).cosh()
        return (found / self.compute(acb(tilt)).real).min(arb(1))


@dataclass(frozen=True)
class SampledTransform:
    """Of a Gaussian release over a random batch; ``form`` is that of the law."""

    law: SampledLaw

    def compute(self, z: ComplexBall) -> ComplexBall:
        form, s = self.law.form, self.law.shift
        tilt = z.real
        far = self._find_end(tilt)
        start = {"fixed": s / 2, "poisson": arb(0)}.get(form, -far)

        def integrand(x: ComplexBall, analytic: bool) -> ComplexBall:
            ratio = self._log_mix(x, 1, analytic)
            if form == "remove":
                return compute_density(x) * ((1 + z) * ratio).exp()
            if form == "add":
                return compute_density(x) * (-z * ratio).exp()
            # both branches of a law that is its own mirror image
            base = self._log_mix(x, -1, analytic) if form == "poisson" else acb(0)
            up, down = (1 + z) * ratio - z * base, (1 + z) * base - z * ratio
            return compute_density(x) * (up.exp() + down.exp())

        bits = _BITS + self.law.count.bit_length()
        found = acb.integral(integrand, start, far, rel_tol=arb(2) ** -bits)
        error = self._bound_ends(tilt, far)
        found = found + acb(_surround_zero(error), _surround_zero(error))
        if form == "fixed":
            found = found + (1 - self.law.rate) * (1 - 2 * compute_normal(-s / 2))
        return found

    def bound_decay(self, tilt: Ball, t: Ball) -> Ball:
        """By a part of the tilted law that is uniform on an interval of losses.

        Of mass c and width w it gives 1 - c + c max(e^(-y^2 / 6), 1 / pi) at y = t w / 2.
        """
        best = arb(1)
        for mass, width in self._list_uniform_parts(tilt):
            turned = t * width / 2
            found = 1 - mass + mass * (-turned * turned / 6).exp().max(1 / arb.pi())
            best = best.min(found)
        return best

    def _find_end(self, tilt: Ball) -> Ball:
        """Where the integral ends: so far out that ``_bound_ends`` is tiny."""
        peak, growth = (float(part.upper()) for part in self._bound_growth(tilt))
        return arb(math.ceil(peak + math.sqrt(2.0 * (growth + _DEPTH))))

    def _bound_ends(self, tilt: Ball, far: Ball) -> Ball:
        """What is at most beyond the ends of the integral, in absolute value."""
        peak, growth = self._bound_growth(tilt)
        return growth.exp() * compute_normal(peak - far) + compute_normal(-far)

    def _bound_growth(self, tilt: Ball) -> tuple[Ball, Ball]:
        """m and g: beyond the ends one branch is below e^g phi(|x| - m), the other below phi(x)."""
        s, form = self.law.shift, self.law.form
        if form == "poisson":
            power = 1 + 2 * tilt
            return power * s, power**2 * s * s / 2
        power = tilt if form == "add" else 1 + tilt
        return power * s, tilt * (1 + tilt) * s * s / 2

    def _log_mix(self, x: ComplexBall, side: int, analytic: bool = False) -> ComplexBall:
        """log(1 - q + q e^(side s x - s^2 / 2))."""
        s, q = self.law.shift, self.law.rate
        return acb(1 - q + q * (side * s * x - s * s / 2).exp()).log(analytic=analytic)

    def _list_uniform_parts(self, tilt: Ball) -> list[tuple[Ball, Ball]]:
        """Mass and width in the loss of uniform parts of the tilted law."""
        key = float(tilt.mid())
        if key not in self._parts:
            self._parts[key] = list(self._find_uniform_parts(tilt))
        return self._parts[key]

    @cached_property
    def _parts(self) -> dict[float, list[tuple[Ball, Ball]]]:
        return {}

    def _find_uniform_parts(self, tilt: Ball):
        s, start = float(self.law.shift.mid()), 0.0
        form = self.law.form
        start = {"fixed": s / 2, "poisson": 0.0}.get(form, -3.0)
        peak = -float(tilt.mid()) * s if form == "add" else (1 + float(tilt.mid())) * s
        norm = self.compute(acb(tilt)).real
        for width in _WIDTHS:
            places = {start, start + 0.5, start + 1.0, peak - width / 2, peak / 2, s - width / 2}
            if form not in ("fixed", "poisson"):
                places |= {-width / 2, -width}
            for low in sorted(places):
                if low < start and form in ("fixed", "poisson"):
                    continue
                least = self._bound_density(tilt, low, width) / norm
                reach = (self._loss(arb(low + width)) - self._loss(arb(low))).lower()
                if least > 0 and reach > 0:
                    yield (least * reach).lower().min(arb(1)), reach

    def _loss(self, x: Ball) -> Ball:
        """The loss as a rising function of x (for ``add``, its negative)."""
        found = self._log_mix(acb(x), 1)
        return (
            (found - self._log_mix(acb(x), -1)).real if self.law.form == "poisson" else found.real
        )

    def _bound_density(self, tilt: Ball, low: float, width: float) -> Ball:
        """The least density of the loss, under the tilt and not normalised, on an interval of x."""
        least = None
        half = width / _PIECES / 2
        for k in range(_PIECES):
            x = arb(low + (2 * k + 1) * half, half * (1 + 1e-9))
            found = self._density(tilt, x).lower()
            least = found if least is None else least.min(found)
        return least

    def _density(self, tilt: Ball, x: Ball) -> Ball:
        """The tilted density of the loss at x, not normalised; one branch of mirrored laws."""
        q, s, form = self.law.rate, self.law.shift, self.law.form
        level = q * (s * x - s * s / 2).exp()
        mix = 1 - q + level
        slope = s * level / mix
        if form == "poisson":
            other = q * (-s * x - s * s / 2).exp()
            base = 1 - q + other
            slope = slope + s * other / base
            return compute_density(x) * mix ** (1 + tilt) * base**-tilt / slope
        power = -tilt if form == "add" else 1 + tilt
        return compute_density(x) * mix**power / slope


def _surround_zero(error: Ball) -> Ball:
    """A ball about 0 of at least that radius."""
    size = error.upper()
    return (-size).union(size)
