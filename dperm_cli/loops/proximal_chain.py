"""The proximal sampler's chain on balls: whole steps in one loop [docs/proofs/_proximal.md].

The set is an intersection of balls. A Gaussian restricted to it is proposed with a tilt
exp(-k_b |z - c_b|^2) for every ball, and kept with probability exp(-sum_b k_b (r_b^2 -
|z - c_b|^2)); the losses then keep it with probability exp(-gap), where the gap is f less its
tangent (the quadratic regulariser is in the Gaussian). One uniform number decides both. A gap is a
sum of nonnegative terms, one a record, so that it need not be added up beyond what that number
allows.

Records are packed ``ROWS`` at a time, [blocks, p, ROWS], the last block filled up with zeros.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dperm_cli.loops import box_muller
from dperm_cli.loops.gaussian_noise import minus_log
from dperm_cli.loops.jit import compile_inline, compile_loop
from dperm_cli.loops.short_vectors import SHORT_SQUARE
from dperm_cli.loops.slopes import (
    ABSOLUTE,
    HINGE,
    HUBERIZED_HINGE,
    L1_MEDIAN,
    L2_MEDIAN,
    LINEAR,
    LOGISTIC,
    POSITIVE_PART,
    SQUARED,
    exp,
    slope,
)
from dperm_cli.loops.vector_lanes import add, lane_sum, load, mul, mul_add, spread, store

ROWS = 16
# Tries between two tangents, rounds for the tilts, and proposals in one step before giving up.
_TRIES, _ROUNDS, _MOST_PROPOSALS = 6, 12, 4_000_000


class Packed(NamedTuple):
    """Records as the loop reads them: rows [blocks, p, ROWS], labels [blocks * ROWS], how many."""

    rows: np.ndarray
    labels: np.ndarray
    n: int


class Law(NamedTuple):
    """f = weight sum_i l(theta; d_i) + (ridge / 2) |theta|^2 + lasso |theta|_1, and the balls.

    ``code`` is that of ``slopes`` or a median's; ``centres`` [balls, p], ``radii`` [balls].
    """

    code: int
    width: float
    weight: float
    ridge: float
    lasso: float
    centres: np.ndarray
    radii: np.ndarray


def pack_records(x: np.ndarray, y: np.ndarray) -> Packed:
    """Dense rows [n, p] and labels [n], packed ``ROWS`` records to a block."""
    n, p = x.shape
    blocks = -(-n // ROWS)
    rows = np.zeros((blocks * ROWS, p))
    rows[:n] = x
    rows = np.ascontiguousarray(rows.reshape(blocks, ROWS, p).transpose(0, 2, 1))
    labels = np.ones(blocks * ROWS)
    labels[:n] = y
    return Packed(rows, labels, n)


class Chain:
    """Where a chain stands: the point ``x`` [p] after ``done`` whole steps.

    ``guess`` is a slope of f from before and places the next tangent; ``looks`` counts evaluations
    of f. The rest is that of a step that random numbers ran out in.
    """

    def __init__(self, x: np.ndarray) -> None:
        self.x, self.guess = x.copy(), np.zeros(x.size)
        self.y, self.touching = np.zeros(x.size), np.zeros(x.size)
        self.state = np.zeros(5, np.int64)  # pending, turn, tries, proposals, looks
        self.done = 0

    @property
    def looks(self) -> int:
        return int(self.state[4])


def advance(
    records: Packed, law: Law, h: float, chain: Chain, steps: int, uniforms: np.ndarray
) -> int:
    """Moves the chain on until ``steps`` are done or ``uniforms`` run out; how many were used.

    Where they are cut does not show in the result. -1 where a step has no end.
    """
    done, used = _advance(
        records.rows, records.labels, records.n, law.code, law.width, law.weight, law.ridge,
        law.lasso, law.centres, law.radii, h, chain.x, chain.guess, chain.y, chain.touching,
        chain.state, steps - chain.done, uniforms,
    )  # fmt: skip
    chain.done += int(done)
    return int(used)


@compile_inline
def _sign(t):
    return 1.0 if t > 0.0 else (-1.0 if t < 0.0 else 0.0)


@compile_inline
def _normals(uniforms, at, out):
    """Fills out [p] from the next 2 ceil(p / 2) uniforms."""
    for j in range(0, out.size, 2):
        out[j], other = box_muller.pair(uniforms[at + j], uniforms[at + j + 1])
        if j + 1 < out.size:
            out[j + 1] = other


@compile_inline
def _margins(rows, block, theta, out):
    """Margins of the ROWS records of a block."""
    p = theta.size
    s0 = s1 = s2 = s3 = spread(0.0)
    for j in range(p):
        t, i = spread(theta[j]), (block * p + j) * ROWS
        s0 = mul_add(t, load(rows, i), s0)
        s1 = mul_add(t, load(rows, i + 4), s1)
        s2 = mul_add(t, load(rows, i + 8), s2)
        s3 = mul_add(t, load(rows, i + 12), s3)
    store(out, 0, s0)
    store(out, 4, s1)
    store(out, 8, s2)
    store(out, 12, s3)


@compile_loop(forceinline=True)
def softplus(w):
    """log(1 + e^w)."""
    return max(w, 0.0) + minus_log(1.0 / (1.0 + exp(-abs(w))))


@compile_loop(forceinline=True)
def rounded_positive_part(u, width):
    """The positive part of u, rounded off within ``width`` of 0."""
    if u <= -width:
        return 0.0
    return u if u >= width else (u + width) ** 2 / (4.0 * width)


@compile_loop
def gap(code, z, z0, s0, y, width):
    """l(z; y) - l(z0; y) - s0 (z - z0) >= 0, s0 the slope at z0."""
    if code in (HINGE, POSITIVE_PART):
        u = 1.0 - y * z if code == HINGE else y - z
        return max(-u, 0.0) if s0 != 0.0 else max(u, 0.0)
    if code == ABSOLUTE:
        u = z - y
        return abs(u) - s0 * u
    if code == SQUARED:
        return 0.5 * (z - z0) ** 2
    if code == LINEAR:
        return 0.0
    if code == LOGISTIC:
        return softplus(-y * z) - softplus(-y * z0) - s0 * (z - z0)
    if code == HUBERIZED_HINGE:
        u, u0 = 1.0 - y * z, 1.0 - y * z0
    else:
        u, u0 = y - z, y - z0
    return rounded_positive_part(u, width) - rounded_positive_part(u0, width) - s0 * (z - z0)


@compile_loop
def _gaps(rows, labels, n, code, width, weight, theta, z0, s0, x0, d0, most, z):
    """weight times the sum of all gaps, or something above ``most`` where that is more."""
    p, total = theta.size, 0.0
    for block in range(rows.shape[0]):
        first = block * ROWS
        count, part = min(ROWS, n - first), 0.0
        if code == L1_MEDIAN:
            for j in range(p):
                for i in range(count):
                    r = theta[j] - rows[block, j, i]
                    part += abs(r) - _sign(x0[j] - rows[block, j, i]) * r
        elif code == L2_MEDIAN:
            for i in range(count):
                square = along = 0.0
                for j in range(p):
                    r = theta[j] - rows[block, j, i]
                    square += r * r
                    along += r * (x0[j] - rows[block, j, i])
                far = d0[first + i]
                part += math.sqrt(square) - (along / far if far > 0.0 else 0.0)
        else:
            # rows that fill a block up have the same margin everywhere: no gap
            _margins(rows, block, theta, z)
            if code == LOGISTIC:
                for i in range(ROWS):
                    z[i] = softplus(-labels[first + i] * z[i]) - s0[first + i] * z[i]
                for i in range(ROWS):
                    part += z[i] - d0[first + i]
            elif code == HINGE:
                for i in range(ROWS):
                    u = 1.0 - labels[first + i] * z[i]
                    z[i] = max(-u, 0.0) if s0[first + i] != 0.0 else max(u, 0.0)
                for i in range(ROWS):
                    part += z[i]
            else:
                for i in range(ROWS):
                    part += gap(code, z[i], z0[first + i], s0[first + i], labels[first + i], width)
        total += weight * part
        if total > most:
            return total
    return total


@compile_loop
def _touch(rows, labels, n, code, width, weight, x0, z0, s0, d0, g, z, sums):
    """Margins, slopes and the losses' slope g at x0; d0: distances, or l(z0) - s0 z0."""
    p = x0.size
    sums[:] = 0.0
    for block in range(rows.shape[0]):
        first = block * ROWS
        count = min(ROWS, n - first)
        if code == L1_MEDIAN:
            for j in range(p):
                for i in range(count):
                    sums[4 * j] += _sign(x0[j] - rows[block, j, i])
            continue
        if code == L2_MEDIAN:
            for i in range(count):
                square = 0.0
                for j in range(p):
                    square += (x0[j] - rows[block, j, i]) ** 2
                # squares of a shorter way lose digits: such a record lies at x0
                far = math.sqrt(square) if square >= SHORT_SQUARE else 0.0
                d0[first + i] = far
                if far > 0.0:
                    for j in range(p):
                        sums[4 * j] += (x0[j] - rows[block, j, i]) / far
            continue
        _margins(rows, block, x0, z)
        for i in range(ROWS):
            z0[first + i] = z[i]
            s0[first + i] = slope(code, z[i], labels[first + i], width)
        if code == LOGISTIC:
            for i in range(ROWS):
                d0[first + i] = softplus(-labels[first + i] * z[i]) - s0[first + i] * z[i]
        a0, a1, a2, a3 = (load(s0, first), load(s0, first + 4), load(s0, first + 8),
                          load(s0, first + 12))  # fmt: skip
        for j in range(p):
            i = (block * p + j) * ROWS
            part = mul_add(a1, load(rows, i + 4), mul(a0, load(rows, i)))
            rest = mul_add(a3, load(rows, i + 12), mul(a2, load(rows, i + 8)))
            store(sums, 4 * j, add(load(sums, 4 * j), add(part, rest)))
    for j in range(p):
        g[j] = weight * lane_sum(load(sums, 4 * j))


