"""Divide records into parts, and add up what was computed of each part, in a fixed order.

Both follow from the numbers of records and of columns and from how rows are stored, alone. So a sum
has the same bits whoever computes the parts, and in whatever order they come.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

_LEAST_PART = 4096  # records
_MOST_PARTS = 64
_MOST_SUMS = 1 << 22  # numbers that the sums of all parts hold, for one point
_MOST_MATRICES = 1 << 25  # the same for matrices, of which there may be four in any case
SMALL = 1 << 17  # numbers in the records, times points: up to here one thread is faster


def divide(n: int, p: int, entries: int = 0, *, is_sparse: bool = False) -> list[tuple[int, int]]:
    """The parts of n records of p columns: where each begins and ends.

    Args:
        n: How many records.
        p: How many columns.
        entries: Of the sum of a part, where it is a matrix.
        is_sparse: Whether a row holds few of its columns: adding up the sums of many parts, which
            hold all columns, would then take longer than the parts themselves.

    >>> divide(10_000, 3)
    [(0, 5000), (5000, 10000)]
    """
    most = max(4, _MOST_MATRICES // entries) if entries else _MOST_SUMS // max(p, 1)
    most = min(most, max(4, n // max(p, 1))) if is_sparse else most
    count = max(1, min(n // _LEAST_PART, most, _MOST_PARTS))
    return list(pairwise(n * part // count for part in range(count + 1)))


def is_one_part(n: int) -> bool:
    """Whether so few records are one part, whatever their columns."""
    return n < 2 * _LEAST_PART


def add_pairs(found: Sequence[Any]) -> Any:
    """The sum of what was found of each part: neighbours are added, then their sums, and so on.

    >>> add_pairs([1e16, 1.0, -1e16, 1.0, 1.0])
    1.0
    """
    while len(found) > 1:
        pairs = [found[k] + found[k + 1] for k in range(0, len(found) - 1, 2)]
        found = [*pairs, *found[len(pairs) * 2 :]]
    return found[0]
