"""The simplest second stage of localization, one noisy sum of gradients; used in audits."""

from __future__ import annotations

from typing import Annotated, ClassVar

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.fields import Help, Positive
from dperm_cli.mechanisms.adversary import Adversary, linear_pair
from dperm_cli.mechanisms.base import Mechanism, Plan, Release
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import GammaNorm, Gaussian
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.problem import ProblemSpec
from dperm_cli.views.central import CentralView


@dataclass(frozen=True)
class OneSum(Mechanism):
    """theta = Project(c - share / (n Delta) g), g the noisy gradient of the whole sum at centre c.

    With the linear loss that is (1 - share) c + share times the minimiser, the noise of the sum in
    the place of the minimiser's own. ``by_rows``: the set may differ from trial to trial.
    """

    share: Annotated[Positive, Help("of the way to the minimiser of a linear loss")] = 0.5

    guarantees: ClassVar[tuple[str, ...]] = ("pure", "approx")
    by_rows: ClassVar[bool] = True

    def events(
        self, spec: ProblemSpec, scale: float, budget: Budget
    ) -> tuple[Gaussian | GammaNorm]:
        """One sum of sensitivity 2 L (L under add_remove)."""
        return ((Gaussian if budget.delta > 0.0 else GammaNorm)(scale, spec.lipschitz),)

    def release(self, view: CentralView, plan: Plan, gate: Gate) -> Release:
        """One sum at the centre, one step."""
        spec = view.spec
        noise = gate.stream(plan.events[0], spec.p)
        centre = spec.constraint.centre()
        if centre.ndim == 1:
            centre = centre + [[0.0]] * gate.trials
        noisy = noise.add(view.gradient_sum(centre), 0) + spec.penalty.subgradient(centre)
        step = self.share / (spec.n * spec.strong_convexity)
        return Release(spec.constraint.project(centre - step * noisy))

    def adversary(self, budget: Budget) -> Adversary:
        """One record with the linear loss and ridge 1, in a set too large to be met.

        The centre is 0, and theta minus a multiple of the gradient and its noise.
        """
        first, _ = linear_pair(budget.relation, ridge=1.0)
        room = 2.0 + 20.0 * self.plan(first.spec(), budget).noise_scale
        first, second = linear_pair(budget.relation, ridge=1.0, radius=room)
        kind = "gaussian" if budget.delta > 0.0 else "threshold"
        return Adversary(first, second, self, kind=kind, floor=0.8)
