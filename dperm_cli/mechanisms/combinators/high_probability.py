"""The best of several runs, chosen privately [BST14, App. D]."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, cast

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.fields import Help, Probability, Range
from dperm_cli.losses.shared.score_units import find_units
from dperm_cli.mechanisms.adversary import Adversary
from dperm_cli.mechanisms.base import Design, Mechanism, Plan, Release
from dperm_cli.mechanisms.shared import (
    inner_mechanism,
    inner_noise,
    list_choice,
    secure_plan,
)
from dperm_cli.mechanisms.shared.inner_mechanism import Combinator
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Event, Exponential, ListChoice
from dperm_cli.privacy.gate import Gate
from dperm_cli.privacy.secure_grid import Grid
from dperm_cli.problem.problem import Loss, ProblemSpec
from dperm_cli.views.central import CentralView

_MU_FACTORS = (1.0, 0.95, 0.8)  # factors on the runs' mu: some laws are only nearly Gaussian


@dataclass(frozen=True)
class HighProbability(Combinator):
    """k runs of the inner mechanism, one of them chosen by the exponential mechanism.

    Algorithm: [BST14, App. D] with k = ceil(log2(2 / rho)): one of the runs has at most twice the
    expected excess risk but with probability 2^-k <= rho / 2 (Markov), and the choice among the k
    released points costs more than ln(2 k / rho) / c over the best with probability rho / 2 at
    most. Guarantee: runs and choice accounted together; the choice gets the share ``selection`` of
    epsilon, c = selection epsilon / osc on the set, and each run mu / sqrt(k) of what mu(.,
    delta) leaves (epsilon / k at delta = 0); kinds and relations as ``inner`` has them; trust:
    central. ``noise_scale`` is the inner mechanism's, in its unit. Shapes: theta [trials, p]. Cost:
    k runs and k values of the loss. Unsupported: whatever the inner mechanism does not support.

    >>> from dperm_cli.problem.problem import bare_spec
    >>> from dperm_cli.sets import make_ball
    >>> spec = bare_spec(1000, 1.0, make_ball(1.0, 5))
    >>> HighProbability(rho=0.1).plan(spec, Budget(1.0, 1e-6)).settings["runs"]
    5
    """

    rho: Annotated[float, Range(above=0, high=1), Help("of failure; log2(2 / rho) runs")] = 0.05
    selection: Annotated[Probability, Help("share of epsilon for the choice among the runs")] = 0.5

    def __post_init__(self) -> None:
        """It has a secure form where the inner mechanism has one."""
        super().__post_init__()
        self._keep("secure", self.inner.secure)

    def plan_on_grid(self, spec: ProblemSpec, plan: Plan, loss: Loss) -> tuple[Plan, Grid]:
        """The inner mechanism's secure form, and a choice by whole scores."""
        assert isinstance(plan.inner, Plan)
        units = find_units(spec)
        run, grid = secure_plan.secure_plan(self.inner, plan.inner, spec, loss)
        choice, relation = cast(Exponential, plan.events[-1]), plan.guarantee.relation
        law = list_choice.round_scores(choice, units, list_choice.choose_rule(plan), relation)
        events = (*(run.events * self.runs), law)
        return replace(plan, events=events, noise_scale=run.noise_scale, inner=run), grid

    @property
    def runs(self) -> int:
        """k = ceil(log2(2 / rho)); 1 at rho = 1."""
        return math.ceil(math.log2(2.0 / self.rho))

    def design(self, spec: ProblemSpec, budget: Budget) -> Design:
        """The choice's exponent and one run's plan, from public facts alone; where the inner
        mechanism may choose its noise, each law is planned with a split of its own."""
        return inner_noise.choose_design(
            self.inner, spec, budget, lambda inner: self._design_with(inner, spec, budget)
        )

    def _design_with(self, inner: Mechanism, spec: ProblemSpec, budget: Budget) -> Design:
        """Choice and runs of ``inner``."""
        moves = _law(spec, 0.0).sensitivity(budget.relation)
        choice = _law(spec, calibrate.exponent(self.selection * budget.epsilon, moves))
        left = replace(budget, epsilon=(1.0 - self.selection) * budget.epsilon)
        for share in self._shares(left):
            run = inner.plan(spec, share)
            events: tuple[Event, ...] = (*(run.events * self.runs), choice)
            level = account(events, delta=budget.delta, relation=budget.relation)
            if level.epsilon <= budget.epsilon:
                break
        settings = {
            "runs": self.runs,
            "run_epsilon": share.epsilon,
            "run_delta": share.delta,
            "selection_epsilon": choice.exponent * choice.sensitivity(budget.relation),
            "inner": inner_mechanism.describe_inner(self.inner, run),
        }
        steps = 1 + self.runs * run.steps
        certificate = run.guarantee.certificate
        return Design(events, run.noise_scale, steps, settings, certificate, inner=run)

    def events(self, spec: ProblemSpec, scale: float, budget: Budget) -> tuple[Event, ...]:
        """Unsupported: one noise scale does not say what the choice costs."""
        raise Unsupported("high_probability spends a budget on two stages: give epsilon instead")

    def release(self, view: CentralView, plan: Plan, gate: Gate) -> Release:
        """All runs, then one choice a trial."""
        *runs, last = plan.events
        size = len(runs) // plan.settings["runs"]
        points = [
            inner_mechanism.release_inside(
                self.inner, view, inner_mechanism.inner_plan(plan, part), gate
            ).theta
            for part in (runs[at : at + size] for at in range(0, len(runs), size))
        ]
        if isinstance(last, ListChoice):
            law = gate.stream(last, view.spec.p)
        else:
            # from the problem's own facts, which the gate compares with the plan's
            choice = cast(Exponential, last)
            law = gate.stream(_law(view.spec, choice.exponent), view.spec.p)
        # on the set, and nowhere else, the oscillation holds
        theta = np.stack([view.spec.constraint.project(point) for point in points], axis=1)
        if isinstance(last, ListChoice):
            units = find_units(view.spec)
            scores = [
                list_choice.count_objective(view, point, units) for point in theta.swapaxes(0, 1)
            ]
            chosen = list_choice.choose(law, np.stack(scores, axis=1), units.size, 0)
            return Release(theta[np.arange(len(theta)), chosen])
        values = np.stack([view.objective(point) for point in theta.swapaxes(0, 1)], axis=1)
        chosen = list_choice.choose(law, values, 1.0, 0)
        return Release(law.release(theta[np.arange(len(theta)), chosen], 0))

    def adversary(self, budget: Budget) -> Adversary:
        """The inner mechanism's own, against a single run that has nearly the whole budget.

        Only one of k runs is seen, so k > 1 hides most of what is spent; that the choice has its
        law is checked exactly, by tests.
        """
        chosen = replace(self, rho=1.0, selection=0.01)
        left = replace(budget, epsilon=0.99 * budget.epsilon)
        return super(HighProbability, chosen).adversary(left)

    def _shares(self, left: Budget) -> list[Budget]:
        """What a run may be given, best first; the last always adds up to the budget."""
        if left.delta == 0.0:
            return [inner_mechanism.split_mu(left, self.runs)]
        mu = calibrate.mu(left.epsilon, left.delta) / math.sqrt(self.runs)
        tried = [inner_mechanism.gdp_budget(factor * mu, left) for factor in _MU_FACTORS]
        return [*tried, inner_mechanism.split_basic(left, self.runs)]


def _law(spec: ProblemSpec, exponent: float) -> Exponential:
    """One draw among released points."""
    return Exponential(exponent, spec.variation, gap=spec.oscillation)
