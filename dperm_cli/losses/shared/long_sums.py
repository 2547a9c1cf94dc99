"""Sums over very many records without arrays as long as the data, by several threads.

The records are divided into parts by their number alone, a part into blocks that stay in cache, and
parts are added in their order: the bits do not depend on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from dperm_cli.loops.thread_count import run_in_threads
from dperm_cli.problem.data import Data

MANY = 2_000_000  # records from which these sums are used
_PARTS = 64
_BLOCK_NUMBERS = 1 << 18


def has_many_records(data: Data) -> bool:
    """Whether arrays as long as the data are to be avoided: many records, in rows stored whole."""
    return data.n > MANY and isinstance(data.x, np.ndarray)


def sum_gram(x: np.ndarray, weigh: Callable[[np.ndarray, slice], np.ndarray]) -> np.ndarray:
    """sum_i w_i x_i x_i^T for weights w_i >= 0.

    Args:
        x: Rows [n, p].
        weigh: From rows [k, p] in doubles and the slice they are to their weights [k].

    Returns:
        The matrix [p, p].
    """

    def sum_part(part: slice) -> np.ndarray:
        total = np.zeros((x.shape[1], x.shape[1]))
        for block in _find_blocks(part, x.shape[1]):
            rows = x[block].astype(np.float64)
            rows *= np.sqrt(weigh(rows, block))[:, None]
            total += rows.T @ rows
        return total

    return _add_in_order(run_in_threads(sum_part, _find_parts(len(x))))


def sum_rows(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """sum_i w_i x_i, [p], for rows x [n, p] and weights [n]."""

    def sum_part(part: slice) -> np.ndarray:
        total = np.zeros(x.shape[1])
        for block in _find_blocks(part, x.shape[1]):
            total += weights[block] @ x[block].astype(np.float64)
        return total

    return _add_in_order(run_in_threads(sum_part, _find_parts(len(x))))


def map_margins(
    x: np.ndarray, theta: np.ndarray, change: Callable[[np.ndarray, slice], np.ndarray]
) -> np.ndarray:
    """What ``change`` makes of the margins <x_i, theta>, [n].

    Args:
        x: Rows [n, p].
        theta: The point [p].
        change: From margins [k] and the slice of records they belong to, to numbers [k].
    """
    out = np.empty(len(x))

    def fill_part(part: slice) -> None:
        for block in _find_blocks(part, x.shape[1]):
            out[block] = change(x[block].astype(np.float64) @ theta, block)

    run_in_threads(fill_part, _find_parts(len(x)))
    return out


def sum_numbers(n: int, make: Callable[[slice], tuple[np.ndarray, ...]]) -> list[float]:
    """The sums over n records of a few numbers of each, each sum rounded about once.

    Args:
        n: How many records.
        make: From a slice of records to arrays [k], one for each sum.
    """

    def sum_part(part: slice) -> list[list[float]]:
        return [[add_up(values) for values in make(block)] for block in _find_blocks(part, 16)]

    found = [sums for part in run_in_threads(sum_part, _find_parts(n)) for sums in part]
    return [math.fsum(column) for column in zip(*found, strict=True)]


def add_up(values: np.ndarray) -> float:
    """The sum of numbers [k], rounded about once: what additions lose is added up beside them.

    >>> add_up(np.array([1e16, 1.0, -1e16]))
    1.0
    """
    lost = 0.0
    while values.size > 1:
        if values.size % 2:
            values = np.append(values, 0.0)
        first, second = values[0::2], values[1::2]
        total = first + second
        moved = total - first
        lost += float(np.sum((first - (total - moved)) + (second - moved)))
        values = total
    return float(values[0]) + lost if values.size else 0.0


def _find_parts(n: int) -> list[slice]:
    ends = (n * part // _PARTS for part in range(_PARTS + 1))
    return [slice(start, stop) for start, stop in pairwise(ends)]


def _find_blocks(part: slice, columns: int) -> Iterator[slice]:
    step = max(1, _BLOCK_NUMBERS // max(1, columns))
    for start in range(part.start, part.stop, step):
        yield slice(start, min(start + step, part.stop))


def _add_in_order(parts: list[Any]) -> Any:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
