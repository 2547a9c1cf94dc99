"""Ball arithmetic: numbers with a proved error, and the steps between them and doubles.

A ball (``flint.arb``) is an interval that holds the exact number. A comparison of balls is true
only where it holds for all numbers in them. So a condition that was found true is proved.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from flint import arb, ctx, fmpq

Ball = Any  # flint.arb; the package has no types of its own
ComplexBall = Any  # flint.acb

# Bits of closed forms, and of sums over a contour, where no digits are lost to cancellation.
CLOSED_BITS, CONTOUR_BITS = 320, 128
_MOST_DOUBLINGS = 200


def work_with(bits: int) -> Any:
    """A context in which balls are computed with so many bits."""
    return ctx.workprec(bits)


def make_ball(value: float | int | Fraction) -> Ball:
    """The ball of an exact number: of a double its own value, not that of its decimal digits."""
    if isinstance(value, Fraction):
        return arb(fmpq(value.numerator, value.denominator))
    return arb(value)


def read_least(value: float) -> Ball:
    """The lesser of a double and of the decimal number that Python prints for it."""
    return make_ball(min(Fraction(value), Fraction(repr(float(value)))))


def is_zero(ball: Ball) -> bool:
    """Whether a ball is 0 and nothing else."""
    return bool(ball == 0)


def round_up(ball: Ball) -> float:
    """A double that is at least every number of a ball, and so are its decimal digits.

    It is the least of the doubles like that. inf where the ball is not finite.

    >>> from flint import arb
    >>> round_up(arb(1) / 3)
    0.33333333333333337
    """
    if not ball.is_finite():
        return math.inf
    if is_zero(ball):
        return 0.0
    value = math.nextafter(math.nextafter(float(ball.upper()), -math.inf), -math.inf)
    while not read_least(value) >= ball:
        value = math.nextafter(value, math.inf)
    return value


def find_least(enough: Callable[[Ball], bool], guess: float, share: float = 0.0) -> float:
    """Search for the least epsilon at which a condition is proved.

    Args:
        enough: The condition. Where it holds at some epsilon, it should hold above it too: then
            the answer is the least one. What is returned satisfies it in any case.
        guess: Where the search begins.
        share: How close to the least one to come, as a share of it; 0: as close as doubles are.

    Returns:
        A double at which, and at whose decimal digits, the condition is proved; inf where the
        search found none.
    """
    if not guess < math.inf:
        return math.inf
    high = max(guess, 0.0)
    least = max(share * high, 1e-300)
    step = max(least, math.ulp(high)) if high > 0.0 else 1e-9
    for _ in range(_MOST_DOUBLINGS):
        if enough(read_least(high)):
            break
        high, step = high + step, 2.0 * step
        if high > 1e6 * (1.0 + guess):
            return math.inf
    else:
        return math.inf
    low, step = high, max(least, math.ulp(high))
    while low > 0.0:
        low, step = max(high - step, 0.0), 2.0 * step
        if not enough(read_least(low)):
            break
        high = low
    while high - low > least:
        middle = low + (high - low) / 2.0
        if not low < middle < high:
            break
        low, high = (low, middle) if enough(read_least(middle)) else (middle, high)
    return high


def compute_normal(x: Ball) -> Ball:
    """The normal distribution function Phi."""
    return (-x / arb(2).sqrt()).erfc() / 2


def compute_density(x: ComplexBall) -> ComplexBall:
    """The normal density phi, also at complex x."""
    return (-x * x / 2).exp() / (2 * arb.pi()).sqrt()
