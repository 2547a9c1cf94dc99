"""What a source file holds: a digest of its syntax, and what it imports. It is not run."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from typing import Any

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.digests import hash_parts

# fields of a syntax tree that say nothing about what runs, or not in every version of Python
_IDLE_FIELDS = ("ctx", "kind", "type_comment")


@dataclass(frozen=True)
class Source:
    """One source file.

    Attributes:
        digest: Of the syntax, without comments, docstrings, layout and what is for type checkers.
        imports: Dotted names, each of a module or of something in one.
        plugins: (room, word) for each word that stands where a plug-in of the room is loaded by
            name. Not every such word is the name of a plug-in.
    """

    digest: str
    imports: tuple[str, ...]
    plugins: tuple[tuple[str, str], ...]


def read_source(text: bytes) -> Source:
    """What a source file holds, the same in every version of Python from 3.11 on."""
    tree = ast.parse(text)
    return Source(
        hash_parts(_spell(tree)),
        tuple(sorted(set(_list_imports(tree)))),
        tuple(sorted(set(_list_plugins(tree)))),
    )


def _spell(node: Any) -> str:
    if isinstance(node, ast.JoinedStr):
        # Python 3.12 ends some of them with an empty text
        empty = _spell(ast.Constant(""))
        return f"JoinedStr[{','.join(part for part in map(_spell, node.values) if part != empty)}]"
    if isinstance(node, ast.AST):
        fields = {name: getattr(node, name, None) for name in node._fields}
        spelled = [
            f"{name}={_spell(value)}"
            for name, value in fields.items()
            if name not in _IDLE_FIELDS and value is not None and value != []
        ]
        return f"{type(node).__name__}({','.join(spelled)})"
    if isinstance(node, list):
        return f"[{','.join(_spell(part) for part in node if not _is_idle(part))}]"
    return ascii(node)


def _is_idle(node: Any) -> bool:
    """Whether a statement does nothing when it runs: prose, or a block for type checkers."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    if isinstance(node, ast.If) and not node.orelse:
        return ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
    return False


def _list_imports(node: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            yield from (f"{child.module}.{alias.name}" for alias in child.names)
        elif not _is_idle(child):
            yield from _list_imports(child)


def _list_plugins(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Words beside ``registry.load(room, ..)``: in the statement at the top of the file that holds
    the call, and in the constants that it mentions."""
    constants = {
        node.id: _list_words(statement)
        for statement in tree.body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    for statement in tree.body:
        nodes = list(ast.walk(statement))
        loads = [node for node in nodes if isinstance(node, ast.Call) and _loads_plugin(node)]
        if loads:
            used = [constants.get(node.id, set()) for node in nodes if isinstance(node, ast.Name)]
            rooms = set[str]().union(*(_list_words(load.args[0]) for load in loads))
            yield from itertools.product(rooms, _list_words(statement).union(*used))


def _loads_plugin(call: ast.Call) -> bool:
    return bool(call.args) and ast.unparse(call.func) == "registry.load"


def _list_words(statement: ast.AST) -> set[str]:
    words = {str(node.value) for node in ast.walk(statement) if isinstance(node, ast.Constant)}
    return {word for word in words if word.isidentifier()}
