"""Read public points and kernel matrices from .npy and .npz files."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from dperm_cli.core import npy_files
from dperm_cli.core.data_files import data_folder
from dperm_cli.core.errors import InputError
from dperm_cli.core.read_errors import first_words, report_read_errors


def array_of(key: str, path: str, member: str) -> np.ndarray:
    """The numbers in a file, as float64.

    Args:
        key: the configuration key, for error messages.
        path: the file, here or in the data folder.
        member: the array's name in a .npz archive.

    Raises:
        InputError: the file is missing, not such a file, or holds nan or inf.
    """
    folder = data_folder()
    places = [Path(path)] + ([folder / path] if folder else [])
    found = next((place for place in places if os.path.isfile(place)), None)
    if found is None:
        raise InputError(key, path, "is not a file here or in the data folder")
    with report_read_errors(key, found):
        try:
            values = npy_files.real(_array(found, member))
        except npy_files.NotAnArray as error:
            allowed = f"cannot be read as .npy, or .npz with {member!r} ({first_words(error)})"
            raise InputError(key, path, allowed) from error
    if not np.all(np.isfinite(values)):
        raise InputError(key, path, "holds a number that is nan or infinite")
    return values


def _array(path: Path, member: str) -> np.ndarray:
    with open(path, "rb") as file:
        packed = file.read(4) == b"PK\x03\x04"
    if not packed:
        return npy_files.read_file(path)
    held = npy_files.read_archive(path, [member])
    if member not in held:
        raise npy_files.NotAnArray(f"it holds no array {member!r}")
    return held[member]
