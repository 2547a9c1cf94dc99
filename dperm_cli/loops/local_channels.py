"""Compiled loops of three local channels: what a user's device sends in place of a vector.

A vector g with |g| <= bound in the channel's norm becomes x = g / bound. The answer is

- ``L_INF`` [DJW12, Prop. 1]: size times independent signs, +1 with chance (1 + gain x_j) / 2;
- ``L_1`` [DJW12, Prop. 2]: size times one of the 2 d corners +-e_j. x is first rounded at random to
  a corner with mean x. This corner is kept, reversed, or replaced by one of the 2 d - 2 others;
- ``L_2`` [DJW18]: size times a uniform direction, on the side of x with chance
  (1 + gain |x|) / 2.

Every probability that matters to privacy is a multiple of 2^-64, and is compared with a random word
of 64 bits. So rounding of g or of a uniform number cannot make an answer reveal more than
``Coding`` says. Longer vectors are shortened. ``first`` and ``second`` hold the random words.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dperm_cli.loops.batch_indices import scale_word
from dperm_cli.loops.gaussian_noise import on_circle, radius, words
from dperm_cli.loops.jit import compile_inline, compile_loop

L_INF, L_1, L_2 = 0, 1, 2
_HALF = np.uint64(1 << 63)
_TO_HALF, _UNIT = 2.0**63, 2.0**-64
_ONE = np.uint64(1)


class Coding(NamedTuple):
    """A channel's integers (chances times 2^64) and sizes.

    ``flip``: least chance of a turned sign (L_INF, L_2), gain = 1 - 2 flip. ``same``, ``last``: a
    word below ``same`` keeps the corner, one up to ``last`` turns it round (L_1). ``size``: the
    modulus of an answer. ``bound``: on the norm of what goes in.
    """

    shape: int
    bound: float
    size: float
    gain: float
    flip: np.uint64
    same: np.uint64 = np.uint64(0)
    last: np.uint64 = np.uint64(0)


def blocks(shape: int, dim: int) -> int:
    """Pairs of words that one answer takes."""
    pairs = (dim + 1) // 2
    return {L_INF: pairs, L_1: 2, L_2: 1 + pairs}[shape]


def send(coding: Coding, g: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """The answers [k, d] to vectors ``g`` [k, d], from words ``drawn`` [k, 2, blocks] (uint64)."""
    g = np.array(g, dtype=np.float64, order="C", ndmin=2)
    need = (len(g), 2, blocks(coding.shape, g.shape[1]))
    if drawn.shape != need or drawn.dtype != np.uint64:
        raise ValueError(f"words of shape {drawn.shape} where {need} are needed")
    out = np.empty_like(g)
    _send_rows(coding, g, np.ascontiguousarray(drawn), out)
    return out


def draw_words(keys: np.ndarray, step: int, count: int) -> np.ndarray:
    """``count`` pairs of words of a step of every key [K, 2]: [K, 2, count], uint64."""
    out = np.empty((len(keys), 2, count), np.uint64)
    _keyed_rows(np.ascontiguousarray(keys, dtype=np.uint64), np.uint64(step), out)
    return out


def normal_rows(drawn: np.ndarray, dim: int) -> np.ndarray:
    """Independent normal numbers [k, dim], from words ``drawn`` [k, 2, (dim + 1) // 2] (uint64)."""
    out = np.empty((len(drawn), dim))
    _normal_rows(np.ascontiguousarray(drawn), out)
    return out


@compile_loop
def _normal_rows(drawn, out):
    pairs = drawn.shape[2]
    for k in range(drawn.shape[0]):
        for j in range(pairs):
            a, b = on_circle(radius(drawn[k, 0, j]), drawn[k, 1, j])
            out[k, j] = a
            if pairs + j < out.shape[1]:
                out[k, pairs + j] = b


@compile_loop
def _send_rows(coding, g, drawn, out):
    for k in range(g.shape[0]):
        code(coding, g[k], drawn[k, 0], drawn[k, 1], out[k])


@compile_loop
def _keyed_rows(keys, step, out):
    for k in range(keys.shape[0]):
        fill(keys[k, 0], keys[k, 1], step, out[k, 0], out[k, 1])


@compile_loop
def fill(key0, key1, step, first, second):
    """The words of a step of one stream."""
    for i in range(first.size):
        first[i], second[i] = words(key0, key1, step, np.uint64(i))


@compile_loop
def code(coding, g, first, second, z):
    """z [d] <- the answer to g [d], which is shortened in place where it is too long."""
    norm = _hold_to_bound(coding, g)
    if coding.shape == L_INF:
        _signs(coding, g, first, second, z)
    elif coding.shape == L_1:
        _corner(coding, g, first, second, z)
    else:
        _direction(coding, g, norm, first, second, z)


@compile_inline
def _hold_to_bound(coding, g):
    """Shorten g [d] in place where it is too long; returns its norm."""
    norm = _norm(coding.shape, g)
    if not norm <= coding.bound:
        # a vector with nan or inf is replaced by 0, so that the answer reveals nothing
        factor = coding.bound / norm if norm < math.inf else 0.0
        for j in range(g.size):
            g[j] = factor * g[j] if factor > 0.0 else 0.0
        norm = coding.bound if factor > 0.0 else 0.0
    return norm


@compile_loop
def shorten(coding, g):
    """Shorten g [d] in place; returns the chance, times 2^64, that the l_2 channel turns it."""
    return _flip_chance(coding, _hold_to_bound(coding, g) / coding.bound)


@compile_inline
def _norm(shape, g):
    total, strange = 0.0, 0.0
    for j in range(g.size):
        strange += 0.0 * g[j]  # becomes nan where something is nan or infinite
        if shape == L_INF:
            total = max(total, abs(g[j]))
        else:
            total += abs(g[j]) if shape == L_1 else g[j] * g[j]
    return strange + (math.sqrt(total) if shape == L_2 else total)


@compile_inline
def _flip_chance(coding, share):
    """The chance, times 2^64, that the sign of a coordinate of this modulus is turned."""
    chance = _HALF - np.uint64(min(share, 1.0) * coding.gain * _TO_HALF)
    return max(chance, coding.flip)


@compile_inline
def _signs(coding, g, first, second, z):
    scale = 1.0 / coding.bound
    pairs = first.size
    for j in range(pairs):
        keep = first[j] >= _flip_chance(coding, abs(g[j]) * scale)
        z[j] = coding.size if keep == (g[j] >= 0.0) else -coding.size
    for j in range(pairs, g.size):
        keep = second[j - pairs] >= _flip_chance(coding, abs(g[j]) * scale)
        z[j] = coding.size if keep == (g[j] >= 0.0) else -coding.size


@compile_inline
def _corner(coding, g, first, second, z):
    d = g.size
    reach = np.float64(first[0]) * _UNIT * coding.bound
    corner = scale_word(second[0], 2 * d)
    total = 0.0
    for j in range(d):
        z[j] = 0.0
        before = total
        total += abs(g[j])
        if before <= reach < total:
            corner = 2 * j + (1 if g[j] < 0.0 else 0)
    place, turned = corner >> 1, corner & 1
    word = first[1]
    if word < coding.same:
        z[place] = -coding.size if turned else coding.size
    elif word <= coding.last:
        z[place] = coding.size if turned else -coding.size
    else:
        other = scale_word(second[1], 2 * d - 2)
        at = other >> 1
        at += 1 if at >= place else 0
        z[at] = -coding.size if other & 1 else coding.size


@compile_inline
def _direction(coding, g, norm, first, second, z):
    d, pairs = g.size, first.size - 1
    square, along = 0.0, 0.0
    for j in range(pairs):
        a, b = on_circle(radius(first[j + 1]), second[j + 1])
        z[j] = a
        square += a * a
        along += a * g[j]
        if pairs + j < d:
            z[pairs + j] = b
            square += b * b
            along += b * g[pairs + j]
    keep = first[0] >= _flip_chance(coding, norm / coding.bound)
    factor = coding.size / math.sqrt(square)
    if keep != (along >= 0.0):
        factor = -factor
    for j in range(d):
        z[j] *= factor
