"""Choose the tilt for inverting a composition, and the window that keeps aliasing small.

For a composition S with M(z) = E_P e^{zS}, delta(epsilon) is for every lambda > 0
(1/2 pi) int M(z) e^{-z epsilon} / (z (z + 1)) dt, z = lambda + i t. Every lambda gives the right
value in exact arithmetic. The minimiser of Renyi's bound is close to the saddle point of the
integrand; with it no digits are lost, however small delta is.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from dperm_cli.core.brent import find_minimum
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.privacy.accounting.bounded_laws import BoundedStep
from dperm_cli.privacy.accounting.random_stopping import RenyiBound
from dperm_cli.privacy.accounting.subsampled_laws import Law, tilt_step

# Aliases are positive, so they can only raise delta; they are held below this share of it.
_LOG_ALIAS = math.log(1e-11)

# Tilts tried, as multiples of the optimal one.
_FACTORS = (1.0, 0.8, 0.6, 0.45, 0.3, 0.2, 1.06, 1.2, 1.5, 2.0, 3.0)
# log of M e^{-tilt epsilon} / delta up to which 1e-10 of the former is nothing to the latter.
_MOST_WASTED = 13.0
_LEAST_TILT = 1e-9
_MOST_TURNS = 3e4
# Logarithm of a number below the least positive float.
_LOG_UNDERFLOW = -800.0
# Larger epsilons are treated as this one.
_FAR = 1e9


@dataclass(frozen=True)
class Composition:
    """Independent steps and one Gaussian of squared GDP parameter ``mu2``.

    ``bounded`` holds steps of which only a Renyi bound is known: only ``renyi_log_delta`` may be
    used then.
    """

    steps: tuple[Law, ...]
    mu2: float = 0.0
    bounded: tuple[RenyiBound, ...] = ()

    def log_m(self, tilt: float) -> float:
        """log E e^{tilt S}; inf where the tilt is too large to be integrated."""
        gaussian = self.mu2 / 2.0 * tilt * (1.0 + tilt)
        gaussian += sum(step.log_m(tilt) for step in self.bounded)
        if gaussian == math.inf:
            return gaussian
        try:
            return gaussian + sum(s.count * tilt_step(s, tilt).log_m for s in self.steps)
        except Unsupported:
            return math.inf

    @property
    def distance(self) -> float:
        """An upper bound on delta(0): the smaller of the union bound and Pinsker's bound."""
        union = sum(s.count * s.distance for s in self.steps)
        union += math.erf(math.sqrt(self.mu2 / 8.0))
        entropy = self.mu2 / 2.0 + sum(s.count * s.entropy for s in self.steps)
        return min(union, math.sqrt(entropy / 2.0)) * (1.0 + 1e-6)

    @property
    def most(self) -> float:
        """The largest value S can take."""
        return math.inf if self.mu2 > 0.0 else math.fsum(s.count * _most(s) for s in self.steps)

    @property
    def largest_tilt(self) -> float:
        """The largest tilt that is tried: beyond it bounded losses would need too many nodes."""
        reach = max((s.reach for s in self.steps if isinstance(s, BoundedStep)), default=0.0)
        most = _MOST_TURNS / reach if reach > 0.0 else math.inf
        return min(most, *(step.largest_tilt for step in self.bounded), math.inf)


def _most(step: Law) -> float:
    if isinstance(step, BoundedStep):
        return step.reach
    return -math.log1p(-step.rate) if step.form == "add" and step.rate < 1.0 else math.inf


@dataclass(frozen=True)
class Saddle:
    """A tilt, log M there, the point (epsilon, log delta) aimed at, and a period B.

    ``log_delta`` at ``epsilon`` is a true but loose bound (Renyi's), except where the caller fixed
    it. ``period`` is long enough for the aliases e^{tilt k B} delta(epsilon + k B).
    """

    tilt: float
    log_m: float
    epsilon: float
    log_delta: float
    period: float

    def log_bound(self, epsilon: float) -> float:
        """Renyi's bound on log delta at any epsilon, from this tilt alone."""
        return self.log_m + _conversion(self.tilt) - self.tilt * epsilon


