"""Any text of a header names the target: on the command line, in YAML and in Python."""

from __future__ import annotations

import csv
import json

import numpy as np
import pandas as pd
import pytest

import dperm_cli
from dperm_cli.runner.compose import plugin_objects

# as they are typed, without quotes of YAML or of Hydra's grammar
PLAIN = [
    "price (EUR)", "price [EUR]", "a=b", "=", "a, b", "a,b", "it's", 'the "big" one', "50%",
    "#id", "größe", "目标", "1st", "true", "yes", "No", "nan", "1e3", "1.5", "2020", "~", "*",
    "&a", "!tag", "a: b", "{a: 1}", "choice(a)", "range(1,3)", "glob(*)", "a|b", "-", "--m", "+x",
    "?", "a\\b", "", "dataset", "epsilon=1", "null value", "_target_", "@package", "hydra", "a/b",
    "'", "x]", "[x", "None", "tag(a)", "sort(b,a)", "interval(0,1)", ">", "%d", "`", "$x", "a;b",
    "a.b", "${x}", "${oc.env:HOME}",
]  # fmt: skip
# These mean something else where they stand without quotes.
QUOTED = ["null", "0", "[x]", "-1", "['x']"]
RNG = np.random.default_rng(0)


def make_frame(name):
    x = RNG.normal(size=(40, 2))
    # the target is the first column: "the last one" would be another
    return pd.DataFrame({name: np.where(x[:, 0] > 0, 1, -1), "u": x[:, 0], "v": x[:, 1]})


def write_csv(folder, name):
    path = folder / "named.csv"
    make_frame(name).to_csv(path, index=False, quoting=csv.QUOTE_ALL)
    return path


def shown_target(found):
    assert found.code == 0, found.err
    return json.loads(found.out)["dataset"]["target"]


@pytest.fixture
def loads(dperm, tmp_path):
    """Whether a configuration's first column is taken for the target, by ``dperm data verify``."""

    def load(*words):
        found = dperm("data", "verify", "csv", f"path={tmp_path / 'named.csv'}", *words)
        assert found.code == 0, found.out + found.err
        assert "2 columns" in found.out
        assert "labels" in found.out

    return load


@pytest.mark.parametrize("name", PLAIN)
def test_on_the_command_line_as_it_is(dperm, loads, tmp_path, name):
    path = write_csv(tmp_path, name)
    loads(f"target={name}")
    words = ("dataset=csv", f"dataset.path={path}", f"dataset.target={name}", "--cfg", "job")
    assert str(shown_target(dperm("run", *words))) in (name, name.strip())


@pytest.mark.parametrize("name", QUOTED)
def test_in_quotes_where_it_means_something_else(loads, tmp_path, name):
    write_csv(tmp_path, name)
    loads("target=" + json.dumps(name))


@pytest.mark.parametrize("name", [*PLAIN, *QUOTED])
def test_in_python(tmp_path, name):
    by_file = dperm_cli.load_data("csv", path=write_csv(tmp_path, name), target=name)
    by_frame = dperm_cli.load_data(X=make_frame(name), target=name)
    assert by_file.p == by_frame.p == 3


@pytest.fixture
def load_yaml(dperm, tmp_path):
    """The data set of a YAML file with this text behind ``target:``."""

    def load(name, text):
        folder = tmp_path / "conf" / "dataset"
        folder.mkdir(parents=True)
        path = write_csv(tmp_path, name)
        (folder / "own.yaml").write_text(f"name: csv\npath: {path}\ntarget: {text}\n")
        found = dperm("run", "--config-dir", str(tmp_path / "conf"), "dataset=own", "--cfg", "job")
        assert found.code == 0, found.err
        return plugin_objects.build("dataset", found.rows[0]["dataset"]).load()

    return load


@pytest.mark.parametrize("name", [*PLAIN, *QUOTED])
def test_in_quotes_in_yaml(load_yaml, name):
    assert load_yaml(name, json.dumps(name)).p == 3


@pytest.mark.parametrize("name", ["true", "1.5", "2020", "nan", "1e3", "yes", "a b", "x (y)", "-7"])
def test_without_quotes_in_yaml(load_yaml, name):
    assert load_yaml(name, name).p == 3


def test_a_whole_number_is_a_position_first(dperm, tmp_path):
    frame = make_frame("2")
    frame.to_csv(tmp_path / "named.csv", index=False)
    found = dperm("data", "verify", "csv", f"path={tmp_path / 'named.csv'}", "target=2",
                  "header=true")  # fmt: skip
    assert found.code != 0  # column v holds no labels
    assert dperm("data", "verify", "csv", f"path={tmp_path / 'named.csv'}", 'target="2"').code == 0


def test_a_list_is_still_an_axis(dperm, tmp_path):
    path = write_csv(tmp_path, "w")
    words = ("dataset=csv", f"dataset.path={path}", "--cfg", "job")
    for more in (["dataset.target=[u,v]"], ["-m", "dataset.target=u,v"]):
        found = dperm("run", *words, *more)
        assert [row["dataset"]["target"] for row in found.rows] == ["u", "v"]


def test_a_name_that_is_not_there_is_refused_in_a_line(dperm, tmp_path):
    path = write_csv(tmp_path, "price (EUR)")
    found = dperm("run", "dataset=csv", f"dataset.path={path}", "dataset.target=price (USD)")
    assert found.code == 2
    assert len(found.err.splitlines()) == 1
    assert "did you mean 'price (EUR)'?" in found.err
