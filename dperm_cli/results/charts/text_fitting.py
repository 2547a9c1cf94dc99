"""Measure words as they will be drawn, and break them to the room they have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

_SAFETY = 1.04  # words in a PDF are up to so much wider than measured
_LARGE = 200.0  # points
_SIGNS = ("=", "±", "<", ">", "<=", ">=", "≤", "≥", "..")  # stay with what stands around them
_NUMBER = re.compile(r"[-+−]?\d[\d.,]*(e[-+]?\d+)?(?<![.,])")
_UNIT = re.compile(r"%|(?!(?:and|at|by|for|in|is|of|on|or|over|per|to|with)\b)[A-Za-zµ]")
_LETTER = re.compile(r"[b-zA-Z][,;:)]?")  # a quantity, such as the n of "number of records n"
_LEVELS = ("epsilon", "delta")
_SETTING = re.compile(r"[A-Za-z][A-Za-z_.]*")
_JOINTS = re.compile(r"(?<=[_/,.(\-])")


@cache
def measure(text: str, size: float, bold: bool = False) -> float:
    """Points that a line of text is wide at a size in points."""
    font = _load_font(bold)
    font.set_text(text, 0.0)
    return _SAFETY * size * font.get_width_height()[0] / 64 / _LARGE


@cache
def _load_font(bold: bool) -> Any:
    """The font of all figures at a size at which rounding does not matter."""
    from matplotlib.font_manager import FontProperties, findfont
    from matplotlib.ft2font import FT2Font

    weight = "bold" if bold else "normal"
    font = FT2Font(findfont(FontProperties(family="DejaVu Sans", weight=weight)))
    font.set_size(_LARGE, 72)
    return font


def wrap(text: str, room: float, size: float, bold: bool = False) -> list[str]:
    """The lines of a text that has so many points of room.

    ``a = b`` and a number with its unit stay together where they have room. Words that are too
    long are broken at their joints (``_``, ``/``, ``(``), or anywhere.
    """
    pieces = [
        part
        for piece in join_numbers(text.split())
        for part in ([piece] if measure(piece, size, bold) <= room else piece.split())
    ]
    lines, line = [], ""
    for word in pieces:
        tried = f"{line} {word}".strip()
        if measure(tried, size, bold) <= room:
            line = tried
            continue
        lines += [line] if line else []
        *full, line = _break_word(word, room, size, bold)
        lines += full
    return [*lines, line] if line else lines


def join_numbers(words: Iterable[str]) -> list[str]:
    """Words, of which those that make one quantity are one, a setting and its number among them.

    >>> join_numbers("n = 456, slope 0.5 ± 0.1 over 20 trials, against n".split())
    ['n = 456,', 'slope', '0.5 ± 0.1', 'over', '20 trials,', 'against n']
    >>> join_numbers("noisy_gd, steps 50, paper".split())
    ['noisy_gd,', 'steps 50,', 'paper']
    """
    found: list[str] = []
    every = list(words)
    for place, word in enumerate(every):
        last = found[-1].rpartition(" ")[2] if found else ""
        is_unit = _NUMBER.fullmatch(last) and _UNIT.match(word)
        is_name = last.isalpha() and _LETTER.fullmatch(word)
        is_end = place == len(every) - 1 or word[-1] in ",;"
        is_value = _is_setting(found, word, is_end)
        if found and (word in _SIGNS or last in _SIGNS or is_unit or is_name or is_value):
            found[-1] += f" {word}"
        else:
            found.append(word)
    return found


def _is_setting(found: Sequence[str], word: str, is_end: bool) -> bool:
    """Whether a word is the number of the setting before it: ``epsilon 1`` anywhere, and any other
    name where commas or the ends of the text stand around both, as in a legend."""
    if not found or not _NUMBER.fullmatch(word.rstrip(",;:)")):
        return False
    name, alone = found[-1].lstrip("("), len(found) == 1 or found[-2].endswith(",")
    return name in _LEVELS or bool(alone and is_end and _SETTING.fullmatch(name))


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
    return any(b[0] - a[1] < gap for a, b in pairwise(ends))
