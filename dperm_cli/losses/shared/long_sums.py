"""Sums over very many records without arrays as long as the data, by several threads.

The records are divided into parts by their number alone, a part into blocks that stay in cache, and
parts are added in a fixed order: the bits do not depend on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from dperm_cli.loops.thread_count import run_in_threads
from dperm_cli.problem.data import Data
from dperm_cli.problem.split_rows import is_dense, join_parts, sum_parts

MANY = 2_000_000  # records from which these sums are used
_PARTS = 64
_BLOCK_NUMBERS = 1 << 18

OfMargins = Callable[[np.ndarray, np.ndarray], np.ndarray]


def has_many_records(data: Data) -> bool:
    """Whether arrays as long as the data are to be avoided: many records, in rows stored whole."""
    return data.n > MANY and is_dense(data.x)


def sum_gram(x: Any, theta: np.ndarray, weigh: OfMargins, y: np.ndarray) -> np.ndarray:
    """sum_i w_i x_i x_i^T for weights w_i >= 0 that follow from margins and labels.

    Args:
        x: Rows [n, p].
        theta: The point [p].
        weigh: From margins <x_i, theta> [k] and labels [k] to weights [k].
        y: Labels [n].

    Returns:
        The matrix [p, p].
    """
    return sum_parts(x, partial(_add_gram, theta, weigh), y, entries=len(theta) ** 2)


def _add_gram(theta: np.ndarray, weigh: OfMargins, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    total = np.zeros((x.shape[1], x.shape[1]))
    for block in _find_blocks(slice(0, len(x)), x.shape[1]):
        rows = x[block].astype(np.float64)
        rows *= np.sqrt(weigh(rows @ theta, y[block]))[:, None]
        total += rows.T @ rows
    return total


def map_margins(x: Any, theta: np.ndarray, change: OfMargins, y: np.ndarray) -> np.ndarray:
    """What ``change`` makes of the margins <x_i, theta> and of the labels y, [n]."""
    return join_parts(x, partial(_change_margins, theta, change), y)


def _change_margins(
    theta: np.ndarray, change: OfMargins, x: np.ndarray, y: np.ndarray
) -> np.ndarray:
    out = np.empty(len(x))
    for block in _find_blocks(slice(0, len(x)), x.shape[1]):
        out[block] = change(x[block].astype(np.float64) @ theta, y[block])
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
