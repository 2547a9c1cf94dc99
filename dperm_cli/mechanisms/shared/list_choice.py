"""Choices from finite lists in their secure form: whole scores, and what rounding them costs.

Proofs: docs/proofs/_secure_selections.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dperm_cli.losses.shared.score_units import ScoreUnits
from dperm_cli.mechanisms.base import Plan
from dperm_cli.mechanisms.shared import vertex_choice
from dperm_cli.privacy.events import Exponential, ListChoice
from dperm_cli.privacy.secure_grid import Grid
from dperm_cli.views.central import CentralView

_ROUNDING = 4.0 * 2.0**-53


def choose_rule(plan: Plan) -> str:
    """Permute-and-flip where a plan spends no delta: it is better, and pure epsilon alone."""
    return "exponential" if plan.guarantee.delta > 0.0 else "permute_and_flip"


def round_scores(event: Exponential, units: ScoreUnits, rule: str, relation: str) -> ListChoice:
    """The choice by whole scores of losses that spends what ``event`` spends.

    One record's loss ranges over the list by what it did, a unit and two errors more; the
    difference of two by twice that more. The exponent falls by as much.
    """
    gap = None if event.gap is None else event.gap + 2.0 * units.of_record
    return _keep_ratio(event, event.record_oscillation + units.of_record, gap, rule, relation)


def round_slopes(
    event: Exponential, record: float, gap: float, rule: str, relation: str
) -> ListChoice:
    """The same of choices by <vertex, gradient>: ``record`` bounds the range of one record's part,
    rounded, and ``gap`` that of the difference of two."""
    return _keep_ratio(event, record, gap, rule, relation)


def count_objective(view: CentralView, points: np.ndarray, units: ScoreUnits) -> np.ndarray:
    """The objective at public or released points [m, p], in whole units: int64 [m]."""
    public = view.spec.penalty.value(points)
    return view.score_sum(points, units) + np.rint(public / units.size).astype(np.int64)


def choose(law: Any, scores: np.ndarray, unit: float, step: int) -> np.ndarray:
    """The entries [trials] that a stream of choices takes, by scores [trials, count].

    ``law`` is a stream of ``ListChoice``, with whole scores of this unit, or one of
    ``Exponential``, which makes the choice from seeded numbers; its unit is 1.
    """
    if isinstance(law.event, ListChoice):
        return law.choose(scores, unit, step)
    return vertex_choice.choose(law.event.exponent, scores, vertex_choice.heights(law, step))


def grid_of(size: float) -> Grid:
    """The grid of a step that is a power of two."""
    return Grid(int(np.frexp(size)[1]) - 1)


def _keep_ratio(
    event: Exponential, record: float, gap: float | None, rule: str, relation: str
) -> ListChoice:
    gap = None if gap is None else gap * (1.0 + _ROUNDING)
    record = record * (1.0 + _ROUNDING)
    found = ListChoice(event.exponent, record, event.count, gap, event.relation, rule)
    share = event.sensitivity(relation) / found.sensitivity(relation)
    return found.change_fields(exponent=event.exponent * share * (1.0 - _ROUNDING))
