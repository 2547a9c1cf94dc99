"""Small packages that are made up for a test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.structure import measure
from tests.structure.measure import House

EVENTS = """
class Event: ...
class Gaussian(Event): ...
class Laplace(Event): ...
"""
PLUGINS = {
    "privacy/events.py": EVENTS,
    "sets/l2_ball.py": 'class L2Ball:\n    name = "l2_ball"\n',
    "sets/box.py": 'class Box:\n    name = "box"\n',
    "losses/hinge.py": 'class Hinge:\n    name: str = "hinge"\n',
    "losses/linear.py": 'class Linear:\n    name = "linear"\n',
    "kernels/linear.py": 'class Linear:\n    name = "linear"\n',
}

Count = Callable[..., list[str]]


@pytest.fixture
def find(tmp_path: Path) -> Count:
    """Write a package of modules, take one measure, and give its places as ``file:line``."""

    def take(name: str, modules: Mapping[str, str]) -> list[str]:
        house = write_house(tmp_path, modules)
        places = measure.measure(house, name).places
        return [f"{one.file.removeprefix('house/')}:{one.line}" for one in places]

    return take


def write_house(root: Path, modules: Mapping[str, str]) -> House:
    """Write modules, by their paths below the package, and an ``__init__.py`` in every folder."""
    for file, text in {"__init__.py": "", **modules}.items():
        path = root / "house" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for folder in (root / "house").rglob("*/"):
        (folder / "__init__.py").touch()
    return House(root, "house")
