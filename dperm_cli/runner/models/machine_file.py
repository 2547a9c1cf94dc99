"""Which machine was given which records: the file of a study (``split=rows``), and of a model.

Neither is part of a record or of a model: these are the same whoever passes over the rows. In a
study ``machines.json`` has an entry for each cell. A model's file lies beside it, and names it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dperm_cli.core.digests import hash_sha256
from dperm_cli.core.errors import InputError, make_printable
from dperm_cli.core.files import OutputFile, read_bytes, write_atomically

IN_STUDY = "machines.json"
_ENDING = ".machines.json"  # in the place of a model's .npz
_MODEL = "model_sha256"
_MOST_BYTES = 1 << 24
_MOST_MACHINES, _MOST_RANGES = 20, 6  # on a page


def note_cell(out: Path, cell: str, noted: Mapping[str, Any]) -> None:
    """Keep what is noted of a cell in the study's file."""
    _add(out, {cell: noted})


def copy_cells(out: Path, sources: Mapping[str, Path]) -> None:
    """Keep what other studies note of their cells.

    Args:
        out: The study that has the cells' records now.
        sources: By cell, the study from which its record was taken.
    """
    known = {source: _read_map(source / IN_STUDY) or {} for source in set(sources.values())}
    noted = {cell: known[source][cell] for cell, source in sources.items() if cell in known[source]}
    if noted:
        _add(out, noted)


def write_beside(model: OutputFile, out: Path, cell: str) -> None:
    """Write beside a model what its study notes of the cell, if anything."""
    noted, path = (_read_map(out / IN_STUDY) or {}).get(cell), Path(model.path)
    if noted is None or not path.is_file():
        return
    facts = {_MODEL: hash_sha256(read_bytes(path) or b""), **noted}
    text = json.dumps(facts, indent=2, sort_keys=True)
    write_atomically(_name_file(path), text.encode() + b"\n")


def read_beside(model: str) -> str | None:
    """Which machines read which records for a model, in words; None where nothing is noted.

    Raises:
        InputError: The file beside it is of another model, or none that dperm wrote.
        StorageError: It cannot be read.
    """
    path = _name_file(Path(model))
    if not path.is_file():
        return None
    found, move = _read_map(path), "move it to another folder"
    try:
        told = _describe(found or {})
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError("MODEL", model, f"{path} is no file that dperm wrote: {move}") from None
    if (found or {}).get(_MODEL) != hash_sha256(read_bytes(Path(model)) or b""):
        raise InputError("MODEL", model, f"{path} is of another model: {move}")
    return told


def _add(out: Path, noted: Mapping[str, Any]) -> None:
    found = _read_map(out / IN_STUDY) or {}
    text = json.dumps({**found, **noted}, indent=2, sort_keys=True)
    write_atomically(out / IN_STUDY, text.encode() + b"\n")


def _describe(found: Mapping[str, Any]) -> str:
    held = make_printable(found["noise drawn by"]["machine"])
    told = [f"{held} holds names and labels of all records, adds up sums and draws the noise."]
    readers = found["rows read by"]
    for reader in readers[:_MOST_MACHINES]:
        ranges = [f"{int(first)} to {int(last)}" for first, last in reader["records"]]
        more = len(ranges) - _MOST_RANGES
        shown = ", ".join(ranges[:_MOST_RANGES]) + (f" and {more} more ranges" if more > 0 else "")
        told.append(f"{make_printable(reader['machine'])} was given the rows {shown}.")
    if len(readers) > _MOST_MACHINES:
        told.append(f"{len(readers) - _MOST_MACHINES} more machines are in the file.")
    return " ".join(told)


def _name_file(model: Path) -> Path:
    return model.with_name(model.name.removesuffix(".npz") + _ENDING)


def _read_map(path: Path) -> dict[str, Any] | None:
    """The object in a file; None where there is none."""
    data = read_bytes(path) if path.is_file() else None
    try:
        found = json.loads(data or b"") if len(data or b"") <= _MOST_BYTES else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
