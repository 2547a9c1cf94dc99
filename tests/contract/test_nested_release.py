"""What a combinator plans over an inner mechanism, it also releases: no plan ends at the gate.

Every combinator with every mechanism that it takes, under both relations. A pair may be refused by
planning; a plan that was made must be carried out.
"""

from __future__ import annotations

import numpy as np
import pytest

from dperm_cli.audit import declared_grid, hard_pairs
from dperm_cli.audit.opened_cell import FAILED, OK
from dperm_cli.core import registry
from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.runner.audits import audit_cells
from dperm_cli.runner.compose.composer import Composer

COMPOSER = Composer()
OUTER = ("high_probability", "huberized", "localization", "projected", "random_features",
         "standard_projection")  # fmt: skip
SAMPLERS = ("exponential", "regularized_exponential")  # a draw may take a minute
INNER = [
    name for name in registry.list_protective()
    if name not in SAMPLERS
    and registry.load("mechanism", name).space != "kernel"
    and registry.load("mechanism", name).guarantees != ("local",)
]  # fmt: skip
LEAST_RELEASED = {"high_probability": 8, "huberized": 3, "localization": 5, "projected": 8,
                  "random_features": 8, "standard_projection": 8}  # fmt: skip


def release(outer, inner, relation):
    """The points of two trials, or None where the pair is refused before a record is seen."""
    row = {name: values[0] for name, values in declared_grid.factors(outer).items()}
    row |= {"mechanism.inner": inner, "relation": relation}
    try:
        subject = audit_cells.of_grid(outer, row, COMPOSER)
        audit_cells.check_kind(subject)
    except (InputError, Unsupported):
        return None
    records = hard_pairs.make("zero row", subject.shape, subject.cell.relation).first
    opened = audit_cells.open_records(subject, records)
    assert opened.status != FAILED, opened.reason
    return opened.draw(2, 0) if opened.status == OK else None


@pytest.mark.in_turn
@pytest.mark.parametrize("outer", OUTER)
def test_what_is_planned_is_released(outer):
    """A third of the mechanisms; all of them, under both relations, in the slow test."""
    released = 0
    for number, inner in enumerate(INNER):
        if (number + OUTER.index(outer)) % 3 and inner != "localization":
            continue
        relation = ("replace_one", "declared population")[number % 2]
        found = release(outer, inner, relation)
        if found is not None:
            assert np.all(np.isfinite(found)), inner
            released += 1
    assert released >= 1


@pytest.mark.slow
@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("relation", ["replace_one", "declared population"])
def test_what_is_planned_is_released_under_both_relations(outer, relation):
    found = {inner: release(outer, inner, relation) for inner in INNER}
    released = [inner for inner, theta in found.items() if theta is not None]
    assert len(released) >= LEAST_RELEASED[outer] // 2
    assert all(np.all(np.isfinite(found[inner])) for inner in released)
