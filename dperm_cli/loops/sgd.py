"""The n^2-step loop of noisy projected stochastic gradient descent [BST14, Alg. 1].

Step t = 0, 1, ... of every chain (trial) is

    g      = sum over the batch of slope(<x_i, theta>; y_i) x_i
    value  = (population / batch) g + (population * ridge) theta
    noisy  = value + noise_scale N(0, I) [+ (population * lasso) sign(theta)]
    theta <- project(theta - eta(t + 1) noisy)

with each product and each sum rounded on its own, in this order: a plain loop that uses ``Rows``,
``learning_rate``, ``batch_gradient`` and ``update`` of this file has the same bits. A chain's
result depends on its keys alone: not on its neighbours, the threads, or the chunks.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from dperm_cli.core.dataclass import dataclass
from dperm_cli.loops import batch_indices, gaussian_noise, short_rows
from dperm_cli.loops import vector_lanes as lanes
from dperm_cli.loops.jit import compile_inline, compile_loop, fma
from dperm_cli.loops.learning_rates import CONSTANT as CONSTANT
from dperm_cli.loops.learning_rates import INV as INV
from dperm_cli.loops.learning_rates import INV_SQRT as INV_SQRT
from dperm_cli.loops.learning_rates import learning_rate
from dperm_cli.loops.projections import L2_BALL, project_row, shrinkage
from dperm_cli.loops.sealed_noise import SealedBatches
from dperm_cli.loops.slopes import ROUNDED, slope, slopes
from dperm_cli.loops.thread_count import count_threads, split_evenly

LAST, AVERAGE, SUFFIX_AVERAGE = 0, 1, 2

_LANES = 16  # chains that are advanced side by side, to hide the latency of one
_CHUNK_SECONDS = 0.5
_PREFETCH_RECORDS = 6  # records between asking for a row and reading it


class Rows(NamedTuple):
    """The records in the one form all kernels take; one of ``x`` and the CSR parts is empty."""

    has_csr: bool
    x: np.ndarray
    indptr: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    y: np.ndarray


class Rule(NamedTuple):
    """The numbers of a run (see ``run``): factor = population / batch, decay = population * ridge,
    pull = population * lasso, ``averaged_from`` the first step whose iterate enters the average,
    and ``loss_width`` what ``slopes`` needs of the loss beside its code."""

    loss_code: int
    set_code: int
    size: float
    factor: float
    decay: float
    noise_scale: float
    eta_kind: int
    eta0: float
    averaged_from: int
    population: int
    batch: int
    skip_rate: float
    loss_width: float
    pull: float


def rows(x: np.ndarray | sparse.csr_array, y: np.ndarray) -> Rows:
    """Wrap a dense or CSR matrix [n, p] and its labels [n]; float64 C arrays are not copied."""
    y = _plain(y, np.float64)
    if sparse.issparse(x):
        given: Any = x
        csr: Any = given if given.format == "csr" else sparse.csr_array(given)
        indptr, columns = _plain(csr.indptr, np.int64), _plain(csr.indices, np.int32)
        return Rows(
            True, np.empty((0, csr.shape[1])), indptr, columns, _plain(csr.data, np.float64), y
        )
    none = np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0)
    return Rows(False, _plain(x, np.float64), none[0], none[1], none[2], y)


def _plain(array: Any, dtype: Any) -> np.ndarray:
    """A C-contiguous array of ``dtype``, never flagged read-only (which would be another type to
    compile for; no kernel writes to records)."""
    return unlock(np.ascontiguousarray(array, dtype=dtype))


def unlock(array: np.ndarray) -> np.ndarray:
    """The array, or a view of it that is not flagged read-only, for a kernel that only reads."""
    return array if array.flags.writeable else np.asarray(_Unlocked(array))


class _Unlocked:
    """A writeable view of a locked array, through the array interface."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        facts = dict(array.__array_interface__)
        self.__array_interface__ = {**facts, "data": (facts["data"][0], False)}


@compile_inline
def _sparse_dot(indptr, columns, values, i, theta, row):
    """<x_i, theta[row]> for CSR rows."""
    z = 0.0
    for k in range(indptr[i], indptr[i + 1]):
        z = fma(values[k], theta[row, columns[k]], z)
    return z


