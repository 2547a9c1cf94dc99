"""Lists of numbers to try, from a least to a largest one: equal steps, or equal ratios.

They are numpy's ``linspace`` and ``geomspace`` to the last bit, where the ends differ, without the
time that numpy takes to find out what it was given: most searches over such a list are shorter.
"""

from __future__ import annotations

import functools

import numpy as np

from dperm_cli.core.memo import MIB, memoise


@functools.cache
def _count_up(count: int) -> np.ndarray:
    return np.arange(float(count))


def space_evenly(low: float, high: float, count: int) -> np.ndarray:
    """Numbers from ``low`` to ``high`` in equal steps [count], for low <= high and count > 1."""
    found = _count_up(count) * ((high - low) / (count - 1.0))
    found += low
    found[-1] = high
    return found


def space_by_ratio(low: float, high: float, count: int) -> np.ndarray:
    """Numbers from ``low`` to ``high`` with equal ratios [count], for 0 < low <= high, count > 1.

    >>> space_by_ratio(1.0, 100.0, 3).tolist()
    [1.0, 10.0, 100.0]
    """
    if low == high:
        return np.full(count, low)
    # numpy's logarithm, which may have other last bits than the C library's
    found = np.power(10.0, space_evenly(float(np.log10(low)), float(np.log10(high)), count))
    found[0], found[-1] = low, high
    return found


@memoise(MIB)
def list_integers_by_ratio(low: int, high: int, count: int) -> np.ndarray:
    """The different whole numbers among ``count`` from ``low`` to ``high`` with equal ratios.

    The array is kept for the next caller, and nobody can write to it.

    >>> list_integers_by_ratio(1, 10, 6).tolist()
    [1, 2, 3, 6, 10]
    """
    found = drop_repeats(space_by_ratio(float(low), float(high), count).astype(np.int64))
    found.flags.writeable = False
    return found


def drop_repeats(numbers: np.ndarray) -> np.ndarray:
    """The different numbers of a list [n], from the least."""
    ordered = np.sort(numbers)
    new = np.empty(len(ordered), dtype=bool)
    new[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return ordered[new]
