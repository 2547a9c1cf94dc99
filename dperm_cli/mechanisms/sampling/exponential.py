"""The exponential mechanism [BST14, Alg. 2]: pure differential privacy for any convex loss."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, cast

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.losses.shared.score_units import find_units
from dperm_cli.mechanisms.adversary import Adversary
from dperm_cli.mechanisms.base import Design, Mechanism, Plan, Release
from dperm_cli.mechanisms.shared import list_choice, secure_net
from dperm_cli.mechanisms.shared.sampled_release import design_draw, draw, interval_pair
from dperm_cli.privacy import events as privacy_events
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.accounting.calibrate import Calibration
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.privacy.secure_grid import Grid
from dperm_cli.problem.problem import Loss, ProblemSpec
from dperm_cli.samplers.base import Target
from dperm_cli.samplers.shared.choose_sampler import LawSampler, choose_sampler
from dperm_cli.views.central import CentralView

# Room for the rounding of (epsilon - 2 t) + 2 t.
_ROUNDING = 1e-15
FLOOR = 0.7  # of the audit's tightness: at epsilon 1, five standard errors below what is expected


@dataclass(frozen=True)
class Exponential(Mechanism):
    """One draw of the density proportional to exp(-c sum_i l(theta; d_i)) on the set.

    Algorithm: [BST14, Alg. 2]. Guarantee: pure, epsilon = c osc + 2 t, with osc the largest
    oscillation over the set of a difference of two records' losses (``ProblemSpec.oscillation``;
    under add_remove of one record's, ``variation``) and t the sampler's distance from that law in
    sup |log ratio|; trust: central. ``noise_scale`` is 1 / c, in the unit of the summed loss. The
    regulariser is in the exponent and cancels between neighbours. ``sampler`` is one of the group
    of that name, chosen from public facts: exact ones have t = 0, ``proximal`` epsilon / 100.
    Shapes: theta [trials, p]; trials are drawn one after the other. Unsupported: what the
    samplers do not reach.

    ``noise=secure`` chooses from a finite net (at most ``secure_net.MOST_POINTS`` points, at most 3
    dimensions) by permute-and-flip, exactly (docs/proofs/_secure_selections.md).

    ``calibration=paper`` takes the exponent epsilon / (2 L D), and for the grid walk a third of it
    [BST14, Alg. 7].

    >>> from dperm_cli.problem.problem import bare_spec
    >>> from dperm_cli.sets import make_ball
    >>> spec = bare_spec(1000, 1.0, make_ball(1.0, 1))
    >>> Exponential().plan(spec, Budget(1.0, 0.0)).settings["sampler"]["name"]
    'tangent_cells'
    """

    calibration: Calibration = "tight"
    sampler: LawSampler = "auto"

    guarantees: ClassVar[tuple[str, ...]] = ("pure",)
    secure: ClassVar[bool] = True

    def design(self, spec: ProblemSpec, budget: Budget) -> Design:
        """Exponent, sampler and its certificate, from public facts alone."""
        relation = budget.relation

        def at(distance: float) -> Target:
            room = (budget.epsilon - 2.0 * distance) * (1.0 - _ROUNDING)
            return Target(
                spec, calibrate.exponent(room, self._law(spec, 0.0).sensitivity(relation))
            )

        chosen = choose_sampler(self.sampler, at, budget.epsilon, paper=self.calibration == "paper")
        exponent = chosen.target.exponent
        return design_draw(self._law(spec, exponent), chosen, 1.0 / exponent)

    def events(
        self, spec: ProblemSpec, scale: float, budget: Budget
    ) -> tuple[privacy_events.Exponential]:
        """An exact draw at exponent 1 / scale."""
        return (self._law(spec, 1.0 / scale),)

    def release(self, view: CentralView, plan: Plan, gate: Gate) -> Release:
        """Draw from the law of the plan's event."""
        spec, event = view.spec, cast(privacy_events.Exponential, plan.events[0])
        if isinstance(event, privacy_events.ListChoice):
            return secure_net.choose_point(view, plan, gate)
        # from the problem's own facts, which the gate compares with the plan's
        stream = gate.stream(self._law(spec, event.exponent), spec.p)
        return draw(view, plan, Target(spec, event.exponent), stream)

    def plan_on_grid(self, spec: ProblemSpec, plan: Plan, loss: Loss) -> tuple[Plan, Grid]:
        """A choice from a finite net by permute-and-flip, at the same epsilon."""
        relation, units = plan.guarantee.relation, find_units(spec)
        left = Budget(plan.guarantee.epsilon, 0.0, relation)
        chosen = secure_net.choose_net(self, plan.sampler.target)
        made = replace(self, sampler=chosen).plan(spec, left)
        law = cast(privacy_events.Exponential, made.events[0])
        event = list_choice.round_scores(law, units, "permute_and_flip", relation)
        drawn = secure_net.describe_net(chosen, Target(spec, event.exponent))
        made = replace(made, **vars(design_draw(event, drawn, 1.0 / event.exponent)))
        return made, list_choice.grid_of(units.size)

    def predict_risk(self, spec: ProblemSpec, plan: Plan) -> float:
        """p / (c n): about what the density exp(-c sum) is off on average."""
        return spec.p * plan.noise_scale / spec.n

    def adversary(self, budget: Budget) -> Adversary:
        """Linear losses on [-1/2, 1/2]: two of them, or two that cancel (one, or none).

        The density falls by e^epsilon from one end to the other, or is flat.
        """
        pair = interval_pair(budget.relation, 2 if budget.relation == "replace_one" else 1, 0.5)
        return Adversary(*pair, self, _from_the_end, kind="interval", floor=FLOOR)

    def _law(self, spec: ProblemSpec, exponent: float) -> privacy_events.Exponential:
        if self.calibration == "paper":
            reach = spec.lipschitz * spec.constraint.diameter
            return privacy_events.Exponential(exponent, reach)
        return privacy_events.Exponential(exponent, spec.variation, gap=spec.oscillation)


def _from_the_end(theta: np.ndarray) -> np.ndarray:
    """The adversary's statistic: the distance from the end that its records prefer."""
    return 0.5 - theta[:, 0]
