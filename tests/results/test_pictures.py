"""The pictures of README and docs are those that their commands draw."""

from __future__ import annotations

import re

import numpy as np
import pytest
from PIL import Image

from tests import draw_pictures
from tests.draw_pictures import COMMANDS, DOCS, OLDER, WIDTH


def test_each_picture_has_a_maker_and_a_page():
    pages = [DOCS.parent / "README.md", *DOCS.parent.glob("experiments/*/README.md")]
    shown = {name for page in pages for name in re.findall(r"docs/(\w+\.png)\)", page.read_text())}
    assert {path.name for path in DOCS.glob("*.png")} == set(COMMANDS) == shown


@pytest.mark.parametrize("name", COMMANDS)
def test_a_picture_was_drawn_by_its_command(name):
    with Image.open(DOCS / name) as drawn:
        said = drawn.text.get("Description")
        assert said == (None if name in OLDER else " ".join(("dperm", *COMMANDS[name])))
        assert name in OLDER or drawn.width == WIDTH


@pytest.mark.slow
@pytest.mark.parametrize("name", ["first_run.png", "describe.png"])
def test_a_picture_is_drawn_so_today(name, tmp_path):
    """Letters and lines may be a little elsewhere with other libraries; another layout is not."""
    new = draw_pictures.draw(name, tmp_path / "kept", tmp_path)
    with Image.open(new) as first, Image.open(DOCS / name) as second:
        assert abs(first.height - second.height) <= 0.02 * second.height
        both = [np.asarray(one.convert("L").resize((230, 100)), float) for one in (first, second)]
    assert np.abs(both[0] - both[1]).mean() < 4.0
