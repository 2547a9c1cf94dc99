"""Divide records into parts, and add up what was computed of each part, in a fixed order.

Both follow from the numbers of records and of columns alone. So a sum has the same bits whoever
computes the parts, and in whatever order they come.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

_LEAST_PART = 4096  # records
_MOST_PARTS = 64
_MOST_SUMS = 1 << 22  # numbers that the sums of all parts hold, for one point
SMALL = 1 << 17  # numbers in the records, times points: up to here one thread is faster


def divide(n: int, p: int) -> list[tuple[int, int]]:
    """The parts of n records of p columns: where each begins and ends.

    >>> divide(10_000, 3)
    [(0, 5000), (5000, 10000)]
    """
    count = max(1, min(n // _LEAST_PART, _MOST_SUMS // max(p, 1), _MOST_PARTS))
    return list(pairwise(n * part // count for part in range(count + 1)))


def add_pairs(found: Sequence[Any]) -> Any:
    """The sum of what was found of each part: neighbours are added, then their sums, and so on.

    >>> add_pairs([1e16, 1.0, -1e16, 1.0, 1.0])
    1.0
    """
    while len(found) > 1:
        pairs = [found[k] + found[k + 1] for k in range(0, len(found) - 1, 2)]
        found = [*pairs, *found[len(pairs) * 2 :]]
    return found[0]
