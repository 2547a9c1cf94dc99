"""Population risk of phased minimisation [FKT20] (docs/proofs/phased_erm.md).

Risks are means over records, for independent records from one distribution. Each record is used in
one phase, so that the bound is on the risk for that distribution; none is claimed for the records
at hand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dperm_cli.bounds.base import Setting, check, check_mechanism, check_settings, upper_bound
from dperm_cli.core.dataclass import dataclass


@dataclass(frozen=True)
class PhaseFacts:
    """What the bound depends on, apart from the step and the sizes of the phases.

    Args:
        reach: how far a point of the set may be from its centre.
        lipschitz: bound on a record's gradient, the regulariser counted.
        move: how far one record moves the sum of gradients, and no more than twice ``lipschitz``.
        noise: root of E |b|^2, b the noise on a sum of gradients.
        error: how far a minimiser that was found is from the exact one, over the phase's step.

    >>> PhaseFacts(1.0, 1.0, 2.0, 0.0, 0.0).weigh_step([1])
    0.5
    """

    reach: float
    lipschitz: float
    move: float
    noise: float
    error: float

    def weigh_step(self, sizes: Sequence[int]) -> float:
        """What the bound adds for each unit of the step ``eta``, where phases have these sizes."""
        lost = self.noise + self.error
        total = self.lipschitz * lost / 4.0 ** len(sizes)
        for phase, size in enumerate(sizes, start=1):
            total += self.lipschitz * self.move / 4.0**phase
            if phase > 1:
                total += lost**2 * 4.0 ** (2 - phase) / (2.0 * size)
        return total

    def find_best_step(self, sizes: Sequence[int]) -> float:
        """The step ``eta`` that makes ``add_up`` least."""
        return self.reach * math.sqrt(2.0 / sizes[0] / self.weigh_step(sizes))

    def add_up(self, eta: float, sizes: Sequence[int]) -> float:
        """The bound on E F(theta) - min F, F the expected loss of one record."""
        return 2.0 * self.reach**2 / (eta * sizes[0]) + eta * self.weigh_step(sizes)


@upper_bound(
    "phased_erm Thm 2",
    check_mechanism("phased_erm"),
    check_settings("eta", "phases"),
    check(
        lambda at: {"sizes", "facts"} <= set(at.settings), "needs the sizes of the plan's phases"
    ),
    quantity="population_risk",
)
def phased_erm(at: Setting) -> float:
    """2 R^2 / (eta n_1) + eta (L G (1/4 + 1/16 + ..) + what noise adds), at the plan's step."""
    return PhaseFacts(**at.settings["facts"]).add_up(at.settings["eta"], at.settings["sizes"])
