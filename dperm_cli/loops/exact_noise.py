"""Exact normal and exponential noise on a grid, from random bits and integer arithmetic.

``fill`` returns floor(s Y + 1/2) with a random sign. Y is standard exponential, or the modulus of a
standard normal, and s = mantissa / 2^shift. So this is continuous noise rounded to the grid. Y
comes from comparisons of uniform numbers [Neumann 1951; Karney 2016, Alg. N]; no function is
evaluated and nothing is rounded before the end.

A uniform number is a string of bits, of which the first 64 are looked at. In rare cases these do
not decide: two numbers tie, or Y is within 2^-64 of a point where the result jumps. Then the loop
stops, and ``privacy.secure_noise`` makes that one draw with longer strings. ``fill_strings`` stops
at ties alone: it returns Y as it was drawn, to be rounded elsewhere.

``gradient_sum`` adds gradients as integers on the same grid. Its result does not depend on the
order of the records.
"""

from __future__ import annotations

import math

import numpy as np

from dperm_cli.loops import vector_lanes as lanes
from dperm_cli.loops.jit import compile_inline, compile_loop
from dperm_cli.loops.slopes import ROUNDER, slope

DONE, UNDECIDED, EXHAUSTED = 0, 1, 2

_HALF = np.uint64(1 << 63)
_LOW, _32 = np.uint64(0xFFFFFFFF), np.uint64(32)
_ONES = np.uint64(2**64 - 1)
_ONE, _ZERO = np.uint64(1), np.uint64(0)
_MOST = 1000  # integer parts up to which mantissa * Y < 2^63


@compile_inline
def _take(words, state):
    """The next word; zeros past the end, which the caller notices by state[0]."""
    i = state[0]
    state[0] = i + 1
    return words[i] if i < words.size else _ZERO


@compile_inline
def _has_even_run(words, state, y, n):
    """Whether n plus the length of a falling run of uniform numbers below y is even.

    The run is of length >= j with probability y^j / j!, so that n = 0 gives e^-y.
    """
    while True:
        z = _take(words, state)
        if z == y:
            state[1] = 1
            return True
        if z > y:
            return n % 2 == 0
        y = z
        n += 1


@compile_inline
def _root_e(words, state):
    """True with probability e^(-1/2)."""
    z = _take(words, state)
    return True if z >= _HALF else _has_even_run(words, state, z, 1)


@compile_inline
def _below(words, state, m):
    """A uniform integer below m."""
    rest = (_ONES % m + _ONE) % m
    while True:
        word = _take(words, state)
        if word <= _ONES - rest:
            return word % m


@compile_inline
def _accept_candidate(words, state, k, x):
    """True with probability exp(-x (2k + x) / (2k + 2)) [Karney 2016, Alg. B]."""
    m, y, n = np.uint64(2 * k + 2), x, 0
    while True:
        z = _take(words, state)
        if z == y:
            state[1] = 1
            return True
        if z > y:
            return n % 2 == 0
        # goes on with probability (2k + x) / (2k + 2)
        j = _below(words, state, m)
        if j == _ZERO:
            return n % 2 == 0
        if j == _ONE:
            r = _take(words, state)
            if r == x:
                state[1] = 1
                return True
            if r > x:
                return n % 2 == 0
        y = z
        n += 1


@compile_inline
def _normal(words, state):
    """Integer part and fraction (64 bits) of the modulus of a normal [Karney 2016, Alg. N]."""
    while state[1] == 0:
        k = 0
        while state[1] == 0 and _root_e(words, state):
            k += 1
        good = True
        for _ in range(k * (k - 1)):
            good = _root_e(words, state)
            if state[1] or not good:
                break
        if not good:
            continue
        x = _take(words, state)
        for _ in range(k + 1):
            good = _accept_candidate(words, state, k, x)
            if state[1] or not good:
                break
        if good:
            return k, x
    return 0, _ZERO


@compile_inline
def _exponential(words, state):
    """Integer part and fraction (64 bits) of an exponential [Neumann 1951]."""
    k = 0
    while state[1] == 0:
        x = _take(words, state)
        if _has_even_run(words, state, x, 0):
            return k, x
        k += 1
    return 0, _ZERO


