"""Every plug-in, contract, view and bound has an example in its docstring that runs.

Mechanisms, events and channels have tests of their own beside their rooms' tests.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from types import ModuleType

import pytest

from dperm_cli import bounds, views
from dperm_cli.bounds.base import bound
from dperm_cli.core import registry
from dperm_cli.core.memo import memoise
from tests.structure.examples import find_faults

ROOMS = [room for room in registry.ROOMS if room != "mechanism"]
CONTRACTS = [
    *(f"dperm_cli.{package}.base" for package in registry.ROOMS.values()),
    "dperm_cli.core.fields",
    "dperm_cli.core.memo",
    "dperm_cli.privacy.budget",
    "dperm_cli.privacy.gate",
    "dperm_cli.problem.data",
    "dperm_cli.problem.problem",
]
PLUGINS = [(room, name) for room in ROOMS for name in registry.names(room)]


def list_modules(package: ModuleType) -> list[str]:
    """The names of the modules in a package."""
    return [f"{package.__name__}.{found.name}" for found in pkgutil.iter_modules(package.__path__)]


def list_public_classes(module: str) -> list[type]:
    """The classes that a module defines under a public name."""
    found = vars(importlib.import_module(module)).values()
    classes = [one for one in found if inspect.isclass(one) and one.__module__ == module]
    return [cls for cls in classes if not cls.__name__.startswith("_")]


CLASSES = [
    cls
    for module in [*CONTRACTS, *list_modules(views), *list_modules(bounds)]
    for cls in list_public_classes(module)
]


@pytest.mark.parametrize(("room", "name"), PLUGINS)
def test_a_plugin_has_an_example_that_runs(room, name):
    assert find_faults(registry.load(room, name)) == []


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: f"{cls.__module__}.{cls.__name__}")
def test_a_contract_has_an_example_that_runs(cls):
    assert find_faults(cls) == []


@pytest.mark.parametrize("decorator", [bound, memoise])
def test_a_decorator_has_an_example_that_runs(decorator):
    assert find_faults(decorator) == []


def test_the_contracts_are_found():
    found = {cls.__name__ for cls in CLASSES}
    assert found >= {
        "ConvexSet", "PerRecord", "Sampler", "Kernel", "DataSet", "Mechanism", "Bound", "Memo",
        "CentralView", "KernelView", "LocalView", "CheckedFields", "Data", "Problem",
        "ProblemSpec", "Budget", "Guarantee", "Gate", "Plan",
    }  # fmt: skip


class NoExample:
    """Nothing to run."""


class NoResult:
    """Shows nothing.

    >>> NoResult is None
    """


class OtherName:
    """Shows another class.

    >>> NoResult is None
    False
    """


class WrongResult:
    """Says what does not come out.

    >>> WrongResult is None
    True
    """


class LongExample:
    """Seven lines.

    >>> LongExample is None
    False
    >>> a = 1
    >>> b = 2
    >>> c = 3
    >>> a + b + c
    6
    """


@pytest.mark.parametrize(
    ("cls", "words"),
    [
        (NoExample, "no example"), (NoResult, "no example"), (OtherName, "no example"),
        (WrongResult, "Got:"), (LongExample, "7 lines"),
    ],
)  # fmt: skip
def test_a_missing_or_wrong_example_is_a_fault(cls, words):
    assert words in "\n".join(find_faults(cls))