@compile_inline
def _gradient(has_csr, x, indptr, columns, values, y, theta, row, chosen, count, code, width, g):
    """g[0] = the sum over records ``chosen[:count]`` of the loss's subgradient at theta[row]."""
    # arrays come one by one: taking them out of a tuple in here would count references
    p = g.shape[1]
    for k in range(p):
        g[0, k] = 0.0
    for b in range(count):
        i, later = chosen[b], chosen[min(b + _PREFETCH_RECORDS, count - 1)]
        lanes.prefetch(y, later)
        if has_csr:
            lanes.prefetch(columns, indptr[later])
            lanes.prefetch(values, indptr[later])
            z = _sparse_dot(indptr, columns, values, i, theta, row)
            weight = slope(code, z, y[i], width)
            for k in range(indptr[i], indptr[i + 1]):
                g[0, columns[k]] = fma(weight, values[k], g[0, columns[k]])
        else:
            for k in range(0, p, 8):
                lanes.prefetch(x, later * p + k)
            weight = slope(code, lanes.dot(x, i * p, theta, row * p, p), y[i], width)
            for k in range(p):
                g[0, k] = fma(weight, x[i, k], g[0, k])


@compile_loop
def batch_gradient(rows, theta, chosen, code, width=0.0):
    """Sum over the records ``chosen`` [b] of the loss's subgradient at theta [p], shape [p]."""
    g = np.empty((1, theta.size))
    has_csr, x, indptr, columns, values, y = rows
    one = theta.reshape((1, theta.size))
    _gradient(has_csr, x, indptr, columns, values, y, one, 0, chosen, chosen.size, code, width, g)
    return g[0]


@compile_loop
def update(theta, noisy, eta, set_code, size):
    """In place: theta [p] <- projection of theta - eta * noisy."""
    row = theta.reshape((1, theta.size))
    for k in range(theta.size):
        row[0, k] = row[0, k] - eta * noisy[k]
    project_row(set_code, size, row, 0)


@compile_inline
def _move_part(rule, eta, theta, at, length, weight, x, i, noise, m):
    """theta[at : at + length] moves along weight x[i ...] plus noise[m ...] (flat offsets)."""
    whole = length - length % lanes.WIDTH
    factor, decay = lanes.spread(rule.factor), lanes.spread(rule.decay)
    scale, rate, weights = lanes.spread(rule.noise_scale), lanes.spread(eta), lanes.spread(weight)
    for k in range(0, whole, lanes.WIDTH):
        old = lanes.load(theta, at + k)
        g = lanes.mul(weights, lanes.load(x, i + k))
        value = lanes.add(lanes.mul(factor, g), lanes.mul(decay, old))
        noisy = lanes.add(value, lanes.mul(scale, lanes.load(noise, m + k)))
        lanes.store(theta, at + k, lanes.sub(old, lanes.mul(rate, noisy)))
    for k in range(whole, length):
        old = lanes.load_one(theta, at + k)
        value = rule.factor * (weight * lanes.load_one(x, i + k)) + rule.decay * old
        noisy = value + rule.noise_scale * lanes.load_one(noise, m + k)
        lanes.store_one(theta, at + k, old - eta * noisy)


@compile_inline
def _move(rule, eta, theta, c, weight, x, i, left, right, at):
    """theta[c] <- theta[c] - eta (value + noise) for the summed gradient weight x[i]."""
    p = theta.shape[1]
    pairs, t, r, m = (p + 1) // 2, c * p, i * p, c * left.shape[1] + at
    _move_part(rule, eta, theta, t, pairs, weight, x, r, left, m)
    _move_part(rule, eta, theta, t + pairs, p - pairs, weight, x, r + pairs, right, m)


@compile_inline
def _move_pulled(rule, eta, theta, c, g, left, right, at):
    """``_move`` along g [1, p] and the lasso's subgradient."""
    p = theta.shape[1]
    pairs = (p + 1) // 2
    for k in range(p):
        old = theta[c, k]
        noise = left[c, at + k] if k < pairs else right[c, at + k - pairs]
        noisy = rule.factor * g[0, k] + rule.decay * old + rule.noise_scale * noise
        sign = 1.0 if old > 0.0 else (-1.0 if old < 0.0 else 0.0)
        theta[c, k] = old - eta * (noisy + rule.pull * sign)