@compile_inline
def _product(a, b):
    """The upper and the lower word of a * b."""
    a1, a0, b1, b0 = a >> _32, a & _LOW, b >> _32, b & _LOW
    low, left, right = a0 * b0, a1 * b0, a0 * b1
    middle = (low >> _32) + (left & _LOW) + (right & _LOW)
    high = a1 * b1 + (left >> _32) + (right >> _32) + (middle >> _32)
    return high, (middle << _32) | (low & _LOW)


@compile_inline
def _round_draw(k, x, mantissa, shift, state):
    """floor(s (k + x) + 1/2), where the bits after x's first 64 cannot matter."""
    if k > _MOST:
        state[1] = 1
        return 0
    high, low = _product(mantissa, x)
    total = high + mantissa * np.uint64(k) + (_ONE << np.uint64(shift - 1))
    full = (_ONE << np.uint64(shift)) - _ONE
    if low > _ONES - mantissa and total & full == full:
        state[1] = 1
    return np.int64(total >> np.uint64(shift))


@compile_loop
def fill(gaussian, words, mantissa, shift, out, done):
    """Fill ``out`` [count] int64 from draw ``done`` on; returns (done, words used, status).

    ``mantissa`` is below 2^53 (uint64), 1 <= shift. A draw that is not DONE has used no words: the
    caller makes it again from ``words[used:]``.
    """
    state = np.zeros(2, np.int64)
    while done < out.size:
        used = state[0]
        k, x = _normal(words, state) if gaussian else _exponential(words, state)
        size = np.int64(0)
        if state[1] == 0:
            sign = _take(words, state)
            size = _round_draw(k, x, mantissa, shift, state)
            size = -size if sign >= _HALF else size
        if state[0] > words.size:
            return done, used, EXHAUSTED
        if state[1]:
            return done, used, UNDECIDED
        out[done] = size
        done += 1
    return done, state[0], DONE


@compile_loop
def fill_strings(gaussian, words, whole, fraction, negative, done):
    """Fill in draws that are not rounded, from draw ``done`` on; returns as ``fill`` does.

    A draw is whole [count] int64 plus a number in (0, 1) that begins with the 64 bits of fraction
    [count] uint64; negative [count] int64 is 1 where its sign is minus.
    """
    state = np.zeros(2, np.int64)
    while done < whole.size:
        used = state[0]
        k, x = _normal(words, state) if gaussian else _exponential(words, state)
        sign = _take(words, state)
        if state[0] > words.size:
            return done, used, EXHAUSTED
        if state[1]:
            return done, used, UNDECIDED
        whole[done], fraction[done], negative[done] = k, x, np.int64(sign >= _HALF)
        done += 1
    return done, state[0], DONE


@compile_inline
def clip_weight(weight, square, bound):
    """``weight``, cut where |weight| sqrt(square) exceeds the bound; 0 where not finite."""
    length = abs(weight) * math.sqrt(square)
    if length <= bound:
        return weight
    return weight * (bound / length) if length < np.inf else 0.0


@compile_inline
def round_nearest(value):
    """The nearest integer, where |value| < 2^50."""
    return np.int64((value + ROUNDER) - ROUNDER)


@compile_loop
def gradient_sum(rows, theta, code, width, bound, per_unit, out):
    """out [m, p] int64 <- sum over records of their rounded gradients at theta [m, p].

    A record gives round(per_unit * g) with g = slope * x, shortened to norm ``bound``: a function
    of that record and theta alone, which its place among the others does not enter.
    per_unit * bound must stay below 2^50, n times it below 2^62.
    """
    has_csr, x, indptr, columns, values, y = rows
    p = theta.shape[1]
    out[:] = 0
    for m in range(theta.shape[0]):
        for i in range(y.size):
            if has_csr:
                z, square = 0.0, 0.0
                for k in range(indptr[i], indptr[i + 1]):
                    z += values[k] * theta[m, columns[k]]
                    square += values[k] * values[k]
                weight = per_unit * clip_weight(slope(code, z, y[i], width), square, bound)
                if weight == 0.0:  # also for a record without a finite gradient
                    continue
                for k in range(indptr[i], indptr[i + 1]):
                    out[m, columns[k]] += round_nearest(weight * values[k])
            else:
                z = lanes.dot(x, i * p, theta, m * p, p)
                square = lanes.dot(x, i * p, x, i * p, p)
                weight = per_unit * clip_weight(slope(code, z, y[i], width), square, bound)
                if weight == 0.0:
                    continue
                for k in range(p):
                    out[m, k] += round_nearest(weight * x[i, k])
