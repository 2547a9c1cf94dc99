"""Names that the user gave stay in what is shown, and are no part of what a cell is."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest

from dperm_cli.results.records import given_names
from dperm_cli.results.records.store import Store

TINY = ("trials=2", "constraint.radius=1")
OWN = ("--config-dir", "mine")


@pytest.fixture
def mine(tmp_path):
    """A folder with a data set ``hosp`` and two mechanisms that are both ``noisy_gd``."""
    files = {
        "dataset/hosp": "name: synthetic_logistic\nn: 60\np: 3\n",
        "mechanism/quick_gd": "name: noisy_gd\nsteps: 5\n",
        "mechanism/slow_gd": "name: noisy_gd\nsteps: 50\n",
        "mechanism/plain": "name: noisy_gd\n",
        "constraint/small": "name: l2_ball\nradius: 0.5\n",
    }
    for place, text in files.items():
        path = tmp_path / "mine" / f"{place}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "mine"


def read_table(folder: str) -> list[dict[str, str]]:
    with (Path(folder) / "table.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def columns(folder: str, *names: str) -> list[tuple[str, ...]]:
    return [tuple(row[name] for name in names) for row in read_table(folder)]


def test_names_stay_in_tables_and_page(dperm, mine):
    words = ("dataset=hosp", "mechanism=[quick_gd,slow_gd]", "epsilon=[1,9]")
    done = dperm("run", *OWN, *words, *TINY, "out=a")
    assert done.code == 0, done.err
    expected = [("hosp", name) for name in ("quick_gd", "slow_gd") for _ in (1, 9)]
    assert columns("a", "dataset", "mechanism") == expected
    for text in (done.out, *(Path("a", f"table.{end}").read_text() for end in ("md", "tex"))):
        plain = text.replace("\\_", "_").replace("\\allowbreak ", "")
        assert all(name in plain for name in ("hosp", "quick_gd", "slow_gd")), text
        assert "noisy_gd" not in plain
        assert "steps=" not in plain, "names tell the two apart"
    assert '"quick_gd"' in Path("a/report.html").read_text()
    assert "noisy_gd" in Path("a/ledger.json").read_text(), "the statement says what it was"
    before = Path("a/table.csv").read_bytes()
    assert dperm("report", "a").code == 0
    assert Path("a/table.csv").read_bytes() == before
    done = dperm("verify", "a")
    assert (done.code, "is not the table" in done.err + done.out) == (0, False)


@pytest.mark.usefixtures("figures")
def test_names_stay_in_the_figure(dperm, mine):
    words = ("dataset=hosp", "mechanism=[quick_gd,slow_gd]", "epsilon=[1,9]")
    assert dperm("run", *OWN, *words, *TINY, "out=a").code == 0
    assert dperm("report", "a", "formats=svg").code == 0
    drawn = Path("a/figure.svg").read_text()
    assert "quick_gd" in drawn
    assert "hosp" in drawn


def test_names_are_no_part_of_the_record(dperm, mine):
    assert dperm("run", *OWN, "dataset=hosp", "mechanism=quick_gd", *TINY, "out=a").code == 0
    (cell,) = Store("a").cells()
    first = Store("a").path(cell).read_bytes()
    assert b"quick_gd" not in first
    assert b"hosp" not in first
    (mine / "mechanism" / "quick_gd.yaml").rename(mine / "mechanism" / "fast.yaml")
    shutil.move(mine, mine.with_name("other"))
    words = ("--config-dir", "other", "dataset=hosp", "mechanism=fast")
    done = dperm("run", *words, *TINY, "out=a")
    assert done.code == 0
    assert "1 cell: 0 done, 1 looked up" in done.err
    assert Store("a").path(cell).read_bytes() == first
    assert columns("a", "cell", "mechanism") == [(cell, "fast")], "the name of today is shown"
    words = (
        "dataset=synthetic_logistic",
        "dataset.n=60",
        "dataset.p=3",
        "mechanism=noisy_gd",
        "mechanism.steps=5",
    )
    assert dperm("run", *words, *TINY, "out=a").code == 0
    assert columns("a", "cell", "dataset", "mechanism") == [
        (cell, "synthetic_logistic", "noisy_gd")
    ]
    assert given_names.KEY not in json.loads(Path("a/manifest.json").read_text())


def test_one_cell_of_several_names_has_all_of_them(dperm, mine):
    names = "mechanism=[quick_gd,plain,noisy_gd]"
    assert dperm("run", *OWN, "dataset=hosp", names, *TINY, "out=a").code == 0
    assert columns("a", "mechanism") == [("quick_gd",), ("plain = noisy_gd",)]
    assert len(Store("a").cells()) == 2
    words = ("mechanism=[noisy_gd,quick_gd]", "mechanism.steps=5", *TINY, "out=b")
    assert dperm("run", *OWN, "dataset=hosp", *words).code == 0
    assert columns("b", "mechanism") == [("noisy_gd = quick_gd",)]


def test_merged_studies_keep_their_names(dperm, mine):
    for name, out in (("quick_gd", "a"), ("slow_gd", "b"), ("noisy_gd", "c")):
        words = ("dataset=hosp", f"mechanism={name}", "constraint=small", "trials=2")
        assert dperm("run", *OWN, *words, f"out={out}").code == 0
    assert dperm("merge", "a", "b", "c", "out=all").code == 0
    assert columns("all", "mechanism", "constraint", "dataset") == [
        (name, "small", "hosp") for name in ("quick_gd", "slow_gd", "noisy_gd")
    ]


def test_describe_and_progress_have_the_names(dperm, mine):
    words = ("dataset=hosp", "mechanism=[quick_gd,slow_gd]", "constraint=small", "out=d")
    (facts,) = dperm("describe", *OWN, *words, "format=json").rows
    assert list(facts["mechanisms"]) == ["quick_gd", "slow_gd"]
    assert (facts["dataset"], facts["constraint"]) == ("hosp", "small")
    assert "hosp" in dperm("run", *OWN, *words, "--cfg", "preflight").out


def test_account_takes_a_users_own_mechanism(dperm, mine):
    words = ("account", *OWN, "mechanism=quick_gd,noisy_gd", "format=json", "figure=false")
    quick, shipped = dperm(*words).rows
    assert (quick["mechanism"], quick["steps"]) == ("quick_gd", 5)
    assert shipped["mechanism"] == "noisy_gd"
    typed = ("account", "mechanism=noisy_gd", "mechanism.steps=5", "format=json", "figure=false")
    (same,) = dperm(*typed).rows
    assert same["noise_scale"] == quick["noise_scale"]


@pytest.mark.parametrize(
    "told",
    [None, [], "x", {"a1": None}, {"a1": {"mechanism": 3}}, {"a1": {"mechanism": "<b>"}},
     {"a1": {"mechanism": "a" * 2000}}, {"a1": {"epsilon": "7"}}, {"b2": {"dataset": "a"}}],
)  # fmt: skip
def test_what_is_no_name_is_passed_over(told):
    """A manifest may come from a stranger: only plain words take the place of a name."""
    rows = [{"cell": "a1", "mechanism": "noisy_gd", "dataset": "digits", "epsilon": 1.0}]
    assert given_names.name_rows(rows, {given_names.KEY: told}) == rows
    named = {given_names.KEY: {"a1": {"mechanism": "own = other", "dataset": 5}}}
    assert given_names.name_rows(rows, named) == [{**rows[0], "mechanism": "own = other"}]


def test_the_example():
    import doctest

    assert doctest.testmod(given_names) == (0, 1)
