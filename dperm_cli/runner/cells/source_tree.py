"""The source files of a package: which of them some modules need."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import astuple
from itertools import chain
from pathlib import Path

from dperm_cli.core import registry
from dperm_cli.core.digests import hash_parts
from dperm_cli.core.errors import StorageError
from dperm_cli.core.files import open_atomically
from dperm_cli.runner.cells import source_file
from dperm_cli.runner.cells.source_file import Source, read_source

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
        self._reader = hash_parts(Path(source_file.__file__).read_bytes())
        self._remembered = {} if memo is None else _read_memo(memo, self._reader)
        self._used: dict[str, Source] = {}
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
            needed = () if source is None else tuple(set(self._list_needed(name, source)))
            self._read[name] = None if source is None else (source, needed)
        return self._read[name]

    def _find_file(self, name: str) -> Path | None:
        if _lies_in(name, (self.package,)):
            return self._files.get(name)
        loaded = vars(sys.modules[name]).get("__file__") if name in sys.modules else None
        return None if loaded is None else Path(loaded)

    def _read_file(self, path: Path) -> Source:
        text = path.read_bytes()
        key = hash_parts(text)
        if key not in self._used:
            known = self._remembered.get(key)
            self._used[key] = read_source(text) if known is None else known
        return self._used[key]

    def _list_needed(self, name: str, source: Source) -> Iterator[str]:
        plugins = [self._find_plugins(room, word) for room, word in source.plugins]
        for wanted in (name.rpartition(".")[0], *source.imports, *chain(*plugins)):
            module = wanted  # or something in it
            while module and module not in self._files:
                module = module.rpartition(".")[0]
            if module and (module == wanted or wanted in source.imports):
                yield module

    def _find_plugins(self, room: str, word: str) -> Iterator[str]:
        """The modules that may define a plug-in of this name: one at most is there."""
        for group in registry.GROUPS.get(room, ("",)):
            if room in registry.ROOMS:
                yield ".".join(filter(None, (self.package, registry.ROOMS[room], group, word)))

    def _write_memo(self) -> None:
        """A folder that cannot be written only costs time."""
        if self._memo is None or self._used.keys() <= self._remembered.keys():
            return
        together = self._remembered | self._used
        self._remembered = self._used if len(together) > _MOST_REMEMBERED else together
        sources = {key: astuple(source) for key, source in self._remembered.items()}
        text = json.dumps({"reader": self._reader, "sources": sources})
        with (
            contextlib.suppress(StorageError),
            open_atomically(self._memo, sync=False, private=True) as file,
        ):
            file.write(text.encode())


def _list_files(root: Path) -> Iterator[tuple[str, Path]]:
    for folder, _, names in os.walk(root):
        package = ".".join(Path(folder).relative_to(root.parent).parts)
        for name in names:
            if name.endswith(".py"):
                module = f"{package}.{name[:-3]}".removesuffix(".__init__")
                yield module, Path(folder, name)


def _lies_in(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def _read_memo(path: Path, reader: str) -> dict[str, Source]:
    """What is remembered by the same reader; nothing, where the file is damaged or is none."""
    try:
        memo = json.loads(path.read_bytes())
        if memo["reader"] != reader:
            return {}
        return {
            str(key): Source(
                str(digest),
                tuple(str(name) for name in imports),
                tuple((str(room), str(word)) for room, word in plugins),
            )
            for key, (digest, imports, plugins) in memo["sources"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
