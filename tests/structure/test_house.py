"""The package against the targets of its design: no measure may take a step backwards."""

from __future__ import annotations

import pytest

from tests.structure import measure
from tests.structure.measure import COUNTED, SCALED, House

# Measures that miss their target, or have none, with what they were when this was written. These
# numbers may only go down: whoever lowers a measure lowers its number here, and takes the line out
# when the target is met. A measure without a line is held to its target.
CEILINGS: dict[str, float] = {
    "circles-in-typing": 0,
    "plugins": 12,  # three of them: an estimator is named after its loss or set
}
TARGETS = {name: target for name, target, *_ in (*COUNTED, *SCALED)}
# how much code there is goes up with every feature: it is measured, and held to nothing
HELD = tuple(name for name in measure.MEASURES if name not in ("code", "test-code"))


@pytest.fixture(scope="module")
def house() -> House:
    """The package of this repository, parsed once."""
    return House()


@pytest.mark.parametrize("name", HELD)
def test_no_step_backwards(house, name):
    found = measure.measure(house, name)
    allowed = CEILINGS.get(name, found.target)
    where = f"python -m tests.structure.measure --where {name}"
    assert allowed is not None, f"{name} has neither a target nor a ceiling"
    assert found.value <= allowed, f"{found.meaning}: {found.value} > {allowed}; see {where}"


@pytest.mark.parametrize("name", CEILINGS)
def test_a_ceiling_stands_only_above_its_target(name):
    target = TARGETS[name]
    assert target is None or CEILINGS[name] > target, f"{name} has met its target: take it out"


def test_the_package_is_seen_whole(house):
    assert len(house.package.modules) > 300
    assert len(house.imports) > 1000
    assert len(house.bodies) > 3000
