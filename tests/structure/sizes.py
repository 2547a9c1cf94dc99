"""How long functions and modules are, in lines that hold code."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from tests.structure.source import Function, Module, Package, Place


def count_code_lines(package: Package) -> int:
    """Lines of code of all modules, without blank lines, comments and docstrings."""
    return sum(len(module.code_lines) for module in package)


def measure_functions(package: Package) -> list[tuple[int, Place]]:
    """The length of every function's body, longest first.

    A function inside another one counts by itself and in the outer one's body. Functions that only
    declare something (a docstring, ``...`` or ``pass``) have no body and are left out.

    Args:
        package: The modules.

    Returns:
        Pairs of a number of lines and the function's place.
    """
    found = []
    for module in package:
        for function in module.functions:
            if not _only_declares(module, function):
                length = _count_body(module, function)
                place = module.make_place(function, f"{function.name}: {length} lines")
                found.append((length, place))
    return sorted(found, key=lambda pair: (-pair[0], pair[1].file, pair[1].line))


def find_percentile(lengths: Iterable[int], percent: int) -> int:
    """The least length that at least ``percent`` of a hundred functions do not exceed."""
    ordered = sorted(lengths)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)] if ordered else 0


def find_long_modules(package: Package, most: int) -> list[Place]:
    """Modules of more than ``most`` lines, all lines of the file counted."""
    counts = [(len(module.text.splitlines()), module) for module in package]
    return [Place(module.file, 1, f"{n} lines") for n, module in counts if n > most]


def _count_body(module: Module, function: Function) -> int:
    first, last = function.body[0].lineno, function.end_lineno or function.lineno
    return sum(first <= line <= last for line in module.code_lines)


def _only_declares(module: Module, function: Function) -> bool:
    return all(_says_nothing(module, line) for line in function.body)


def _says_nothing(module: Module, line: ast.stmt) -> bool:
    if isinstance(line, ast.Expr):
        return line.value in module.prose or _is_dots(line.value)
    return isinstance(line, ast.Pass)


def _is_dots(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is Ellipsis