@compile_inline
def _square(a, b):
    total = 0.0
    for j in range(a.size):
        total += (a[j] - b[j]) ** 2
    return total


@compile_loop
def _onto(theta, centres, radii):
    """Moves theta into, or near, the balls: where a tangent touches need not be in the set."""
    for _ in range(1 if radii.size == 1 else 4):
        for b in range(radii.size):
            far = math.sqrt(_square(theta, centres[b]))
            if far > radii[b]:
                for j in range(theta.size):
                    theta[j] = centres[b, j] + radii[b] / far * (theta[j] - centres[b, j])


@compile_loop
def tilts(mean, variance, centres, radii, k):
    """Tilts k [balls] >= 0 at which E |z - c_b|^2 is about r_b^2, at most; (mean moved, variance).

    One ball at a time, the others held: each has a closed form. Any k gives the same law.
    """
    dim = mean.size
    k[:] = 0.0
    point, spread_ = mean.copy(), variance
    for _ in range(1 if radii.size == 1 else _ROUNDS):
        for b in range(radii.size):
            # without this ball
            precision = 1.0 / spread_ - 2.0 * k[b]
            free = 1.0 / precision
            for j in range(dim):
                point[j] = free * (point[j] / spread_ - 2.0 * k[b] * centres[b, j])
            square = radii[b] ** 2
            pull = _square(point, centres[b]) / free**2
            s = min(free, 2.0 * square / (dim + math.sqrt(dim * dim + 4.0 * pull * square)))
            k[b] = 0.5 * (1.0 / s - precision) if s < free else 0.0
            spread_ = s
            for j in range(dim):
                point[j] = s * (point[j] / free + 2.0 * k[b] * centres[b, j])
    return point, spread_


