"""Share data sets between processes: arrays in files that workers map into memory.

Pages are shared by all workers of a machine, and copied only if one is written to: the arrays look
and compute as those they were made of. The folder is its owner's alone, since it holds the records.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from dperm_cli.core import npy_files
from dperm_cli.core.files import open_atomically, storage_errors, write_atomically
from dperm_cli.problem.data import Data
from dperm_cli.results.records.cell_claims import WORK

_PARTS = ("data", "indices", "indptr")


@contextlib.contextmanager
def use_spool(out: Path) -> Iterator[Path]:
    """A new folder for the data sets of one sweep; it goes when the block ends.

    It lies with the study, which the workers of other machines can reach as well. That of a killed
    process goes with its lease (``study_lease``).
    """
    folder = out / WORK / f"spool-{secrets.token_hex(4)}"
    try:
        with storage_errors(folder):
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o700)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def share(folder: Path, data: Data) -> None:
    """Write the data set to a new folder; StorageError names it."""
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
        write_atomically(folder / "facts.json", json.dumps(facts).encode(), sync=False)


def load(folder: Path) -> Data:
    """The data set in the folder, its arrays mapped."""
    with storage_errors(folder):
        found = json.loads((folder / "facts.json").read_text())
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
