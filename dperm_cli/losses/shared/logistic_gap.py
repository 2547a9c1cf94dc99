"""How far apart two records' logistic gradients can be, for rows of norm at most 1.

A record u = -y x has the gradient u s(<u, theta>), where s is the logistic function. Both functions
are suprema of |u s(<u, theta>) - u' s(<u', theta>)| over |u|, |u'| <= 1 and |theta| <= margin. They
are derived in ``docs/proofs/_losses.md``.
"""

from __future__ import annotations

import math

from scipy.special import expit

# The maximum of v s(-v) over v >= 0 is W(1/e), at v = 1 + W(1/e); W is Lambert's function.
_PEAK = 0.27846454276107380
PEAK_AT = 1.2784645427610738
# where s(t) + _PEAK / t is largest over t >= PEAK_AT
_WORST = 4.031622588125585
_ROUND_UP = 1.0 + 1e-12


def on_the_line(margin: float) -> float:
    """The supremum for p = 1: 1 up to margin 1.278, then s(t) + 0.278 / t at t = min(margin, 4.03).

    It is at most 1.0517. Values above 1 need one row that is shorter than 1.
    """
    if margin <= PEAK_AT:
        return 1.0
    t = min(margin, _WORST)
    return (float(expit(t)) + _PEAK / t) * _ROUND_UP


def in_the_plane(margin: float) -> float:
    """The supremum for p >= 2: max over c in [0, 1] of 2 sqrt(1 - c^2) s(margin c).

    The logarithm is concave in c, so bisection finds the maximum. An error in c changes the value
    only in second order.
    """
    low, high = 0.0, 1.0
    for _ in range(60):
        c = 0.5 * (low + high)
        rising = margin * float(expit(-margin * c)) * (1.0 - c) * (1.0 + c) > c
        low, high = (c, high) if rising else (low, c)
    return 2.0 * math.sqrt((1.0 - low) * (1.0 + low)) * float(expit(margin * low)) * _ROUND_UP
