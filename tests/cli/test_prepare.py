"""``dperm prepare``: private bounds and words end to end, what it refuses, and what travels on."""

from __future__ import annotations

import json
import random
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

from dperm_cli import cli
from dperm_cli.datasets.shared.table_schema import read_schema_file
from dperm_cli.privacy import secure_noise
from dperm_cli.runner.models import model_card, model_file

SCHEMA = """
target: {column: cost, kind: number, bounds: private, transform: log}
columns:
  age: {kind: number, bounds: private}
  change: {kind: number, bounds: private, missing: drop}
  ward: {kind: category, values: private, other: own}
  name: {kind: drop}
"""
N = 3000


def write_table(path, extra=()):
    rng = np.random.default_rng(0)
    lines = ["cost,age,change,ward,name"]
    for k in range(N):
        numbers = f"{rng.uniform(20, 900):.2f},{rng.integers(20, 90)},{rng.uniform(-3, 3):.3f}"
        lines.append(f"{numbers},{rng.choice(['north', 'south', 'west'])},p{k}")
    path.write_text("\n".join([*lines, *extra]) + "\n")


@pytest.fixture(autouse=True)
def same_random_words(monkeypatch):
    """The same noise every time: of fresh noise an empty bin passes with a chance of .01."""
    words = SimpleNamespace(urandom=random.Random(7).randbytes)
    monkeypatch.setattr(secure_noise, "os", words)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path / "t.csv", ["1e300,400,-9e9,ownword,x"])
    (tmp_path / "s.yaml").write_text(SCHEMA)
    return tmp_path


def prepare(*words):
    return cli.main(["prepare", "t.csv", "s.yaml", *words])


def test_bounds_and_words_are_found_and_a_release_follows(folder, capsys):
    cli.main(["budget", "create", "people", "epsilon=9", "delta=1e-5"])
    capsys.readouterr()
    words = ("epsilon=4", "delta=1e-6", "out=p.yaml", "budget=people", "format=json")
    assert prepare(*words) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["epsilon"], told["delta"], told["nothing found"]) == (4.0, 1e-6, "")
    found = yaml.safe_load((folder / "p.yaml").read_text())
    assert found["target"]["bounds"] == [16.0, 1024.0]
    assert found["columns"]["age"]["bounds"] == [0.0, 128.0]
    assert found["columns"]["change"] == {
        "kind": "number",
        "bounds": [-4.0, 4.0],
        "missing": "drop",
    }
    assert found["columns"]["ward"]["values"] == ["north", "south", "west"]
    assert "ownword" not in (folder / "p.yaml").read_text()
    assert found["prepared"]["columns"] == ["age", "change", "cost", "ward"]
    entries = [entry for entry in (folder / "budgets").iterdir() if entry.is_file()]
    assert any("preparation" in entry.read_text() for entry in entries)

    # with Gaussian noise: a pure release of epsilon 2 takes more of a budget with a delta
    words = ("epsilon=2", "out=made", "budget=people", "loss=squared", "diagnostics=false",
             "mechanism=sufficient_statistics", "mechanism.noise=gaussian")  # fmt: skip
    assert cli.main(["release", "t.csv", "p.yaml", *words]) == 0
    made = model_file.read(str(folder / "made/release/model.npz"))
    prepared = made.schema.table.prepared
    assert (prepared.epsilon, prepared.relation) == (4.0, "replace_one")
    card = model_card.write_card(made).decode()
    assert "of age, change, cost, ward by an earlier release of epsilon 4, delta 1e-06" in card
    page = (folder / "made/release/statement.html").read_text()
    assert "It is not in the epsilon of this page" in page


def test_a_schema_that_waits_for_a_preparation_is_refused_by_a_release(folder, capsys):
    assert cli.main(["release", "t.csv", "s.yaml", "epsilon=1"]) == 2
    assert "dperm prepare" in capsys.readouterr().err


