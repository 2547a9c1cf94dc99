"""Read the data files that come with the package. Their licence is in the same folder."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

from dperm_cli.core.digests import hash_parts
from dperm_cli.core.errors import InputError

FOLDER = Path(__file__).with_name("embedded")


def read(name: str, file: str, digest: str, *, delimiter: str | None, skip: int = 0) -> np.ndarray:
    """The matrix in one of the csv files.

    Args:
        name: the data set that asks, for the error message.
        file: the file's name in the folder.
        digest: the expected ``digest_of`` the matrix.
        delimiter: None means white space.
        skip: how many lines to skip.

    Raises:
        InputError: the file cannot be read, or its digest is another one.
    """
    path = FOLDER / file
    opener = gzip.open if file.endswith(".gz") else open
    try:
        with opener(path, "rt", encoding="utf-8") as text:
            matrix = np.loadtxt(text, delimiter=delimiter, skiprows=skip)
    except (OSError, ValueError) as error:
        raise _make_error(name, f"its file {file} cannot be read ({error})") from None
    if digest_of(matrix) != digest:
        raise _make_error(name, f"its file {file} is not the file dperm knows")
    return matrix


def digest_of(matrix: np.ndarray) -> str:
    """BLAKE2b (128 bits, hex) of a matrix's shape and little-endian float64 bytes."""
    return hash_parts(repr(matrix.shape), np.ascontiguousarray(matrix, dtype="<f8"))


def _make_error(name: str, words: str) -> InputError:
    return InputError("dataset", name, words)
