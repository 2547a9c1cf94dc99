"""Slopes dl/dz of the losses l(z; y) of a margin z, by integer code.

=======================  ==================  ==========================================
code                     l(z; y)             slope
=======================  ==================  ==========================================
LOGISTIC                 log(1 + exp(-y z))  -y / (1 + exp(y z))
HINGE                    max(0, 1 - y z)     -y where y z < 1, else 0 (0 at the kink)
SQUARED                  (z - y)^2 / 2       z - y
ABSOLUTE                 |z - y|             sign(z - y), 0 at the kink
LINEAR                   -y z                -y
HUBERIZED_HINGE          f(1 - y z)          -y f'(1 - y z)
POSITIVE_PART            max(0, y - z)       -1 where z < y, else 0 (0 at the kink)
HUBERIZED_POSITIVE_PART  f(y - z)            -f'(y - z)
=======================  ==================  ==========================================

f'(u) = (u + h) / (2 h), clipped to [0, 1], for a half-width h > 0 that the other losses ignore.
"""

from __future__ import annotations

import numpy as np

from dperm_cli.loops.gaussian_noise import LN2_HIGH, LN2_LOW
from dperm_cli.loops.jit import as_bits, as_float, compile_loop, fma

LOGISTIC, HINGE, SQUARED, ABSOLUTE = 0, 1, 2, 3
LINEAR, HUBERIZED_HINGE, POSITIVE_PART, HUBERIZED_POSITIVE_PART = 4, 5, 6, 7
L1_MEDIAN, L2_MEDIAN = 100, 101  # |theta - x|_1 and |theta - x|_2: of no margin
ROUNDED = (HUBERIZED_HINGE, HUBERIZED_POSITIVE_PART)  # those with a half-width

ROUNDER = 6755399441055744.0  # 1.5 * 2^52: adding and subtracting it rounds to an integer
_EXPONENT = np.uint64(52)
_LIMIT = 708.0


@compile_loop(forceinline=True)
def exp(x):
    """e^x, relative error below 4e-16, for |x| <= 708; beyond it the value at the limit.

    The same bits wherever it is compiled, which the C library's exp does not promise.
    """
    r, shifted = _reduce(x)
    return _scale(1.0 + _exp_of_rest(r), shifted)


@compile_loop(forceinline=True)
def _reduce(x):
    """x, limited, as k log(2) + r: r, and k in the lowest bits of a double."""
    x = min(max(x, -_LIMIT), _LIMIT)
    shifted = fma(x, 1.4426950408889634, ROUNDER)
    k = shifted - ROUNDER
    return fma(k, -LN2_LOW, fma(k, -LN2_HIGH, x)), shifted


@compile_loop(forceinline=True)
def _exp_of_rest(r):
    """e^r - 1 for |r| up to log(2) / 2, by a polynomial."""
    s = r * r
    low = fma(s, fma(r, 0.008333333333326141, 0.04166666666666667), fma(r, 0.1666666666666667, 0.5))
    high = fma(r, 2.755725542550290e-06, 2.4801587325533502e-05)
    high = fma(s, high, fma(r, 0.00019841269874800683, 0.0013888888888883752))
    top = fma(s, 2.091467944897855e-09, fma(r, 2.5105206475334834e-08, 2.7557273661174726e-07))
    return fma(s, fma(s * s, fma(s * s, top, high), low), r)


@compile_loop(forceinline=True)
def _scale(value, shifted):
    """value 2^k, for the k in the lowest bits of ``shifted``: it is added to the exponent."""
    return as_float(as_bits(value) + (as_bits(shifted) << _EXPONENT))


@compile_loop(forceinline=True)
def log_of_one_plus(e):
    """log(1 + e) for e in [0, 1], relative error below 4e-16, with the same bits everywhere.

    1 + f is 1 + e, or half of it where e is large; log(1 + f) = 2 atanh(s) with s = f / (2 + f),
    by the polynomial of ``gaussian_noise.minus_log``.
    """
    is_large = e > 0.41421356237309503
    f = 0.5 * (e - 1.0) if is_large else e
    k = 1.0 if is_large else 0.0
    s = f / (2.0 + f)
    x = s * s
    y = x * x
    low = fma(y, fma(x, 0.2222221113479508, 0.28571428625975487), fma(x, 0.399999999998995, 2 / 3))
    high = fma(y, 0.14616449685043406, fma(x, 0.15331721600556042, 0.18182889125261723))
    q = fma(y * y, high, low)
    return fma(k, LN2_HIGH, fma(k, LN2_LOW, f - s * fma(-x, q, f)))


@compile_loop(forceinline=True)
def _rounded_step(u, width):
    """(u + width) / (2 width), clipped to [0, 1]."""
    return min(max((u + width) / (2.0 * width), 0.0), 1.0)


@compile_loop(forceinline=True)
def slope(code, z, y, width=0.0):
    """One subgradient in z of the loss ``code`` (of half-width ``width``) at margin z, label y."""
    if code == LOGISTIC:
        return -y / (1.0 + exp(y * z))
    if code == HINGE:
        return -y if y * z < 1.0 else 0.0
    if code == SQUARED:
        return z - y
    if code == LINEAR:
        return -y
    if code == HUBERIZED_HINGE:
        return -y * _rounded_step(1.0 - y * z, width)
    if code == HUBERIZED_POSITIVE_PART:
        return -_rounded_step(y - z, width)
    if z < y:
        return -1.0
    return 1.0 if code == ABSOLUTE and z > y else 0.0


@compile_loop(forceinline=True)
def slopes(code, z, y, width=0.0):
    """z[c] <- slope(code, z[c], y[c], width) for every c; the logistic loop vectorises."""
    if code == LOGISTIC:
        for c in range(z.size):
            z[c] = slope(LOGISTIC, z[c], y[c], width)
    else:
        for c in range(z.size):
            z[c] = slope(code, z[c], y[c], width)


@compile_loop(forceinline=True)
def block_slopes(code, z, y, width, scratch):
    """The same for many records, with room for as many numbers.

    The logistic slope is computed in three short loops: a processor works on a few hundred
    operations at once, and with shorter ones these are of more records. The bits are the same.
    """
    if code != LOGISTIC:
        slopes(code, z, y, width)
        return
    for c in range(z.size):
        z[c], scratch[c] = _reduce(y[c] * z[c])
    for c in range(z.size):
        z[c] = _exp_of_rest(z[c])
    for c in range(z.size):
        z[c] = -y[c] / (1.0 + _scale(1.0 + z[c], scratch[c]))
