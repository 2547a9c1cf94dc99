"""Edits of the package's source that name what they change, not where its text stands.

An edit gives a symbol and two pieces of Python. The first piece must occur once inside the symbol,
as an expression or as statements in a row; the second takes its place. How the source is laid out,
which folder a module is in and what else stands in it do not matter.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

Body = list[ast.stmt]


def apply_edit(root: Path, symbol: str, old: str, new: str) -> tuple[str, str]:
    """The module that an edit changes, and its source after the edit.

    Args:
        root: The folder of the package.
        symbol: Module, by its last name or more of its path, and what stands in it:
            ``gate.Gate.stream``, ``events.base.Event``, ``noisy_gd.STEPS``.
        old: An expression or statements.
        new: What takes its place; empty to leave statements out.

    Returns:
        Path below ``root``; source text.

    Raises:
        ValueError: No or several modules fit the symbol, or ``old`` does not occur once in it.
    """
    file, name = find_symbol(root, symbol)
    return file, edit_source((root / file).read_text(), name, old, new)


def find_symbol(root: Path, symbol: str) -> tuple[str, str]:
    """The file below ``root`` that holds a symbol, and the symbol's name inside the file."""
    found = list(_list_homes(root, symbol))
    if len(found) != 1:
        places = ", ".join(file for file, _ in found) or "no module"
        raise ValueError(f"{symbol!r} is a symbol of {places}: it must be one")
    return found[0]


def edit_source(text: str, name: str, old: str, new: str) -> str:
    """The source with ``old`` replaced by ``new`` inside what ``name`` names."""
    tree = ast.parse(text)
    scope = _find_scope(tree, name)
    if scope is None:
        raise ValueError(f"there is no {name!r} in the module")
    pattern, replacement = ast.parse(old).body, ast.parse(new).body
    if _is_expression(pattern) and _is_expression(replacement):
        _replace_expression(scope, pattern[0].value, replacement[0].value)  # type: ignore[attr-defined]
    else:
        _replace_statements(scope, pattern, replacement)
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


@cache
def _list_modules(root: Path) -> tuple[str, ...]:
    return tuple(sorted(path.relative_to(root).as_posix() for path in root.rglob("*.py")))


def _list_homes(root: Path, symbol: str) -> Iterator[tuple[str, str]]:
    parts = symbol.split(".")
    for split in range(1, len(parts)):
        ending, name = "/" + "/".join(parts[:split]) + ".py", ".".join(parts[split:])
        for file in _list_modules(root):
            if f"/{file}".endswith(ending) and _find_scope(_parse(root / file), name):
                yield file, name


@cache
def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _find_scope(tree: ast.AST, name: str) -> ast.AST | None:
    """The definition or the assignment of a dotted name."""
    head, _, rest = name.partition(".")
    for node in getattr(tree, "body", ()):
        if head in _list_names(node):
            return _find_scope(node, rest) if rest else node
    return None


def _list_names(node: ast.stmt) -> list[str]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    parts = [part for target in targets for part in getattr(target, "elts", [target])]
    return [found.id for found in parts if isinstance(found, ast.Name)]


def _is_expression(body: Body) -> bool:
    return len(body) == 1 and isinstance(body[0], ast.Expr)


def _replace_expression(scope: ast.AST, old: ast.expr, new: ast.expr) -> None:
    wanted = ast.dump(old)
    found = [
        (holder, field, index)
        for holder in ast.walk(scope)
        for field, index, node in _list_children(holder)
        if isinstance(node, ast.expr) and ast.dump(node) == wanted
    ]
    _check_once(len(found), ast.unparse(old))
    holder, field, index = found[0]
    if index is None:
        setattr(holder, field, new)
    else:
        getattr(holder, field)[index] = new


def _list_children(holder: ast.AST) -> Iterator[tuple[str, int | None, Any]]:
    for field, value in ast.iter_fields(holder):
        if isinstance(value, list):
            yield from ((field, index, node) for index, node in enumerate(value))
        else:
            yield field, None, value


def _replace_statements(scope: ast.AST, old: Body, new: Body) -> None:
    wanted, length = [ast.dump(line) for line in old], len(old)
    found = [
        (body, start)
        for body in _list_bodies(scope)
        for start in range(len(body) - length + 1)
        if [ast.dump(line) for line in body[start : start + length]] == wanted
    ]
    _check_once(len(found), "\n".join(map(ast.unparse, old)))
    body, start = found[0]
    body[start : start + length] = new
    if not body:
        body.append(ast.Pass())


def _list_bodies(scope: ast.AST) -> Iterator[Body]:
    for node in ast.walk(scope):
        for _, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                yield value


def _check_once(times: int, text: str) -> None:
    if times != 1:
        raise ValueError(f"found {times} times, not once: {text}")
