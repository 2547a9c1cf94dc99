"""The pictures of README and docs are those that their commands draw."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import dperm_cli
from tests import draw_pictures
from tests.draw_pictures import COMMANDS, DOCS, WIDTH

README = (DOCS.parent / "README.md").read_text(encoding="utf-8")


def test_each_picture_has_a_maker_and_a_page():
    pages = [DOCS.parent / "README.md", *DOCS.parent.glob("experiments/*/README.md")]
    shown = {name for page in pages for name in re.findall(r"docs/(\w+\.png)\)", page.read_text())}
    for page in DOCS.glob("*.md"):
        shown |= set(re.findall(r"\]\((\w+\.png)\)", page.read_text()))
    assert {path.name for path in DOCS.glob("*.png")} == set(COMMANDS) == shown


@pytest.mark.parametrize("name", COMMANDS)
def test_a_picture_was_drawn_by_its_command(name):
    with Image.open(DOCS / name) as drawn:
        said = drawn.text.get("Description")
        assert said == " ".join(("dperm", *COMMANDS[name]))
        assert drawn.width == WIDTH


@pytest.mark.slow
@pytest.mark.parametrize("name", ["first_run.png", "describe.png"])
def test_a_picture_is_drawn_so_today(name, tmp_path):
    """Letters and lines may be a little elsewhere with other libraries; another layout is not."""
    new = draw_pictures.draw(name, tmp_path / "kept", tmp_path)
    with Image.open(new) as first, Image.open(DOCS / name) as second:
        assert abs(first.height - second.height) <= 0.02 * second.height
        both = [np.asarray(one.convert("L").resize((230, 100)), float) for one in (first, second)]
    assert np.abs(both[0] - both[1]).mean() < 4.0


def count_labels(study) -> int:
    """The entries of the legends of a study's figure."""
    figure = dperm_cli.load(str(study)).plot()
    legends = [*figure.legends, *filter(None, (axes.get_legend() for axes in figure.axes))]
    return sum(len(legend.get_texts()) for legend in legends)


def test_the_first_table_of_the_readme_is_that_of_its_run(tmp_path):
    draw_pictures.call(*COMMANDS["first_run.png"], f"out={tmp_path / 'first'}")
    assert 1 < count_labels(tmp_path / "first") <= 5
    table = pd.read_csv(tmp_path / "first" / "table.csv")
    table = table.set_index(["mechanism", "calibration", "epsilon"])
    shown = re.findall(r"^\| `(noisy_s?gd)` \| (tight|paper) \| (.*) \|$", README, re.MULTILINE)
    assert len(shown) == 5
    for mechanism, calibration, rest in shown:
        epsilon, accounted, risk, per_record, accuracy = rest.split(" | ")
        row = table.loc[(mechanism, calibration, float(epsilon))]
        names = ("median", "q05", "q95")
        told = [float(one) for one in re.findall(r"[\d.]+\d", risk)]
        assert told == pytest.approx([row[f"excess_risk_{name}"] for name in names], rel=0.01)
        told = [float(one) for one in (accounted, per_record, accuracy)]
        names = ("epsilon_accounted", "excess_risk_per_record_median", "test_metric")
        assert told == pytest.approx([row[name] for name in names], rel=0.01)
