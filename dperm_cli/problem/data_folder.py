"""A data set as a folder of arrays that are mapped into memory instead of being read.

Pages of a mapped file are shared by all processes of a machine, and dropped when memory is short.
The arrays look and compute as those they were made of.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from dperm_cli.core import npy_files, progress
from dperm_cli.core.errors import StorageError
from dperm_cli.core.files import open_atomically, read_bytes, storage_errors, write_atomically
from dperm_cli.problem.data import Data

FACTS = "facts.json"  # written last: a folder without it is not whole
SUMS = "sums.json"  # of all other files
_SUMMED = 1 << 24  # bytes of each sum
_PARTS = ("data", "indices", "indptr")
_KINDS = ("csr_array", "csr_matrix")  # of scipy.sparse


def write_folder(folder: Path, data: Data) -> None:
    """Write the data set to a folder, which is made where there is none.

    Raises:
        StorageError: It cannot be written.
    """
    with storage_errors(folder):
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
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
    write_atomically(folder / FACTS, json.dumps(facts).encode(), sync=False, private=True)


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
                make, shape = _find_kind(value["sparse"]), tuple(value["shape"])
                found[field.name] = make(tuple(parts), shape=shape, copy=False)
            elif field.name not in found:
                found[field.name] = _map_array(folder / f"{field.name}.npy")
            elif isinstance(value, list):
                found[field.name] = tuple(value)
        return Data(**found)


def map_part(folder: Path, facts: dict[str, Any], begin: int, end: int) -> Any:
    """The rows ``begin .. end - 1``, dense or sparse; nothing else of the folder is mapped.

    Args:
        folder: The data set.
        facts: What its ``FACTS`` hold.
        begin, end: Of the training records.
    """
    stored = facts.get("x")
    if stored is None:
        return npy_files.map_rows(folder / "x.npy", begin, end)
    places = npy_files.map_rows(folder / "x.indptr.npy", begin, end + 1)
    first, last = int(places[0]), int(places[-1])
    values, columns = (npy_files.map_rows(folder / f"x.{part}.npy", first, last)
                       for part in _PARTS[:2])  # fmt: skip
    shape = (end - begin, stored["shape"][1])
    make = _find_kind(stored["sparse"])
    return make((values, columns, places - places[0]), shape=shape, copy=False)


def _find_kind(name: str) -> Any:
    """The class of sparse arrays of this name; KeyError for another name."""
    if name not in _KINDS:
        raise KeyError(name)
    return getattr(sparse, name)


def _map_array(path: Path) -> np.ndarray:
    # mode c: writable as far as compiled loops can tell, and private to this process
    with open(path, "rb") as file:
        return npy_files.map_array(file, "c")


def seal_folder(folder: Path) -> None:
    """Write sums of all its files into the folder, by which ``check_folder`` sees damage."""
    found = {
        path.name: [path.stat().st_size, _add_up(path)]
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name != SUMS
    }
    write_atomically(folder / SUMS, json.dumps(found).encode(), sync=False, private=True)


def check_folder(folder: Path, required: bool = False) -> None:
    """Compare every byte of the folder with the sums that were written with it.

    Args:
        folder: A data set.
        required: Whether to refuse a folder without sums, as was written before there were any.

    Raises:
        StorageError: A file is missing, or is not what was written.
    """
    text = read_bytes(folder / SUMS)
    if text is None and required:
        raise StorageError(f"{folder / SUMS}: is missing")
    if text is None:
        return
    try:
        sums = [(str(name), int(size), list(parts)) for name, (size, parts) in
                json.loads(text).items()]  # fmt: skip
    except (ValueError, TypeError, AttributeError):
        raise StorageError(f"{folder / SUMS}: is damaged") from None
    done, whole = 0, sum(size for _, size, _ in sums)
    for name, size, parts in sums:
        path = folder / name
        with storage_errors(path):
            if path.stat().st_size != size or _add_up(path, done, whole) != parts:
                raise StorageError(f"{path}: is damaged")
        done += size


def _add_up(path: Path, before: int = 0, whole: int = 0) -> list[int]:
    """CRC-32 of each part of a file: they detect damage, not malice."""
    found = []
    with open(path, "rb") as file:
        while piece := file.read(_SUMMED):
            found.append(zlib.crc32(piece))
            before += len(piece)
            progress.report("bytes checked", before, whole)
    return found