@compile_inline
def _project_all(rule, theta, work):
    """Project every chain; the ball's divisions are made side by side."""
    chains, p = theta.shape
    if rule.set_code == L2_BALL:
        for c in range(chains):
            work[c] = lanes.dot(theta, c * p, theta, c * p, p)
        for c in range(chains):
            work[c] = shrinkage(work[c], rule.size)
        for c in range(chains):
            # a short row is scaled by 1 sooner than a branch is guessed
            if p < 16 or work[c] < 1.0:
                lanes.scale(work[c], theta, c * p, p)
    else:
        for c in range(chains):
            project_row(rule.set_code, rule.size, theta, c)


@compile_loop
def _draw_block(
    noise_keys, index_keys, rule, start, offset, pair, part, count, left, right, chosen
):  # fmt: skip
    """The noise of every chain for ``count`` steps and, for one-record steps, the records."""
    first, second = np.empty_like(offset), np.empty_like(offset)
    for c in range(noise_keys.shape[0]):
        gaussian_noise.fill(
            noise_keys[c, 0], noise_keys[c, 1], start, offset[:part], pair[:part],
            first, second, left[c], right[c],
        )  # fmt: skip
        if chosen.size > 0:
            for s in range(count):
                chosen[c, s] = batch_indices.single(
                    index_keys[c, 0], index_keys[c, 1], start + np.uint64(s), rule.population
                )


@compile_loop(inline="always")  # compiled once, inside _advance
def _block_of_records(x, y, rule, start, count, theta, total, left, right, chosen):
    """``count`` steps of one dense record each, chain by chain within every step."""
    chains, p = theta.shape
    pairs = (p + 1) // 2
    weight, label = np.empty(chains), np.empty(chains)
    for s in range(count):
        eta = learning_rate(rule.eta_kind, rule.eta0, float(start + s + 1))
        for c in range(chains):
            weight[c] = lanes.dot(x, chosen[c, s] * p, theta, c * p, p)
            label[c] = y[chosen[c, s]]
            ahead = chosen[c, min(s + 1, count - 1)]
            lanes.prefetch(y, ahead)
            for k in range(0, p, 8):
                lanes.prefetch(x, ahead * p + k)
        slopes(rule.loss_code, weight, label, rule.loss_width)
        for c in range(chains):
            _move(rule, eta, theta, c, weight[c], x, chosen[c, s], left, right, s * pairs)
        _project_all(rule, theta, weight)
        if start + s >= rule.averaged_from:
            _accumulate(theta, total)


@compile_loop(inline="always")  # compiled once, inside _advance
def _block_of_batches(
    rows, rule, start, count, theta, total, keys, left, right, chosen, seen, out, g
):  # fmt: skip
    """``count`` steps of any kind; one-record batches were drawn before."""
    pairs = (theta.shape[1] + 1) // 2
    has_csr, x, indptr, columns, values, y = rows
    for s in range(count):
        eta = learning_rate(rule.eta_kind, rule.eta0, float(start + s + 1))
        step = np.uint64(start + s)
        for c in range(theta.shape[0]):
            if chosen.size > 0:
                out[0], size = chosen[c, s], 1
                ahead = indptr[chosen[c, min(s + 1, count - 1)]]
                lanes.prefetch(columns, ahead)
                lanes.prefetch(values, ahead)
            else:
                size = batch_indices.draw(
                    keys[c, 0], keys[c, 1], step,
                    rule.population, rule.batch, rule.skip_rate, seen, out,
                )  # fmt: skip
            _gradient(
                has_csr, x, indptr, columns, values, y, theta, c, out, size,
                rule.loss_code, rule.loss_width, g,
            )  # fmt: skip
            if rule.pull > 0.0:
                _move_pulled(rule, eta, theta, c, g, left, right, s * pairs)
            else:
                _move(rule, eta, theta, c, 1.0, g, 0, left, right, s * pairs)
            project_row(rule.set_code, rule.size, theta, c)
        if start + s >= rule.averaged_from:
            _accumulate(theta, total)


