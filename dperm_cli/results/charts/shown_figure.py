"""Matplotlib's figure that a notebook shows, at the width that it has in print."""

from __future__ import annotations

import io

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

_SCREEN = 96  # pixels of a page on the screen, an inch
_SHARPNESS = 2  # image pixels for each of them


class ShownFigure(Figure):
    """A figure that no window and no part of pyplot has; a notebook asks it for an image."""

    def __init__(self, width: float, height: float) -> None:
        super().__init__(figsize=(width, height), dpi=100)
        FigureCanvasAgg(self)

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        sink = io.BytesIO()
        self.savefig(sink, format="png", dpi=_SCREEN * _SHARPNESS)
        width, height = (round(_SCREEN * inches) for inches in self.get_size_inches())
        return sink.getvalue(), {"width": width, "height": height}
