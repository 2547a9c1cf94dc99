"""Arrays of public points and of kernel matrices, from .npy and .npz files."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import numpy as np

from dperm_cli.core.errors import InputError
from dperm_cli.core.paths import data_dir


def array_of(key: str, path: str, member: str) -> np.ndarray:
    """The numbers in a file, as float64; InputError naming the key for anything else."""
    folder = data_dir()
    places = [Path(path)] + ([Path(folder) / path] if folder else [])
    found = next((place for place in places if os.path.isfile(place)), None)
    if found is None:
        raise InputError(key, path, "is not a file here or in the data folder")
    try:
        loaded = np.load(found, allow_pickle=False)
        if not isinstance(loaded, np.ndarray):
            with loaded:
                loaded = loaded[member]
        values = np.asarray(loaded, dtype=float)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, TypeError) as error:
        allowed = f"cannot be read as .npy, or .npz with {member!r} ({type(error).__name__})"
        raise InputError(key, path, allowed) from None
    if not np.all(np.isfinite(values)):
        raise InputError(key, path, "holds a number that is nan or infinite")
    return values
