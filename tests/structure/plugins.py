"""Names of sets and losses in rooms that should ask for a capability instead."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from tests.structure import rooms
from tests.structure.names import Names, find_home
from tests.structure.source import Module, Package, Place, read_text


@dataclass(frozen=True)
class Plugins:
    """The plug-ins of one kind.

    Attributes:
        folders: The folders that hold them, and where they may be named.
        names: Their names, as configurations spell them.
        class_names: The names of their classes.
        symbols: The dotted names of their classes and modules.
        namesakes: The dotted names of classes elsewhere that are called like one of theirs.
    """

    folders: tuple[str, ...]
    names: frozenset[str]
    class_names: frozenset[str]
    symbols: frozenset[str]
    namesakes: frozenset[str]


def find_plugin_names(names: Names) -> list[Place]:
    """Lines outside the rooms of sets and losses that name one of them.

    A line counts once. It names a set or a loss by a string literal (the name alone, in a list such
    as ``"hinge,squared"``, behind a key as in ``"loss=hinge"``, or among words that are split), by
    a keyword of ``dict(...)``, by its class or module under whatever alias, or by a class of the
    same name. Sentences do not count.

    Args:
        names: The package's names.

    Returns:
        The lines, with what each names.

    Raises:
        ValueError: There is no set or no loss.
    """
    kinds = [find_plugins(names, folders) for folders in (rooms.SET_FOLDERS, rooms.LOSS_FOLDERS)]
    places: list[Place] = []
    for module in names.package:
        if rooms.FOREIGN in module.file:
            continue
        lines: dict[int, set[str]] = {}
        for plugins in kinds:
            for line, name in _Reader(names, module, plugins).list_lines():
                lines.setdefault(line, set()).add(name)
        places += [Place(module.file, n, ", ".join(sorted(lines[n]))) for n in sorted(lines)]
    return places


def find_plugins(names: Names, folders: tuple[str, ...]) -> Plugins:
    """The plug-ins that lie in folders of the package.

    Args:
        names: The package's names.
        folders: Dotted names without the package's; those that do not exist are passed over.

    Returns:
        The plug-ins: public classes that are called like their public module or have a ``name``.

    Raises:
        ValueError: There are none.
    """
    spelled, symbols = set(), set()
    for dotted, (module, node) in names.classes.items():
        stem = module.name.rpartition(".")[2]
        shared = rooms.SHARED_FOLDER in module.name.split(".")
        if not _lies_in(names.package, module, folders) or shared or node.name[0] == "_":
            continue
        label, same = _read_label(node), node.name == _spell_class(stem)
        if label or same:
            spelled |= {label or stem} | ({stem} if same else set())
            symbols |= {dotted, module.name}
    if not symbols:
        raise ValueError(f"no plug-in in {' or '.join(folders)}")
    classes = frozenset(names.classes[one][1].name for one in symbols if one in names.classes)
    others = {
        dotted
        for dotted, (module, node) in names.classes.items()
        if node.name in classes
        and not _lies_in(names.package, module, (*folders, *rooms.OTHER_FOLDERS))
    }
    return Plugins(folders, frozenset(spelled), classes, frozenset(symbols), frozenset(others))


class _Reader:
    """Reads one module for the names of one kind of plug-in."""

    def __init__(self, names: Names, module: Module, plugins: Plugins) -> None:
        self.names = names
        self.module = module
        self.plugins = plugins

    def list_lines(self) -> Iterator[tuple[int, str]]:
        """Lines that name a plug-in, with the name."""
        package = self.names.package
        if _lies_in(package, self.module, self.plugins.folders):
            return
        own = self._list_own_names()
        for node in self.module.nodes:
            for line, name in self._read(node):
                if name not in own:
                    yield line, name

    def _read(self, node: ast.AST) -> Iterator[tuple[int, str]]:
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Name | ast.Attribute):
            line = node.end_lineno or line
            yield from ((line, name) for name in self._find_symbols(node))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from self._read_import(node)
        elif isinstance(node, ast.ClassDef) and node.name in self.plugins.class_names:
            yield line, node.name
        elif isinstance(node, ast.keyword) and node.arg in self.plugins.names:
            if self._is_of_dict(node):
                yield line, str(node.arg)
        elif node not in self._parts and node not in self.module.prose:
            found = self._split_text(node) & self.plugins.names
            yield from ((line, name) for name in found if not self._means_other(line, name))

    def _read_import(self, node: ast.Import | ast.ImportFrom) -> Iterator[tuple[int, str]]:
        home = find_home(self.module, node) if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            dotted = f"{home}.{alias.name}" if home else alias.name
            for name in self._spell({home, dotted} | self.names.resolve(dotted)):
                yield alias.lineno, name

    def _find_symbols(self, node: ast.AST) -> set[str]:
        return self._spell(self.names.find_meanings(self.module, node, False))

    def _spell(self, dotted: set[str]) -> set[str]:
        known = dotted & (self.plugins.symbols | self.plugins.namesakes)
        return {name.rpartition(".")[2] for name in known}

    def _list_own_names(self) -> set[str]:
        """What a plug-in of another kind calls itself: the linear kernel, ``linear``."""
        if not _lies_in(self.names.package, self.module, rooms.OTHER_FOLDERS):
            return set()
        classes = [one for one in self.module.tree.body if isinstance(one, ast.ClassDef)]
        labels = {_read_label(one) for one in classes}
        return {*(label for label in labels if label), *(one.name for one in classes)}

    def _is_of_dict(self, node: ast.keyword) -> bool:
        call = self.module.parents[node]
        made = self.names.find_meanings(self.module, getattr(call, "func", None), False)
        return "builtins.dict" in made

    @cached_property
    def _parts(self) -> set[ast.AST]:
        """The pieces of f-strings, which are read as a whole."""
        strings = (node for node in self.module.nodes if isinstance(node, ast.JoinedStr))
        return {part for node in strings for part in node.values}

    @cached_property
    def _line_words(self) -> dict[int, set[str]]:
        """The words of all names and strings of each line."""
        found: dict[int, set[str]] = {}
        for node in self.module.nodes:
            if node in self.module.prose:
                continue
            for field in ("id", "attr", "arg", "name", "value"):
                text = getattr(node, field, None)
                line = getattr(node, "end_lineno" if field == "attr" else "lineno", None)
                if isinstance(text, str) and line:
                    found.setdefault(line, set()).update(re.findall("[a-z0-9]+", text.lower()))
        return found

    def _means_other(self, line: int, name: str) -> bool:
        """Whether a shared word stands for the other thing, by its neighbours on the line."""
        around = self._line_words.get(line, set())
        other = around & set(rooms.SHARED_WORDS.get(name, ()))
        return bool(other) and not around & set(rooms.OWN_WORDS)

    def _split_text(self, node: ast.AST) -> set[str]:
        """The words of a literal that a program could read; none of a sentence."""
        text = read_text(node)
        if not text or (re.search(r"\s", text) and not self._is_split(node)):
            return set()
        return {self._trim_folder(word) for word in re.split(r"[\s,=|:+\0]+", text)}

    def _is_split(self, node: ast.AST) -> bool:
        around = self.module.parents.get(node)
        return isinstance(around, ast.Attribute) and around.attr in ("split", "splitlines")

    def _trim_folder(self, word: str) -> str:
        """``dperm_cli.losses.hinge`` -> hinge; other dotted words stay."""
        folder, _, last = word.rpartition(".")
        known = {one.rpartition(".")[2] for one in self.plugins.folders}
        return last if folder.rpartition(".")[2] in known else word


def _read_label(node: ast.ClassDef) -> str | None:
    """The literal that a class calls itself by: ``name = "l2_ball"``."""
    for line in node.body:
        targets = line.targets if isinstance(line, ast.Assign) else [getattr(line, "target", None)]
        if any(isinstance(one, ast.Name) and one.id == "name" for one in targets):
            value = getattr(line, "value", None)
            return None if value is None else read_text(value)
    return None


def _spell_class(stem: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in stem.split("_"))


def _lies_in(package: Package, module: Module, folders: Iterable[str]) -> bool:
    return any(f"{module.name}.".startswith(f"{package.name}.{folder}.") for folder in folders)
