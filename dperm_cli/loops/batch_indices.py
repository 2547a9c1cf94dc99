"""Random batches of record indices that are a pure function of (key, step).

- one record: uniform over the population, by multiply-shift of a 64-bit word;
- a fixed batch: uniform over the subsets of that size, without replacement [Floyd, BF87];
- Poisson: every record on its own with probability batch / population, by geometric skips.

The multiply-shift gives each index a probability within population / 2^64 of uniform, relatively:
below 2^-40 up to 1.6e7 records.
"""

from __future__ import annotations

import math

import numpy as np

from dperm_cli.loops.gaussian_noise import minus_log, unit, word
from dperm_cli.loops.jit import compile_inline, compile_loop

_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)

MAX_POPULATION = 2**32 - 1


def batch(key: np.ndarray, step: int, population: int, batch: int, poisson: bool) -> np.ndarray:
    """The batch of one step of the stream ``key`` [2] (uint64): distinct indices, int64 [b].

    ``b`` is ``batch``, or random and possibly 0 when ``poisson``. Needs
    1 <= batch <= population < 2^32.
    """
    rate, seen, out = workspace(population, batch, poisson)
    key = np.ascontiguousarray(key, dtype=np.uint64)
    return out[: draw(key[0], key[1], np.uint64(step), population, batch, rate, seen, out)]


def workspace(population: int, batch: int, poisson: bool) -> tuple[float, np.ndarray, np.ndarray]:
    """What ``draw`` needs: the skip rate (0 = fixed size), a mark per record, room for a batch."""
    if not 1 <= batch <= population <= MAX_POPULATION:
        raise ValueError(f"no batch of {batch} from a population of {population}")
    marks = population if batch > 1 and not poisson else 0
    room = population if poisson else batch
    rate = skip_rate(population, batch) if poisson else 0.0
    return rate, np.zeros(marks, np.bool_), np.empty(room, np.int64)


@compile_loop
def skip_rate(population, batch):
    """-log(1 - batch / population), inf for the whole population."""
    if batch >= population:
        return math.inf
    return -math.log1p(-batch / population)


@compile_inline
def scale_word(word, bound):
    """floor(word * bound / 2^64) for bound < 2^32."""
    bound = np.uint64(bound)
    return np.int64(((word >> _HALF) * bound + (((word & _LOW) * bound) >> _HALF)) >> _HALF)


@compile_inline
def single(key0, key1, step, population):
    """One uniformly random index."""
    return scale_word(word(key0, key1, step, 0), population)


@compile_loop
def draw(key0, key1, step, population, batch, rate, seen, out):
    """Write one batch to ``out`` and return its size; ``seen`` is all False before and after."""
    if rate > 0.0:
        return _poisson(key0, key1, step, population, rate, out)
    if batch == 1:
        out[0] = single(key0, key1, step, population)
        return 1
    return _subset(key0, key1, step, population, batch, seen, out)


@compile_loop
def _subset(key0, key1, step, population, batch, seen, out):
    first = population - batch
    for j in range(batch):
        last = first + j
        index = scale_word(word(key0, key1, step, j), last + 1)
        if seen[index]:
            index = last
        seen[index] = True
        out[j] = index
    for j in range(batch):
        seen[out[j]] = False
    return batch


@compile_loop
def _poisson(key0, key1, step, population, rate, out):
    count, index = 0, -1
    for number in range(population):
        skip = minus_log(unit(word(key0, key1, step, number))) / rate
        # compared as floats: a long skip would not fit an integer
        if skip >= population - 1 - index:
            break
        index += 1 + np.int64(skip)
        out[count] = index
        count += 1
    return count
