"""The source files of a package: which of them some modules need."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import astuple
from pathlib import Path

from dperm_cli.core import registry
from dperm_cli.core.digests import hash_parts
from dperm_cli.core.errors import StorageError
from dperm_cli.core.files import open_atomically
from dperm_cli.core.public_names import find_module
from dperm_cli.runner.cells import source_file
from dperm_cli.runner.cells.source_file import Source, read_source

_DOORS = ("dperm_cli", "dperm_cli.api")
_MOST_REMEMBERED = 4000  # source files


class SourceTree:
    """The source files of a package, by the dotted names of their modules.

    Args:
        root: The package's folder.
        memo: The file that remembers what was read of which bytes, or None.
    """

    def __init__(self, root: Path, memo: Path | None = None) -> None:
        self.package = root.name
        self._files = dict(_list_files(root))
        del self._files[self.package]  # a front door makes nothing
        self._memo = memo
        # what was read, by a digest of the reader and of the bytes
        self._sources = {} if memo is None else _read_memo(memo)
        self._remembered = len(self._sources)
        self._reader = Path(source_file.__file__).read_bytes()
        self._read: dict[str, tuple[Source, tuple[str, ...]] | None] = {}

    def close_imports(self, modules: Iterable[str], skipped: Iterable[str]) -> dict[str, Source]:
        """The files of modules, of their packages, and of all that those import, at any depth.

        Args:
            modules: Dotted names. A module outside the package is read where it was loaded from.
            skipped: Modules and packages that are left out, and not followed.

        Returns:
            The files by the names of their modules.
        """
        left_out = tuple(skipped)
        found: dict[str, Source] = {}
        waiting = list(modules)
        while waiting:
            name = waiting.pop()
            if name in found or _lies_in(name, left_out):
                continue
            read = self._read_module(name)
            if read is not None:
                found[name], needed = read
                waiting += needed
        self._write_memo()
        return found

    def _read_module(self, name: str) -> tuple[Source, tuple[str, ...]] | None:
        """A module's file, and the modules of the package that it needs; None where it has none."""
        if name not in self._read:
            path = self._find_file(name)
            source = None if path is None else self._read_file(path)
            self._read[name] = source and (source, tuple(self._list_needed(name, source)))
        return self._read[name]

    def _find_file(self, name: str) -> str | None:
        if _lies_in(name, (self.package,)):
            return self._files.get(name)
        return vars(sys.modules[name]).get("__file__") if name in sys.modules else None

    def _read_file(self, path: str) -> Source:
        with open(path, "rb") as file:
            text = file.read()
        key = hash_parts(self._reader, text)
        if key not in self._sources:
            self._sources[key] = read_source(text)
        return self._sources[key]

    def _list_needed(self, name: str, source: Source) -> Iterator[str]:
        for wanted in (name.rpartition(".")[0], *source.imports):
            module = _follow_public(wanted)  # or something in it
            while module and module not in self._files:
                module = module.rpartition(".")[0]
            if module:
                yield module
        for room, word in source.plugins:
            for group in registry.GROUPS.get(room, ("",)):
                place = (self.package, registry.ROOMS.get(room, room), group, word)
                module = ".".join(filter(None, place))
                if module in self._files:
                    yield module

    def _write_memo(self) -> None:
        """A folder that cannot be written only costs time."""
        if self._memo is None or len(self._sources) == self._remembered:
            return
        self._remembered = len(self._sources)
        text = json.dumps({key: astuple(source) for key, source in self._sources.items()})
        with (
            contextlib.suppress(StorageError),
            open_atomically(self._memo, sync=False, private=True) as file,
        ):
            file.write(text.encode())


def _follow_public(name: str) -> str:
    """The module that ``dperm_cli.api.Mechanism`` is taken from; other names as they are."""
    door, _, word = name.rpartition(".")
    return find_module(word) or name if door in _DOORS else name


def _list_files(root: Path) -> Iterator[tuple[str, str]]:
    """The modules below a folder, and their files."""
    above = len(str(root)) - len(root.name)
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name != "__pycache__"]
        package = folder[above:].replace(os.sep, ".")
        for name in names:
            if name.endswith(".py"):
                module = f"{package}.{name.removesuffix('.py')}".removesuffix(".__init__")
                yield module, os.path.join(folder, name)


def _lies_in(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def _read_memo(path: Path) -> dict[str, Source]:
    """What is remembered; nothing, where the file is damaged, too long, or there is none."""
    try:
        memo = json.loads(path.read_bytes()).items()
        if len(memo) > _MOST_REMEMBERED:
            return {}
        return {
            key: Source(digest, tuple(imports), tuple((room, word) for room, word in plugins))
            for key, (digest, imports, plugins) in memo
        }
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}
