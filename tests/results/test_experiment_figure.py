"""The page of an experiment with many panels: places, and labels that stay apart."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from dperm_cli.results.experiment_figure import _many, _thinned, _ticks


@pytest.mark.parametrize("longest", [1, 4])
def test_panels_of_a_large_page_keep_their_size_and_their_legends_room(longest):
    drawn, places = _many(17, 3, longest)
    size = np.array(drawn.get_size_inches())
    boxes = [place.get_position() for place in places]
    assert len(boxes) == 17
    for box in boxes:
        assert np.allclose((box.width, box.height) * size, (1.95, 1.3))
        assert 0 < box.x0 < box.x1 < 1
        assert box.y1 < 1
    # under each panel: the axis' name and its numbers, its legend, the title of the next
    below = (boxes[0].y0 - boxes[3].y1) * size[1]
    assert below >= 0.42 + 0.13 * longest + 0.36
    assert boxes[-1].y0 * size[1] >= 0.42 + 0.13 * longest
    assert (boxes[1].x0 - boxes[0].x1) * size[0] == pytest.approx(0.6)


@pytest.mark.parametrize("count", [4, 8])
def test_a_crowded_axis_keeps_every_other_label_and_its_last(count):
    place = Figure().add_subplot()
    place.set_xscale("log")
    values = [float(2**i) for i in range(1, count + 1)]
    place.plot(values, values)
    _ticks(place, values)
    _thinned(place)
    words = [label.get_text() for label in place.get_xticklabels()]
    shown = [word for word in words if word]
    assert len(words) == count
    assert len(shown) == (count if count == 4 else count // 2)
    assert words[-1] == f"{2**count}"
