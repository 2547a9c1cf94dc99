"""Where an axis has numbers: as many as have room beside each other."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dperm_cli.results.charts.text_fitting import find_crowding, measure
from dperm_cli.results.records.row_facts import number

_GAP = 0.7  # least space between numbers, in sizes of their letters
_TALL = 1.15  # height of a number in sizes of its letters


def choose_ticks(
    low: float, high: float, scale: str, points: float, size: float, upright: bool,
    wanted: Sequence[float] = (),
) -> list[tuple[float, str]]:  # fmt: skip
    """Places and numbers of an axis.

    Args:
        low: Its lower end.
        high: Its upper end.
        scale: log or linear.
        points: How long it is.
        size: Points of the letters.
        upright: Whether it is the vertical one, whose numbers stand above each other.
        wanted: Values to take if they fit: all of them, or every second, third, ... to the last.
    """
    change = math.log if scale == "log" else float
    span = (change(high) - change(low)) or 1.0

    def fits(values: Sequence[float]) -> bool:
        places = [points * (change(v) - change(low)) / span for v in values]
        wide = [_TALL * size if upright else measure(_write(v), size) for v in values]
        if upright and any(at < size / 2 or at > points for at in places):
            return False
        return not find_crowding(places, wide, (_GAP / 2 if upright else _GAP) * size)

    for candidates in (_thin(wanted), _list_levels(low, high, scale, upright)):
        for values in candidates:
            if upright:
                values = [v for v in values if points * (change(v) - change(low)) / span
                          >= size / 2]  # fmt: skip
            if values and fits(values):
                return [(v, _write(v)) for v in values]
    return []


def _write(value: float) -> str:
    return number(int(value) if value % 1 == 0 and abs(value) < 1e5 else value, 3)


def _thin(values: Sequence[float]) -> list[list[float]]:
    """All values; every second, every third; each with the last one."""
    if not 0 < len(values) <= 12:
        return []
    ordered = sorted(values)
    return [ordered[::-1][::every][::-1] for every in (1, 2, 3, 4)]


def _list_levels(low: float, high: float, scale: str, upright: bool) -> list[list[float]]:
    """Round numbers between the ends, from many to few."""
    levels: list[list[float]] = []
    if scale == "log":
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        decades = range(first, last + 1)
        for digits in ((1, 2, 5), (1, 3), (1,)):
            levels.append([float(f"{d}e{e}") for e in decades for d in digits])
        for every in range(2, max(3, last - first + 1)):
            levels.append([10.0**e for e in decades if e % every == 0])
    inside = [[v for v in values if low * 0.9999 <= v <= high * 1.0001] for values in levels]
    inside = [values for values in inside if len(values) > 1]
    if scale == "log" and (high >= 8 * low or not upright) and inside:
        return inside
    return inside[:1] * (len(inside[0]) > 2 if inside else 0) + _list_steps(low, high)


def _list_steps(low: float, high: float) -> list[list[float]]:
    found: list[list[float]] = []
    for most in (6, 5, 4, 3, 2):
        rough = (high - low) / most
        unit = 10.0 ** math.floor(math.log10(rough))
        step = unit * next((m for m in (1, 2, 2.5, 5, 10) if m * unit >= rough), 10)
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        found.append([float(f"{k * step:.10g}") for k in range(first, last + 1)])
    return found
