"""YAML files of a user, keys of one thing, and settings in another program's spelling."""

from __future__ import annotations

import shutil

import pytest

from tests.doors._doors import (
    SMALL,
    dperm,
    legend_entries,
    public,
    refused,
    table,
)

BASE = ("dataset=diabetes", "loss=squared", "constraint.radius=1", "trials=2", "epsilon=3,30")
# a file of a user, and the words that mean the same on the command line
PARTIAL = {
    "mechanism": (
        "quick_gd",
        "name: noisy_gd\nsteps: 50\n",
        ("mechanism=noisy_gd", "mechanism.steps=50"),
    ),
    "constraint": ("small", "name: l2_ball\nradius: 0.5\n", ("constraint.radius=0.5",)),
    "dataset": ("half", "name: diabetes\ntest_fraction: 0.5\n", ("dataset.test_fraction=0.5",)),
    "privacy": (
        "joiners",
        "name: auto\nrelation: add_remove\npopulation: 354\n",
        ("privacy.relation=add_remove", "privacy.population=354"),
    ),
}
NUMBERS = ("cell", "excess_risk_median", "noise_scale", "optimum", "test_metric", "steps")


def write_yaml(folder, group, name, text):
    place = folder / "conf" / group
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{name}.yaml").write_text(text)


@pytest.mark.parametrize(
    "group",
    [
        "mechanism",
        pytest.param("dataset", marks=pytest.mark.slow),
        pytest.param("constraint", marks=pytest.mark.slow),  # these two have each key in the file
        pytest.param("privacy", marks=pytest.mark.slow),
    ],
)
def test_a_setting_in_a_file_is_the_same_cell_as_on_the_command_line(group, tmp_path):
    name, text, words = PARTIAL[group]
    write_yaml(tmp_path, group, name, text)
    base = [
        word
        for word in BASE
        if not (group == "dataset" and word == "dataset=diabetes")
        and not (group == "constraint" and word.startswith("constraint"))
    ]
    files = ("--config-dir", "conf")
    dperm("run", "-m", *files, f"{group}={name}", *base, "out=file", cwd=tmp_path, code=0)
    extra = ("dataset=diabetes",) if group == "dataset" else ()
    dperm("run", "-m", *base, *extra, *words, "out=words", cwd=tmp_path, code=0)
    one, two = table(tmp_path / "file"), table(tmp_path / "words")
    assert len(one) == len(two) == 2
    for key in NUMBERS:
        assert [row[key] for row in one] == [row[key] for row in two], key


@pytest.mark.slow
def test_the_order_of_file_and_words_does_not_count(tmp_path):
    """A word on the command line wins over the file, whichever key the file leaves out."""
    write_yaml(tmp_path, "mechanism", "quick_gd", "name: noisy_gd\nsteps: 50\n")
    files = ("--config-dir", "conf", "mechanism=quick_gd", "mechanism.steps=70")
    dperm("run", *files, *SMALL, "out=file", cwd=tmp_path, code=0)
    words = ("mechanism=noisy_gd", "mechanism.steps=70")
    done = dperm("run", *words, *SMALL, "out=file", cwd=tmp_path, code=0)
    assert "1 looked up" in done.stderr


@pytest.mark.slow
def test_the_users_names_stay_in_table_and_figure(tmp_path):
    load = public("load")
    write_yaml(tmp_path, "mechanism", "quick_gd", "name: noisy_gd\nsteps: 50\n")
    write_yaml(tmp_path, "mechanism", "slow_gd", "name: noisy_gd\nsteps: 300\n")
    write_yaml(tmp_path, "dataset", "hosp", "name: diabetes\n")
    files = ("--config-dir", "conf", "dataset=hosp", "mechanism=quick_gd,slow_gd")
    rest = ("loss=squared", "constraint.radius=1", "trials=2", "epsilon=3,30", "out=study")
    done = dperm("run", "-m", *files, *rest, cwd=tmp_path, code=0)
    rows = table(tmp_path / "study")
    assert {row["dataset"] for row in rows} == {"hosp"}
    assert [row["mechanism"] for row in rows] == ["quick_gd"] * 2 + ["slow_gd"] * 2
    for text in (done.stdout, (tmp_path / "study/table.md").read_text()):
        assert "hosp" in text
        assert "quick_gd" in text.replace("\\_", "_")  # Markdown has a backslash there
    figure = load(tmp_path / "study").plot()
    assert {"quick_gd", "slow_gd"} <= set(legend_entries(figure))
    looks = legend_entries(figure)
    assert looks["quick_gd"] != looks["slow_gd"]


