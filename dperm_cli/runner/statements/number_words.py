"""Numbers of a guarantee as a statement prints them: never smaller than they are."""

from __future__ import annotations

import math

from dperm_cli.results.records.row_facts import number

_LAST_BITS = 1e-9  # relative: what the accountant's own arithmetic may be off by


def round_up(value: float, digits: int = 6) -> float:
    """The nearest number of so many digits, or the next one above where that is smaller.

    >>> round_up(0.9999999999), round_up(1.2345678), round_up(2.1000012, 3)
    (1.0, 1.23457, 2.11)
    """
    if value <= 0.0 or not math.isfinite(value):
        return value
    found = float(f"{value:.{digits - 1}e}")
    if found >= value * (1.0 - _LAST_BITS):
        return found
    step = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    return float(f"{found + step:.{digits - 1}e}")


def format_number(value: float, digits: int = 6) -> str:
    """A number of a guarantee, rounded up to so many digits."""
    return number(float(round_up(value, digits)), digits)


def format_percent(chance: float) -> str:
    """A chance in per cent, rounded up to hundredths, and 100 % at most.

    >>> format_percent(0.0192465), format_percent(0.5), format_percent(1.0)
    ('1.93 %', '50 %', '100 %')
    """
    hundredths = math.ceil(chance * 1e4 * (1.0 - _LAST_BITS))
    return f"{min(hundredths, 10_000) / 100:g} %"
