"""The minimiser itself, without any protection: a baseline for teaching and comparison."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.fields import Help, Range, Unit
from dperm_cli.mechanisms.adversary import Adversary, linear_pair
from dperm_cli.mechanisms.base import Design, Mechanism, Plan, Release
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Disclosure, Event
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.problem import ProblemSpec
from dperm_cli.views.central import CentralView


@dataclass(frozen=True)
class NonPrivate(Mechanism):
    """A point of the set whose objective is within ``gap`` n L D of the least one. NOT private.

    It releases what the other mechanisms protect: the line that private risks are compared with,
    and the leak of [BST14, Sec. 1, Motivation]. Guarantee: none, whatever epsilon and delta say.
    ``noise_scale`` is 0. Shapes: theta [trials, p], all rows equal. Cost: one certified optimum.

    >>> from dperm_cli.problem.problem import bare_spec
    >>> from dperm_cli.sets import make_ball
    >>> spec = bare_spec(1000, 1.0, make_ball(1.0, 5))
    >>> NonPrivate().plan(spec, Budget(1.0, 1e-6)).guarantee.kind
    'none'
    """

    gap: Annotated[
        float, Range(1e-12, 1.0), Help("certified distance from the least objective"), Unit("n L D")
    ] = 1e-9

    guarantees: ClassVar[tuple[str, ...]] = ("none",)
    by_sums: ClassVar[bool] = True

    @property
    def is_unprotected(self) -> bool:
        """There is no protected form."""
        return True

    def events(self, spec: ProblemSpec, scale: float, budget: Budget) -> tuple[Event, ...]:
        """The minimiser is shown without protection."""
        return (Disclosure(),)

    def design(self, spec: ProblemSpec, budget: Budget) -> Design:
        """No noise and no guarantee."""
        events = self.events(spec, 0.0, budget)
        return Design(events, 0.0, 1, {"gap": self.gap}, reason="none: the minimiser")

    def release(self, view: CentralView, plan: Plan, gate: Gate) -> Release:
        """The minimiser, as often as there are trials."""
        spec = view.spec
        scale = spec.n * spec.lipschitz_total * spec.constraint.diameter
        theta = view.minimiser(plan.settings["gap"] * scale)
        return Release(np.tile(theta, (gate.trials, 1)))

    def adversary(self, budget: Budget) -> Adversary:
        """Opposite gradients: the two minimisers lie at the two ends of the set."""
        first, second = linear_pair(budget.relation)
        return Adversary(first, second, replace(self))
