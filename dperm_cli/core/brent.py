"""A root of a function of one number by Brent's method: the steps of ``scipy.optimize.brentq``.

Where a processor rounds each product and sum, the numbers are those of scipy to the last bit; on
others a compiler may join the two in scipy's code. ``scipy.optimize`` takes longer to import than
everything that ``dperm account`` computes.
"""

from __future__ import annotations

import math
from collections.abc import Callable


def find_root(
    f: Callable[[float], float], low: float, high: float, *, xtol: float, rtol: float, steps: int
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
