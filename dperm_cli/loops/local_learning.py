"""Learning from the answers of users' devices, in one pass or several, with fixed memory.

Step t = 0, 1, ... of every chain (trial) asks user i = place(t): the device takes a subgradient g
of the loss of record i at theta, and sends z by its channel (``channels.code``); the learner, who
sees z alone, then moves

    h     = z + ridge theta + lasso sign(theta)
    total += theta
    EUCLID   theta <- project(theta - eta h)
    ENTROPY  state <- state + eta size h,   theta = -size sinh(state) / sum cosh(state)
    POWER    the step of |x|_q^2 / (2 (q - 1)) on a ball of that power, or on the l_1 ball

A plain loop that uses ``message`` and ``learn`` of this file has the same bits as ``run``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from dperm_cli.loops import local_channels
from dperm_cli.loops import vector_lanes as lanes
from dperm_cli.loops.jit import compile_inline, compile_loop
from dperm_cli.loops.local_channels import L_1, L_2, L_INF
from dperm_cli.loops.projections import project_row
from dperm_cli.loops.sealed_noise import SealedAnswers
from dperm_cli.loops.sgd import Rows, learning_rate, run_in_chunks
from dperm_cli.loops.short_vectors import SHORT_SQUARE, scale_to_peak
from dperm_cli.loops.slopes import L1_MEDIAN, exp, slope
from dperm_cli.loops.thread_count import count_threads, split_evenly

EUCLID, ENTROPY, POWER = 0, 1, 2
_ROUNDS, _ENOUGH = 120, 1e-13  # of the search for the l_1 ball's threshold


class Device(NamedTuple):
    """A loss, and the norm (that of the channel) to which a device shortens its row, or inf."""

    loss_code: int
    loss_width: float
    row_norm: float


class Learner(NamedTuple):
    """The numbers of a descent; ``set_code`` and ``size`` as in ``projections`` (POWER: the l_1
    ball where ``within_l1``, else the ball of ``power``)."""

    map: int
    set_code: int
    size: float
    eta_kind: int
    eta0: float
    ridge: float
    lasso: float
    power: float
    within_l1: bool


def place(step: int, users: int, stride: int) -> int:
    """The user of a step: every one once in ``users`` steps, in the order of the stride."""
    return (step % users) * stride % users


def stride(users: int) -> int:
    """About 0.618 ``users``, coprime to it: a public order that mixes sorted records."""
    found = max(1, round(0.6180339887498949 * users))
    while math.gcd(found, users) != 1:
        found += 1
    return found


@compile_inline
def _row_factor(shape, norm_bound, has_csr, x, indptr, values, i, p):
    """At most 1: what shortens row i to the norm it may have."""
    if norm_bound == math.inf:
        return 1.0
    total = 0.0
    start, end = (indptr[i], indptr[i + 1]) if has_csr else (0, p)
    for k in range(start, end):
        entry = abs(values[k] if has_csr else x[i, k])
        if shape == L_INF:
            total = max(total, entry)
        else:
            total += entry if shape == L_1 else entry * entry
    norm = math.sqrt(total) if shape == L_2 else total
    return norm_bound / norm if norm > norm_bound else 1.0


@compile_inline
def _gradient(device, shape, has_csr, x, indptr, columns, values, y, i, theta, g):
    """g [p] <- one subgradient of the loss of record i at theta [p]."""
    p = g.size
    code = device.loss_code
    if code >= L1_MEDIAN:
        _away(code, has_csr, x, indptr, columns, values, i, theta, g)
        return
    factor = _row_factor(shape, device.row_norm, has_csr, x, indptr, values, i, p)
    if has_csr:
        z = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            z += values[k] * theta[columns[k]]
        weight = factor * slope(code, factor * z, y[i], device.loss_width)
        for k in range(p):
            g[k] = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            g[columns[k]] += weight * values[k]
    else:
        z = lanes.dot(x, i * p, theta, 0, p)
        weight = factor * slope(code, factor * z, y[i], device.loss_width)
        for k in range(p):
            g[k] = weight * x[i, k]


@compile_inline
def _away(code, has_csr, x, indptr, columns, values, i, theta, g):
    """sign(theta - x_i), or (theta - x_i) / |theta - x_i|; 0 at 0."""
    for k in range(g.size):
        g[k] = theta[k]
    if has_csr:
        for k in range(indptr[i], indptr[i + 1]):
            g[columns[k]] -= values[k]
    else:
        for k in range(g.size):
            g[k] -= x[i, k]
    if code == L1_MEDIAN:
        for k in range(g.size):
            g[k] = 1.0 if g[k] > 0.0 else (-1.0 if g[k] < 0.0 else 0.0)
    else:
        square = 0.0
        for k in range(g.size):
            square += g[k] * g[k]
        if square < SHORT_SQUARE:
            square = scale_to_peak(g)
        scale = 1.0 / math.sqrt(square) if square > 0.0 else 0.0
        for k in range(g.size):
            g[k] *= scale


@compile_loop
def subgradient(rows, device, shape, i, theta):
    """What the device of record i takes of its loss at theta [p]: [p]."""
    g = np.empty(theta.size)
    has_csr, x, indptr, columns, values, y = rows
    _gradient(device, shape, has_csr, x, indptr, columns, values, y, i, theta, g)
    return g


@compile_inline
def _learn(learner, eta, theta, state, c, z):
    """theta[c] and state[c] move against z [p], which is overwritten."""
    p = z.size
    if learner.ridge > 0.0 or learner.lasso > 0.0:
        for k in range(p):
            old = theta[c, k]
            sign = 1.0 if old > 0.0 else (-1.0 if old < 0.0 else 0.0)
            z[k] += learner.ridge * old + learner.lasso * sign
    if learner.map == EUCLID:
        for k in range(p):
            theta[c, k] -= eta * z[k]
        project_row(learner.set_code, learner.size, theta, c)
    elif learner.map == ENTROPY:
        for k in range(p):
            state[c, k] += eta * learner.size * z[k]
        _weigh(learner.size, state, theta, c)
    else:
        _power_step(learner, eta, theta, c, z)


@compile_inline
def _weigh(size, state, theta, c):
    """theta = -size sinh(state) / sum cosh(state)."""
    top, total = 0.0, 0.0
    for k in range(state.shape[1]):
        top = max(top, abs(state[c, k]))
    for k in range(state.shape[1]):
        up, down = exp(state[c, k] - top), exp(-state[c, k] - top)
        total += up + down
        theta[c, k] = down - up
    factor = size / total
    for k in range(state.shape[1]):
        theta[c, k] *= factor


@compile_inline
def _slope_of(z, power):
    """z <- the gradient of |z|_power^2 / 2."""
    top, total = 0.0, 0.0
    for k in range(z.size):
        top = max(top, abs(z[k]))
    if top == 0.0:
        return
    for k in range(z.size):
        share = abs(z[k]) / top
        if share > 0.0:
            weight = share ** (power - 1.0)
            total += weight * share
            z[k] = math.copysign(weight, z[k])
    factor = top * total ** ((2.0 - power) / power)
    for k in range(z.size):
        z[k] *= factor


@compile_inline
def _power_step(learner, eta, theta, c, z):
    p, q = z.size, learner.power
    point = theta[c].copy()
    _slope_of(point, q)
    for k in range(p):
        z[k] = point[k] / (q - 1.0) - eta * z[k]
    if learner.within_l1:
        _to_l1(z, point, q, learner.size)
    else:
        _back(z, point, 0.0, q)
        total, top = 0.0, 0.0
        for k in range(p):
            top = max(top, abs(point[k]))
        for k in range(p):
            total += (abs(point[k]) / top) ** q if top > 0.0 else 0.0
        norm = top * total ** (1.0 / q)
        if norm > learner.size:
            for k in range(p):
                point[k] *= learner.size / norm
    for k in range(p):
        theta[c, k] = point[k]


@compile_inline
def _back(image, point, cut, q):
    """point <- the inverse map of the image, its moduli cut down by ``cut``."""
    for k in range(image.size):
        point[k] = math.copysign(max(abs(image[k]) - cut, 0.0), image[k])
    _slope_of(point, q / (q - 1.0))
    for k in range(point.size):
        point[k] *= q - 1.0


@compile_inline
def _l1_norm(point):
    total = 0.0
    for k in range(point.size):
        total += abs(point[k])
    return total


@compile_inline
def _to_l1(image, point, q, size):
    """The Bregman projection on the l_1 ball: the image's moduli lose one common amount."""
    _back(image, point, 0.0, q)
    above = _l1_norm(point) - size
    if above <= 0.0:
        return
    low, high, below = 0.0, 0.0, -size
    for k in range(image.size):
        high = max(high, abs(image[k]))
    # false position, the weight of an end that stays halved [Illinois], ends from inside
    for _ in range(_ROUNDS):
        middle = high - below * (high - low) / (below - above)
        if not low < middle < high:
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
        _back(image, point, middle, q)
        rest = _l1_norm(point) - size
        if rest > 0.0:
            low, above, below = middle, rest, 0.5 * below
        else:
            high, below, above = middle, rest, 0.5 * above
            if rest >= -_ENOUGH * size:
                break
    _back(image, point, high, q)


