"""Find study folders by the names that the user gives, and list their cells."""

from __future__ import annotations

import os
from pathlib import Path

from dperm_cli.core.errors import InputError
from dperm_cli.core.operands import Words, refuse_operands
from dperm_cli.results.records.store import Store


def name_one(words: Words, key: str = "STUDY") -> str:
    """The one folder that a verb is about; ``out=`` is taken as well."""
    named = [*words.operands, *([words.settings["out"]] if "out" in words.settings else [])]
    if len(named) != 1:
        raise refuse_operands(key, named, "must be one folder (the out= of a run)")
    return named[0]


def find_folder(name: str) -> Path:
    """A study's folder, also by its name under ``outputs``; InputError where none is."""
    tried = [Path(name), Path("outputs") / name]
    for path in tried if name and "\0" not in name else ():
        if os.path.isdir(path):
            store = Store(path)
            if store.read_manifest() is None and not store.cells():
                raise InputError("STUDY", name, "holds no study: no manifest and no records")
            return path
    raise InputError("STUDY", name, "must be an existing folder (the out= of a run)")


def list_cells(store: Store) -> list[str]:
    """The study's cells in order: the manifest's, else all that have a record."""
    manifest = store.read_manifest()
    return list(manifest["cells"]) if manifest else store.cells()
