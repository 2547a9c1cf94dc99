"""Which files the code of a plug-in comes from, so that its digest covers all of it."""

from __future__ import annotations

import ast
import importlib.util
import os
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

from dperm_cli.core.digests import hash_file, hash_sha256
from dperm_cli.core.errors import InputError

_OWN = __name__.partition(".")[0]


def refuse_neighbours(key: str, path: str, content: bytes) -> None:
    """InputError where a file imports, anywhere in it, what is no library and lies in no package.

    Args:
        key: What the user typed the file behind.
        path: The file.
        content: Its bytes.
    """
    for module in sorted(set(_list_imports(ast.parse(content)))):
        if module.startswith("."):
            raise _refuse(key, path, module)
        top = module.partition(".")[0]
        if top in sys.stdlib_module_names or top == _OWN:
            continue
        beside = os.path.join(os.path.dirname(path), top)
        if is_installed(_find_origin(top)):
            continue
        if _find_origin(top) or os.path.isfile(f"{beside}.py") or os.path.isdir(beside):
            raise _refuse(key, path, top)


def refuse_loaded(key: str, path: str, modules: Iterable[str]) -> None:
    """InputError where modules that a file has loaded lie in its own folder."""
    folder = os.path.realpath(os.path.dirname(path))
    for name in sorted(modules):
        loaded = vars(sys.modules[name]).get("__file__") if name in sys.modules else None
        if not isinstance(loaded, str) or is_installed(loaded):
            continue
        beside = os.path.realpath(loaded).startswith(folder + os.sep)
        if beside and name.partition(".")[0] != _OWN:
            raise _refuse(key, path, name)


def find_own_file(module: ModuleType) -> str | None:
    """The file of a module that is neither this package's nor a library's."""
    path = vars(module).get("__file__")
    if not isinstance(path, str) or is_installed(path) or not os.path.isfile(path):
        return None
    top = module.__name__.partition(".")[0]
    return None if top == _OWN or top in sys.stdlib_module_names else path


def hash_module(key: str, module: ModuleType, path: str) -> tuple[str, str]:
    """The path and SHA-256 of all files that the code of an imported module is made of.

    Args:
        key: What the user gave the module, or a class of it, by.
        module: The module.
        path: Its file.

    Returns:
        Those of its file, or of the whole package that it is in.

    Raises:
        InputError: It is in no package, and imports what is no library.
    """
    if is_in_package(module.__name__):
        return hash_package(sys.modules[module.__name__.partition(".")[0]])
    content = Path(path).read_bytes()
    refuse_neighbours(key, path, content)
    return path, hash_sha256(content)


def is_in_package(module: str) -> bool:
    """Whether an imported module is a package, or in one."""
    top = sys.modules.get(module.partition(".")[0])
    return top is not None and "__path__" in vars(top)


def hash_package(module: ModuleType) -> tuple[str, str]:
    """The folder or file of a topmost module, and SHA-256 of all source files in it."""
    origin = vars(module).get("__file__")
    folders = list(vars(module).get("__path__", ()))
    if not folders:
        return os.path.abspath(str(origin)), hash_file(Path(str(origin)))
    return os.path.abspath(folders[0]), hash_folders(folders)


def hash_folders(folders: Iterable[str]) -> str:
    """SHA-256 of all source files in the folders of a package; nothing is run."""
    parts: list[bytes] = []
    for folder in folders:
        for file in sorted(Path(folder).rglob("*.py")):
            name = file.relative_to(folder).as_posix().encode()
            parts += [name, b"\0", file.read_bytes(), b"\0"]
    return hash_sha256(*parts)


def _refuse(key: str, path: str, module: str) -> InputError:
    words = f"imports {module}, which is no installed package: its digest would not cover that "
    words += "code; put it into the one file, or make a package with entry points dperm.*"
    return InputError(key, path, words)


def _list_imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


@cache
def _list_installed() -> tuple[str, ...]:
    """The folders where packages are installed."""
    paths = [sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib", "platstdlib")]
    paths += [*site.getsitepackages(), site.getusersitepackages()]
    return tuple({os.path.realpath(path) + os.sep for path in paths if path})


def is_installed(origin: str) -> bool:
    """Whether a file is Python's or an installed package's."""
    return bool(origin) and os.path.realpath(origin).startswith(_list_installed())


def _find_origin(top: str) -> str:
    """Where a topmost module would be imported from; empty where it is not found."""
    try:
        found = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return ""
    if found is None:
        return ""
    places = list(found.submodule_search_locations or ())
    return found.origin or (places[0] if places else "")
