"""``dataset.invalid=zero``: a record that cannot be used is the zero record: it decides nothing."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.breaks._files import assert_refused, make_rows

WORDS = ["mechanism=noisy_gd", "mechanism.steps=3", "trials=2", "dataset.test_fraction=0"]
BAD = 11  # the record with the cell
CELLS = {"missing": "", "nan": "nan", "infinite": "inf", "minus infinite": "-inf", "a word": "word",
         "too large": "1e999", "a space": " "}  # fmt: skip


def write_csv(path: Path, rows, cell=None, column=1) -> Path:
    """Records as text; ``cell`` stands in the bad record."""
    lines = [[f"{value:.17g}" for value in row] for row in rows]
    if cell is not None:
        lines[BAD][column] = cell
    path.write_text("\n".join(["a,b,c,label", *map(",".join, lines)]) + "\n")
    return path


def csv_words(path: Path) -> list[str]:
    return ["dataset=csv", f"dataset.path={path}"]


def table_of(out: Path) -> list[dict]:
    with open(out / "table.csv", newline="") as file:
        return list(csv.DictReader(file))


def numbers(rows) -> list[dict]:
    """A table without what says which words were typed."""
    return [{key: row[key] for key in row if key not in ("cell", "overrides")} for row in rows]


@pytest.mark.parametrize("cell", CELLS)
def test_a_run_goes_on_and_says_so_in_every_row(cell, dperm, tmp_path):
    path = write_csv(tmp_path / "a.csv", make_rows(60), CELLS[cell])
    done = dperm("run", "-m", *csv_words(path), *WORDS, "epsilon=1,2", "dataset.invalid=zero",
                 f"out={tmp_path}/study")  # fmt: skip
    assert done.code == 0, done.err
    rows = table_of(tmp_path / "study")
    assert len(rows) == 2
    assert all(row["n"] == "60" for row in rows)
    assert all("zero" in row["preprocessing"] for row in rows)
    assert "1e999" not in done.err + done.out


@pytest.mark.parametrize("cell", CELLS)
def test_refuse_is_the_default_and_a_line(cell, dperm, tmp_path):
    path = write_csv(tmp_path / "a.csv", make_rows(60), CELLS[cell])
    default = dperm("run", *csv_words(path), *WORDS, f"out={tmp_path}/study")
    assert_refused(default)
    refused = dperm(
        "run", *csv_words(path), *WORDS, "dataset.invalid=refuse", f"out={tmp_path}/study"
    )
    assert_refused(refused)
    assert refused.err == default.err
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize("cell", CELLS)
def test_a_cell_refuses_the_run_by_default(cell, dperm, tmp_path):
    path = write_csv(tmp_path / "a.csv", make_rows(60), CELLS[cell])
    assert_refused(dperm("run", *csv_words(path), *WORDS, f"out={tmp_path}/study"))
    assert not (tmp_path / "study").exists()


def test_an_unknown_rule_is_refused_with_the_two_that_there_are(dperm, tmp_path):
    path = write_csv(tmp_path / "a.csv", make_rows(60))
    done = dperm("run", *csv_words(path), *WORDS, "dataset.invalid=zeros")
    assert_refused(done)
    assert "dataset.invalid=zeros" in done.err
    assert "refuse" in done.err


def test_all_bad_cells_make_the_same_record(dperm, tmp_path):
    """Which cell is bad, how, and what else the record holds does not matter: it is zero."""
    tables = {}
    for k, (cell, column) in enumerate([("", 1), ("nan", 0), ("inf", 2), ("word", 1)]):
        rows = make_rows(60)
        rows[BAD, :3] *= k + 1.0
        path = write_csv(tmp_path / f"{k}.csv", rows, cell, column)
        words = [*csv_words(path), *WORDS, "dataset.invalid=zero", f"out={tmp_path}/s{k}"]
        assert dperm("run", *words).code == 0
        (tables[k],) = numbers(table_of(tmp_path / f"s{k}"))
    assert len({row["data_fingerprint"] for row in tables.values()}) == 1
    assert all(row == tables[0] for row in tables.values())


def test_a_bad_record_is_a_record_of_zeros(dperm, tmp_path):
    """As if zeros and the label 1 had stood there; without scaling, which may move a zero."""
    rows = make_rows(60)
    bad = write_csv(tmp_path / "bad.csv", rows, "nan")
    rows[BAD] = [0.0, 0.0, 0.0, 1.0]  # the label too: it may be what could not be read
    zeros = write_csv(tmp_path / "zeros.csv", rows)
    found = []
    for path in (bad, zeros):
        words = [*csv_words(path), *WORDS, "dataset.invalid=zero", f"out={tmp_path}/{path.stem}"]
        assert dperm("run", *words).code == 0
        found += numbers(table_of(tmp_path / path.stem))
    assert found[0]["excess_risk_median"] == found[1]["excess_risk_median"]


@pytest.mark.parametrize("label", ["", "nan", "7", "word"])
def test_a_bad_label_decides_no_more_than_a_bad_cell(label, dperm, tmp_path):
    path = write_csv(tmp_path / "a.csv", make_rows(60), label, column=3)
    words = [*csv_words(path), *WORDS, "dataset.invalid=zero", "dataset.labels={-1: -1, 1: 1}"]
    done = dperm("run", *words, f"out={tmp_path}/study")
    assert done.code == 0, done.err


@pytest.mark.parametrize("line", ["0.5,0.5", "0.5,0.5,0.5,1,9,9", '"0.5,0.5,0.5,1'])
def test_a_record_of_another_length_decides_no_more_than_a_bad_cell(line, dperm, tmp_path):
    path = write_csv(tmp_path / "a.csv", make_rows(60))
    lines = path.read_text().splitlines()
    lines[BAD] = line
    path.write_text("\n".join(lines) + "\n")
    done = dperm("run", *csv_words(path), *WORDS, "dataset.invalid=zero", f"out={tmp_path}/study")
    assert done.code == 0, done.err


def test_every_record_bad_is_a_run_too(dperm, tmp_path):
    rows = make_rows(60)
    lines = ["a,b,c,label", *("nan,nan,nan,1" for _ in rows)]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    words = [*csv_words(tmp_path / "a.csv"), *WORDS, "dataset.invalid=zero"]
    assert dperm("run", *words, f"out={tmp_path}/study").code == 0


def write_parquet(path, x, y):
    columns = {name: pa.array(x[:, k], from_pandas=True) for k, name in enumerate("abc")}
    pq.write_table(pa.table({**columns, "label": y}), path)


def write_npz(path, x, y):
    np.savez(path, x=x, y=y)


def write_svmlight(path, x, y):
    lines = [
        f"{label:+g} " + " ".join(f"{k}:{value:.17g}" for k, value in enumerate(row, 1))
        for row, label in zip(x, y, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")


FORMATS = {
    "npz": (write_npz, ["dataset=npz"]),
    "parquet": (write_parquet, ["dataset=parquet", "dataset.target=label"]),
    "svmlight": (write_svmlight, ["dataset=svmlight", "dataset.n_features=3"]),
}


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", FORMATS)
def test_files_of_numbers_know_the_rule_too(kind, value, dperm, tmp_path):
    write, words = FORMATS[kind]
    rows = make_rows(60)
    rows[BAD, 1] = value
    path = tmp_path / f"a.{kind}"
    write(path, rows[:, :3], rows[:, 3])
    words = [*words, f"dataset.path={path}", *WORDS]
    assert_refused(dperm("run", *words, f"out={tmp_path}/study"))
    done = dperm("run", *words, "dataset.invalid=zero", f"out={tmp_path}/study")
    assert done.code == 0, done.err


def test_held_out_records_know_the_rule_too(dperm, tmp_path):
    train = write_csv(tmp_path / "train.csv", make_rows(60))
    test = write_csv(tmp_path / "test.csv", make_rows(30, seed=3), "nan")
    done = dperm("run", *csv_words(train), f"dataset.test_path={test}", *WORDS[:3],
                 "dataset.invalid=zero", f"out={tmp_path}/study")  # fmt: skip
    assert done.code == 0, done.err
    assert np.isfinite(float(table_of(tmp_path / "study")[0]["test_metric"]))


def test_other_records_are_as_without_the_rule(dperm, tmp_path):
    """The rule changes nothing where no record needs it, but the words that name it."""
    path = write_csv(tmp_path / "a.csv", make_rows(60))
    found = []
    for rule in ("refuse", "zero"):
        words = [*csv_words(path), *WORDS, f"dataset.invalid={rule}", f"out={tmp_path}/{rule}"]
        assert dperm("run", *words).code == 0
        found += table_of(tmp_path / rule)
    assert found[0]["optimum"] == found[1]["optimum"]
    assert found[0]["data_fingerprint"] == found[1]["data_fingerprint"]


def test_exit_code_and_ledger_hang_on_no_record(dperm, tmp_path):
    """Neighbours: one has a bad cell. Whatever is public is equal."""
    ledgers = []
    for name, cell in (("good", None), ("bad", "nan")):
        path = write_csv(tmp_path / name, make_rows(60), cell)
        path = path.rename(tmp_path / "a.csv")
        words = [*csv_words(path), *WORDS, "dataset.invalid=zero", f"out={tmp_path}/{name}"]
        done = dperm("run", *words)
        assert done.code == 0, done.err
        (row,) = table_of(tmp_path / name)
        public = (
            "n",
            "p",
            "epsilon",
            "epsilon_accounted",
            "noise_scale",
            "preprocessing",
            "status",
        )
        ledgers.append(
            ({key: row.get(key) for key in public},
             json.loads((tmp_path / name / "ledger.json").read_text())["notes"])
        )  # fmt: skip
        path.unlink()
    assert ledgers[0] == ledgers[1]
