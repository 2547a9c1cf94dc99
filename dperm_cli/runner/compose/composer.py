"""Compose configurations with Hydra, each group choice once in a process.

The groups do not know of one another, so that a combination of choices is put together from these.

Hydra reads the shipped files only. A choice from the user's own folder is read by ``user_yaml`` and
put in place of the group's default, completed by the defaults of its plug-in: a setting is the same
cell wherever it is written. So are the declared defaults of a plug-in from outside.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from dperm_cli.core import catalogue, plugin_sources
from dperm_cli.core.catalogue import GROUPS
from dperm_cli.core.errors import InputError
from dperm_cli.core.near_names import nearest
from dperm_cli.core.package_paths import find_shipped
from dperm_cli.runner.compose import shipped_files, user_yaml

_PACKED = ("gz", "bz2", "xz")
_READERS = {
    "csv": "csv", "tsv": "csv", "parquet": "parquet", "npz": "npz",
    "svmlight": "svmlight", "libsvm": "svmlight", "svm": "svmlight",
}  # fmt: skip


class Composer:
    """Composes configurations from the shipped groups and a user's own folder."""

    def __init__(self, config_dir: str | None = None) -> None:
        self._own = None if config_dir is None else user_yaml.UserFolder.from_path(config_dir)
        self._listed: dict[str, list[str]] = {}
        self._cache: dict[tuple[tuple[str, str], ...], dict[str, Any]] = {}

    def compose(self, chosen: Mapping[str, str]) -> dict[str, Any]:
        """The configuration for these group choices, as plain dicts (shared: do not change)."""
        for group, name in chosen.items():
            if not isinstance(name, str):
                raise unknown_choice(group, name, list(catalogue.choices(group)))
        key = tuple(sorted(chosen.items()))
        if key not in self._cache:
            own = {group: name for group, name in chosen.items() if not self._ships(group, name)}
            shipped_ = {group: name for group, name in chosen.items() if group not in own}
            read = {group: self._read(group, name) for group, name in own.items()}
            self._cache[key] = _combine_sections(shipped_) | read
        return self._cache[key]

    def list_names(self, group: str) -> list[str]:
        """The choices of a group: the shipped ones, plug-ins from outside, and the user's own."""
        return [*catalogue.choices(group), *self._names(group)]

    def find_own(self, chosen: Mapping[str, Any]) -> dict[str, str]:
        """Those of some choices that are files of the user's own, by group."""
        return {group: name for group, name in chosen.items()
                if self._own and group in GROUPS and name in self._names(group)}  # fmt: skip

    def _ships(self, group: str, name: str) -> bool:
        """Whether a shipped file has this name, and not the user's folder or a plug-in."""
        shipped, own = catalogue.list_shipped(group), self._names(group)
        if name in shipped and name in own:
            raise InputError(group, name, "is a shipped name; give the file another one")
        if name in shipped:
            return True
        if name in own and name in plugin_sources.classes(group):
            raise InputError(group, name, "is a plug-in's name; give the file another one")
        if name not in own and plugin_sources.find(group, name) is None:
            raise unknown_choice(group, name, self.list_names(group))
        return False

    def _names(self, group: str) -> list[str]:
        if group not in self._listed:
            self._listed[group] = [] if self._own is None else self._own.names(group)
        return self._listed[group]

    def _read(self, group: str, name: str) -> dict[str, Any]:
        """A file of the user's own, with the defaults of its plug-in for what it leaves out; or
        those of a plug-in from outside."""
        if name not in self._names(group):
            return _find_defaults(group, name)
        assert self._own is not None
        found = self._own.load(group, name)
        return _find_defaults(group, found["name"]) | found


def _find_defaults(group: str, plugin: str) -> dict[str, Any]:
    """The name of a plug-in, and the defaults of its keys; nothing where there is none."""
    if plugin in catalogue.list_shipped(group):
        return _combine_sections({group: plugin})[group]
    made = plugin_sources.find(group, plugin)
    defaults = {} if made is None else catalogue.outside_defaults(made)
    return {"name": plugin, **copy.deepcopy(defaults)}


def _combine_sections(chosen: Mapping[str, str]) -> dict[str, Any]:
    """Shipped choices only: their names come from a listing of the shipped folder."""
    root = find_shipped("conf")
    sections = {
        group: shipped_files.compose(root, f"{group}={name}")[group]
        for group, name in chosen.items()
    }
    return shipped_files.compose(root) | sections


def unknown_choice(group: str, name: object, known: list[str]) -> InputError:
    """The error for a name that no YAML of the group has."""
    reader = _reader_of(str(name)) if group == "dataset" else None
    if reader is not None:
        allowed = f"is the name of a file: say dataset={reader} dataset.path={name}"
        return InputError(group, name, allowed)
    guess = nearest(str(name), known)
    names = plugin_sources.add_hint(group, ", ".join(known))
    shorter = f"must be one of {names}" if guess is None else f"is not a {group}; known: {names}"
    return InputError(group, name, shorter, known)


def _reader_of(name: str) -> str | None:
    """The data set that reads files with such a name."""
    stem, dot, ending = name.lower().rpartition(".")
    if dot and ending in _PACKED:
        ending = stem.rpartition(".")[2] if "." in stem else ""
    return _READERS.get(ending) if dot else None