def test_list_shows_the_keys_of_one_thing(tmp_path):
    shown = dperm("list", "dataset", "csv", cwd=tmp_path, code=0).stdout
    for key in ("dataset.path", "dataset.target", "dataset.labels", "dataset.target_bounds"):
        assert key in shown, key
    assert "breast_cancer" not in shown
    steps = dperm("list", "mechanism", "noisy_gd", cwd=tmp_path, code=0).stdout
    assert "mechanism.steps" in steps
    assert "integer >= 1" in steps


def test_list_of_an_unknown_thing_names_the_nearest(tmp_path):
    refused(dperm("list", "dataset", "csb", cwd=tmp_path), "csb", "csv")


def test_help_shows_the_keys_of_what_was_chosen(tmp_path):
    words = ("dataset=csv", "mechanism=newton", "--help")
    page = dperm("run", *words, cwd=tmp_path, code=0).stdout
    assert "with dataset=csv" in page
    assert "dataset.path" in page.split("with dataset=csv", 1)[1].split("with ", 1)[0]
    assert "with mechanism=newton" in page
    assert "with dataset=breast_cancer" not in page


@pytest.mark.parametrize(
    ("words", "typed"),
    [
        (("hydra.sweep.dir=here",), "out=here"),
        (("hydra.run.dir=here",), "out=here"),
        (("hydra/launcher=joblib",), "workers="),
        (("hydra/launcher=submitit_slurm",), "backend=submitit"),
    ],
)
def test_a_word_of_hydra_says_what_to_type_instead(words, typed, tmp_path):
    refused(dperm("run", *SMALL, *words, cwd=tmp_path), typed)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [("--epsilon", "1"), ("--epsilon=1",)])
def test_an_option_says_what_to_type_instead(words, tmp_path):
    refused(dperm("run", *SMALL, *words, cwd=tmp_path), "epsilon=1")


def test_an_option_with_a_dash_inside_says_the_key(tmp_path):
    """No more is guessed than the key that is nearest."""
    refused(dperm("run", "--constraint-radius", "2", cwd=tmp_path), r"constraint\.radius=2")


def test_a_file_with_an_unknown_key_is_refused(tmp_path):
    write_yaml(tmp_path, "mechanism", "quick_gd", "name: noisy_gd\nstep: 50\n")
    done = dperm("run", "--config-dir", "conf", "mechanism=quick_gd", *SMALL, cwd=tmp_path)
    refused(done, "step", "steps")


def test_a_file_without_a_name_is_refused_in_one_line(tmp_path):
    """A partial file is completed by the defaults of its name: without one there are none."""
    write_yaml(tmp_path, "mechanism", "quick_gd", "steps: 50\n")
    done = dperm("run", "--config-dir", "conf", "mechanism=quick_gd", *SMALL, cwd=tmp_path)
    refused(done, "quick_gd", "name")


@pytest.mark.slow
def test_a_file_may_set_the_keys_of_a_plugin(own, tmp_path):
    """The YAML has data for it; the code still comes from the command line alone."""
    write_yaml(tmp_path, "mechanism", "long_step", "name: one_step\nstep_size: 0.5\n")
    files = ("--config-dir", "conf", "mechanism=long_step")
    dperm("run", "--plugin", own, *files, *SMALL, "out=file", cwd=tmp_path, code=0)
    words = ("mechanism=one_step", "mechanism.step_size=0.5")
    dperm("run", "--plugin", own, *words, *SMALL, "out=words", cwd=tmp_path, code=0)
    assert table(tmp_path / "file")[0]["cell"] == table(tmp_path / "words")[0]["cell"]
    shutil.rmtree(tmp_path / "file")
    refused(dperm("run", *files, *SMALL, "out=file", cwd=tmp_path), "one_step", "--plugin")
