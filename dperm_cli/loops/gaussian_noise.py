"""Standard normals that are a pure function of (key, step, coordinate, dimension).

Words come from Philox4x32-7 [SMDS11, Table 2], a counter-based generator: it has no state, so a
loop run step by step, in chunks or on another thread draws the same numbers. A pair of normals
takes one 128-bit block: 64 bits for the radius, 53 for the angle and its half-plane [BM58]. The
radius reaches sqrt(128 ln 2) = 9.42, where its law has an atom of mass 2^-64.

These are simulation generators: fast and reproducible, not cryptographic.
"""

from __future__ import annotations

import math

import numpy as np

from dperm_cli.loops.jit import as_bits, as_float, compile_inline, compile_loop, fma

# Philox4x32 multipliers and key increments.
_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)

_ONE_BITS = np.uint64(0x3FF0000000000000)  # 1.0
_FRACTION = np.uint64(0x000FFFFFFFFFFFFF)
_ROOT_HALF_BITS = np.uint64(0x3FE6A09E667F3BCD)  # sqrt(1/2)
_TO_ROOT = np.uint64(0x3FF0000000000000 - 0x3FE6A09E667F3BCD)
_INTEGER_BITS = np.uint64(0x4330000000000000)  # 2^52: or-ing k < 2^52 into it gives 2^52 + k
_INTEGER_BIAS = 4503599627370496.0 + 1023.0
_EXPONENT, _DROP, _TOP = np.uint64(52), np.uint64(12), np.uint64(63)
_ONE = np.uint64(1)
LN2_HIGH, LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10

LARGEST = math.sqrt(128.0 * math.log(2.0))  # radius of a pair, at most
_INTEGER = 4503599627370496.0
_FINEST, _REST = 2.0**-64, np.uint64(0xFFF)

_BLOCK = 1024  # pairs made at a time: their scratch (32 KiB) stays in the fastest caches


def normals(keys: np.ndarray, start: int, count: int, dim: int) -> np.ndarray:
    """Standard normals of steps ``start .. start + count - 1``, shape [K, count, dim].

    ``keys`` is [K, 2] uint64, one stream a row. The number at (key, step, coordinate) of streams
    of this ``dim`` does not depend on K, start or count.
    """
    keys = np.ascontiguousarray(keys, dtype=np.uint64)
    pairs = (dim + 1) // 2
    offset, pair = pattern(block_steps(dim, count), pairs)
    out = np.empty((len(keys), count, dim))
    _normals(keys, np.uint64(start), offset, pair, out)
    return out


