"""Numbers of tables: as many digits as they are sure of."""

from __future__ import annotations

import math
from typing import Any

from dperm_cli.results.records.row_facts import number

MOST_DIGITS = 4  # significant digits of a number


def round_number(value: Any, half: float | None = None, most: int = MOST_DIGITS) -> str:
    """A number to two digits of its uncertainty, and at most ``most`` significant digits.

    Args:
        value: The number; null and what is not finite are a dash.
        half: Half the width of its band; None where there is none, for three digits.
        most: Significant digits.

    >>> round_number(12.3456, 0.26), round_number(5.688, 1.3), round_number(1234.5, 260.0)
    ('12.35', '5.7', '1230')
    >>> round_number(0.000012345), round_number(None), round_number(354)
    ('1.23e-5', '-', '354')
    """
    if value is None or isinstance(value, str) or not math.isfinite(value):
        return value if isinstance(value, str) else "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value == 0.0 or (isinstance(value, int) and abs(value) < 10**most):
        return str(int(value)) if value == int(value) else str(value)
    top = math.floor(math.log10(abs(value)))
    places = 2 - top
    if half is not None and math.isfinite(half) and half > 0.0:
        places = 1 - math.floor(math.log10(half))
    places = max(min(places, most - 1 - top), -top)
    if isinstance(value, int) or abs(value) >= 1e5 or abs(value) < 1e-3:
        return number(float(value), max(top + places + 1, 1) if half else 3)
    return f"{round(value, places):.{max(places, 0)}f}"


def round_pair(value: float, half: float) -> str:
    """A number with its uncertainty, which has two digits; both end at the same one.

    >>> round_pair(0.318, 0.891), round_pair(-0.03, 2.71)
    ('0.32 +- 0.89', '0.0 +- 2.7')
    """
    if not 0.0 < half < math.inf:
        return f"{round_number(value)} +- {round_number(half)}"
    places = max(1 - math.floor(math.log10(half)), 0)
    return f"{round(value, places) + 0.0:.{places}f} +- {half:.{places}f}"
