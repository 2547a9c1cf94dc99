"""A choice among public candidates: free where statistics are shared, else by private selection."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from dperm_cli.core.candidate_lists import SCALING, check_candidates
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.fields import Check, Choices, Help, Probability, Range
from dperm_cli.mechanisms.adversary import Adversary, linear_pair
from dperm_cli.mechanisms.base import Design, Plan, Release
from dperm_cli.mechanisms.combinators.auto import Auto
from dperm_cli.mechanisms.shared import inner_mechanism, tuning_candidates
from dperm_cli.mechanisms.shared.inner_mechanism import Combinator
from dperm_cli.mechanisms.shared.one_noisy_sum import OneSum
from dperm_cli.mechanisms.shared.run_numbers import find_negative_binomial
from dperm_cli.mechanisms.shared.tuning_candidates import list_choices
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.accounting.gaussian_profile import pure_of_mu
from dperm_cli.privacy.accounting.random_stopping import NegativeBinomial, Poisson
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import (
    Event,
    Gaussian,
    Laplace,
    NegativeBinomialSelection,
    PoissonSelection,
)
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.problem import ProblemSpec
from dperm_cli.views.central import CentralView

# by how much the mu of a run is lowered where its events spend too much, at least, and how often
_LOWER, _MOST_TRIES = 1e-12, 30
SCORE_MARGIN = 1.0  # a score counts of each loss what it moves on margins up to this


@dataclass(frozen=True)
class PrivateSelection(Combinator):
    """The best of K runs of the inner mechanism, each at a candidate drawn at random.

    Algorithm: [LT19; PS22]: K is random, each run tries one candidate, all alike, and releases a
    noisy score with its point; the run of the best score is shown. The score is the summed loss
    less that at the centre, each record's held to what it moves on margins up to 1. Guarantee: K
    Poisson and mu-GDP runs (PS22, Thm 6), or K >= 1 negative binomial (PS22, Thm 2; (2 + eta)
    epsilon of pure runs); kinds and relations as ``inner`` has them; trust: central. Where the
    inner mechanism shares its statistics, candidates are compared on two independent halves made of
    one release, and the choice costs nothing; one among scalings is paid for there too.
    ``noise_scale`` is the inner mechanism's, in its unit, the largest of the candidates'.
    ``inner=auto`` is that mechanism of the least predicted risk whose runs can be chosen among.
    Shapes: theta [trials, p]. Cost: E K runs. Unsupported: runs of other than Gaussian and pure
    steps.

    The set is that of the largest candidate for ``constraint.radius``. K = 0 shows the centre. Rows
    of a choice among scalings hold the columns of all of them; a run is on those of its candidate,
    and its point is zero at the others.

    >>> from dperm_cli.problem.problem import bare_spec
    >>> from dperm_cli.sets import make_ball
    >>> chosen = PrivateSelection(candidates={"constraint.radius": [1.0, 10.0]})
    >>> chosen.plan(bare_spec(9, 1.0, make_ball(10.0, 2)), Budget(1.0, 1e-6)).steps
    603
    """

    outermost: ClassVar[bool] = True

    candidates: Annotated[
        Mapping[str, Any],
        Check(check_candidates),
        Help("{constraint.radius: [1, 10], ridge: [0, 0.01]}; set by tune="),
    ] = field(default_factory=dict, hash=False)
    stopping: Annotated[
        str,
        Choices("auto", "poisson", "negative_binomial"),
        Help("law of the number of runs; auto = poisson, at delta = 0 negative_binomial"),
    ] = "auto"
    runs: Annotated[float, Range(1, 100), Help("expected, where the choice is paid for")] = 3.0
    eta: Annotated[
        float, Range(above=-1, high=10), Help("of negative_binomial: pure runs cost 2 + eta times")
    ] = 0.0
    share: Annotated[Probability, Help("of a run's mu^2, or epsilon, for its score")] = 0.1

    def design(self, spec: ProblemSpec, budget: Budget) -> Design:
        """The runs of all candidates, from public facts alone."""
        choices = list_choices(self.candidates)
        specs = [tuning_candidates.change_facts(spec, choice) for choice in choices]
        if isinstance(self.inner, Auto):
            return self._find_best(self.inner, specs, budget).design(spec, budget)
        # moments of the columns of two scalings of one bound would have twice the noise
        shared = None if SCALING in self.candidates else self.inner.share_statistics(budget)
        if shared is None:
            return self._design_selection(spec, specs, budget)
        found = shared.plan(spec, budget)
        settings = {
            "tuning": {"candidates": len(choices), "epsilon": 0.0, "how": "free validation"},
            "inner": inner_mechanism.describe_inner(shared, found),
        }
        return inner_mechanism.wrap_plan(found, settings)

    def _design_selection(
        self, spec: ProblemSpec, specs: list[ProblemSpec], budget: Budget
    ) -> Design:
        law = self.find_law(budget)
        factor, least = 1.0, _LOWER
        for _ in range(_MOST_TRIES):
            run, score = self._split(law, budget, factor)
            plans = tuple(self._plan_run(each, run, law) for each in specs)
            last = _make_score(spec, score, budget)
            event = _make_event(law, tuple((*plan.events, last) for plan in plans))
            level = account((event,), delta=budget.delta, relation=budget.relation)
            if level.epsilon <= budget.epsilon:
                break
            # calibrations stop at a tolerance, and pure steps count for more than was planned
            factor *= min(1.0 - least, budget.epsilon / level.epsilon)
            least = min(100.0 * least, 0.1)
        else:
            raise Unsupported("no run of these candidates is private enough to be chosen among: "
                              "use mechanism.inner=noisy_gd")  # fmt: skip
        alone = run.epsilon
        tuning: dict[str, Any] = {
            "candidates": len(specs),
            "how": "private selection",
            "stopping": "poisson" if isinstance(law, Poisson) else "negative_binomial",
            "expected_runs": law.expected_runs,
            "run_epsilon": alone,
            "run_delta": run.delta,
            "score_noise": last.scale,
        }
        if budget.delta > 0.0:
            without = calibrate.mu(budget.epsilon, budget.delta)
            tuning |= {"mu": calibrate.selection_mu(law, budget.epsilon, budget.delta)}
            run_mu = math.sqrt(1.0 - self.share) * tuning["mu"]
            tuning |= {"run_mu": run_mu, "mu_without": without, "noise_factor": without / run_mu}
            alone = account(
                (Gaussian(1.0 / run_mu, 1.0),), delta=budget.delta, relation="add_remove"
            ).epsilon
        else:
            tuning["noise_factor"] = budget.epsilon / run.epsilon
        tuning["epsilon"] = max(budget.epsilon - alone, 0.0)
        settings = {"tuning": tuning, "inner": inner_mechanism.describe_inner(self.inner, plans[0])}
        steps = math.ceil(law.expected_runs) * (1 + max(plan.steps for plan in plans))
        certificate = plans[0].guarantee.certificate
        noise = max(plan.noise_scale for plan in plans)
        return Design((event,), noise, steps, settings, certificate, inner=plans)

    def _find_best(self, auto: Auto, specs: list[ProblemSpec], budget: Budget) -> PrivateSelection:
        """With that mechanism of ``auto`` whose runs can be chosen among and promise the least.

        That is predicted from public facts, as the mean over candidates of the logarithm of risk.
        """
        law = self.find_law(budget)
        run, _ = self._split(law, budget, 1.0)
        risks, refused = dict[float, PrivateSelection](), []
        for one in auto.candidates:
            chosen = replace(self, inner=one)
            try:
                plans = [chosen._plan_run(each, run, law) for each in specs]
                found = [one.predict_risk(*pair) for pair in zip(specs, plans, strict=True)]
            except Unsupported as reason:
                refused.append(f"{inner_mechanism.name_of(one)}: {reason}")
                continue
            risks.setdefault(math.fsum(map(math.log, found)), chosen)
        if not risks:
            raise Unsupported(f"no mechanism can be chosen among: {'; '.join(refused)}")
        return risks[min(risks)]

    def find_law(self, budget: Budget) -> Poisson | NegativeBinomial:
        """The law of the number of runs."""
        poisson = self.stopping == "poisson" or (self.stopping == "auto" and budget.delta > 0.0)
        return Poisson(self.runs) if poisson else find_negative_binomial(self.eta, self.runs)

    def _split(
        self, law: Poisson | NegativeBinomial, budget: Budget, factor: float
    ) -> tuple[Budget, float]:
        """The budget of one run without its score, and the score's mu (epsilon at delta = 0)."""
        if budget.delta == 0.0:
            if isinstance(law, Poisson):
                raise Unsupported("a Poisson number of runs gives no pure guarantee; set "
                                  "mechanism.stopping=negative_binomial")  # fmt: skip
            whole = factor * budget.epsilon / law.pure_epsilon(1.0)
            return replace(budget, epsilon=(1.0 - self.share) * whole), self.share * whole
        mu = factor * calibrate.selection_mu(law, budget.epsilon, budget.delta)
        run = inner_mechanism.gdp_budget(math.sqrt(1.0 - self.share) * mu, budget)
        return run, math.sqrt(self.share) * mu

    def _plan_run(self, spec: ProblemSpec, run: Budget, law: Poisson | NegativeBinomial) -> Plan:
        """The inner mechanism's plan; a pure one where its steps are neither Gaussian nor pure."""
        found = self.inner.plan(spec, run)
        try:
            _make_event(law, (found.events,)).loss(run.relation)
        except Unsupported as reason:
            if run.delta == 0.0 or "pure" not in self.inner.guarantees:
                raise
            mu = calibrate.mu(run.epsilon, run.delta)
            try:
                return self.inner.plan(spec, replace(run, epsilon=pure_of_mu(mu), delta=0.0))
            except Unsupported:
                raise reason from None
        return found

    def events(self, spec: ProblemSpec, scale: float, budget: Budget) -> tuple[Event, ...]:
        """Unsupported: one noise scale does not say what the choice costs."""
        raise Unsupported("private_selection spends a budget on several runs: give epsilon instead")

    def release(self, view: CentralView, plan: Plan, gate: Gate) -> Release:
        """All runs of every trial, or one release that all candidates share."""
        if isinstance(self.inner, Auto):
            name = plan.settings["inner"]["name"]
            named = {inner_mechanism.name_of(one): one for one in self.inner.candidates}
            return replace(self, inner=named[name]).release(view, plan, gate)
        choices = list_choices(self.candidates)
        if isinstance(plan.inner, Plan):
            specs = [tuning_candidates.change_facts(view.spec, choice) for choice in choices]
            shared = self.inner.share_statistics(Budget(1.0, plan.guarantee.delta))
            found = inner_mechanism.inner_plan(plan, plan.events)
            theta, chosen = shared.release_best(view, found, gate, specs)
        else:
            theta, chosen = self._select(view, plan, gate, choices)
        named = [choices[number] if number >= 0 else {} for number in chosen]
        return Release(theta, {"chosen": named})

    def adversary(self, budget: Budget) -> Adversary:
        """One run of one noisy sum on opposite linear losses, and next to nothing for its score.

        What is shown is then that sum, accounted for as a selection. Only one of K > 1 runs is
        seen, which hides what the others spend; how near the choice comes to its claim follows
        from densities, and is checked by tests.
        """
        chosen = replace(
            self, inner=OneSum(), candidates={}, stopping="negative_binomial", runs=1.0, share=0.01
        )
        first, _ = linear_pair(budget.relation, ridge=1.0)
        room = 2.0 + 20.0 * chosen.plan(first.spec(), budget).noise_scale
        pair = linear_pair(budget.relation, ridge=1.0, radius=room)
        if budget.delta > 0.0:
            return Adversary(*pair, chosen, kind="gaussian", floor=0.8)
        return Adversary(*pair, chosen, kind="threshold", must_catch=False)

    def _select(
        self, view: CentralView, plan: Plan, gate: Gate, choices: list[dict[str, Any]]
    ) -> tuple[np.ndarray, np.ndarray]:
        """The point of each trial's best run, and its candidate; -1 where there was no run."""
        event: Any = plan.events[0]
        assert isinstance(plan.inner, tuple)
        views = tuning_candidates.list_views(view, choices)
        stream, penalty = gate.stream(event, view.spec.p), view.spec.penalty
        theta = np.tile(view.spec.constraint.centre(), (gate.trials, 1))
        chosen, bound = np.full(gate.trials, -1), _bound_score(view.spec)
        least = np.full(gate.trials, math.inf)
        for run in range(int(np.max(stream.numbers, initial=0))):
            for candidate, trials, own in stream.open_runs(run):
                *events, last = event.candidates[candidate]
                inner = replace(plan.inner[candidate], events=tuple(events))
                near = views[candidate]
                found = inner_mechanism.release_inside(self.inner, near, inner, own)
                points = near.spec.constraint.project(found.theta)
                points = tuning_candidates.embed_points(points, view.spec, choices[candidate])
                values = view.clipped_losses(points, bound)[:, None]
                scores = own.stream(last, 1).add(values, 0)[:, 0] + penalty.value(points)
                better = scores < least[trials]
                won = trials[better]
                least[won], theta[won], chosen[won] = scores[better], points[better], candidate
        return theta, chosen


def _bound_score(spec: ProblemSpec) -> float:
    """What one record counts in a score, at most."""
    if spec.form is None or spec.form.slope_bound is None:
        return spec.variation
    return min(
        spec.variation, SCORE_MARGIN * spec.form.slope_bound(SCORE_MARGIN, spec.target_bound)
    )


def _make_score(spec: ProblemSpec, level: float, budget: Budget) -> Gaussian | Laplace:
    """The release of one score that is ``level``-GDP, or as much pure at delta = 0."""
    bound = _bound_score(spec)
    gap = min(2.0 * bound, spec.oscillation)
    kind = Gaussian if budget.delta > 0.0 else Laplace
    moved = kind(1.0, bound, gap=gap).sensitivity(budget.relation)
    return kind(calibrate.pure_scale(level, moved), bound, gap=gap)


def _make_event(
    law: Poisson | NegativeBinomial, candidates: tuple[tuple[Event, ...], ...]
) -> PoissonSelection | NegativeBinomialSelection:
    if isinstance(law, Poisson):
        return PoissonSelection(candidates, law.mean)
    return NegativeBinomialSelection(candidates, law.eta, law.gamma)
