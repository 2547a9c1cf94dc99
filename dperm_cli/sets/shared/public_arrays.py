"""Read public arrays of a configuration: lists of numbers, or files that contain them."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from dperm_cli.core import npy_files
from dperm_cli.core.data_files import locate
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import Allowed, Help

ENTRIES = 1_000_000
BYTES = 64 << 20
Vector = tuple[float, ...]
Matrix = tuple[tuple[float, ...], ...]
NOT_A_FILE = "must be the name of an .npz or .csv file"
NumbersFile = Annotated[str | None, Allowed(NOT_A_FILE), Help("public numbers, from a file")]


def vector(key: str, value: Any) -> Vector:
    """A non-empty list of finite numbers, as a tuple."""
    return tuple(_numbers(key, value, 1, "must be a list of finite numbers").tolist())


def matrix(key: str, value: Any) -> Matrix:
    """A non-empty list of rows of finite numbers, all of one length, as tuples."""
    allowed = "must be a list of rows of finite numbers, all of one length"
    return tuple(tuple(row) for row in _numbers(key, value, 2, allowed).tolist())


def from_file(key: str, name: object, csv_array: str) -> dict[str, np.ndarray]:
    """The arrays of a .npz archive, or the matrix of a .csv file under the name ``csv_array``.

    The file is public: nothing in it may come from the records. Nothing is ever unpickled.
    """
    if not isinstance(name, str) or not name:
        raise InputError(key, name, NOT_A_FILE)
    path = locate(key, name, None)
    if path.stat().st_size > BYTES:
        raise InputError(key, path.name, f"is larger than {BYTES} bytes")
    try:
        if zipfile.is_zipfile(path):
            return _archive(key, path)
        return {csv_array: np.loadtxt(path, delimiter=",", ndmin=2, max_rows=ENTRIES)}
    except InputError:
        raise
    except Exception as error:  # whatever a parser makes of bytes that nobody thought of
        words = "it holds pickled objects" if "pickle" in str(error).lower() else "damaged"
        words = words if path.suffix == ".npz" else "not rows of numbers between commas"
        raise InputError(key, path.name, f"cannot be read ({words})") from error


def _archive(key: str, path: Path) -> dict[str, np.ndarray]:
    _, held = npy_files.names_in(path)
    if held > 8 * ENTRIES + 65536:
        raise InputError(key, path.name, f"holds more than {ENTRIES} numbers")
    return npy_files.read_archive(path, kinds=npy_files.LABELS, most=held)


def _numbers(key: str, value: Any, ndim: int, allowed: str) -> np.ndarray:
    if not isinstance(value, (Sequence, np.ndarray)) or isinstance(value, (str, bytes)):
        raise InputError(key, value, allowed)
    if _has_boolean(value):
        raise InputError(key, value, allowed)
    try:
        found = np.asarray(value)
        found = found.astype(float) if found.dtype.kind in "iuf" else np.full(1, np.nan)
    except (ValueError, TypeError, OverflowError):
        raise InputError(key, value, allowed) from None
    if found.ndim != ndim or not found.size or not np.all(np.isfinite(found)):
        raise InputError(key, value, allowed)
    if found.size > ENTRIES:
        raise InputError(key, f"<{found.size} numbers>", f"must hold at most {ENTRIES} numbers")
    return found


def _has_boolean(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "b"
    if isinstance(value, (list, tuple)):
        return any(map(_has_boolean, value))
    return isinstance(value, bool)
