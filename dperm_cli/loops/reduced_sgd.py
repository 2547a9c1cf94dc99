"""The loop of ``sgd`` on the Euclidean ball in the coordinates of few records.

Steps move along records and along noise, and the ball's projection scales: with an orthonormal
basis B [p, n] whose span holds all rows, theta = B a + u, and the law of the outside part u
depends on its length alone. One step adds noise to a [n] coordinate by coordinate, and with the
decay d, the rate eta and sigma it takes |u|^2 to

    ((1 - eta d) |u| - eta sigma g)^2 + (eta sigma)^2 chi^2_{p - n - 1},

g a normal number: n + 1 normals and one chi^2 a step in place of p normals. Where the walk ends,
the direction of u is uniform in the complement of B. The law of theta is that of the plain loop,
exactly; the numbers are others. Proof: docs/proofs/noisy_sgd.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import gammainccinv, gammaincinv, ndtr

from dperm_cli.loops import batch_indices, gaussian_noise
from dperm_cli.loops import sgd as plain
from dperm_cli.loops.jit import compile_inline, compile_loop
from dperm_cli.loops.projections import L2_BALL, shrinkage
from dperm_cli.loops.sealed_noise import SealedBatches, SealedNoise
from dperm_cli.loops.slopes import slope
from dperm_cli.loops.thread_count import count_threads, run_in_threads, split_evenly

LEAST_OUTSIDE = 3  # of p - n: the chi^2 sampler needs two degrees of freedom
_CHUNK = 1 << 14  # steps before control returns to Python


class Frame(NamedTuple):
    """A basis [p, n] of a space that holds all rows, and the rows' coordinates [n, n] in it."""

    basis: np.ndarray
    rows: np.ndarray


def frame(x: Any) -> Frame:
    """The frame of n < p rows [n, p], dense or CSR; its shape depends on n and p alone.

    Householder's basis is orthonormal whatever the rank of the rows.
    """
    dense = np.asarray(x.toarray() if sparse.issparse(x) else x, dtype=np.float64)
    basis, upper = np.linalg.qr(dense.T)
    return Frame(np.ascontiguousarray(basis), np.ascontiguousarray(upper.T))


def outward(framed: Frame, keys: np.ndarray, step: int) -> np.ndarray:
    """Uniform unit vectors orthogonal to the basis, one for each key, [K, p].

    ``step`` is a number that no step of the walk has: its random numbers are used for nothing else.
    """
    basis = framed.basis
    z = gaussian_noise.normals(keys, step, 1, len(basis))[:, 0, :]
    for _ in range(2):  # a second time against rounding
        z = z - map_each(map_each(z, basis), basis.T)
    return z / np.linalg.norm(z, axis=1, keepdims=True)


