"""Noise hangs on the values of a data set: not on their types, the sign of a zero or the path."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

MECHANISM = ["mechanism=noisy_gd", "mechanism.steps=3", "trials=2", "dataset.test_fraction=0"]
NAMED_BY_THE_USER = {"cell", "overrides", "dataset"}  # which words were typed, and their hash


def make_values(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Small whole numbers [60, 3], among them zeros, and labels: every type holds them exactly."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-3, 4, (60, 3)).astype(float)
    return x, np.where(x[:, 0] + rng.standard_normal(60) < 0.0, -1.0, 1.0)


def table_of(dperm, out: Path, words) -> list[dict]:
    done = dperm("run", *words, *MECHANISM, f"out={out}")
    assert done.code == 0, done.err
    with open(out / "table.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 1
    return [{key: row[key] for key in row if key not in NAMED_BY_THE_USER} for row in rows]


def npz_table(dperm, path: Path, x, y):
    path.parent.mkdir(exist_ok=True)
    np.savez(path, x=x, y=y)
    return table_of(
        dperm, path.parent / f"study-{path.stem}", ["dataset=npz", f"dataset.path={path}"]
    )


SAME = {
    "negative zeros": lambda x, y: (np.where(x == 0.0, -0.0, x), y),
    "int8": lambda x, y: (x.astype(np.int8), y),
    "int8 labels": lambda x, y: (x, y.astype(np.int8)),
    "float32": lambda x, y: (x.astype(np.float32), y.astype(np.float32)),
    "float16": lambda x, y: (x.astype(np.float16), y),
    "big-endian": lambda x, y: (x.astype(">f8"), y.astype(">i4")),
    "columns first": lambda x, y: (np.asfortranarray(x), y),
    "strided": lambda x, y: (np.repeat(x, 2, axis=1)[:, ::2], y),
    "another path": lambda x, y: (x, y),
}


@pytest.fixture
def plain(dperm, tmp_path):
    return npz_table(dperm, tmp_path / "a.npz", *make_values())


@pytest.mark.parametrize("name", SAME)
def test_equal_values_give_the_same_fingerprint_and_table(name, plain, dperm, tmp_path):
    """A file of the same values in another folder, with another name."""
    x, y = SAME[name](*make_values())
    assert npz_table(dperm, tmp_path / "other" / "b.npz", x, y) == plain


@pytest.mark.parametrize("name", SAME)
def test_equal_values_in_the_same_file_give_the_same_table(name, plain, dperm, tmp_path):
    """The path is the same, the study is another one."""
    x, y = SAME[name](*make_values())
    np.savez(tmp_path / "a.npz", x=x, y=y)
    words = ["dataset=npz", f"dataset.path={tmp_path}/a.npz"]
    assert table_of(dperm, tmp_path / "again", words) == plain


def test_other_values_give_another_fingerprint_and_other_noise(plain, dperm, tmp_path):
    x, y = make_values()
    x[7, 1] += 1.0
    (other,) = npz_table(dperm, tmp_path / "b.npz", x, y)
    assert other["data_fingerprint"] != plain[0]["data_fingerprint"]
    assert other["excess_risk_median"] != plain[0]["excess_risk_median"]


def write_csv(path, x, y, spell):
    lines = [
        ",".join([*(spell(v) for v in row), f"{label:g}"]) for row, label in zip(x, y, strict=True)
    ]
    path.write_text("\n".join(["a,b,c,label", *lines]) + "\n")


SPELLINGS = {
    "decimal point": lambda v: f"{v:.1f}",
    "exponent": lambda v: f"{v:e}",
    "plus sign": lambda v: f"{v:+g}",
    "negative zero": lambda v: "-0" if v == 0.0 else f"{v:g}",
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_equal_numbers_in_other_spellings_give_the_same_table(name, dperm, tmp_path):
    x, y = make_values()
    write_csv(tmp_path / "a.csv", x, y, lambda v: f"{v:g}")
    write_csv(tmp_path / "b.csv", x, y, SPELLINGS[name])
    tables = [table_of(dperm, tmp_path / one, ["dataset=csv", f"dataset.path={tmp_path}/{one}.csv"])
              for one in "ab"]  # fmt: skip
    assert tables[0] == tables[1]


@pytest.mark.parametrize("kind", ["int8", "float32", "dictionary", "row groups"])
def test_equal_columns_of_parquet_give_the_same_table(kind, dperm, tmp_path):
    x, y = make_values()
    columns = {name: x[:, k] for k, name in enumerate("abc")} | {"y": y}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    if kind in ("int8", "float32"):
        columns = {name: values.astype(kind) for name, values in columns.items()}
    pq.write_table(
        pa.table(columns), tmp_path / "b.parquet",
        use_dictionary=kind == "dictionary", row_group_size=7 if kind == "row groups" else None,
    )  # fmt: skip
    tables = [
        table_of(
            dperm, tmp_path / one,
            ["dataset=parquet", f"dataset.path={tmp_path}/{one}.parquet", "dataset.target=y"],
        )
        for one in "ab"
    ]  # fmt: skip
    assert tables[0] == tables[1]


@pytest.mark.parametrize("way", ["relative path", "link", "compressed"])
def test_the_same_file_by_another_way_gives_the_same_table(way, plain, dperm, tmp_path):
    path = {"relative path": "a.npz", "link": f"{tmp_path}/link.npz",
            "compressed": f"{tmp_path}/packed.npz"}[way]  # fmt: skip
    (tmp_path / "link.npz").symlink_to(tmp_path / "a.npz")
    x, y = make_values()
    np.savez_compressed(tmp_path / "packed.npz", x=x, y=y)
    assert table_of(dperm, tmp_path / "way", ["dataset=npz", f"dataset.path={path}"]) == plain
