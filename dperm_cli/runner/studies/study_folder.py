"""Verbs about finished or running studies take folders: how they are named and read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from dperm_cli.core.errors import InputError, UnknownKey
from dperm_cli.results.records.store import Store


def split_arguments(arguments: list[str], keys: Iterable[str]) -> tuple[list[str], dict[str, str]]:
    """(operands, options) of a command line; UnknownKey for another option."""
    known, operands, options = list(keys), [], {}
    for word in arguments:
        key, equals, value = word.partition("=")
        if word.startswith("-"):
            raise InputError("option", word, "is not one of this verb", known)
        if equals and key in known:
            options[key] = value
        elif equals and not os.path.exists(word):
            raise UnknownKey(key, known)
        else:
            operands.append(word)
    return operands, options


def find_only_folder(operands: list[str], options: Mapping[str, str]) -> Path:
    """The one folder that a verb is about; ``out=`` is taken as well."""
    named = [*operands, *([options["out"]] if "out" in options else [])]
    if len(named) != 1:
        raise InputError("STUDY", " ".join(named), "must be one folder (the out= of a run)")
    return find_folder(named[0])


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
