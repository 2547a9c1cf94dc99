"""A data set as a folder of arrays that are mapped into memory instead of being read.

Pages of a mapped file are shared by all processes of a machine, and dropped when memory is short.
The arrays look and compute as those they were made of.
"""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from dperm_cli.core import npy_files
from dperm_cli.core.files import open_atomically, storage_errors, write_atomically
from dperm_cli.problem.data import Data

FACTS = "facts.json"  # written last: a folder without it is not whole
_PARTS = ("data", "indices", "indptr")


def write_folder(folder: Path, data: Data) -> None:
    """Write the data set to a new folder.

    Raises:
        StorageError: It cannot be written.
    """
    with storage_errors(folder):
        folder.mkdir(parents=True, mode=0o700)
        facts: dict[str, Any] = {field.name: getattr(data, field.name) for field in fields(data)}
        dense = [name for name, value in facts.items() if isinstance(value, np.ndarray)]
        arrays = {name: facts.pop(name) for name in dense}
        for name, value in facts.items():
            if sparse.issparse(value):
                arrays |= {f"{name}.{part}": getattr(value, part) for part in _PARTS}
                facts[name] = {"sparse": type(value).__name__, "shape": value.shape}
        for name, array in arrays.items():
            with open_atomically(folder / f"{name}.npy", sync=False) as file:
                np.save(file, array, allow_pickle=False)
        write_facts(folder, facts)


def write_facts(folder: Path, facts: dict[str, Any]) -> None:
    """Write what is no array of a data set, by the fields of ``Data``."""
    write_atomically(folder / FACTS, json.dumps(facts).encode(), sync=False)


def read_folder(folder: Path) -> Data:
    """The data set in the folder, its arrays mapped.

    Raises:
        StorageError: It cannot be read.
    """
    with storage_errors(folder):
        found = json.loads((folder / FACTS).read_text())
        for field in fields(Data):
            value = found.get(field.name)
            if isinstance(value, dict):
                parts = (_map_array(folder / f"{field.name}.{part}.npy") for part in _PARTS)
                kind = {"csr_array": sparse.csr_array, "csr_matrix": sparse.csr_matrix}
                made = kind[value["sparse"]](tuple(parts), shape=tuple(value["shape"]), copy=False)
                found[field.name] = made
            elif field.name not in found:
                found[field.name] = _map_array(folder / f"{field.name}.npy")
            elif isinstance(value, list):
                found[field.name] = tuple(value)
        return Data(**found)


def _map_array(path: Path) -> np.ndarray:
    # mode c: writable as far as compiled loops can tell, and private to this process
    with open(path, "rb") as file:
        return npy_files.map_array(file, "c")
