"""The source text of a package: its modules as syntax trees. Nothing is imported or run."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LAYOUT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER, tokenize.ENCODING,
}  # fmt: skip


@dataclass(frozen=True)
class Place:
    """A line that a measure objects to.

    Attributes:
        file: The path from the repository's top, with forward slashes.
        line: The line's number, from 1.
        text: What is there, in a few words.
    """

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


class Module:
    """One file of Python.

    Attributes:
        name: The dotted name, ``dperm_cli.core.errors``; a package's is that of its folder.
        file: The path from the repository's top.
        is_package: Whether the file is an ``__init__.py``.
        text: The whole text.
        tree: The syntax tree.
    """

    def __init__(self, name: str, file: str, text: str) -> None:
        self.name = name
        self.file = file
        self.is_package = file.endswith("__init__.py")
        self.text = text
        self.tree = ast.parse(text, filename=file)

    @property
    def room(self) -> str:
        """The first part of the name after the package; empty for the package itself."""
        return f"{self.name}.".split(".")[1]

    @property
    def folder(self) -> str:
        """The dotted name that relative imports start from."""
        return self.name if self.is_package else self.name.rpartition(".")[0]

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes, each before those inside it."""
        found: list[ast.AST] = []
        waiting: list[ast.AST] = [self.tree]
        while waiting:
            node = waiting.pop()
            found.append(node)
            waiting += list(ast.iter_child_nodes(node))[::-1]
        return tuple(found)

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """The node around each node, but for the module's own."""
        return {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}

    @cached_property
    def prose(self) -> set[ast.Constant]:
        """Strings that stand alone as a statement: docstrings, and notes below attributes."""
        alone = (node.value for node in self.nodes if isinstance(node, ast.Expr))
        return {node for node in alone if isinstance(node, ast.Constant) and _is_text(node)}

    @cached_property
    def code_lines(self) -> frozenset[int]:
        """The numbers of the lines that hold code: no blank line, no comment, no prose."""
        written = self.text.splitlines()
        lines: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type not in _LAYOUT:
                lines.update(range(token.start[0], token.end[0] + 1))
        for node in self.prose:
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        return frozenset(line for line in lines if line > len(written) or written[line - 1].strip())

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """All functions and methods, those inside others as well, in the order of the text."""
        nodes = (node for node in self.nodes if isinstance(node, FUNCTIONS))
        return tuple(sorted(nodes, key=lambda node: node.lineno))

    def climb(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, from the nearest to the module."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def make_place(self, node: ast.AST, text: str) -> Place:
        """The place of a node in this file."""
        return Place(self.file, getattr(node, "lineno", 1), text)


class Package:
    """A package's modules.

    Attributes:
        name: The package's name.
        modules: The modules by their dotted names.
    """

    def __init__(self, root: Path, name: str) -> None:
        self.name = name
        self.modules = {module.name: module for module in _read_modules(root, name)}
        if not self.modules:
            raise ValueError(f"there is no Python file in {root / name}")

    def __iter__(self) -> Iterator[Module]:
        return iter(self.modules.values())

    def trim_to_module(self, name: str) -> str | None:
        """The longest beginning of a dotted name that is a module of this package, if any."""
        while name and name not in self.modules:
            name = name.rpartition(".")[0]
        return name or None


def read_text(node: ast.AST) -> str | None:
    """What a string literal says, also in parts: ``"l1_" "ball"``, ``"l1_" + "ball"``, f-strings.

    Args:
        node: Any expression.

    Returns:
        The text, with a NUL for every value that an f-string fills in; None for anything else.
    """
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(read_text(part) or "\0" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = read_text(node.left), read_text(node.right)
        return None if left is None or right is None else left + right
    return None


def _is_text(node: ast.Constant) -> bool:
    return isinstance(node.value, str)


def _read_modules(root: Path, name: str) -> Iterator[Module]:
    for path in sorted((root / name).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        dotted = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        with tokenize.open(path) as file:
            yield Module(dotted, path.relative_to(root).as_posix(), file.read())