@compile_inline
def _accumulate(theta, total):
    for c in range(theta.shape[0]):
        for k in range(theta.shape[1]):
            total[c, k] += theta[c, k]


@compile_loop
def _advance(rows, rule, theta, total, noise_keys, index_keys, offset, pair, t0, t1, seen, out):
    """Steps t0 .. t1 - 1 of a group of chains: theta and total [chains, p] are updated."""
    chains, p = theta.shape
    pairs = (p + 1) // 2
    block = offset.size // pairs
    one = rule.batch == 1 and rule.skip_rate == 0.0
    left, right = np.empty((chains, offset.size)), np.empty((chains, offset.size))
    chosen, g = np.empty((chains, block if one else 0), np.int64), np.empty((1, p))
    dense = one and not rows.has_csr and rule.pull == 0.0
    short = dense and chains > 1 and p <= short_rows.LONGEST and rule.set_code == L2_BALL
    width = -(-chains // lanes.WIDTH) * lanes.WIDTH if short else 0
    theta_lanes = short_rows.spread_out(theta, width)
    total_lanes = short_rows.spread_out(total, width)
    rows_lanes, weight, label = np.empty((p, width)), np.empty(width), np.empty(width)
    for start in range(t0, t1, block):
        count = min(block, t1 - start)
        _draw_block(
            noise_keys, index_keys, rule, np.uint64(start), offset, pair, count * pairs, count,
            left, right, chosen,
        )  # fmt: skip
        if short:
            short_rows.take_steps(
                rows.x, rows.y, rule, start, count, theta_lanes, total_lanes, left, right, chosen,
                rows_lanes, weight, label,
            )  # fmt: skip
        elif dense:
            _block_of_records(rows.x, rows.y, rule, start, count, theta, total, left, right, chosen)
        else:
            _block_of_batches(
                rows, rule, start, count, theta, total, index_keys, left, right,
                chosen, seen, out, g,
            )  # fmt: skip
    if short:
        short_rows.collect(theta_lanes, theta)
        short_rows.collect(total_lanes, total)


@dataclass
class State:
    """Where a run stands: ``done`` steps of ``steps``; theta and total are [K, p]."""

    rows: Rows
    rule: Rule
    steps: int
    done: int
    theta: np.ndarray
    total: np.ndarray
    noise_keys: np.ndarray
    index_keys: np.ndarray

    def result(self) -> np.ndarray:
        """The last iterates, or the averages asked for, [K, p]."""
        count = self.done - self.rule.averaged_from
        return self.total / count if count > 0 else self.theta.copy()


def start(
    x: np.ndarray | sparse.csr_array,
    y: np.ndarray,
    theta0: np.ndarray,
    noise: SealedBatches,
    *,
    loss_code: int,
    set_code: int,
    size: float,
    eta_kind: int,
    eta0: float,
    ridge: float = 0.0,
    lasso: float = 0.0,
    average: int = LAST,
    loss_width: float = 0.0,
) -> State:
    """The state before the first step; parameters as in ``run``."""
    steps, population, batch = noise.steps, noise.population, noise.batch
    first = {LAST: steps, AVERAGE: 0, SUFFIX_AVERAGE: steps // 2}[average]
    rate, _, _ = batch_indices.workspace(population, batch, noise.poisson)
    rule = Rule(
        loss_code=int(loss_code), set_code=int(set_code), size=float(size),
        factor=population / batch, decay=float(population * ridge), noise_scale=float(noise.scale),
        eta_kind=int(eta_kind), eta0=float(eta0), averaged_from=first,
        population=int(population), batch=int(batch), skip_rate=float(rate),
        loss_width=float(loss_width), pull=float(population * lasso),
    )  # fmt: skip
    theta = np.array(theta0, dtype=np.float64, order="C", ndmin=2)
    keys = [np.array(k, dtype=np.uint64, order="C") for k in noise[:2]]
    state = State(rows(x, y), rule, int(steps), 0, theta, np.zeros_like(theta), *keys)
    _check(state)
    return state


def _check(state: State) -> None:
    """Check the shapes: the kernels do not check bounds when they read memory."""
    chains, p = state.theta.shape
    records = state.rows
    n = len(records.indptr) - 1 if records.has_csr else len(records.x)
    if records.x.shape[1] != p or len(records.y) != n or not state.rule.population <= n:
        raise ValueError(f"records {(n, records.x.shape[1])} do not fit p={p}, {state.rule}")
    if not state.noise_keys.shape == state.index_keys.shape == (chains, 2):
        raise ValueError(f"{chains} chains need keys of shape {(chains, 2)}")
    if state.rule.loss_code in ROUNDED and not state.rule.loss_width > 0:
        raise ValueError(f"loss {state.rule.loss_code} needs loss_width > 0")


def advance(state: State, until: int, threads: int | None = None) -> None:
    """Run every chain up to step ``until``; ``threads`` are as many as there may be by default."""
    chains, p = state.theta.shape
    pattern = gaussian_noise.pattern(
        gaussian_noise.block_steps(p, until - state.done), (p + 1) // 2
    )
    groups = _groups(chains, threads or count_threads())
    if len(groups) == 1:
        _advance_group(state, groups[0], pattern, until)
    else:
        with ThreadPoolExecutor(min(len(groups), threads or count_threads())) as pool:
            list(pool.map(lambda group: _advance_group(state, group, pattern, until), groups))
    state.done = until


def _advance_group(state: State, group: slice, pattern: Any, until: int) -> None:
    rule = state.rule
    _, seen, out = batch_indices.workspace(rule.population, rule.batch, rule.skip_rate > 0.0)
    _advance(
        state.rows, rule, state.theta[group], state.total[group],
        state.noise_keys[group], state.index_keys[group], *pattern,
        state.done, until, seen, out,
    )  # fmt: skip


def _groups(chains: int, threads: int) -> list[slice]:
    """Even runs of at most ``_LANES`` chains, as many as the threads can share evenly."""
    count = -(-chains // _LANES)
    count = min(chains, threads * -(-count // threads))
    return split_evenly(chains, count)


def run(
    x: np.ndarray | sparse.csr_array,
    y: np.ndarray,
    theta0: np.ndarray,
    noise: SealedBatches,
    *,
    progress: Callable[[int, int], None] | None = None,
    threads: int | None = None,
    **rule: Any,
) -> np.ndarray:
    """Run ``steps`` steps of every chain and return the result, [K, p].

    Parameters
    ----------
    x, y : records [n, p] (dense or CSR) and labels [n].
    theta0 : starting points [K, p], one a chain.
    noise : what the gate accounted for: keys, scale, number of steps (Alg. 1 makes n^2 - 1) and
        how the records of a step are drawn.
    loss_code, set_code, size : codes of ``slopes`` and ``projections``, and the set's size.
    eta_kind, eta0 : the learning rate (``learning_rate``), in units of theta per gradient sum.
    ridge, lasso : each record's loss has the terms ridge / 2 |theta|^2 and lasso |theta|_1.
    average : LAST iterate; AVERAGE of the iterates after every step; SUFFIX_AVERAGE of those after
        steps steps // 2 onwards.
    loss_width : the half-width of a huberized loss; the others ignore it.
    progress : called with (steps done, steps) about twice a second, on the calling thread.
    threads : how many chain groups run at once (default: ``count_threads``).
    """
    state = start(x, y, theta0, noise, **rule)
    run_in_chunks(lambda _, until: advance(state, until, threads), state.steps, progress)
    return state.result()


def run_in_chunks(
    advance: Callable[[int, int], None], steps: int, progress: Callable[[int, int], None] | None
) -> None:
    """Run steps by ``advance(begin, end)``, for about half a second at a time.

    In between control is with Python, so that Ctrl-C is heard, and ``progress`` is called with
    (steps done, steps).
    """
    done, chunk = 0, 1
    while done < steps:
        began, until = time.perf_counter(), min(steps, done + chunk)
        advance(done, until)
        done = until
        if progress is not None:
            progress(done, steps)
        seconds = time.perf_counter() - began
        if seconds > 2 * _CHUNK_SECONDS:
            chunk = max(1, chunk // 2)
        elif seconds < _CHUNK_SECONDS / 8:
            chunk *= 8
