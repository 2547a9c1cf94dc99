"""Read two records of the user's own from a file: neighbours for the audit to try."""

from __future__ import annotations

import csv
import os
import zipfile
from pathlib import Path

import numpy as np

from dperm_cli.audit.hard_pairs import Record, Shape
from dperm_cli.core import npy_files
from dperm_cli.core.errors import InputError
from dperm_cli.core.number_text import number_in
from dperm_cli.core.read_errors import report_read_errors

_MOST_BYTES = 1 << 26


def read(name: str, shape: Shape) -> tuple[Record, Record]:
    """The two records of a file: (row [p], label or target) each.

    A csv file has two lines, the columns of the data set and then the label (none for location
    data), after a line of names if there is one. An npz file has arrays x [2, p] and y [2].
    InputError names what is wrong in one line.
    """
    path = Path(os.path.expanduser(name))
    if not os.path.isfile(path):
        raise InputError("pair", name, "no such file")
    if path.stat().st_size > _MOST_BYTES:
        raise InputError("pair", name, f"is larger than {_MOST_BYTES >> 20} MiB, for two records")
    with report_read_errors("pair", path):
        x, y = _npz(name, path) if zipfile.is_zipfile(path) else _csv(name, path, shape)
    _check(name, shape, x, y)
    return (x[0], float(y[0])), (x[1], float(y[1]))


def _npz(name: str, path: Path) -> tuple[np.ndarray, np.ndarray]:
    try:
        found = npy_files.read_archive(path, ["x", "y"], most=_MOST_BYTES)
        x = npy_files.real(found["x"])
        y = npy_files.real(found["y"]) if "y" in found else np.zeros(x.shape[:1])
    except (KeyError, npy_files.NotAnArray) as error:
        allowed = "must be an npz archive with numbers x [2, p] and y [2]"
        raise InputError("pair", name, allowed) from error
    return x, y


def _csv(name: str, path: Path, shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    lines = [line for line in csv.reader(path.read_text(encoding="utf-8-sig").splitlines()) if line]
    if len(lines) == 3 and not _numbers(lines[0]):
        lines = lines[1:]
    if len(lines) != 2:
        allowed = f"must hold two records, and holds {len(lines)}"
        raise InputError("pair", name, allowed)
    for number, line in enumerate(lines):
        if not _numbers(line):
            raise InputError("pair", name, f"record {number + 1} holds something that is no number")
    if len(lines[0]) != len(lines[1]):
        raise InputError("pair", name, "the two records have different numbers of columns")
    table = np.array([[float(cell) for cell in line] for line in lines])
    if shape.task == "location":
        return table, np.zeros(2)
    return table[:, :-1], table[:, -1]


def _numbers(cells: list[str]) -> bool:
    found = [number_in(cell) for cell in cells]
    return all(number is not None and np.isfinite(number) for number in found)


def _check(name: str, shape: Shape, x: np.ndarray, y: np.ndarray) -> None:
    if x.ndim != 2 or len(x) != 2 or np.shape(y) != (2,):
        raise InputError("pair", name, f"must hold two records, x [2, p] and y [2], not {x.shape}")
    if x.shape[1] != shape.p:
        beside = "" if shape.task == "location" else " and a label"
        allowed = f"a record has {shape.p} columns{beside}, and one here has {x.shape[1]}"
        raise InputError("pair", name, allowed)
    if not (np.all(np.isfinite(x)) and np.all(np.isfinite(y))):
        raise InputError("pair", name, "every number must be finite")
    allowed_labels = {"binary": [-1.0, 1.0], "multiclass": list(map(float, range(shape.classes)))}
    known = allowed_labels.get(shape.task)
    if known is not None and not np.all(np.isin(y, known)):
        words = ", ".join(f"{label:g}" for label in known)
        raise InputError("pair", name, f"labels must be among {words}")
