"""``dperm predict MODEL ROWS``: what a released predictor says of new rows."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from typing import Any

import numpy as np

from dperm_cli.core import checks
from dperm_cli.core.errors import EXIT_OK, InputError
from dperm_cli.results.store import atomic_write
from dperm_cli.runner import model, study
from dperm_cli.runner.model import Model

FORMATS = ("csv", "json")


def predict(arguments: list[str]) -> int:
    """``dperm predict MODEL ROWS [format=csv|json] [out=FILE]``."""
    operands, options = study.words(arguments, ("format", "out"))
    if len(operands) != 2:
        allowed = "must be a model and a file of rows"
        raise InputError("predict", " ".join(operands), allowed)
    form = checks.choice("format", options.get("format", "csv"), FORMATS)
    found = model.load(operands[0])
    rows = raw_rows("ROWS", operands[1], found.columns)
    text = _json(found, rows) if form == "json" else _csv(found, rows)
    if "out" in options:
        from pathlib import Path

        atomic_write(Path(options["out"]), text.encode())
    else:
        sys.stdout.write(text)
    _tell(found, len(rows))
    return EXIT_OK


def raw_rows(key: str, word: str, columns: int) -> np.ndarray:
    """Rows of numbers [m, columns], at least one, from a csv file (a first line of names is passed
    over), or from .npy; InputError naming the first line that is not one."""
    if not os.path.isfile(word):
        raise InputError(key, word, "is not a file")
    if word.endswith(".npy"):
        return _checked(key, word, _numpy(key, word), columns)
    found: list[list[float]] = []
    with open(word, encoding="utf-8", errors="replace", newline="") as file:
        for place, line in enumerate(csv.reader(file), start=1):
            if not line:
                continue
            try:
                numbers = [float(cell) for cell in line]
            except ValueError:
                if place == 1:
                    continue
                raise InputError(key, word, f"line {place} holds what is no number") from None
            if len(numbers) != columns:
                allowed = f"line {place} has {len(numbers)} columns; the model takes {columns}"
                raise InputError(key, word, allowed)
            found.append(numbers)
    return _checked(key, word, np.array(found).reshape(-1, columns), columns)


def _numpy(key: str, word: str) -> np.ndarray:
    try:
        return np.asarray(np.load(word, allow_pickle=False), dtype=float)
    except (OSError, ValueError, EOFError):
        raise InputError(key, word, "cannot be read as .npy") from None


def _checked(key: str, word: str, rows: np.ndarray, columns: int) -> np.ndarray:
    if rows.ndim != 2 or rows.shape[1] != columns:
        allowed = f"holds an array of shape {rows.shape}; the model takes {columns} columns"
        raise InputError(key, word, allowed)
    if not len(rows):
        raise InputError(key, word, "holds no rows of numbers")
    bad = np.flatnonzero(~np.all(np.isfinite(rows), axis=1))
    if len(bad):
        raise InputError(key, word, f"row {bad[0] + 1} holds a number that is nan or infinite")
    return rows


def _columns_of(found: Model, rows: np.ndarray) -> dict[str, np.ndarray]:
    """``score`` and ``label`` of a classifier; ``value`` of a regression, in its own unit."""
    values = found.values(rows)
    if found.facts["task"] == "binary":
        return {"score": values, "label": np.where(values >= 0.0, 1, -1)}
    low, high = found.facts["target_bounds"] or (-1.0, 1.0)
    return {"value": low + 0.5 * (high - low) * (values + 1.0)}


def _csv(found: Model, rows: np.ndarray) -> str:
    columns, sink = _columns_of(found, rows), io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
    return sink.getvalue()


def _json(found: Model, rows: np.ndarray) -> str:
    columns = {name: column.tolist() for name, column in _columns_of(found, rows).items()}
    lines = [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]
    return "".join(json.dumps(line) + "\n" for line in lines)


def _tell(found: Model, count: int) -> None:
    claim: dict[str, Any] = found.facts["claim"]
    words = f"{claim['mechanism']}, epsilon {claim['epsilon_accounted']:.6g}, "
    words += f"delta {claim['delta_accounted']:.3g} ({claim['relation']}, n {claim['n']})"
    print(f"{count} predictions by {words}", file=sys.stderr)
    if claim["noise"] == "research":
        print("made with seeded noise: not for release", file=sys.stderr)
