"""Offer classes of this process as plug-ins: those of a notebook's cells, and of imported modules.

The digest of a class with a file is that of the file, as for ``--plugin FILE.py``. A cell has no
file: the digest is that of the source of the class, and of what it uses of its cells (functions,
classes and plain values). Other processes cannot read a cell.
"""

from __future__ import annotations

import ast
import hashlib
import linecache
import os
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from dperm_cli.core import plugin_files, plugin_sources
from dperm_cli.core.errors import InputError
from dperm_cli.core.plugin_sources import PluginSource

_PLAIN = (int, float, str, bytes, bool, complex, tuple, frozenset, type(None))


def add_class(cls: type, for_workers: bool = False) -> PluginSource:
    """Offer a class under its name; a shipped one need not be offered.

    Args:
        cls: The class.
        for_workers: Whether other processes have to read it: then its file is loaded anew.

    Raises:
        InputError: It is no plug-in, its source cannot be read, or others could not read it.
    """
    path = find_file(cls)
    if path is not None and for_workers:
        return plugin_sources.add_file(path)
    if for_workers:
        allowed = (
            f"cannot be more than one: {cls.__name__} has no file, and other processes cannot read "
            "it; write it to a file and say plugins=['FILE.py']"
        )
        raise InputError("workers", "several", allowed)
    if path is not None:
        with open(path, "rb") as file:
            return plugin_sources.add_class(cls, path, hashlib.sha256(file.read()).hexdigest())
    text = "\n".join(_list_sources(cls))
    digest = hashlib.sha256(text.encode()).hexdigest()
    return plugin_sources.add_class(cls, f"class {cls.__name__} of {cls.__module__}", digest)


def is_shipped(cls: type) -> bool:
    """Whether the class is the package's own."""
    return cls.__module__.partition(".")[0] == __name__.partition(".")[0]


def name_class(cls: type) -> str:
    """The name of a plug-in's class in configurations."""
    if is_shipped(cls):
        return cls.__module__.rpartition(".")[2]
    own = vars(cls).get("name")
    return own if isinstance(own, str) and own else plugin_files.snake_case(cls.__name__)


def find_file(cls: type) -> str | None:
    """The file of an imported module; None for a notebook's cell and a script that is running."""
    module = sys.modules.get(cls.__module__)
    path = None if module is None else vars(module).get("__file__")
    return path if cls.__module__ != "__main__" and path and os.path.isfile(path) else None


def _list_sources(cls: type) -> list[str]:
    """The source of a class without a file, and what it uses of the module that it stands in."""
    known, found = _find_globals(cls), {}
    waiting: list[tuple[str, Any]] = [(cls.__name__, cls)]
    while waiting:
        name, made = waiting.pop()
        if name in found:
            continue
        if isinstance(made, type | FunctionType):
            if made.__module__ != cls.__module__:
                continue
            found[name] = _read_source(made)
            names = {word for code in _list_codes(made) for word in code.co_names}
            waiting += [(name, known[name]) for name in sorted(names) if name in known]
            if isinstance(made, type):
                waiting += [(base.__name__, base) for base in made.__bases__]
        elif isinstance(made, _PLAIN):
            found[name] = repr(made)
    return [f"{name} = {found[name]}" for name in sorted(found)]


def _find_globals(cls: type) -> dict[str, Any]:
    """The names that the methods of a class see: of the cells, where there are some."""
    for member in map(_unwrap, vars(cls).values()):
        if isinstance(member, FunctionType) and member.__module__ == cls.__module__:
            return member.__globals__
    return {}


def _read_source(made: Any) -> str:
    """The lines of a class or a function, found by the code in it; else by name, in the last cell
    that has it.
    """
    for code in _list_codes(made):
        text = "".join(linecache.getlines(code.co_filename))
        for first, last in _find_lines(text, made.__name__):
            if first <= code.co_firstlineno <= last:
                return "\n".join(text.splitlines()[first - 1 : last])
    for entry in reversed(list(linecache.cache.values())):
        if len(entry) == 4 and entry[1] is None:  # no file
            text = "".join(entry[2])
            for first, last in _find_lines(text, made.__name__):
                return "\n".join(text.splitlines()[first - 1 : last])
    allowed = "has no source that can be read: define it in a notebook's cell or in a file"
    raise InputError("plugins", made.__name__, allowed)


def _find_lines(text: str, name: str) -> list[tuple[int, int]]:
    """The first and last line of each class or function of this name, with its decorators."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except SyntaxError:  # a cell with commands of the notebook
        return []
    return [
        (min([node.lineno, *(one.lineno for one in node.decorator_list)]), node.end_lineno or 0)
        for node in nodes
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name
    ]


def _list_codes(made: Any) -> Iterator[CodeType]:
    """The code objects of a function, or of the methods of a class; those inside them too."""
    if isinstance(made, FunctionType):
        waiting = [made.__code__]
    else:
        # what dataclass adds has no lines of its own
        members = [_unwrap(one) for one in vars(made).values()]
        codes = [one.__code__ for one in members if isinstance(one, FunctionType)]
        waiting = [code for code in codes if code.co_filename != "<string>"]
    while waiting:
        code = waiting.pop()
        yield code
        waiting += [const for const in code.co_consts if isinstance(const, CodeType)]


def _unwrap(member: Any) -> Any:
    """The function behind a property, a class method or a static method."""
    if isinstance(member, property):
        return member.fget
    return member.__func__ if isinstance(member, staticmethod | classmethod) else member
