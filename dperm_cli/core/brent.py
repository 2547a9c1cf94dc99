"""A root and a minimum of a function of one number, by Brent's methods.

The steps are those of ``scipy.optimize``: of ``brentq``, and of ``minimize_scalar`` between bounds.
Where a processor rounds each product and sum, the numbers are those of scipy to the last bit; on
others a compiler may join the two in scipy's code for roots. ``scipy.optimize`` takes longer to
import than everything that ``dperm account`` computes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

_GOLDEN = 0.5 * (3.0 - math.sqrt(5.0))  # the smaller part of a whole cut in the golden ratio
_PLACES = 4.0 * 2.0**-52  # of a root, what can be told apart
_HALF_DIGITS = math.sqrt(2.2e-16)  # of a minimum, half of the digits of a double can be found


class Least(NamedTuple):
    """Where a function is least, and its value there."""

    x: float
    value: float


def find_root(
    f: Callable[[float], float],
    low: float,
    high: float,
    *,
    xtol: float,
    rtol: float = _PLACES,
    steps: int = 100,
) -> float:
    """A number within ``xtol + rtol |x|`` of a place where f changes its sign.

    Args:
        f: The function.
        low: One end.
        high: The other end, where f has the other sign.
        xtol: The absolute tolerance.
        rtol: The relative one.
        steps: How many there may be.

    Raises:
        ValueError: f has the same sign at both ends, or is nan.
        RuntimeError: So many steps do not suffice.

    >>> find_root(lambda x: x * x - 2.0, 0.0, 2.0, xtol=1e-12, rtol=1e-15, steps=50)
    1.414213562373095
    """

    def value(x: float) -> float:
        found = float(f(x))
        if math.isnan(found):
            raise ValueError(f"the function is nan at {x!r}")
        return found

    before, here = float(low), float(high)
    f_before, f_here = value(before), value(here)
    if f_before == 0.0:
        return before
    if f_here == 0.0:
        return here
    if (f_before < 0.0) == (f_here < 0.0):
        raise ValueError(f"the function has the same sign at {before!r} and {here!r}")
    across = f_across = last = step = 0.0
    for _ in range(steps):
        if f_before != 0.0 and f_here != 0.0 and (f_before < 0.0) != (f_here < 0.0):
            across, f_across = before, f_before
            last = step = here - before
        if abs(f_across) < abs(f_here):
            before, here, across = here, across, here
            f_before, f_here, f_across = f_here, f_across, f_here
        near = (xtol + rtol * abs(here)) / 2.0
        half = (across - here) / 2.0
        if f_here == 0.0 or abs(half) < near:
            return here
        tried = math.inf
        if abs(last) > near and abs(f_here) < abs(f_before):
            tried = _interpolate((before, f_before), (here, f_here), (across, f_across))
        short = 2.0 * abs(tried) < min(abs(last), 3.0 * abs(half) - near)
        last, step = (step, tried) if short else (half, half)
        before, f_before = here, f_here
        here += step if abs(step) > near else (near if half > 0.0 else -near)
        f_here = value(here)
    raise RuntimeError(f"no root after {steps} steps; the last was at {here!r}")


def _interpolate(
    before: tuple[float, float], here: tuple[float, float], across: tuple[float, float]
) -> float:
    """The step to the root of a secant, or of an inverse parabola; infinite where it has none."""
    (x, f), (x_0, f_0), (x_1, f_1) = here, before, across
    try:
        if x_0 == x_1:
            return -f * (x - x_0) / (f - f_0)
        slope_0, slope_1 = (f_0 - f) / (x_0 - x), (f_1 - f) / (x_1 - x)
        return -f * (f_1 * slope_1 - f_0 * slope_0) / (slope_1 * slope_0 * (f_1 - f_0))
    except ZeroDivisionError:
        return math.inf


def find_minimum(
    f: Callable[[float], float], low: float, high: float, *, xtol: float = 1e-5, steps: int = 500
) -> Least:
    """A local minimum of a function between two numbers.

    Args:
        f: The function.
        low: The lower end, at which it is not evaluated.
        high: The upper end, at which it is not evaluated either.
        xtol: How far from the minimum the place may be, beside half of the digits of a double.
        steps: How often f may be evaluated; then the best place so far is returned.

    >>> found = find_minimum(lambda x: (x - 2.0) ** 2, 0.0, 5.0)
    >>> round(found.x, 6), round(found.value, 6)
    (2.0, 0.0)
    """
    low, high = float(low), float(high)
    best = second = third = low + _GOLDEN * (high - low)
    f_best = f_second = f_third = float(f(best))
    step = last = 0.0
    for _ in range(steps - 1):
        middle = 0.5 * (low + high)
        near = _HALF_DIGITS * abs(best) + xtol / 3.0
        if not abs(best - middle) > 2.0 * near - 0.5 * (high - low):
            break
        found = None
        if abs(last) > near:
            points = (best, f_best), (second, f_second), (third, f_third)
            found = _find_vertex(*points, low, high, last)
            last = step
        if found is None:  # no parabola: cut the longer side in the golden ratio
            last = (low if best >= middle else high) - best
            step = _GOLDEN * last
        else:
            step = found
            at = best + step
            if at - low < 2.0 * near or high - at < 2.0 * near:
                step = math.copysign(near, middle - best)
        x = best + math.copysign(max(abs(step), near), step)
        value = float(f(x))
        if value <= f_best:
            low, high = (best, high) if x >= best else (low, best)
            third, f_third, second, f_second = second, f_second, best, f_best
            best, f_best = x, value
            continue
        low, high = (x, high) if x < best else (low, x)
        if value <= f_second or second == best:
            third, f_third, second, f_second = second, f_second, x, value
        elif value <= f_third or third in (best, second):
            third, f_third = x, value
    return Least(best, f_best)


def _find_vertex(
    best: tuple[float, float],
    second: tuple[float, float],
    third: tuple[float, float],
    low: float,
    high: float,
    before: float,
) -> float | None:
    """The step from the best point to the vertex of the parabola through three.

    None where that leaves the bounds, or is no less than half of the step before the last.
    """
    (x, f), (x_2, f_2), (x_3, f_3) = best, second, third
    r, q = (x - x_2) * (f - f_3), (x - x_3) * (f - f_2)
    p, q = (x - x_3) * q - (x - x_2) * r, 2.0 * (q - r)
    p, q = (-p if q > 0.0 else p), abs(q)
    inside = q * (low - x) < p < q * (high - x)
    # -0.0 + 0.0 is 0.0: a step of nothing counts as one upwards
    return (p + 0.0) / q if inside and abs(p) < abs(0.5 * q * before) else None
