"""Who imports whom: circles between modules, arrows between rooms, private modules."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from tests.structure import rooms
from tests.structure.names import Names, find_home
from tests.structure.source import FUNCTIONS, Module, Place, read_text

Kind = Literal["module", "function", "typing"]
_CALLS = {"importlib.import_module", "builtins.__import__"}


@dataclass(frozen=True)
class Import:
    """One module of the package that a statement imports.

    Attributes:
        source: The module that imports.
        target: The dotted name of the module that is imported.
        kind: ``module``: whenever the source is imported; ``function``: when a function is
            called; ``typing``: never, for type checkers only.
        node: The statement.
        room: The room of the target.
    """

    source: Module
    target: str
    kind: Kind
    node: ast.AST
    room: str

    def make_place(self, note: str = "") -> Place:
        """Where the statement is."""
        return self.source.make_place(self.node, f"imports {self.target}{note}")


def list_imports(names: Names) -> list[Import]:
    """All imports inside the package, one for each module that a statement names.

    Args:
        names: The package's names.

    Returns:
        The imports in the order of the files; ``importlib.import_module("...")`` is one too.
    """
    return [
        Import(module, target, _find_kind(names, module, node), node, room)
        for module in names.package
        for node in module.nodes
        for target, room in dict.fromkeys(_list_targets(names, module, node))
    ]


def find_circles(imports: Iterable[Import], kinds: tuple[Kind, ...]) -> list[Place]:
    """Imports that are part of a circle.

    Args:
        imports: All imports.
        kinds: Which imports count; those of the last kind are listed.

    Returns:
        Every import of the last kind from whose target a way leads back to its source.
    """
    chosen = [one for one in imports if one.kind in kinds]
    graph: dict[str, set[str]] = {}
    for one in chosen:
        graph.setdefault(one.source.name, set()).add(one.target)
    places = []
    for one in chosen:
        way = _find_way(graph, one.target, one.source.name) if one.kind == kinds[-1] else None
        if way:
            places.append(one.make_place(f" ({' -> '.join(way)})"))
    return places


def find_upward(imports: Iterable[Import], kinds: tuple[Kind, ...]) -> list[Place]:
    """Imports of a room above, beside, or without a place in the table of rooms."""
    return [
        one.make_place(f" (from {one.source.room} up to {one.room})")
        for one in imports
        if one.kind in kinds
        and one.source.room
        and one.room
        and rooms.points_upward(one.source.room, one.room)
    ]


def find_private(imports: Iterable[Import]) -> list[Place]:
    """Imports of a module with a leading underscore, its own or a folder's, by another room."""
    return [
        one.make_place(f" (from {one.source.room or 'the package'})")
        for one in imports
        if one.source.room != one.room and _is_private(one.target)
    ]


def _is_private(name: str) -> bool:
    return any(part.startswith("_") and part[:2] != "__" for part in name.split("."))


def _list_targets(names: Names, module: Module, node: ast.AST) -> Iterator[tuple[str, str]]:
    package = names.package
    if isinstance(node, ast.Import):
        dotted = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        home = find_home(module, node)
        dotted = [f"{home}.{alias.name}" for alias in node.names]
    elif isinstance(node, ast.Call) and node.args:
        text = read_text(node.args[0])
        calls = names.find_meanings(module, node.func) & _CALLS
        dotted = [text] if text and calls and "\0" not in text else []
    else:
        return
    for name in dotted:
        target = package.trim_to_module(name)
        if target is not None and name.split(".")[0] == package.name:
            yield from _chase(names, name, target)


def _chase(names: Names, name: str, target: str) -> Iterator[tuple[str, str]]:
    """The module and the room; for a name that the package itself offers, those it comes from."""
    package = names.package
    if target != package.name or name in (target, f"{target}.*"):
        yield target, package.modules[target].room
        return
    origins = names.resolve(name)
    for origin in origins:
        home = package.trim_to_module(origin)
        if home and home != package.name:
            yield home, package.modules[home].room
        else:
            yield target, "" if _is_bound(names, name) else rooms.FRONT


def _is_bound(names: Names, name: str) -> bool:
    root = names.package.modules[names.package.name]
    last = name.rpartition(".")[2]
    stored = (one for one in ast.walk(root.tree) if isinstance(one, ast.Name))
    written = {one.id for one in stored if isinstance(one.ctx, ast.Store)}
    return last in written or name in names.functions or name in names.classes


def _find_kind(names: Names, module: Module, node: ast.AST) -> Kind:
    inner, kind = node, "module"
    for outer in module.climb(node):
        if isinstance(outer, ast.If) and _is_for_typing(names, module, outer, inner):
            return "typing"
        if isinstance(outer, (*FUNCTIONS, ast.Lambda)):
            kind = "function"
        inner = outer
    return "function" if kind == "function" else "module"


def _is_for_typing(names: Names, module: Module, branch: ast.If, inner: ast.AST) -> bool:
    test, body = branch.test, branch.body
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, body = test.operand, branch.orelse
    checks = "typing.TYPE_CHECKING" in names.find_meanings(module, test)
    return checks and any(inner is one for one in body)


def _find_way(graph: dict[str, set[str]], start: str, goal: str) -> list[str] | None:
    """The shortest way from start to goal, both included; None where there is none."""
    came: dict[str, str] = {}
    waiting, seen = deque([start]), {start}
    while waiting:
        here = waiting.popleft()
        if here == goal:
            return _walk_back(came, here)
        for there in sorted(graph.get(here, ())):
            if there not in seen:
                seen.add(there)
                came[there] = here
                waiting.append(there)
    return None


def _walk_back(came: dict[str, str], here: str) -> list[str]:
    way = [here]
    while here in came:
        here = came[here]
        way.append(here)
    return way[::-1]
