"""Exponential, Laplace, Gamma-norm, Wishart and uniform numbers: functions of (key, step, place).

The random words are those of ``gaussian_noise.words``. An exponential is -log U with U from 52
bits. The lowest of the 2^52 values of U stands for everything below it, and takes another word:
E = 52 ln 2 + E'. So the largest value is 256 times 52 ln 2, where e^-E is far below the least
double. Sums have a fixed order, and no function is called whose result depends on a library's
version.
"""

from __future__ import annotations

import math

import numpy as np

from dperm_cli.core.symmetric import order_of, triangle_size
from dperm_cli.loops.gaussian_noise import half_turn, minus_log, unit, word, words
from dperm_cli.loops.jit import as_float, compile_inline, compile_loop

_LEAST = 2.0**-52  # the least value of ``unit``
_CELL = 52.0 * math.log(2.0)
_DEPTHS = 256
_DEEPER = np.uint64(1 << 24)  # blocks of a step; one more of these for each further word
_ONE_BITS, _FRACTION_SHIFT, _HALF_CELL = np.uint64(0x3FF0000000000000), np.uint64(12), 2.0**-53
_TOP = np.uint64(63)
_ROOT_HALF = math.sqrt(0.5)  # half of the sqrt(2) of packed matrices

MOST = 1 << 23  # coordinates of one draw, at most
LARGEST = _DEPTHS * _CELL  # of one exponential, at most


@compile_inline
def draw_exponential(key0, key1, step, block, bits):
    total, depth = 0.0, 1
    while unit(bits) == _LEAST and depth < _DEPTHS:
        total += _CELL
        bits, _ = words(key0, key1, step, block + np.uint64(depth) * _DEEPER)
        depth += 1
    return total + minus_log(unit(bits))


def laplaces(keys: np.ndarray, step: int, dim: int) -> np.ndarray:
    """Draws of density e^{-|b|} / 2, shape [K, dim], for streams ``keys`` [K, 2] uint64."""
    _check(dim)
    out = np.empty((len(keys), dim))
    _laplaces(_plain(keys), np.uint64(step), out)
    return out


def gamma_norms(keys: np.ndarray, step: int, dim: int) -> np.ndarray:
    """Vectors of density proportional to e^{-|b|_2}, shape [K, dim].

    The norm is the sum of ``dim`` exponentials, which is Gamma(dim); the direction is that of a
    vector of normals, and is independent of it.
    """
    _check(2 * dim)
    out = np.empty((len(keys), dim))
    _gamma_norms(_plain(keys), np.uint64(step), out)
    return out


def wishart_differences(keys: np.ndarray, step: int, dim: int) -> np.ndarray:
    """(W - W') / 2 packed (``core.symmetric``), W = G^T G and W' = H^T H, shape [K, dim].

    G and H have q + 1 rows of q normals, dim = q (q + 1) / 2. The normals have the range of the
    exponentials that they are made of. ValueError where no q has this dim.
    """
    order = order_of(dim)
    _check(2 * dim)
    if triangle_size(order) != dim:
        raise ValueError(f"{dim} coordinates are no triangle of a symmetric matrix")
    out = np.zeros((len(keys), dim))
    _wishart_differences(_plain(keys), np.uint64(step), order, out)
    return out


def uniforms(key: np.ndarray, step: int, start: int, count: int) -> np.ndarray:
    """Numbers ``start .. start + count - 1`` of a step of one stream, in (0, 1), shape [count]."""
    out = np.empty(count)
    _uniforms(key[0], key[1], np.uint64(step), np.uint64(start), out)
    return out


def uniform_of_each(keys: np.ndarray, step: int, number: int) -> np.ndarray:
    """``uniforms(key, step, number, 1)`` of every key in ``keys`` [K, 2], shape [K]."""
    out = np.empty(len(keys))
    _uniform_of_each(_plain(keys), np.uint64(step), np.uint64(number), out)
    return out


def _plain(keys: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(keys, dtype=np.uint64)


def _check(dim: int) -> None:
    if not 1 <= dim <= MOST:
        raise ValueError(f"{dim} coordinates; one draw has between 1 and {MOST}")


@compile_inline
def _draw_pair(key0, key1, step, block):
    """Two independent normals, whose squares reach as far as exponentials do."""
    first, second = words(key0, key1, step, block)
    length = math.sqrt(2.0 * draw_exponential(key0, key1, step, block, first))
    # the word's unused lowest bit chooses the half-plane
    cosine, sine = half_turn(unit(second) - 0.5)
    length = -length if second & np.uint64(1) else length
    return length * cosine, length * sine


@compile_loop
def _laplaces(keys, step, out):
    for k in range(out.shape[0]):
        key0, key1 = keys[k, 0], keys[k, 1]
        for j in range(out.shape[1]):
            block = np.uint64(j)
            first, second = words(key0, key1, step, block)
            size = draw_exponential(key0, key1, step, block, first)
            out[k, j] = -size if second >> _TOP else size


@compile_loop
def _gamma_norms(keys, step, out):
    dim = out.shape[1]
    for k in range(out.shape[0]):
        key0, key1 = keys[k, 0], keys[k, 1]
        radius = 0.0
        for j in range(dim):
            block = np.uint64(j)
            first, _ = words(key0, key1, step, block)
            radius += draw_exponential(key0, key1, step, block, first)
        square = 0.0
        for j in range(0, dim, 2):
            left, right = _draw_pair(key0, key1, step, np.uint64(dim + j // 2))
            out[k, j] = left
            square += out[k, j] * out[k, j]
            if j + 1 < dim:
                out[k, j + 1] = right
                square += out[k, j + 1] * out[k, j + 1]
        factor = radius / math.sqrt(square)
        for j in range(dim):
            out[k, j] *= factor


@compile_loop
def _wishart_differences(keys, step, order, out):
    rows = order + 1
    pairs = (rows * order + 1) // 2
    g = np.empty(2 * pairs)
    for k in range(out.shape[0]):
        for side in range(2):
            for j in range(pairs):
                block = np.uint64(side * pairs + j)
                g[2 * j], g[2 * j + 1] = _draw_pair(keys[k, 0], keys[k, 1], step, block)
            at = 0
            for a in range(order):
                for b in range(a, order):
                    total = 0.0
                    for r in range(rows):
                        total += g[r * order + a] * g[r * order + b]
                    half = 0.5 if a == b else _ROOT_HALF
                    out[k, at] += half * total if side == 0 else -half * total
                    at += 1


@compile_loop
def _uniforms(key0, key1, step, start, out):
    for i in range(out.size):
        bits = word(key0, key1, step, start + np.uint64(i))
        fraction = as_float((bits >> _FRACTION_SHIFT) | _ONE_BITS) - 1.0
        out[i] = fraction + _HALF_CELL


@compile_loop
def _uniform_of_each(keys, step, number, out):
    for k in range(out.size):
        _uniforms(keys[k, 0], keys[k, 1], step, number, out[k : k + 1])
