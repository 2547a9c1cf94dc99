"""A digest of the code that made a record: records are named by what made them."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import dperm_cli
from dperm_cli import __version__
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.digests import hash_facts
from dperm_cli.core.installed_versions import find_version
from dperm_cli.core.package_paths import cache_dir
from dperm_cli.results.record_format import CodeIdentity
from dperm_cli.runner.cells.source_tree import SourceTree

# What a record says nothing of: what is shown at the keyboard, where files lie, how records are
# stored and shown, and how arguments become a configuration, which is in a record's name itself.
SILENT = (
    "core.catalogue", "core.installed_versions", "core.late_imports", "core.package_paths",
    "core.private_folders", "core.progress", "results",
    "runner.cells.record_digest", "runner.cells.source_file", "runner.cells.source_tree",
    "runner.compose.command_line", "runner.compose.composer", "runner.compose.fitting_mechanism",
    "runner.compose.study_plan", "runner.compose.tuning", "runner.sweep.backends",
    "runner.sweep.progress", "runner.sweep.slurm_jobs",
)  # fmt: skip
# libraries that compute nothing
SILENT_LIBRARIES = ("filelock", "joblib", "threadpoolctl")


@dataclass(frozen=True)
class Code:
    """The code behind some results.

    Attributes:
        sources: The digest of each source file, by its module.
        libraries: The versions of the libraries that compute, None for one that says none.
    """

    sources: Mapping[str, str]
    libraries: Mapping[str, str | None]

    def digest(self) -> str:
        """20 hex digits of all of it."""
        return hash_facts([self.sources, self.libraries])


def name_record(facts: Sequence[Any], *parts: Any) -> str:
    """The name of a record: a hash of what made it.

    Args:
        facts: The configuration, and names of the data and files that were read; JSON-able.
        parts: As of ``code_digest``.

    Returns:
        24 hex digits.
    """
    return hash_facts([*facts, __version__, code_digest(*parts)], size=12)


def code_digest(*parts: Any) -> str:
    """Hex digest of the code behind some results: records of other code are never mixed with them.

    Args:
        parts: Modules and functions that make the results, and objects that they are made with.

    Returns:
        20 hex digits. They depend on no comment, docstring or layout, nor on Python's version.
    """
    return _digest_modules(list_modules(*parts))


def identify_code(*parts: Any) -> CodeIdentity:
    """The code behind some results, as their record keeps it.

    Args:
        parts: As of ``code_digest``.
    """
    return _identify_modules(list_modules(*parts))


def is_of_today(code: CodeIdentity | None) -> bool:
    """Whether this dperm's code is the one that a record names. Its libraries may be others."""
    if code is None or code.version != __version__:
        return False
    try:
        return _identify_modules(frozenset(code.modules)) == code
    except (OSError, ValueError, SyntaxError, RecursionError):  # modules of a stranger's choice
        return False


def list_modules(*parts: Any) -> frozenset[str]:
    """Modules that are named, and those that define functions, classes, and objects with what
    their fields hold.

    >>> sorted(list_modules("dperm_cli.loops.sgd", Code({}, {})))
    ['dperm_cli.loops.sgd', 'dperm_cli.runner.cells.record_digest']
    """
    named = {part for part in parts if isinstance(part, str)}
    return frozenset(made.__module__ for part in parts for made in list_classes(part)) | named


def find_code(modules: Iterable[str], tree: SourceTree | None = None) -> Code:
    """The modules, all that they import inside the package, and the libraries of all these.

    Args:
        modules: Dotted names.
        tree: The package's source files; by default those of this dperm.
    """
    tree = _open_package() if tree is None else tree
    found = tree.close_imports(modules, [f"{tree.package}.{name}" for name in SILENT])
    imports = {name.partition(".")[0] for source in found.values() for name in source.imports}
    libraries = imports - {*sys.stdlib_module_names, *SILENT_LIBRARIES, tree.package}
    return Code(
        {name: source.digest for name, source in found.items()},
        {name: find_version(name) for name in libraries},
    )


@cache
def _identify_modules(modules: frozenset[str]) -> CodeIdentity:
    sources = hash_facts(_find_own_code(modules).sources)
    return CodeIdentity(__version__, sources, tuple(sorted(modules)))


@cache
def _digest_modules(modules: frozenset[str]) -> str:
    return _find_own_code(modules).digest()


@cache
def _find_own_code(modules: frozenset[str]) -> Code:
    return find_code(modules)


@cache
def _open_package() -> SourceTree:
    folder = cache_dir()
    memo = None if folder is None else folder / "dperm-sources.json"
    return SourceTree(Path(dperm_cli.__file__).parent, memo)


def list_classes(part: Any) -> Iterator[Any]:
    """A function or class itself; the class of an object, and of what its fields hold."""
    if inspect.isfunction(part) or inspect.isclass(part):
        yield part
    elif dataclasses.is_dataclass(part):
        yield type(part)
        for field in dataclasses.fields(part):
            value = getattr(part, field.name)
            values = tuple(value.values()) if isinstance(value, Mapping) else value
            for one in values if isinstance(values, list | tuple) else (values,):
                yield from list_classes(one)
