"""Offer classes of this process as plug-ins: those of a notebook's cells, and of imported modules.

The digest of a class with a file is that of the file, as for ``--plugin FILE.py``, or of the whole
package that the file is in. A file in no package must not import one beside it. A cell has no
file: the digest is that of the source of the class, and of what it uses of its cells (functions,
classes and values) and of files that are no library. Other processes cannot read a cell.
"""

from __future__ import annotations

import ast
import dis
import linecache
import os
import pickle
import sys
import textwrap
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from dperm_cli.core import imported_files, plugin_files, plugin_sources
from dperm_cli.core.digests import hash_sha256
from dperm_cli.core.errors import InputError
from dperm_cli.core.plugin_sources import PluginSource

_PLAIN = (int, float, str, bytes, bool, complex, type(None))
_LOADS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")


def add_class(cls: type, for_workers: bool = False) -> PluginSource:
    """Offer a class under its name; a shipped one need not be offered.

    Args:
        cls: The class.
        for_workers: Whether other processes have to read it: then a file that is in no package is
            loaded anew. A package they import.

    Raises:
        InputError: It is no plug-in, its source cannot be read, or others could not read it.
    """
    path = find_file(cls)
    if path is not None and for_workers and not imported_files.is_in_package(cls.__module__):
        return plugin_sources.add_file(path)
    if path is None and for_workers:
        allowed = (
            f"cannot be more than one: {cls.__name__} has no file, and other processes cannot read "
            "it; write it to a file and say plugins=['FILE.py']"
        )
        raise InputError("workers", "several", allowed)
    if path is not None:
        found = imported_files.hash_module("plugins", sys.modules[cls.__module__], path)
        return plugin_sources.add_class(cls, *found)
    digest = hash_sha256("\n".join(_list_sources(cls)))
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
                found[name] = _describe_module(sys.modules.get(made.__module__))
                continue
            found[name] = _read_source(made)
            names = _list_names(found[name])
            waiting += [(name, known[name]) for name in sorted(names) if name in known]
            if isinstance(made, type):
                waiting += [(base.__name__, base) for base in made.__bases__]
        else:
            found[name] = _describe_value(name, made)
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


def _list_names(source: str) -> set[str]:
    """The names that the source of a class or function looks up outside of it."""
    waiting, found = [compile(textwrap.dedent(source), "<source>", "exec")], set[str]()
    while waiting:
        code = waiting.pop()
        loads = (one for one in dis.get_instructions(code) if one.opname in _LOADS)
        found.update(str(one.argval) for one in loads)
        waiting += [const for const in code.co_consts if isinstance(const, CodeType)]
    return found


def _describe_value(name: str, made: Any) -> str:
    """A value that a class uses, so that another one gives other text."""
    if isinstance(made, _PLAIN):
        return repr(made)
    if isinstance(made, ModuleType):
        return _describe_module(made)
    if type(made) in (list, tuple):
        return f"{type(made).__name__}({[_describe_value(name, one) for one in made]})"
    if type(made) in (set, frozenset):
        return f"set({sorted(_describe_value(name, one) for one in made)})"
    if type(made) is dict:
        return f"dict({[(repr(key), _describe_value(name, one)) for key, one in made.items()]})"
    try:
        return hash_sha256(pickle.dumps(made, protocol=4))
    except Exception:  # whatever the object's own methods raise
        text = repr(made)
    if " at 0x" in text:
        allowed = f"is a {type(made).__name__}, which no digest covers: make it a function, a "
        raise InputError("plugins", name, f"{allowed}number, a text, a list, a map or an array")
    return text


def _describe_module(module: ModuleType | None) -> str:
    """Code from a module: its name, and the digest of its files if it is no library."""
    if module is None:
        return ""
    path = imported_files.find_own_file(module)
    digest = imported_files.hash_module("plugins", module, path)[1] if path else ""
    return module.__name__ + digest


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