def map_each(rows: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """The product of each row [K, a] with a matrix [a, b], to the same bytes for any K.

    One product of two matrices may round a row by how many others there are.
    """
    return np.array([one @ matrix for one in rows]).reshape(len(rows), matrix.shape[1])


def add_noise(
    value: np.ndarray, noise: SealedNoise, step: int, normals: int, degrees: int
) -> np.ndarray:
    """``value`` [K, dim] with the noise of a step on its first ``normals`` + 1 coordinates.

    There: so many normal numbers, and the root of a chi^2 of ``degrees`` after them, times the
    scale.
    """
    if not 0 <= step < noise.steps:
        raise ValueError(f"step {step} of a stream of {noise.steps}")
    drawn = gaussian_noise.normals(noise.keys, step, 1, normals + 1)[:, 0, :]
    drawn[:, normals] = np.sqrt(chi2_of(drawn[:, normals], degrees))
    noisy = value.copy()
    noisy[:, : normals + 1] += noise.scale * drawn
    return noisy


def chi2_of(z: np.ndarray, degrees: float) -> np.ndarray:
    """The chi^2 quantile at the chance that a normal number is below z: chi^2 for normal z."""
    half = 0.5 * degrees
    with np.errstate(all="ignore"):
        low, high = gammaincinv(half, ndtr(z)), gammainccinv(half, ndtr(-z))
    return 2.0 * np.where(z < 0, low, high)


@compile_inline
def _chi2(key0, key1, step, block, degrees):
    """A chi^2 of ``degrees`` >= 2 from the words ``block``, .. on, by Marsaglia and Tsang."""
    d = 0.5 * degrees - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    number = np.uint64(block)
    while True:
        first, second = gaussian_noise.words(key0, key1, step, number)
        z, _ = gaussian_noise.on_circle(gaussian_noise.radius(first), second)
        third, _ = gaussian_noise.words(key0, key1, step, number + np.uint64(1))
        number += np.uint64(2)
        v = 1.0 + c * z
        if v <= 0.0:
            continue
        v = v * v * v
        if -gaussian_noise.minus_log(gaussian_noise.unit(third)) < 0.5 * z * z + d * (
            1.0 - v + math.log(v)
        ):
            return 2.0 * d * v


@compile_loop
def _walk(
    x, y, rule, degrees, noise_keys, index_keys, t0, t1, inside, outside, seen, chosen, offset, pair
):  # fmt: skip
    """Steps t0 .. t1 - 1 of every chain: inside [K, n] and outside [K] are updated."""
    chains, n = inside.shape
    pairs = (n + 2) // 2
    block = offset.size // pairs
    first, second = np.empty_like(offset), np.empty_like(offset)
    left, right, g = np.empty(offset.size), np.empty(offset.size), np.empty(n)
    for c in range(chains):
        k0, k1 = noise_keys[c, 0], noise_keys[c, 1]
        for start in range(t0, t1, block):
            count = min(block, t1 - start)
            part = count * pairs
            gaussian_noise.fill(
                k0, k1, np.uint64(start), offset[:part], pair[:part], first, second, left, right
            )
            for s in range(count):
                step, at = np.uint64(start + s), s * pairs
                eta = plain.learning_rate(rule.eta_kind, rule.eta0, float(start + s + 1))
                size = batch_indices.draw(
                    index_keys[c, 0], index_keys[c, 1], step,
                    rule.population, rule.batch, rule.skip_rate, seen, chosen,
                )  # fmt: skip
                for k in range(n):
                    g[k] = 0.0
                for b in range(size):
                    i = chosen[b]
                    z = 0.0
                    for k in range(n):
                        z += x[i, k] * inside[c, k]
                    weight = slope(rule.loss_code, z, y[i], rule.loss_width)
                    for k in range(n):
                        g[k] += weight * x[i, k]
                square = 0.0
                for k in range(n):
                    noise = left[at + k] if k < pairs else right[at + k - pairs]
                    value = rule.factor * g[k] + rule.decay * inside[c, k]
                    moved = inside[c, k] - eta * (value + rule.noise_scale * noise)
                    inside[c, k] = moved
                    square += moved * moved
                reach = eta * rule.noise_scale
                along = (1.0 - eta * rule.decay) * outside[c] - reach * right[at + n - pairs]
                rest = reach * reach * _chi2(k0, k1, step, pairs, degrees)
                outer = along * along + rest
                factor = shrinkage(square + outer, rule.size)
                outside[c] = factor * math.sqrt(outer)
                if factor < 1.0:
                    for k in range(n):
                        inside[c, k] *= factor


def run(
    framed: Frame,
    y: np.ndarray,
    noise: SealedBatches,
    *,
    outer: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    **rule: Any,
) -> np.ndarray:
    """All steps of every chain from the origin; the last iterates [K, p].

    Parameters as in ``sgd.run``, for set_code L2_BALL, without a lasso and with average LAST.
    ``outer`` is p - n (for tests of what another number would do).
    """
    p, n = framed.basis.shape
    left = p - n if outer is None else outer
    if rule["set_code"] != L2_BALL or rule.get("lasso") or rule.get("average", plain.LAST):
        raise ValueError("the reduced loop is for the Euclidean ball, the last iterate, no lasso")
    if left < LEAST_OUTSIDE:
        raise ValueError(f"{n} rows leave too little of {p} dimensions")
    chains, steps = len(noise.noise_keys), noise.steps
    state = plain.start(framed.rows, y, np.zeros((chains, n)), noise, **rule)
    inside, outside = state.theta, np.zeros(chains)
    pairs = (n + 2) // 2
    pattern = gaussian_noise.pattern(gaussian_noise.block_steps(n + 1, steps), pairs)

    def walk(group: slice) -> None:
        law = state.rule
        _, seen, chosen = batch_indices.workspace(law.population, law.batch, law.skip_rate > 0.0)
        _walk(
            state.rows.x, state.rows.y, law, float(left - 1), state.noise_keys[group],
            state.index_keys[group], begin, end, inside[group], outside[group], seen, chosen,
            *pattern,
        )  # fmt: skip

    groups = split_evenly(chains, min(chains, count_threads()))
    for begin in range(0, steps, _CHUNK):
        end = min(steps, begin + _CHUNK)
        run_in_threads(walk, groups)
        if progress is not None:
            progress(end, steps)
    away = outward(framed, state.noise_keys, steps)
    return map_each(inside, framed.basis.T) + outside[:, None] * away