@compile_loop
def _within(z, centres, radii, k):
    """The sum of k_b (r_b^2 - |z - c_b|^2); negative where z is outside a ball."""
    total = 0.0
    for b in range(radii.size):
        inside = radii[b] ** 2 - _square(z, centres[b])
        if not inside >= 0.0:
            return -1.0
        total += k[b] * inside
    return total


@compile_loop
def _advance(
    rows, labels, n, code, width, weight, ridge, lasso, centres, radii, h, x, guess, y, x0, state,
    steps, uniforms,
):  # fmt: skip
    p = x.size
    pairs = p + p % 2
    z0, s0, d0 = np.zeros(labels.size), np.zeros(labels.size), np.zeros(labels.size)
    g, z, noise, away = np.empty(p), np.empty(p), np.empty(p), np.empty(p)
    block, sums, k = np.empty(ROWS), np.zeros(4 * p), np.zeros(radii.size)
    root, at, shrink = math.sqrt(h), 0, 1.0 / (1.0 + h * ridge)
    for step in range(steps):
        if state[0] == 0:
            if at + pairs > uniforms.size:
                return step, at
            _normals(uniforms, at, noise)
            at += pairs
            for j in range(p):
                y[j] = x[j] + root * noise[j]
                x0[j] = y[j] - h * guess[j]
            _onto(x0, centres, radii)
            state[0], state[1], state[2], state[3] = 1, 0, 0, 0
        while state[0] == 1:
            _touch(rows, labels, n, code, width, weight, x0, z0, s0, d0, g, block, sums)
            state[4] += 1
            for j in range(p):
                if lasso > 0.0:
                    g[j] += lasso * _sign(x0[j])
                away[j] = (y[j] - h * g[j]) * shrink
            middle, s = tilts(away, h * shrink, centres, radii, k)
            scale = math.sqrt(s)
            while state[2] < _TRIES:
                if at + pairs + 1 > uniforms.size:
                    return step, at
                _normals(uniforms, at, noise)
                room = minus_log(uniforms[at + pairs])
                at += pairs + 1
                state[3] += 1
                if state[3] > _MOST_PROPOSALS:
                    return step, -1
                for j in range(p):
                    z[j] = middle[j] + scale * noise[j]
                lost = _within(z, centres, radii, k)
                if lost < 0.0 or lost > room:
                    continue
                state[2] += 1
                state[4] += 1
                if lasso > 0.0:
                    for j in range(p):
                        lost += lasso * (abs(z[j]) - _sign(x0[j]) * z[j])
                if lost <= room:
                    lost += _gaps(rows, labels, n, code, width, weight, z, z0, s0, x0, d0,
                                  room - lost, block)  # fmt: skip
                if lost <= room:
                    state[0] = 0
                    break
            if state[0] == 1:  # a step of generalised Frank-Wolfe towards the mode
                for j in range(p):
                    away[j] = y[j] - h * (g[j] + ridge * x0[j])
                _onto(away, centres, radii)
                for j in range(p):
                    x0[j] += 2.0 / (state[1] + 3.0) * (away[j] - x0[j])
                state[1] += 1
                state[2] = 0
        for j in range(p):
            guess[j] = g[j] + ridge * z[j]
            x[j] = z[j]
    return steps, at
