"""Read a number from text, by the same rule for all files and command lines."""

from __future__ import annotations

import re

# float() alone would read 1_0 as 10, and accept digits of other alphabets. A digit can be read in
# one way only: else a long cell that is no number takes time that grows as its length squared.
_NUMBER = re.compile(
    r"[ \t]*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?[ \t]*|[ \t]*[+-]?(inf|infinity|nan)[ \t]*",
    re.ASCII | re.IGNORECASE,
)


def number_in(text: str) -> float | None:
    """The number that a text spells, or None. It is inf where float64 cannot hold the number."""
    return float(text) if _NUMBER.fullmatch(text) else None
