"""Tables on disk that differ in one record, and what a run leaves behind."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

from dperm_cli.results.records.store import Store

NAMES = ["c0", "c1", "c2"]
# How the models of the tests of break 7 are made.
WAYS = {
    "plain": ["mechanism=noisy_gd", "mechanism.steps=5"],
    "fourier": ["mechanism=random_features", "kernel=rbf", "kernel.size=5", "loss=logistic"],
}


def make_rows(n: int, p: int = 3, seed: int = 0) -> np.ndarray:
    """Records [n, p + 1]: p features of norm about 1 and a label of -1 or 1 that follows them."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, p)) / np.sqrt(p)
    y = np.where(x[:, 0] + 0.3 * rng.standard_normal(n) < 0.0, -1.0, 1.0)
    return np.column_stack([x, y])


def write_table(path: Path, rows: np.ndarray) -> Path:
    """A csv file of records [n, p + 1], the label last, under a line of column names."""
    return _write(path, rows, [*_names(rows.shape[1] - 1), "label"])


def write_new_rows(path: Path, rows: np.ndarray) -> Path:
    """A csv file of rows [n, p] without labels, under the same names."""
    return _write(path, rows, _names(rows.shape[1]))


def _names(p: int) -> list[str]:
    return [f"c{k}" for k in range(p)]


def _write(path: Path, rows: np.ndarray, names: list[str]) -> Path:
    lines = [",".join(f"{value:.17g}" for value in row) for row in rows]
    path.write_text("\n".join([",".join(names), *lines]) + "\n")
    return path


def write_table_with_test(folder: Path, rows: np.ndarray, test: np.ndarray) -> list[str]:
    """The words that name two files of training and held-out records in a folder of their own."""
    folder.mkdir(parents=True, exist_ok=True)
    train = write_table(folder / "train.csv", rows)
    held = write_table(folder / "test.csv", test)
    return ["dataset=csv", f"dataset.path={train}", f"dataset.test_path={held}"]


def thetas(out: Path) -> np.ndarray:
    """Every trial's released point of a study of one cell, [trials, p]."""
    store = Store(out)
    (cell,) = store.cells()
    rows = store.read(cell) or []
    assert [row["status"] for row in rows] == ["ok"] * len(rows), rows[0]["reason"]
    return np.array([row["theta"] for row in rows], dtype=float)


def ledger(out: Path) -> dict[str, Any]:
    """The privacy statement of a study."""
    return json.loads((out / "ledger.json").read_text())


def model_arrays(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What a saved model holds: its facts, and its arrays."""
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    return json.loads(arrays.pop("facts").tobytes()), arrays


def write_model(path: Path, facts: Any, arrays: dict[str, np.ndarray]) -> Path:
    """A model file made of these parts; ``facts`` is JSON-able, or the bytes to stand for it."""
    text = facts if isinstance(facts, bytes) else json.dumps(facts).encode()
    parts: Any = {**arrays, "facts": np.frombuffer(text, dtype=np.uint8)}
    with open(path, "wb") as file:
        np.savez(file, **parts)
    return path


def replaced(tree: Any, change: Any) -> Any:
    """A JSON tree with ``change(key, value)`` in place of every leaf."""

    def walk(key: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: walk(name, item) for name, item in value.items()}
        if isinstance(value, list):
            return [walk(key, item) for item in value]
        return change(key, value)

    return walk("", tree)


def write_named(path, rows, names):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([names, *rows.tolist()])
    return path


def assert_refused(done):
    """One line that names the trouble, and nothing else."""
    assert done.code == 2, done.err or done.out
    assert done.out == ""
    assert done.err.startswith("dperm: ")
    assert done.err.count("\n") == 1
    assert done.err.isprintable() or done.err[:-1].isprintable()
    assert len(done.err) < 500