@compile_loop
def learn(learner, step, theta, state, z):
    """In place: theta and state [p] after step number ``step``, from the answer z [p]."""
    eta = learning_rate(learner.eta_kind, learner.eta0, float(step + 1))
    _learn(learner, eta, theta.reshape((1, z.size)), state.reshape((1, z.size)), 0, z.copy())


@compile_loop
def _advance(rows, device, coding, learner, theta, state, total, keys, users, leap, t0, t1, width):
    """Steps t0 .. t1 - 1 of some chains: theta, state and total [chains, p] are updated."""
    p = theta.shape[1]
    has_csr, x, indptr, columns, values, y = rows
    first, second = np.empty(width, np.uint64), np.empty(width, np.uint64)
    g, z = np.empty(p), np.empty(p)
    for c in range(theta.shape[0]):
        at = theta[c]
        i = (t0 % users) * leap % users
        for t in range(t0, t1):
            for k in range(p):
                total[c, k] += at[k]
            later = i + leap
            later -= users if later >= users else 0
            if not has_csr:
                for k in range(0, p, 8):
                    lanes.prefetch(x, later * p + k)
            local_channels.fill(keys[c, 0], keys[c, 1], np.uint64(t), first, second)
            _gradient(device, coding.shape, has_csr, x, indptr, columns, values, y, i, at, g)
            local_channels.code(coding, g, first, second, z)
            eta = learning_rate(learner.eta_kind, learner.eta0, float(t + 1))
            _learn(learner, eta, theta, state, c, z)
            i = later


