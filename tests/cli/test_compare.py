"""``dperm compare``: two studies side by side."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from dperm_cli import load
from dperm_cli.cli import main
from dperm_cli.core import completion
from dperm_cli.core.package_paths import find_shipped
from dperm_cli.results.leaderboard import reference
from dperm_cli.results.records.store import Store

BASE = ("dataset=synthetic_logistic", "dataset.n=30", "dataset.p=2", "trials=10",
        "mechanism=noisy_gd", "mechanism.steps=2")  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("made")
    assert main(["run", *BASE, "epsilon=[1,2]", f"out={out / 'a'}"]) == 0
    assert main(["run", *BASE, "epsilon=[2,3]", "seed=1", f"out={out / 'b'}"]) == 0
    return out


@pytest.fixture
def studies(made, dperm, tmp_path):
    for name in "ab":
        shutil.copytree(made / name, tmp_path / name)
    return dperm


def files(folder: str) -> dict[str, bytes]:
    found = {}
    for root, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(root, name)
            with open(path, "rb") as file:
                found[path] = file.read()
    return found


def test_other_seeds_change_nothing_and_cells_of_one_are_listed(studies):
    before = files(".")
    done = studies("compare", "a", "b")
    assert done.code == 0
    assert "1 cells in both: risk 1 without a change" in done.out
    assert "only in a:\n  synthetic_logistic logistic, noisy_gd tight epsilon 1" in done.out
    assert "only in b:\n  synthetic_logistic logistic, noisy_gd tight epsilon 3" in done.out
    assert files(".") == before


def test_a_study_and_itself(studies):
    done = studies("compare", "a", "a")
    assert done.code == 0
    assert "2 cells in both: risk 2 identical" in done.out


def test_a_weaker_guarantee_comes_first_with_code_1(studies):
    store = Store("b")
    for name in store.cells():
        rows = [{**row, "epsilon_accounted": row["epsilon"] * 2} for row in store.read(name)]
        store.write(name, rows)
    done = studies("compare", "a", "b")
    assert done.code == 1
    assert done.out.startswith("WEAKER GUARANTEE:\n")
    assert "epsilon_accounted 2 -> 4" in done.out
    assert done.err == "dperm: 1 cells have a weaker guarantee in b\n"
    rows = studies("compare", "a", "b", "format=json").rows
    assert rows[0]["weaker"] is True
    assert rows[0]["privacy"][0]["name"] == "epsilon_accounted"
    # the other way round nothing is lost
    assert studies("compare", "b", "a").code == 0


def test_json_has_a_line_for_every_cell(studies):
    rows = studies("compare", "a", "b", "format=json").rows
    assert [row["in"] for row in rows] == ["both", "a", "b"]
    assert rows[0]["risk"] == "same"
    assert rows[0]["a"]["trials"] == rows[0]["b"]["trials"] == 10


def test_a_damaged_record_is_left_out_and_named(studies):
    path = Store("b").path(Store("b").cells()[0])
    data = bytearray(path.read_bytes())
    data[200] ^= 1
    path.write_bytes(bytes(data))
    done = studies("compare", "a", "b")
    assert done.code == 3
    assert done.err == f"left out, damaged: {path}\n"


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (("a",), "STUDY=a: must be two folders"),
        (("a", "b", "a"), "must be two folders"),
        (("a", "nowhere"), "STUDY=nowhere"),
        (("a", "b", "format=xml"), "format=xml"),
        (("a", "b", "out=c"), "out"),
    ],
)
def test_bad_words(studies, words, key):
    done = studies("compare", *words)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert key in done.err


def test_help_and_completion(studies):
    done = studies("compare", "--help")
    assert done.code == 0
    assert done.out.startswith("usage: dperm compare")
    assert "\n  compare " in studies("--help").out
    shutil.copytree("a", "outputs/mine")
    assert os.path.join("outputs", "mine") in completion.complete_words(["compare", "--", ""], [])
    assert "format=" in completion.complete_words(["compare", "--", ""], [])


@pytest.fixture(scope="module")
def placed(tmp_path_factory):
    out = tmp_path_factory.mktemp("placed") / "mine"
    words = ["dataset=breast_cancer", "constraint.radius=10", "mechanism=noisy_gd", "trials=2"]
    assert main(["run", *words, "epsilon=[1,2]", f"out={out}"]) == 0
    return str(out)


def test_a_study_is_placed_on_the_leaderboard(dperm, placed):
    (found,) = dperm("compare", placed, "leaderboard", "format=json").rows
    kept = [
        one for one in reference.read_reference()
        if one["problem"] == found["problem"] and one["status"] == "ok"
    ]  # fmt: skip
    assert found["methods"] == 1 + len(kept) > 5
    assert found["place"] == 1 + sum(one["excess_risk"] < found["excess_risk"] for one in kept)
    least = min(one["excess_risk"] for one in kept)
    assert found["ratio"] == pytest.approx(found["excess_risk"] / least)
    said = dperm("compare", placed, "leaderboard").out
    assert f"best is {found['best']}" in said
    assert f"place {found['place']} of {found['methods']}" in said
    frame = load(placed).place()
    assert list(frame["place"]) == [found["place"]]


def test_a_study_is_placed_in_a_table_that_was_downloaded(dperm, placed, tmp_path):
    kept = Path(find_shipped("experiments"), "leaderboard", reference.FILE).read_text()
    lines = kept.splitlines(keepends=True)
    table = tmp_path / "table.csv"
    table.write_text("".join([lines[0], *(one for one in lines[1:] if one.startswith("auto,"))]))
    (found,) = dperm("compare", placed, str(table), "format=json").rows
    assert (found["methods"], found["best"]) == (2, "auto")
    lost = dperm("compare", placed, str(tmp_path / "none.csv"))
    assert lost.code == 2
    assert "is not there" in lost.err


def test_a_study_of_other_problems_is_told_which_there_are(dperm, studies):
    found = dperm("compare", "a", "leaderboard")
    assert (found.code, found.out) == (2, "")
    assert "its data sets are breast_cancer, diabetes, digits" in found.err
    assert found.err.count("\n") == 1


def test_a_study_on_other_sets_is_told_which_its_data_are_on(dperm):
    words = ["dataset=diabetes", "constraint.radius=2", "mechanism=noisy_gd", "trials=1"]
    assert dperm("run", *words, "out=b").code == 0
    found = dperm("compare", "b", "leaderboard")
    assert (found.code, found.out) == (2, "")
    named = "diabetes squared l2_ball 1 replace_one approx at epsilon 0.1, 0.3, 1, 3, 10"
    assert named in found.err
    assert "breast_cancer" not in found.err
    assert found.err.count("\n") == 1


def test_other_records_of_the_same_problem_are_not_placed():
    (row, *_) = reference.read_reference()
    facts = {"problem": row["problem"], "n": row["n"], "data_fingerprint": "another"}
    assert not reference._is_same_problem(row, {**row, **facts})
    assert reference._is_same_problem(row, row)
