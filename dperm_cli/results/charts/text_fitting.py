"""Measure words as they will be drawn, and break them to the room they have."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

_SAFETY = 1.04  # words in a PDF are up to so much wider than measured
_JOINTS = re.compile(r"(?<=[_/,.(\-])")


@cache
def measure(text: str, size: float, bold: bool = False) -> float:
    """Points that a line of text is wide at a size in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    if not text.strip():
        return 0.3 * size * len(text)
    family = FontProperties(family="DejaVu Sans", weight="bold" if bold else "normal")
    box = TextPath((0, 0), text, size=size, prop=family).get_extents()
    return _SAFETY * float(max(box.x1, 0.0))


def wrap(text: str, room: float, size: float, bold: bool = False) -> list[str]:
    """The lines of a text that has so many points of room.

    Words that are too long are broken at their joints (``_``, ``/``, ``(``), or anywhere.
    """
    lines, line = [], ""
    for word in text.split():
        tried = f"{line} {word}".strip()
        if measure(tried, size, bold) <= room:
            line = tried
            continue
        lines += [line] if line else []
        *full, line = _break_word(word, room, size, bold)
        lines += full
    return [*lines, line] if line else lines


def split_joints(text: str) -> list[str]:
    """The pieces between which a text may be broken: at spaces, and behind ``_``, ``/``, ``(``.

    >>> split_joints("noisy_gd(a b)")
    ['noisy_', 'gd(', 'a', 'b)']
    """
    return [piece for word in text.split() for piece in _JOINTS.split(word) if piece]


def _break_word(word: str, room: float, size: float, bold: bool) -> list[str]:
    if measure(word, size, bold) <= room:
        return [word]
    pieces = split_joints(word)
    if len(pieces) == 1 or any(measure(piece, size, bold) > room for piece in pieces):
        pieces = list(word)
    lines = [""]
    for piece in pieces:
        if lines[-1] and measure(lines[-1] + piece, size, bold) > room:
            lines.append("")
        lines[-1] += piece
    return lines


def find_crowding(places: Sequence[float], widths: Sequence[float], gap: float) -> bool:
    """Whether labels at ascending places, each so wide, come nearer than a gap to each other."""
    ends = [(at - wide / 2, at + wide / 2) for at, wide in zip(places, widths, strict=True)]
    return any(b[0] - a[1] < gap for a, b in zip(ends, ends[1:], strict=False))
