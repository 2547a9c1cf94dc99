"""Losses counted in whole units: how large a unit is, and what rounding adds to a range.

A score of a point is the sum over records of their losses there, each divided by the unit and
rounded. Proof of the bounds: docs/proofs/_secure_selections.md.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from dperm_cli.core.errors import Unsupported
from dperm_cli.losses.shared.margin_loss import Glm
from dperm_cli.problem.problem import ProblemSpec

_FINE_BITS = 20  # of the range of two records' difference that a unit keeps
_MOST_BITS, _MOST_SUM_BITS = 50, 61
_UNIT = 2.0**-53


class ScoreUnits(NamedTuple):
    """The size of a unit, a bound on one loss, and one on the floating-point error of a loss."""

    size: float
    most: float
    error: float

    @property
    def of_record(self) -> float:
        """What rounding adds to the range of one record's loss: half a unit at either end, and
        two errors."""
        return self.size + 2.0 * self.error


def find_units(spec: ProblemSpec) -> ScoreUnits:
    """The units of a problem's losses on its set, from public facts alone.

    Raises:
        Unsupported: The loss has no compiled values, or its sums would not be exact.
    """
    form, reach = spec.form, spec.lipschitz * spec.constraint.radius
    if not isinstance(form, Glm) or form.code is None:
        raise Unsupported(f"{spec.loss} has no exact sum of losses; use noise=research")
    targets = (-spec.target_bound, 0.0, spec.target_bound)
    start = max(abs(float(form.value(0.0, target))) for target in targets)
    most = (start + reach) * (1.0 + 2.0**-20)
    error = 8.0 * (spec.p + 16.0) * _UNIT * (most + reach)
    size = math.ldexp(1.0, math.frexp(spec.oscillation)[1] - 1 - _FINE_BITS)
    penalty = spec.regulariser.lipschitz(spec.constraint.radius, spec.p) * spec.constraint.radius
    total = spec.n * (most + penalty)
    if not (most < math.ldexp(size, _MOST_BITS) and total < math.ldexp(size, _MOST_SUM_BITS)):
        raise Unsupported(
            f"losses of up to {most:.3g} that differ by {spec.oscillation:.3g} cannot be counted "
            "exactly; use noise=research"
        )
    return ScoreUnits(size, most, error)
