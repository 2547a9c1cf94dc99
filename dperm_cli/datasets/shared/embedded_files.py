"""Data files inside the installed scikit-learn, read without importing it (1.3 s of CPU)."""

from __future__ import annotations

import gzip
import importlib.util
from pathlib import Path

import numpy as np

from dperm_cli.core.digests import hash_parts
from dperm_cli.core.errors import InputError


def read(name: str, file: str, digest: str, *, delimiter: str | None, skip: int = 0) -> np.ndarray:
    """The matrix in one of scikit-learn's csv files, after a check of its digest.

    ``name`` is the data set asking, for the error message; ``delimiter`` None means white space.
    """
    path = folder(name) / file
    opener = gzip.open if file.endswith(".gz") else open
    try:
        with opener(path, "rt", encoding="utf-8") as text:
            matrix = np.loadtxt(text, delimiter=delimiter, skiprows=skip)
    except (OSError, ValueError) as error:
        raise _make_error(name, f"scikit-learn's {file} cannot be read ({error})") from None
    if digest_of(matrix) != digest:
        raise _make_error(name, f"scikit-learn's {file} is not the file dperm knows")
    return matrix


def folder(name: str) -> Path:
    """Where scikit-learn keeps its data files."""
    spec = importlib.util.find_spec("sklearn")
    if spec is None or spec.origin is None:
        raise _make_error(name, "needs scikit-learn, which is not installed")
    return Path(spec.origin).parent / "datasets" / "data"


def digest_of(matrix: np.ndarray) -> str:
    """blake2b (128 bits, hex) of a matrix's shape and little-endian float64 bytes."""
    return hash_parts(repr(matrix.shape), np.ascontiguousarray(matrix, dtype="<f8"))


def _make_error(name: str, words: str) -> InputError:
    return InputError("dataset", name, words)
