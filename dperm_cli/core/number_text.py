"""Read numbers in text, by one rule for all files and lines."""

from __future__ import annotations

import re

# float() alone takes 1_0 for 10, and digits of other alphabets
_NUMBER = re.compile(
    r"[ \t]*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[ \t]*|[ \t]*[+-]?(inf|infinity|nan)[ \t]*",
    re.ASCII | re.IGNORECASE,
)


def number_in(text: str) -> float | None:
    """The number that a text is, or None; of more than float64 holds, inf."""
    return float(text) if _NUMBER.fullmatch(text) else None