def test_too_little_noise_budget_finds_nothing_and_says_so(folder, capsys):
    assert prepare("epsilon=0.01", "delta=1e-6", "out=p.yaml", "format=json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["nothing found"] == "age, change, cost, ward"
    schema = read_schema_file("SCHEMA", "p.yaml", folder / "p.yaml")
    assert dict(schema.columns)["age"].bounds == (-1.0, 1.0)
    assert schema.target.bounds == (1.0, 2.0)
    assert dict(schema.columns)["ward"].kind == "drop"


def test_of_a_person_only_the_first_records_count(folder):
    lines = ["cost,age,change,ward,name"] + ["100,30,1,north,p"] * 2000
    (folder / "t.csv").write_text("\n".join(lines) + "\n")
    told = SCHEMA.replace("  name: {kind: drop}\n", "unit: {column: name, at_most: 2}\n")
    (folder / "s.yaml").write_text(told)
    assert prepare("epsilon=4", "delta=1e-6", "out=p.yaml") == 0
    found = yaml.safe_load((folder / "p.yaml").read_text())
    assert found["columns"]["ward"] == {"kind": "drop"}
    assert found["columns"]["age"]["bounds"] == [-1.0, 1.0]


def test_common_words_that_are_names_of_coordinates_are_no_words(folder):
    """The schema that was paid for could not be read: two coordinates had one name."""
    text = (folder / "t.csv").read_text()
    for word, taken in zip(
        ("north", "south", "west"), ("other", "missing", "FILL_IN"), strict=True
    ):
        text = text.replace(f",{word},p1", f",{taken},p1")
    (folder / "t.csv").write_text(text)
    assert text.count(",missing,") > 300
    assert prepare("epsilon=4", "delta=1e-6", "out=p.yaml") == 0
    schema = read_schema_file("SCHEMA", "p.yaml", folder / "p.yaml")
    assert dict(schema.columns)["ward"].values == ("north", "south", "west")


def test_a_missing_cell_cannot_stand_for_a_word_that_is_still_private(folder, capsys):
    told = SCHEMA.replace("other: own", "missing: first")
    (folder / "s.yaml").write_text(told)
    assert prepare("epsilon=4", "delta=1e-6", "out=p.yaml") == 2
    assert "ward.missing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("epsilon=1", "delta=1e-6"), "out"),
        (("delta=1e-6", "out=p.yaml"), "epsilon"),
        (("epsilon=0", "delta=1e-6", "out=p.yaml"), "epsilon"),
        (("epsilon=1", "out=p.yaml"), "delta"),
        (("epsilon=1", "delta=1e-6", "out=t.csv"), "is there already"),
        (("epsilon=1", "delta=1e-6", "out=p.yaml", "relation=swap"), "relation"),
        (("epsilon=1", "delta=1e-6", "out=p.yaml", "budget=nobody"), "budget"),
        (("epsilon=1", "delta=1e-6", "out=p.yaml", "speed=2"), "speed"),
    ],
)
def test_bad_words_are_one_line_and_leave_nothing(folder, capsys, words, said):
    before = sorted(p.name for p in folder.iterdir())
    assert prepare(*words) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1
    assert sorted(p.name for p in folder.iterdir()) == before


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("bounds: private", "bounds: [1, 2]"), "nothing to prepare"),
        (("kind: drop", "kind: what"), "columns.name.kind"),
        (("target:", "aim:"), "aim"),
        (("columns:", "prepared: {epsilon: 1}\ncolumns:"), "prepared before"),
    ],
)
def test_bad_schemas(folder, capsys, change, said):
    told = SCHEMA.replace(*change).replace("values: private", "values: [a, b]")
    (folder / "s.yaml").write_text(told)
    assert prepare("epsilon=1", "delta=1e-6", "out=p.yaml") == 2
    assert said in capsys.readouterr().err


def test_a_budget_that_is_spent_draws_nothing(folder, capsys):
    cli.main(["budget", "create", "people", "epsilon=1", "delta=1e-5"])
    assert prepare("epsilon=2", "delta=1e-6", "out=p.yaml", "budget=people") != 0
    assert not (folder / "p.yaml").exists()