def run(
    rows: Rows,
    device: Device,
    answers: SealedAnswers,
    learner: Learner,
    theta0: np.ndarray,
    *,
    progress: Callable[[int, int], None] | None = None,
    threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """All steps of every chain: the mean of theta before each step and the last theta, [K, p].

    ``answers`` is what the gate accounted for: every user, of whom there are as many as ``rows``,
    answers ``answers.messages`` times.
    """
    users, coding = answers.users, answers.coding
    steps = users * answers.messages
    theta = np.array(theta0, dtype=np.float64, order="C", ndmin=2)
    records = len(rows.indptr) - 1 if rows.has_csr else len(rows.x)
    if not (records == users == len(rows.y) and rows.x.shape[1] == theta.shape[1]):
        raise ValueError(f"{records} records of {rows.x.shape[1]} columns for {users} users")
    keys = np.array(answers.keys, dtype=np.uint64, order="C")
    if keys.shape != (len(theta), 2):
        raise ValueError(f"{len(theta)} chains need keys of shape {(len(theta), 2)}")
    state, total = np.zeros_like(theta), np.zeros_like(theta)
    width = local_channels.blocks(coding.shape, theta.shape[1])
    workers = max(1, min(len(theta), threads or count_threads()))
    groups = split_evenly(len(theta), workers)

    def advance(begin: int, end: int) -> None:
        def advance_group(group: slice) -> None:
            _advance(
                rows, device, coding, learner, theta[group], state[group], total[group],
                keys[group], users, stride(users), begin, end, width,
            )  # fmt: skip

        list(pool.map(advance_group, groups))

    with ThreadPoolExecutor(workers) as pool:
        run_in_chunks(advance, steps, progress)
    return total / steps, theta
