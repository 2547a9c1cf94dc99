"""Runs on files: what is released follows the values in them, and what is said from no record."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from dperm_cli.runner.cells import prepared_cell
from dperm_cli.runner.compose import study_plan
from dperm_cli.runner.compose.command_line import parse

RULE = "a record with a missing, non-finite or unreadable cell is the zero record"
CONFIGURATION = ("cell", "overrides", "dataset")
SHORT = ("trials=2", "mechanism=noisy_gd", "epsilon=2")


def table(rows):
    return "".join(f"{line}\n" for line in ["a,b,y", *rows])


def records(n):
    x = np.random.default_rng(0).standard_normal((n, 2)).round(3)
    return [f"{a},{b},{1 if a > b else -1}" for a, b in x]


def run(dperm, path, *words):
    kind = "npz" if str(path).endswith("npz") else "csv"
    found = dperm("run", f"dataset={kind}", f"dataset.path={path}", *SHORT, *words)
    assert found.code == 0, found.err
    return found


def results(tmp_path, name):
    """The rows of table.csv, less what repeats the configuration as it was typed."""
    (found,) = (tmp_path / f"{name}.out").rglob("table.csv")
    rows = list(csv.DictReader(io.StringIO(found.read_text())))
    return [{k: v for k, v in row.items() if k not in CONFIGURATION} for row in rows]


def test_another_path_draws_the_same_noise(dperm, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    for name in ("a.csv", "elsewhere/b.txt"):
        (tmp_path / name).write_text(table(records(60)))
        run(dperm, name, f"out={name}.out")
    assert results(tmp_path, "a.csv") == results(tmp_path, "elsewhere/b.txt")


def test_another_format_and_type_draw_the_same_noise(dperm, tmp_path):
    rows = np.array([[float(cell) for cell in line.split(",")] for line in records(60)])
    (tmp_path / "a.csv").write_text(table(records(60)))
    negative = np.where(rows[:, :2] == 0, -0.0, rows[:, :2])
    np.savez(tmp_path / "a.npz", x=np.asfortranarray(negative), y=rows[:, 2].astype("int8"))
    for name in ("a.csv", "a.npz"):
        run(dperm, name, f"out={name}.out")
    assert results(tmp_path, "a.csv") == results(tmp_path, "a.npz")


def test_another_row_rule_draws_other_noise(tmp_path):
    """The values may be equal, and two runs that are planned apart must not share their noise."""
    (tmp_path / "a.csv").write_text(table(["0.5,0.0,1", "0.25,0,-1"] * 30))
    words = ["dataset=csv", f"dataset.path={tmp_path / 'a.csv'}", "dataset.rows=clip",
             "dataset.intercept=false"]  # fmt: skip
    cells = study_plan.plan_study(parse([*words, "dataset.norm=[1,2]"])).cells
    one, other = (prepared_cell.prepare(cell, cell.dataset.load()) for cell in cells)
    assert one.data.fingerprint == other.data.fingerprint
    assert one.noise_name != other.noise_name


def test_a_set_from_a_file_of_another_name_is_the_same_set(tmp_path):
    (tmp_path / "a.csv").write_text(table(records(20)))
    found = []
    for name in ("one.csv", "other.csv"):
        (tmp_path / name).write_text("1,0\n0,1\n-1,0\n0,-1\n")
        words = ["dataset=csv", f"dataset.path={tmp_path / 'a.csv'}", "constraint=polytope",
                 "dataset.intercept=false"]  # fmt: skip
        words.append(f"constraint.path={tmp_path / name}")
        (cell,) = study_plan.plan_study(parse(words)).cells
        found.append(prepared_cell.prepare(cell, cell.dataset.load()))
    assert found[0].noise_name == found[1].noise_name


@pytest.mark.parametrize("bad", ["", "nan", "inf", "word"])
def test_no_record_decides_what_is_said(bad, dperm, tmp_path):
    rows = records(60)
    found = []
    for count in (0, 1, 3):
        for line in range(count):
            rows[7 * line] = f"{bad},0.5,1"
        (tmp_path / "a.csv").write_text(table(rows))
        folder = f"{count}.out"
        refused = dperm("run", "dataset=csv", "dataset.path=a.csv", *SHORT, f"out=refuse{count}")
        assert refused.code == (2 if count else 0)
        one = run(dperm, "a.csv", "dataset.invalid=zero", f"out={folder}", "format=json")
        (ledger,) = (tmp_path / folder).rglob("ledger.json")
        words = one.err.replace(folder, "out")
        public = [{k: row[k] for k in ("status", "n", "p", "preprocessing")} for row in one.rows]
        assert all(row["preprocessing"].startswith(RULE) for row in public)
        assert RULE in ledger.read_text()
        found.append((words, public))
    assert found[0] == found[1] == found[2]