def find_saddle_at_delta(composition: Composition, log_delta: float) -> Saddle:
    """Choose the tilt for finding the epsilon that belongs to a delta, from its Renyi bound."""

    def bound(tilt: float) -> float:
        return (composition.log_m(tilt) + _conversion(tilt) - log_delta) / tilt

    tilt = _least(bound, composition.largest_tilt)
    return _choose_tilt(composition, tilt, max(bound(tilt), 0.0), log_delta)


def renyi_epsilon(composition: Composition, log_delta: float) -> float:
    """Renyi's upper bound on epsilon at delta, its tilt refined beyond what a saddle needs."""

    def bound(log_tilt: float) -> float:
        tilt = math.exp(log_tilt)
        found = (composition.log_m(tilt) + _conversion(tilt) - log_delta) / tilt
        return min(found, _FAR)  # an infinite one would stop the search below

    middle = math.log(_least(lambda tilt: bound(math.log(tilt)), composition.largest_tilt))
    found = find_minimum(bound, middle - 0.1, middle + 0.1, xtol=1e-5)
    best = max(min(found.value, bound(middle)), 0.0)
    return best if best < _FAR else math.inf


def find_saddle_at_epsilon(
    composition: Composition, epsilon: float, log_delta: float | None = None
) -> Saddle:
    """Choose the tilt at a given epsilon, from what is known of its delta (or its Renyi bound)."""
    tilt, bound = _renyi(composition, epsilon)
    return _choose_tilt(
        composition, tilt, epsilon, min(bound if log_delta is None else log_delta, 0.0)
    )


def renyi_log_delta(composition: Composition, epsilon: float) -> float:
    """Renyi's upper bound on log delta(epsilon) [Canonne-Kamath-Steinke 2020, Prop. 12]."""
    return _renyi(composition, epsilon)[1]


def _renyi(composition: Composition, epsilon: float) -> tuple[float, float]:
    def bound(tilt: float) -> float:
        return composition.log_m(tilt) + _conversion(tilt) - tilt * epsilon

    tilt = _least(bound, composition.largest_tilt)
    return tilt, bound(tilt)


def _conversion(tilt: float) -> float:
    """log max_u (1 - e^{-u}) e^{-tilt u}, a factor of M(tilt) e^{-tilt epsilon} >= delta."""
    return -math.log1p(tilt) - tilt * math.log1p(1.0 / tilt)


def _choose_tilt(composition: Composition, tilt: float, epsilon: float, log_delta: float) -> Saddle:
    """The tilt at or below the given one with the shortest period that keeps enough digits.

    Where a few improbable steps carry the far tail, M explodes just above the optimal tilt and no
    finite period is long enough there; a smaller tilt costs digits but has short aliases.
    """
    others = {f * tilt: composition.log_m(f * tilt) for f in _FACTORS}
    best = None
    for candidate, log_m in others.items():
        wasted = log_m - candidate * epsilon - log_delta
        if candidate > tilt or (candidate < tilt and wasted > _MOST_WASTED):
            continue
        period = (-log_delta - _LOG_ALIAS) / candidate
        reach = [
            (higher - above * epsilon - log_delta - _LOG_ALIAS) / (above - candidate)
            for above, higher in others.items()
            if above > 1.04 * candidate
        ]
        period = max(period, min(reach, default=math.inf))
        if best is None or period < 0.8 * best.period:
            best = Saddle(candidate, log_m, epsilon, log_delta, period)
    assert best is not None
    return best


def _least(bound: Callable[[float], float], largest: float = math.inf) -> float:
    """The tilt up to ``largest`` that minimises a unimodal bound, to about 2 %."""
    middle = min(1.0, largest / 2.0)
    value = bound(middle)
    factor = 2.0 if bound(2.0 * middle) < value else 0.5
    while _LEAST_TILT < middle <= largest / 2.0 and value > _LOG_UNDERFLOW:
        following = bound(middle * factor)
        if not following < value:
            break
        middle, value = middle * factor, following
    for _ in range(5):
        factor = math.sqrt(factor) if factor > 1.0 else 1.0 / math.sqrt(factor)
        for candidate in (middle / factor, middle * factor):
            attempt = bound(candidate)
            if attempt < value:
                middle, value = candidate, attempt
                break
    return middle
