"""A user's own YAML files: completed by the defaults, and the same cell as on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from dperm_cli.core import catalogue
from dperm_cli.core.errors import UnknownKey
from dperm_cli.runner.compose import user_yaml
from dperm_cli.runner.compose.command_line import parse
from dperm_cli.runner.compose.composer import Composer
from dperm_cli.runner.compose.study_plan import plan_study

TINY = ("dataset=synthetic_logistic", "dataset.n=60", "dataset.p=3")


@pytest.fixture
def write(tmp_path):
    """Write a file of the folder ``mine``."""

    def to(place: str, text: str) -> None:
        path = tmp_path / "mine" / f"{place}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return to


@pytest.fixture
def plan(tmp_path):
    """The cells of a command line that may name files of the folder ``mine``."""

    def cells(*words: str):
        folder = ["--config-dir", str(tmp_path / "mine")] if (tmp_path / "mine").is_dir() else []
        return plan_study(parse([*folder, *words])).cells

    return cells


@pytest.mark.parametrize(
    ("place", "text", "words"),
    [
        ("mechanism/own", "name: noisy_gd\nsteps: 50\n", ["mechanism.steps=50"]),
        ("mechanism/own", "name: noisy_gd\nsteps: 5e1\nmomentum: .5\n",
         ["mechanism.steps=50", "mechanism.momentum=0.5"]),
        ("mechanism/own", "name: noisy_gd\n", []),
        ("mechanism/own", "name: huberized\ninner: {name: noisy_gd, steps: 3}\n",
         ["mechanism.inner=noisy_gd", "mechanism.inner.steps=3"]),
        ("dataset/own", "name: median_cloud\nn: 70\n", ["dataset.n=70"]),
        ("constraint/own", "name: lp_ball\npower: 1.5\n", ["constraint.power=1.5"]),
        ("privacy/own", "name: pure\n", []),
        ("privacy/own", "name: approx\nrelation: add_remove\n", ["privacy.relation=add_remove"]),
        ("kernel/own", "name: rbf\n", []),
        ("loss/own", "name: auto\n", []),
    ],
)  # fmt: skip
def test_a_file_and_the_command_line_are_one_cell(write, plan, place, text, words):
    write(place, text)
    group = place.partition("/")[0]
    plugin = yaml.safe_load(text)["name"]
    beside = () if group == "dataset" else TINY
    (own,) = plan(*beside, f"{group}=own")
    (typed,) = plan(*beside, f"{group}={plugin}", *words)
    assert own.config == typed.config
    assert own.identity() == typed.identity()


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("{yes: 1, no: -1}", "{yes: 1, no: -1}"),
        ("{1: 1, 2: -1}", "{1: 1, 2: -1}"),
        ('{"1": 1, "2": -1}', '{"1": 1, "2": -1}'),
        ("{1.0: 1, off: -1}", "{1.0: 1, off: -1}"),
        ("{true: 1, FALSE: -1}", "{true: 1, FALSE: -1}"),
        ("[yes, no, 010, 2001-01-01, 1e3, null]", "[yes,no,010,2001-01-01,1e3,null]"),
        ("[1_000, -0.5, +3, .25, 2., inf, True]", "[1_000,-0.5,+3,.25,2.,inf,True]"),
    ],
)
def test_a_word_means_the_same_in_a_file_and_on_the_command_line(write, tmp_path, text, word):
    write("dataset/own", f"name: csv\nlabels: {text}\n")
    folder = user_yaml.UserFolder.from_path(str(tmp_path / "mine"))
    (setting,) = parse([f"dataset.labels={word}"]).settings
    assert folder.load("dataset", "own")["labels"] == setting.values[0]


def test_every_choice_without_keys_is_the_shipped_one(write, tmp_path):
    composer = Composer()
    for group in catalogue.GROUPS:
        for choice in catalogue.choices(group).values():
            write(f"{group}/own_{choice.name}", f"name: {choice.plugin}\n")
    own = Composer(str(tmp_path / "mine"))
    for group in catalogue.GROUPS:
        for name in catalogue.choices(group):
            assert own.compose({group: f"own_{name}"}) == composer.compose({group: name})


def test_a_key_that_a_file_leaves_out_can_be_set(write, plan):
    write("mechanism/own", "name: noisy_gd\nsteps: 50\n")
    (cell,) = plan(*TINY, "mechanism=own", "mechanism.momentum=0.25")
    assert (cell.mechanism.steps, cell.mechanism.momentum) == (50, 0.25)


def test_a_misspelt_key_of_a_file_is_refused(write, plan):
    write("mechanism/own", "name: noisy_gd\nstepz: 50\n")
    with pytest.raises(UnknownKey, match=r"mechanism\.stepz: unknown key \(did you mean 'steps'"):
        plan(*TINY, "mechanism=own")


def test_the_shipped_files_need_no_other_reading():
    """Nothing in conf/ is read otherwise by YAML's own rules, so that editors are right."""
    root = Path(__file__).parents[2] / "conf"
    for path in root.glob("*/*.yaml"):
        if path.parent.name in catalogue.GROUPS:
            own = user_yaml.read(path.parent.name, path.stem, path, root)
            assert own == yaml.safe_load(path.read_text())
