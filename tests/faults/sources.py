"""What a test hangs on in the sources of the tests: its own code, and what this uses of them.

A definition counts as it is parsed, so that comments, layout and docstrings do not, nor the version
of Python. Followed are names of its file, names that it imports from other files of the tests,
fixtures, and files of its folder that it starts: any that a text names, as in ``"-m",
"tests.faults.zygote"``. A folder that is handed to pytest is not followed.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

_LEFT_OUT = ("ctx", "kind", "type_comment")
_ALWAYS = ("pytestmark",)
_BY_NAME = ("getfixturevalue", "usefixtures")
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_FILES = re.compile(r"\btests\.faults\.(\w+)|\b(\w+)\.py\b")


@dataclass(frozen=True)
class Source:
    """One file of the tests, and what its statements define."""

    path: Path

    @cached_property
    def statements(self) -> list[ast.stmt]:
        found = ast.parse(self.path.read_text()).body
        return [statement for statement in found if not _is_docstring(statement)]

    @cached_property
    def definitions(self) -> dict[str, list[ast.stmt]]:
        """name -> the statements that bind it in the module."""
        found: dict[str, list[ast.stmt]] = {}
        for statement in self.statements:
            for name in _list_bound(statement):
                found.setdefault(name, []).append(statement)
        return found


@dataclass
class Sources:
    """The files of one tree of tests, each read once; ``root`` has the folder ``tests``."""

    root: Path
    _read: dict[Path, Source | None] = field(default_factory=dict)
    _uses: dict[ast.stmt, list[tuple[Path, str]]] = field(default_factory=dict)
    _words: dict[ast.stmt, str] = field(default_factory=dict)

    def find(self, path: Path) -> Source | None:
        """The source of a file; None where there is no such file."""
        if path not in self._read:
            self._read[path] = Source(path) if path.is_file() else None
        return self._read[path]

    def digest_test(self, path: Path, name: str) -> str:
        """A digest of a test function and of all that it uses of the tests.

        Args:
            path: Its file.
            name: The function.

        Returns:
            16 hexadecimal digits.
        """
        parts = sorted(self._describe(*place) for place in self._follow(path, name))
        return hashlib.blake2b("\n".join(parts).encode(), digest_size=8).hexdigest()

    def _follow(self, path: Path, name: str) -> Iterator[tuple[Path, ast.stmt]]:
        """Each statement that the function hangs on, with its file, once."""
        seen: set[ast.stmt] = set()
        asked: set[tuple[Path, str]] = set()
        waiting = [(path, one) for one in (name, *_ALWAYS)]
        while waiting:
            where, wanted = waiting.pop()
            if (where, wanted) in asked:
                continue
            asked.add((where, wanted))
            for statement in self._define(where, wanted):
                if isinstance(statement, ast.Import | ast.ImportFrom):
                    waiting += self._list_imports(statement, wanted)
                elif statement not in seen:
                    seen.add(statement)
                    if statement not in self._uses:
                        self._uses[statement] = list(self._list_uses(where, statement))
                    waiting += self._uses[statement]
                    yield where, statement

    def _describe(self, path: Path, statement: ast.stmt) -> str:
        if statement not in self._words:
            self._words[statement] = f"{path.name}: {describe(statement)}"
        return self._words[statement]

    def _define(self, path: Path, name: str) -> list[ast.stmt]:
        """The statements of a file that bind a name; all of them for the name ``*``."""
        source = self.find(path)
        if source is None:
            return []
        return source.statements if name == "*" else source.definitions.get(name, [])

    def _list_uses(self, path: Path, statement: ast.stmt) -> Iterator[tuple[Path, str]]:
        """(file, name) of what a statement may use."""
        for node in _walk(statement):
            if isinstance(node, ast.Name):
                yield path, node.id
            elif isinstance(node, ast.arg):
                yield self._find_fixture(path, node.arg)
            elif isinstance(node, ast.ImportFrom | ast.Import):
                yield from self._list_imports(node, "*")
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if node.func.attr in _BY_NAME:
                    words = [one.value for one in node.args if isinstance(one, ast.Constant)]
                    yield from (self._find_fixture(path, str(word)) for word in words)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                for module, file in _FILES.findall(node.value):
                    yield path.with_name(f"{module or file}.py"), "*"

    def _find_fixture(self, path: Path, name: str) -> tuple[Path, str]:
        """Where a name is defined that pytest may look up: in the file or the nearest conftest."""
        for place in (path, *(folder / "conftest.py" for folder in path.parents)):
            if self._define(place, name) or place.parent == self.root:
                return place, name
        return path, name

    def _list_imports(
        self, node: ast.ImportFrom | ast.Import, wanted: str
    ) -> Iterator[tuple[Path, str]]:
        """(file, name) of what is imported of the tests by the name that is wanted, or by any."""
        module = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            whole = f"{module}.{alias.name}".strip(".")
            if whole.split(".")[0] != "tests" or wanted not in ("*", _name_bound(alias)):
                continue
            file = self.root.joinpath(*whole.split("."))
            if file.with_suffix(".py").is_file():
                yield file.with_suffix(".py"), "*"
            else:
                yield file.parent.with_suffix(".py"), alias.name


def describe(node: object) -> str:
    """A node of a syntax tree in words that are the same in every version of Python."""
    if isinstance(node, list):
        return f"[{' '.join(describe(one) for one in node if not _is_docstring(one))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    words = [type(node).__name__]
    for name, value in ast.iter_fields(node):
        if name not in _LEFT_OUT and value is not None and value != []:
            words.append(f"{name}={describe(value)}")
    return f"({' '.join(words)})"


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it, without docstrings."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not _is_docstring(child):
            yield from _walk(child)


def _is_docstring(node: object) -> bool:
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
        return False
    return isinstance(node.value.value, str)


def _name_bound(alias: ast.alias) -> str:
    return (alias.asname or alias.name).partition(".")[0]


def _list_bound(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement of a module binds."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
        return
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.alias):
            yield _name_bound(node)
        if not isinstance(node, _COMPREHENSIONS):  # what they bind stays in them
            waiting += ast.iter_child_nodes(node)
