"""The trips of ``docs/architecture.md``: files that a value passes, one after another.

    ## Trip: epsilon to noise

    Any sentences.

    1. `dperm_cli/runner/cells/run_cell.py`: what happens here, in `run()`.
    2. `dperm_cli/mechanisms/base.py`: ...
    3. back in `dperm_cli/runner/cells/run_cell.py`: ...
    4. handed to `dperm_cli/results/records/store.py`: ...

A trip is a numbered list below such a heading. A step begins with a path from the repository's
top, and how it is reached is told by the words before the path:

* none: the step before it calls it. The file before it uses something that this file defines; or
  this file extends a class of the file before it, as plug-ins do.
* ``back in``: a file that the trip has been to already gets an answer.
* ``handed to``: this file uses something that the file before it defines, as when it is given an
  object of that class.

A name in backticks that ends in ``()`` is defined in the step's file. A step may have any number of
sentences, also on further lines that are indented.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass

from tests.structure.names import Names
from tests.structure.source import FUNCTIONS, Module

CALLED, BACK, HANDED = "", "back in", "handed to"
_HEADING = re.compile(r"^## Trip: (.+?)\s*$", re.MULTILINE)
_STEP = re.compile(rf"\d+\. +({BACK} |{HANDED} |)`([^`]+)`(.*)", re.DOTALL)
_DEFINED = re.compile(r"`(?:\w+\.)*(\w+)\(\)`")


@dataclass(frozen=True)
class Step:
    """One file of a trip.

    Attributes:
        file: Its path from the repository's top.
        reached: CALLED, BACK or HANDED.
        names: What the text says that the file defines.
    """

    file: str
    reached: str
    names: tuple[str, ...]


def read_trips(page: str) -> dict[str, list[Step]]:
    """The trips of a page, by name.

    Args:
        page: The text in Markdown.

    Returns:
        The steps of each trip, in order.

    Raises:
        ValueError: An item of a trip's list does not begin with a path.
    """
    parts = _HEADING.split(page)
    return {name: _read_steps(text) for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def _read_steps(text: str) -> list[Step]:
    body = re.split(r"^#", text, maxsplit=1, flags=re.MULTILINE)[0]
    steps = []
    for item in re.split(r"^(?=\d+\. )", body, flags=re.MULTILINE)[1:]:
        own = re.split(r"\n(?=\S)|\n\n", item)[0]  # the item ends where a line is not indented
        found = _STEP.match(own)
        if not found:
            raise ValueError(f"a step has to begin with a path in backticks: {own.strip()[:60]}")
        words, file, rest = found.groups()
        steps.append(Step(file, words.strip(), tuple(_DEFINED.findall(rest))))
    return steps


def find_faults(steps: Iterable[Step], names: Names) -> list[str]:
    """What is not true of a trip.

    Args:
        steps: The trip.
        names: The package's names.

    Returns:
        A line a fault; none for a trip that is true.
    """
    files = {module.file: module for module in names.package}
    faults: list[str] = []
    seen: list[str] = []
    for step in steps:
        module = files.get(step.file)
        if module is None:
            return [*faults, f"{step.file} is no file of the package"]
        defined = _list_definitions(module)
        faults += [
            f"{step.file} does not define {name}" for name in step.names if name not in defined
        ]
        if seen:
            faults += _find_gap(files[seen[-1]], module, step.reached, seen, names)
        elif step.reached:
            faults.append(f"{step.file} is the first step: nothing comes before it")
        seen.append(step.file)
    return faults


def _find_gap(
    before: Module, here: Module, reached: str, seen: list[str], names: Names
) -> list[str]:
    if reached == BACK:
        return [] if here.file in seen[:-1] else [f"{here.file} was not on the trip before"]
    if reached == HANDED:
        right = _uses(here, before, names)
        return [] if right else [f"{here.file} uses nothing of {before.file}"]
    right = _uses(before, here, names) or _extends(here, before, names)
    return [] if right else [f"{before.file} uses nothing of {here.file}"]


def _uses(module: Module, other: Module, names: Names) -> bool:
    """Whether a module mentions something, outside its imports, that another one defines."""
    mentions = (node for node in module.nodes if isinstance(node, ast.Name | ast.Attribute))
    return any(_is_from(module, node, other, names) for node in mentions)


def _extends(module: Module, base: Module, names: Names) -> bool:
    """Whether a module has a class that extends a class of another, directly or not."""
    family = {name for name, (home, _) in names.classes.items() if home is base}
    family = names.find_family(family) - family
    return any(names.classes[name][0] is module for name in family if name in names.classes)


def _is_from(module: Module, node: ast.AST, other: Module, names: Names) -> bool:
    found = names.find_meanings(module, node, False)
    return module is not other and any(
        name != other.name and names.package.trim_to_module(name) == other.name for name in found
    )


def _list_definitions(module: Module) -> set[str]:
    kinds = (*FUNCTIONS, ast.ClassDef)
    return {node.name for node in module.nodes if isinstance(node, kinds)}