def block_steps(dim: int, count: int) -> int:
    """How many steps' noise a loop of ``count`` steps makes at a time."""
    return max(1, min(count, _BLOCK // max(1, (dim + 1) // 2)))


def pattern(steps: int, pairs: int) -> tuple[np.ndarray, np.ndarray]:
    """Step offset and pair number of every pair of a block, each [steps * pairs], uint64."""
    offset = np.repeat(np.arange(steps, dtype=np.uint64), pairs)
    return offset, np.tile(np.arange(pairs, dtype=np.uint64), steps)


@compile_inline
def _round(c0, c1, c2, c3, k0, k1):
    a, b = _M0 * c0, _M1 * c2
    c0, c1, c2, c3 = (b >> _HALF) ^ c1 ^ k0, b & _LOW, (a >> _HALF) ^ c3 ^ k1, a & _LOW
    return c0, c1, c2, c3, (k0 + _W0) & _LOW, (k1 + _W1) & _LOW


@compile_loop(forceinline=True)
def philox(c0, c1, c2, c3, k0, k1):
    """One Philox4x32-7 block: counter and key words (uint64 below 2^32) -> two 64-bit words."""
    # written out: LLVM vectorises over blocks only when no inner loop is left
    c0, c1, c2, c3, k0, k1 = _round(c0, c1, c2, c3, k0, k1)
    c0, c1, c2, c3, k0, k1 = _round(c0, c1, c2, c3, k0, k1)
    c0, c1, c2, c3, k0, k1 = _round(c0, c1, c2, c3, k0, k1)
    c0, c1, c2, c3, k0, k1 = _round(c0, c1, c2, c3, k0, k1)
    c0, c1, c2, c3, k0, k1 = _round(c0, c1, c2, c3, k0, k1)
    c0, c1, c2, c3, k0, k1 = _round(c0, c1, c2, c3, k0, k1)
    c0, c1, c2, c3, _, _ = _round(c0, c1, c2, c3, k0, k1)
    return c0 | (c1 << _HALF), c2 | (c3 << _HALF)


@compile_loop(forceinline=True)
def words(key0, key1, step, block):
    """The two random 64-bit words number ``block`` (below 2^32) of a step of a stream.

    The first key word is Philox's key; the second one shares the counter with the step, so all
    128 bits of the key count.
    """
    c1 = (key1 & _LOW) ^ (step >> _HALF)
    return philox(block, c1, step & _LOW, key1 >> _HALF, key0 & _LOW, key0 >> _HALF)


@compile_inline
def word(key0, key1, step, number):
    """Random word ``number`` of a step of a stream: two of them are in a block."""
    number = np.uint64(number)
    first, second = words(key0, key1, step, number >> _ONE)
    return second if number & _ONE else first


@compile_loop(forceinline=True)
def unit(word):
    """A uniform number in (0, 1] from the upper 52 bits of a word."""
    return 2.0 - as_float((word >> _DROP) | _ONE_BITS)


@compile_loop(forceinline=True)
def minus_log(u):
    """-log(u) for normal u in (0, 1], relative error below 4e-16.

    u = 2^k m with m in [sqrt(1/2), sqrt(2)), log m = 2 atanh(s) with s = (m - 1) / (m + 1).
    """
    bits = as_bits(u) + _TO_ROOT
    k = as_float((bits >> _EXPONENT) | _INTEGER_BITS) - _INTEGER_BIAS
    f = as_float((bits & _FRACTION) + _ROOT_HALF_BITS) - 1.0
    s = f / (2.0 + f)
    x = s * s
    y = x * x
    low = fma(y, fma(x, 0.2222221113479508, 0.28571428625975487), fma(x, 0.399999999998995, 2 / 3))
    high = fma(y, 0.14616449685043406, fma(x, 0.15331721600556042, 0.18182889125261723))
    q = fma(y * y, high, low)
    # 2 atanh(s) = f - s (f - x q): exact to first order in f, as u near 1 needs
    return fma(k, -LN2_HIGH, fma(k, -LN2_LOW, fma(s, fma(-x, q, f), -f)))


@compile_loop(forceinline=True)
def half_turn(t):
    """cos(pi t) and sin(pi t) for |t| <= 1/2, absolute error below 4e-16."""
    x = t * t
    c = fma(x, 4.149564353942586e-06, -0.00010456655338748738)
    c = fma(x, c, 0.0019295562724817132)
    c = fma(x, c, -0.025806888737002202)
    c = fma(x, c, 0.23533063012953284)
    c = fma(x, c, -1.335262768843447)
    c = fma(x, c, 4.058712126416497)
    c = fma(x, c, -4.934802200544676)
    s = fma(x, 7.69782676822394e-07, -2.1903497074625994e-05)
    s = fma(x, s, 0.0004662998161898394)
    s = fma(x, s, -0.007370430505916944)
    s = fma(x, s, 0.0821458865731029)
    s = fma(x, s, -0.5992645293189447)
    s = fma(x, s, 2.5501640398773007)
    s = fma(x, s, -5.167712780049969)
    s = fma(x, s, 3.141592653589793)
    return fma(x, c, 1.0), t * s


@compile_loop(forceinline=True)
def radius(word):
    """The radius of a pair: sqrt(-2 log U), U a multiple of 2^-64 where it is small."""
    rest = as_float((word & _REST) | _INTEGER_BITS) - _INTEGER
    return math.sqrt(2.0 * minus_log(fma(rest, -_FINEST, unit(word))))


@compile_inline
def on_circle(length, word):
    """Two independent normals: a point at distance ``length`` in a uniform direction."""
    cosine, sine = half_turn(unit(word) - 0.5)
    # an unused bit of the word chooses the half-plane
    length = as_float(as_bits(length) | (word << _TOP))
    return length * cosine, length * sine


@compile_loop
def fill(key0, key1, start, offset, pair, first, second, left, right):
    """left[i], right[i] = pair ``pair[i]`` of step ``start + offset[i]``; first, second: scratch.

    Three short loops, since one long one would wait for its own results.
    """
    for i in range(offset.size):
        first[i], second[i] = words(key0, key1, start + offset[i], pair[i])
    for i in range(offset.size):
        left[i] = radius(first[i])
    for i in range(offset.size):
        left[i], right[i] = on_circle(left[i], second[i])


@compile_loop
def _normals(keys, start, offset, pair, out):
    count, dim = out.shape[1], out.shape[2]
    pairs = (dim + 1) // 2
    steps = max(1, offset.size // max(1, pairs))
    first, second = np.empty_like(offset), np.empty_like(offset)
    left, right = np.empty(offset.size), np.empty(offset.size)
    for k in range(keys.shape[0]):
        for s0 in range(0, count, steps):
            rows = min(steps, count - s0)
            part = rows * pairs
            fill(
                keys[k, 0], keys[k, 1], start + np.uint64(s0), offset[:part], pair[:part],
                first, second, left, right,
            )  # fmt: skip
            for s in range(rows):
                for j in range(pairs):
                    out[k, s0 + s, j] = left[s * pairs + j]
                for j in range(dim - pairs):
                    out[k, s0 + s, pairs + j] = right[s * pairs + j]
