"""Measure how the package is built, against the targets of its design.

    python -m tests.structure.measure                    a table: measure, now, target, met
    python -m tests.structure.measure --where getattr    the places that a measure objects to
    python -m tests.structure.measure --json             the same for programs

The package is parsed, never imported. Which rooms there are, and in which order, is in
``tests/structure/rooms.py``; which names are participles, in ``tests/structure/words.py``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.structure import habits, imports, plugins, sizes
from tests.structure.names import Names
from tests.structure.rooms import PACKAGE
from tests.structure.source import Package, Place

ROOT = Path(__file__).resolve().parents[2]
MOST_LINES = 500
TYPICAL_BODY, LONG_BODY = 5, 15


@dataclass(frozen=True)
class Measurement:
    """One measure of the package.

    Attributes:
        name: Its short name, for ``--where``.
        meaning: What is counted.
        value: The number today.
        target: The largest number that the design allows; None where it sets none.
        places: What to change for a smaller number.
    """

    name: str
    meaning: str
    value: float
    target: float | None
    places: tuple[Place, ...]

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; None where there is none."""
        return None if self.target is None else self.value <= self.target


class House:
    """A package and the tests beside it, read when first needed.

    Attributes:
        root: The folder that holds both.
        name: The package's name.
    """

    def __init__(self, root: Path = ROOT, name: str = PACKAGE) -> None:
        self.root = root
        self.name = name

    @cached_property
    def package(self) -> Package:
        """The package's modules."""
        return Package(self.root, self.name)

    @cached_property
    def names(self) -> Names:
        """What names stand for in the package."""
        return Names(self.package)

    @cached_property
    def imports(self) -> list[imports.Import]:
        """Who imports whom."""
        return imports.list_imports(self.names)

    @cached_property
    def bodies(self) -> list[tuple[int, Place]]:
        """The lengths of functions, longest first."""
        return sizes.measure_functions(self.package)


Finder = Callable[[House], Sequence[Place]]
# Name, target, meaning and how the places are found; their number is the value.
COUNTED: tuple[tuple[str, float | None, str, Finder], ...] = (
    (
        "circles", 0, "imports at module level in a circle",
        lambda house: imports.find_circles(house.imports, ("module",)),
    ),
    (
        "circles-in-functions", 0, "imports inside functions that close a circle",
        lambda house: imports.find_circles(house.imports, ("module", "function")),
    ),
    (
        "circles-in-typing", None, "imports under TYPE_CHECKING that close a circle",
        lambda house: imports.find_circles(house.imports, ("module", "function", "typing")),
    ),
    (
        "arrows", 0, "imports of a room above or beside",
        lambda house: imports.find_upward(house.imports, ("module", "function")),
    ),
    (
        "arrows-in-typing", 0, "the same under TYPE_CHECKING",
        lambda house: imports.find_upward(house.imports, ("typing",)),
    ),
    (
        "private", 0, "private modules imported by another room",
        lambda house: imports.find_private(house.imports),
    ),
    (
        "participles", 9, "functions named by a bare participle",
        lambda house: habits.find_participles(house.names),
    ),
    (
        "events", 14, "questions for an event's class outside privacy",
        lambda house: habits.find_event_questions(house.names),
    ),
    (
        "plugins", 9, "lines that name a set or a loss outside its room",
        lambda house: plugins.find_plugin_names(house.names),
    ),
    (
        "getattr", 14, "getattr, hasattr, setattr with a literal name",
        lambda house: habits.find_attribute_calls(house.names),
    ),
    (
        "modules", 0, f"modules of more than {MOST_LINES} lines",
        lambda house: sizes.find_long_modules(house.package, MOST_LINES),
    ),
)  # fmt: skip


def _measure_bodies(house: House, percent: int, most: int) -> tuple[float, tuple[Place, ...]]:
    value = sizes.find_percentile((length for length, _ in house.bodies), percent)
    return value, tuple(place for length, place in house.bodies if length > most)


def _count_lines(house: House, name: str) -> tuple[float, tuple[Place, ...]]:
    if not any((house.root / name).rglob("*.py")):
        return 0, ()
    package = house.package if name == house.name else Package(house.root, name)
    counts = sorted(((len(module.code_lines), module.file) for module in package), reverse=True)
    places = tuple(Place(file, 1, f"{count} lines of code") for count, file in counts)
    return sizes.count_code_lines(package), places


Scale = Callable[[House], tuple[float, tuple[Place, ...]]]
# Name, target, meaning and how the value and its places are found.
SCALED: tuple[tuple[str, float | None, str, Scale], ...] = (
    (
        "median", TYPICAL_BODY, "lines of a function's body, median",
        lambda house: _measure_bodies(house, 50, TYPICAL_BODY),
    ),
    (
        "ninetieth", LONG_BODY, "lines of a function's body, 90th percentile",
        lambda house: _measure_bodies(house, 90, LONG_BODY),
    ),
    (
        "code", None, "lines of code of the package",
        lambda house: _count_lines(house, house.name),
    ),
    (
        "test-code", None, "lines of code of the tests",
        lambda house: _count_lines(house, "tests"),
    ),
)  # fmt: skip
MEASURES = tuple(name for name, *_ in (*COUNTED, *SCALED))


def measure(house: House, name: str) -> Measurement:
    """Take one measure.

    Args:
        house: What is measured.
        name: One of MEASURES.

    Returns:
        The measurement.

    Raises:
        KeyError: There is no measure of that name.
    """
    for known, target, meaning, find in COUNTED:
        if known == name:
            places = tuple(find(house))
            return Measurement(name, meaning, len(places), target, places)
    for known, target, meaning, scale in SCALED:
        if known == name:
            value, places = scale(house)
            return Measurement(name, meaning, value, target, places)
    raise KeyError(name)


def measure_all(house: House) -> list[Measurement]:
    """All measurements, in the order of MEASURES."""
    return [measure(house, name) for name in MEASURES]


def format_table(measurements: Sequence[Measurement]) -> str:
    """A line a measurement: name, value, target, whether it is met, meaning."""
    lines = [f"{'measure':<21} {'now':>7} {'target':>7}  met  what is counted"]
    for one in measurements:
        target = "-" if one.target is None else f"<= {one.target:g}"
        met = {None: "-", True: "yes", False: "no"}[one.met]
        lines.append(f"{one.name:<21} {one.value:>7g} {target:>7}  {met:<3}  {one.meaning}")
    return "\n".join(lines)


def format_json(measurements: Sequence[Measurement]) -> str:
    """The measurements with their places as JSON."""
    return json.dumps([_describe(one) for one in measurements], indent=1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, the places of one measure, or JSON; 0 where all targets are met, else 1."""
    parser = argparse.ArgumentParser(description="how the package is built, against its targets")
    parser.add_argument("--where", choices=MEASURES, metavar="MEASURE", help=", ".join(MEASURES))
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository to measure")
    options = parser.parse_args(arguments)
    house = House(options.root)
    found = [measure(house, options.where)] if options.where else measure_all(house)
    if options.json:
        print(format_json(found))
    elif options.where:
        print("\n".join(str(place) for place in found[0].places))
    else:
        print(format_table(found))
    return 0 if all(one.met is not False for one in found) else 1


def _describe(one: Measurement) -> dict[str, Any]:
    places = [vars(place) for place in one.places]
    return {
        "measure": one.name, "meaning": one.meaning, "now": one.value, "target": one.target,
        "met": one.met, "places": places,
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
