"""The marks of curves: what matplotlib calls them, and their outlines on the page.

The first stand for the mechanisms of the package (``mechanism_looks``), the rest for others.
"""

from __future__ import annotations

from collections.abc import Sequence

from dperm_cli.core.dataclass import dataclass

Outline = tuple[tuple[float, float], ...]
_SIZE = 4.8  # half the width of a mark on the page, in pixels


@dataclass(frozen=True)
class Mark:
    """A shape that tells a curve from others also where there is no colour.

    Args:
        drawn: Matplotlib's name of it, or the corners of a polygon, y upwards.
        path: Its outline on the page, as the path of an SVG, y downwards.
    """

    drawn: str | Outline
    path: str


def _outline(*corners: float) -> Mark:
    """The polygon with corners x, y, x, y, ... between -1 and 1."""
    places = tuple(zip(corners[::2], corners[1::2], strict=True))
    return Mark((*places, places[0]), _write_path(places))


def _write_path(places: Sequence[tuple[float, float]]) -> str:
    """The path of a polygon.

    >>> _write_path([(0, 1), (1, -1), (-1, -1)])
    'M0 -4.8L4.8 4.8L-4.8 4.8Z'
    """
    return "M" + "L".join(f"{_SIZE * x:.3g} {-_SIZE * y:.3g}" for x, y in places) + "Z"


MARKS = (
    Mark("o", "M-4.2 0a4.2 4.2 0 1 0 8.4 0a4.2 4.2 0 1 0 -8.4 0Z"),
    Mark("s", "M-3.9 -3.9H3.9V3.9H-3.9Z"),
    Mark("^", "M0 -5L4.8 3.7H-4.8Z"),
    Mark("D", "M0 -5.2L5.2 0L0 5.2L-5.2 0Z"),
    Mark("v", "M0 5L4.8 -3.7H-4.8Z"),
    Mark(
        "P",
        "M-1.7 -4.8H1.7V-1.7H4.8V1.7H1.7V4.8H-1.7V1.7H-4.8V-1.7H-1.7Z",
    ),
    Mark(
        "X",
        "M-4.6 -2.6L-2.6 -4.6L0 -2L2.6 -4.6L4.6 -2.6L2 0"
        "L4.6 2.6L2.6 4.6L0 2L-2.6 4.6L-4.6 2.6L-2 0Z",
    ),
    Mark("<", "M-5 0L3.7 4.8V-4.8Z"),
    Mark(">", "M5 0L-3.7 4.8V-4.8Z"),
    Mark(
        "*",
        "M0 -5.4L1.3 -1.7L5.2 -1.6L2 .7L3.2 4.4L0 2.1L-3.2 4.4L-2 .7L-5.2 -1.6L-1.3 -1.7Z",
    ),
    Mark("d", "M0 -5.4L3.2 0L0 5.4L-3.2 0Z"),
    _outline(-0.9, 1, 0.9, 1, 0.25, 0, 0.9, -1, -0.9, -1, -0.25, 0),  # an hourglass
    _outline(-1, 1, 1, 1, 1, 0.4, 0.3, 0.4, 0.3, -1, -0.3, -1, -0.3, 0.4, -1, 0.4),  # a T
    _outline(-0.35, 1, 0.35, 1, 0.35, -1, -0.35, -1),  # a standing bar
    _outline(-1, 1, 0.3, 1, 0.3, -0.4, 1, -0.4, 1, -1, -0.3, -1, -0.3, 0.4, -1, 0.4),  # a step
    _outline(-1, -0.8, 1, -0.8, 0.35, 0.8, -0.35, 0.8),  # a trapezium
    _outline(1, 0.9, 1, -0.9, 0, -0.25, -1, -0.9, -1, 0.9, 0, 0.25),  # a bow tie
    _outline(-1, -1, 1, -1, 1, -0.4, 0.3, -0.4, 0.3, 1, -0.3, 1, -0.3, -0.4, -1, -0.4),
    _outline(-0.9, 1, -0.2, 1, -0.2, -0.3, 0.9, -0.3, 0.9, -1, -0.9, -1),  # an L
    _outline(0.9, -1, 0.2, -1, 0.2, 0.3, -0.9, 0.3, -0.9, 1, 0.9, 1),
    _outline(0, 0.9, 1, -0.1, 1, -0.9, 0, 0.1, -1, -0.9, -1, -0.1),  # a roof
    _outline(0, -0.9, 1, 0.1, 1, 0.9, 0, -0.1, -1, 0.9, -1, 0.1),
    _outline(-0.3, 0.8, 1, 0.8, 0.3, -0.8, -1, -0.8),  # a slanted bar
    _outline(0, 1, 1, 0.1, 0.45, 0.1, 0.45, -1, -0.45, -1, -0.45, 0.1, -1, 0.1),  # an arrow
)
