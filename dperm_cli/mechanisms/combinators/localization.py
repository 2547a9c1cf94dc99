"""Localization: a rough private minimiser, then any mechanism near it [BST14, Alg. 4, App. B]."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.mechanisms.adversary import Adversary, linear_pair
from dperm_cli.mechanisms.base import Design, Mechanism, Plan, Release
from dperm_cli.mechanisms.shared import inner_mechanism, inner_noise, noisy_minimiser
from dperm_cli.mechanisms.shared.inner_mechanism import Combinator
from dperm_cli.mechanisms.shared.minimisers_on_grid import (
    put_noisy_minimiser_on_grid,
    reach_of_points,
)
from dperm_cli.mechanisms.shared.one_noisy_sum import OneSum
from dperm_cli.mechanisms.shared.secure_plan import put_sums_on_grid, reach_of_sums, say_sizes
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Event, GammaNorm, Gaussian
from dperm_cli.privacy.gate import Gate
from dperm_cli.privacy.secure_grid import Grid, grid_for, list_noise_events
from dperm_cli.problem.problem import Loss, ProblemSpec, make_spec
from dperm_cli.sets.shared.localized_set import Localised
from dperm_cli.views.central import CentralView

MOST_FAILURE = 1e-3  # n^-3 means little for a handful of records


@dataclass(frozen=True)
class Localization(Combinator):
    """theta_0 by output perturbation, then the inner mechanism on C_0 = C near theta_0.

    Algorithm: [BST14, Alg. 4], and App. B for (epsilon, delta): stage 1 is [BST14, Alg. 3], stage 2
    the mechanism ``inner`` on C_0 = {theta in C : |theta - theta_0| <= r}. Guarantee: the two
    stages' events accounted together; each gets epsilon / 2 at delta = 0, and mu / sqrt(2) of
    mu(epsilon, delta) above (or (epsilon, delta) / 2 where that adds up to more); kinds and
    relations as ``inner`` has them; trust: central. r is what the norm of the first stage's noise
    exceeds with probability min(n^-3, 1e-3), exactly, and the minimiser's own error: the minimiser
    is in C_0 but with that probability. ``noise_scale`` is the inner mechanism's, in its unit.
    Shapes: theta [trials, p]. Cost: one minimisation and the inner mechanism. Unsupported: no
    strong convexity (ridge = 0), and whatever the inner mechanism does not support on C_0.

    ``settings`` hold C_0's radius. Its centre is released by the first stage, so the second may
    depend on it; sizes that hold for every centre are what the plan is made with.

    >>> from dperm_cli.problem.problem import Regulariser, bare_spec
    >>> from dperm_cli.sets import make_ball
    >>> spec = bare_spec(1000, 1.0, make_ball(1.0, 5), regulariser=Regulariser(0.1))
    >>> round(Localization().plan(spec, Budget(1.0, 1e-6)).settings["radius"], 3)
    0.852
    """

    requires: ClassVar[tuple[str, ...]] = ("strong_convexity",)

    def __post_init__(self) -> None:
        """It has a secure form where the inner mechanism releases noisy sums on a grid."""
        super().__post_init__()
        self._keep("secure", self.inner.secure and self.inner.plan_on_grid is None)

    def plan_on_grid(self, spec: ProblemSpec, plan: Plan, loss: Loss) -> tuple[Plan, Grid]:
        """Both stages on one grid; the ball grows with the first stage's noise.

        The inner plan stays that of the smaller ball: its noise does not depend on the ball.
        """
        assert isinstance(plan.inner, Plan)
        first, *_ = plan.events
        assert isinstance(first, Gaussian | GammaNorm)
        near = self._near(spec, plan.settings["radius"])
        sums = list_noise_events(plan.inner.events)
        farthest = max(reach_of_sums(sums, near), reach_of_points(spec))
        grid = grid_for([first, *sums], farthest)
        relation = plan.guarantee.relation
        try:
            found, distance = put_noisy_minimiser_on_grid(spec, first, relation, grid)
            second, _ = put_sums_on_grid(plan.inner, near, loss, grid)
        except Unsupported:
            # the reason is one of the stages, or that both have one grid
            alone = grid_for([first], reach_of_points(spec))
            put_noisy_minimiser_on_grid(spec, first, relation, alone)
            put_sums_on_grid(plan.inner, near, loss)
            raise Unsupported(say_sizes([first, *sums], spec)) from None
        rounding = 0.5 * found.grid_diagonal(spec.p) * grid.step
        settings = {name: value for name, value in plan.settings.items() if name != "minimiser_gap"}
        settings |= {
            "radius": distance + found.noise_radius(spec.p, failure(spec.n)) + rounding,
            "first_noise_scale": found.scale,
            "distance": distance,
            "inner": inner_mechanism.describe_inner(self.inner, second),
        }
        events = (found, *second.events)
        scale = second.noise_scale
        moved = replace(plan, events=events, noise_scale=scale, settings=settings, inner=second)
        return moved, grid

    def design(self, spec: ProblemSpec, budget: Budget) -> Design:
        """Both stages, from public facts alone; where the inner mechanism may choose its noise,
        each law is planned with a split of its own."""
        return inner_noise.choose_design(
            self.inner, spec, budget, lambda inner: self._design_with(inner, spec, budget)
        )

    def _design_with(self, inner: Mechanism, spec: ProblemSpec, budget: Budget) -> Design:
        """Both stages, the second one by ``inner``."""
        stable, gamma = noisy_minimiser.stability(spec), budget.delta == 0.0
        for part in (inner_mechanism.split_mu(budget, 2), inner_mechanism.split_basic(budget, 2)):
            first = stable.event(noisy_minimiser.scale_for(stable, part, gamma), gamma)
            reach = stable.error + first.noise_radius(spec.p, failure(spec.n))
            second = inner.plan(self._near(spec, reach), part)
            events: tuple[Event, ...] = (first, *second.events)
            level = account(events, delta=budget.delta, relation=budget.relation)
            if level.epsilon <= budget.epsilon:
                break
        settings = {
            "radius": reach,
            "first_noise_scale": first.scale,
            "minimiser_gap": stable.certificate,
            "inner": inner_mechanism.describe_inner(self.inner, second),
        }
        steps = 1 + second.steps
        certificate = second.guarantee.certificate
        return Design(events, second.noise_scale, steps, settings, certificate, inner=second)

    def _near(self, spec: ProblemSpec, reach: float) -> ProblemSpec:
        """The public facts of the second stage's problem, with sizes that hold for any centre."""
        body = spec.constraint
        return replace_set(spec, Localised(body, body.centre(), reach))

    def events(self, spec: ProblemSpec, scale: float, budget: Budget) -> tuple[Event, ...]:
        """Unsupported: one noise scale does not say how two stages share a budget."""
        raise Unsupported("localization spends a budget on two stages: give epsilon instead")

    def release(self, view: CentralView, plan: Plan, gate: Gate) -> Release:
        """Stage 1 for all trials at once, stage 2 on each trial's own set."""
        first, reach = plan.events[0], plan.settings["radius"]
        gap, distance = (plan.settings.get(name) for name in ("minimiser_gap", "distance"))
        centres = noisy_minimiser.release_minimiser(view, first, gap, gate, distance)
        second = inner_mechanism.inner_plan(plan, plan.events[1:])
        body, by_public = view.spec.constraint, {"radius": reach}
        if self.inner.by_rows:
            at_all: Any = Localised(body, centres, reach)
            near = view.replace_set(constraint=at_all)
            found = inner_mechanism.release_inside(self.inner, near, second, gate)
            return Release(found.theta, by_public)
        theta = np.empty_like(centres)
        for trial, (centre, one) in enumerate(zip(centres, gate.each(second.events), strict=True)):
            here: Any = Localised(body, centre, reach)
            near = view.replace_set(constraint=here)
            found = inner_mechanism.release_inside(self.inner, near, second, one)
            theta[trial] = found.theta[0]
        return Release(theta, by_public)

    def adversary(self, budget: Budget) -> Adversary:
        """Two noisy copies of the minimiser, one from each stage, and their mean.

        With the linear loss the gradient is minus the minimiser; the second stage is one noisy sum
        of gradients, so that the mean of both holds all that either says.
        """
        chosen = replace(self, inner=OneSum())
        pair = linear_pair(budget.relation, ridge=1.0, radius=10.0)
        scale = chosen.plan(pair[0].spec(), budget).settings["first_noise_scale"]
        first, second = linear_pair(budget.relation, ridge=1.0, radius=2.0 + 10.0 * scale)
        if budget.delta == 0.0:
            return Adversary(first, second, chosen, kind="threshold")
        return Adversary(first, second, chosen, kind="gaussian", floor=0.8)


def failure(n: int) -> float:
    """min(n^-3, 1e-3): the probability that C_0 misses the minimiser [BST14, Lemma 4.2]."""
    return min(float(n) ** -3.0, MOST_FAILURE)


def replace_set(spec: ProblemSpec, constraint: Any) -> ProblemSpec:
    """The public facts of the same problem on another set."""
    if spec.form is None:
        return replace(spec, constraint=constraint, compiled=False)
    return make_spec(
        spec.n, spec.form, constraint, spec.regulariser, spec.task,
        replace(spec.bounds, radius=constraint.radius),
    )  # fmt: skip
