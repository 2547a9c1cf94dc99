"""What is particular to private_selection: the budget of a run, the choice, free validation."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from dperm_cli.audit import exact_loss
from dperm_cli.audit.replay import replace_record, replay
from dperm_cli.audit.statistical_attack import attack
from dperm_cli.core.errors import InputError, PrivacyError, Unsupported
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.losses.squared import Squared
from dperm_cli.mechanisms.combinators.private_selection import PrivateSelection
from dperm_cli.mechanisms.shared import run_numbers
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import (
    Gaussian,
    Laplace,
    NegativeBinomialSelection,
    PoissonSelection,
)
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem
from dperm_cli.sets import make_ball
from dperm_cli.sets.simplex import Simplex
from dperm_cli.views.central import CentralView
from tests.conftest import small_problem

REPLACE, REMOVE = "replace_one", "add_remove"
BUDGET = Budget(1.0, 1e-6)
RADII = {"constraint.radius": [0.1, 1.0]}
QUICK = {"name": "noisy_gd", "steps": 5}


def release(mechanism, problem, budget=BUDGET, trials=4, tape=None):
    plan = mechanism.plan(problem.spec(), budget)
    seeds = [seed_sequence(0, "test", trial) for trial in range(trials)]
    gate = Gate(seeds, tape, (plan.events, budget.relation))
    return mechanism.release(CentralView(problem), plan, gate)


def regression(n=2000, p=4, radius=10.0, length=0.5, **penalty):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(n, p))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = np.clip(x @ np.full(p, length / math.sqrt(p)) + 0.1 * rng.normal(size=n), -1.0, 1.0)
    data = Data.of_records("made", "regression", x, y, 1.0, 1.0, fingerprint=f"made {n}")
    return Problem(data, Squared(), make_ball(radius, p), **penalty)


class TestBudget:
    def test_a_run_and_its_score_share_the_mu_of_a_run(self):
        """Poisson 3 at (1, 1e-6): mu .17787 in all, a tenth of its square for the score."""
        plan = PrivateSelection(inner=QUICK, candidates=RADII).plan(small_problem().spec(), BUDGET)
        (event,) = plan.events
        assert isinstance(event, PoissonSelection)
        assert (event.mean, len(event.candidates)) == (3.0, 2)
        for run, score in event.candidates:
            mus = [math.sqrt(e.count) * e.ratio(REPLACE) for e in (run, score)]
            assert math.hypot(*mus) == pytest.approx(0.17787, abs=1e-5)
            assert (mus[1] / math.hypot(*mus)) ** 2 == pytest.approx(0.1, rel=1e-4)
        tuning = plan.settings["tuning"]
        assert (tuning["candidates"], tuning["expected_runs"]) == (2, 3.0)
        assert tuning["mu_without"] == pytest.approx(0.236704, abs=1e-6)
        assert tuning["noise_factor"] == pytest.approx(
            0.236704 / 0.17787 / math.sqrt(0.9), rel=1e-4
        )
        assert 0.2 < tuning["epsilon"] < 1.0
        assert 0.999 < plan.guarantee.epsilon <= 1.0

    def test_pure_runs_cost_two_and_eta(self):
        mechanism = PrivateSelection(inner="output_perturbation", candidates=RADII, eta=0.5)
        plan = mechanism.plan(small_problem(ridge=1.0).spec(), Budget(1.0, 0.0))
        (event,) = plan.events
        assert isinstance(event, NegativeBinomialSelection)
        assert event.expected_runs == pytest.approx(3.0)
        for run, score in event.candidates:
            assert isinstance(score, Laplace)
            one = account((run, score), delta=0.0, relation=REPLACE).epsilon
            assert one == pytest.approx(0.4, rel=1e-9)
        assert plan.guarantee.epsilon == pytest.approx(1.0)
        assert plan.guarantee.kind == "pure"

    @pytest.mark.parametrize("runs", [1.0, 1.5, 3.0, 40.0])
    @pytest.mark.parametrize("eta", [-0.5, 0.0, 1.0])
    def test_the_law_expects_the_runs_that_were_asked_for(self, eta, runs):
        law = run_numbers.find_negative_binomial(eta, runs)
        assert law.expected_runs == pytest.approx(runs, rel=1e-6)

    def test_what_a_choice_costs_is_known_from_the_budget_alone(self):
        cost = run_numbers.find_cost(1.0, 1e-6, share=1e-9)
        assert cost.noise_factor == pytest.approx(1.3308, abs=1e-4)
        assert cost.pays(1.2) is False
        assert cost.pays(1.5) is None
        assert cost.pays(4.0) is True
        more = [run_numbers.find_cost(1.0, 1e-6, runs).noise_factor for runs in (1.0, 3.0, 10.0)]
        assert more == sorted(more)
        assert run_numbers.find_cost(1.0, 0.0, eta=1.0, share=1e-9).noise_factor == pytest.approx(3)

    def test_runs_that_cannot_be_accounted_for_are_unsupported(self):
        spec = small_problem(ridge=0.1).spec()
        for inner in ({"name": "objective_perturbation", "noise": "gaussian"}, "noisy_sgd"):
            mechanism = PrivateSelection(inner=inner)
            with pytest.raises(Unsupported, match="Gaussian and pure steps"):
                mechanism.plan(spec, BUDGET)
        poisson = PrivateSelection(inner="output_perturbation", stopping="poisson")
        with pytest.raises(Unsupported, match="negative_binomial"):
            poisson.plan(spec, Budget(1.0, 0.0))


class TestCandidates:
    def test_radii_beyond_the_set_and_sets_without_one_are_unsupported(self):
        far = PrivateSelection(inner=QUICK, candidates={"constraint.radius": [1.0, 1e6]})
        with pytest.raises(Unsupported, match="largest candidate"):
            far.plan(small_problem().spec(), BUDGET)
        simplex = dataclasses.replace(small_problem(), constraint=Simplex(1.0, 3))
        with pytest.raises(Unsupported, match="ball about the origin"):
            PrivateSelection(inner=QUICK, candidates=RADII).plan(simplex.spec(), BUDGET)

    @pytest.mark.parametrize(
        "candidates",
        [1, [1.0], {"radius": [1.0]}, {"ridge": 1.0}, {"ridge": []}, {"ridge": [-1.0]},
         {"ridge": [1.0, 1.0]}, {"ridge": [True]}, {"constraint.radius": [0.0]},
         {"ridge": [math.nan]}, {"dataset.scaling": ["minmax"]}, {"dataset.scaling": "bounds"},
         {"ridge": list(range(101))}],
    )  # fmt: skip
    def test_what_is_no_list_of_public_numbers_is_refused(self, candidates):
        with pytest.raises(InputError):
            PrivateSelection(candidates=candidates)

    def test_it_is_not_run_inside_another_mechanism(self):
        with pytest.raises(InputError, match="cannot be inside"):
            PrivateSelection(inner=PrivateSelection())


class TestRelease:
    def test_the_best_candidate_is_chosen_where_the_score_tells_them_apart(self):
        """The optimum is long: nearly all runs at radius .01 lose against those at radius 1."""
        problem = small_problem(n=3000, p=2, radius=1.0)
        mechanism = PrivateSelection(
            inner=QUICK, candidates={"constraint.radius": [1e-3, 1.0]}, runs=6.0
        )
        found = release(mechanism, problem, Budget(20.0, 1e-6), trials=60)
        chosen = [one.get("constraint.radius") for one in found.info["chosen"]]
        both = [value for value in chosen if value is not None]
        # about (1 - e^-3) of the trials with runs try the wide set, and then take it
        assert np.mean(np.array(both) == 1.0) > 0.85
        length = np.linalg.norm(found.theta, axis=1)
        assert all(
            size <= radius * (1 + 1e-9)
            for size, radius in zip(length, chosen, strict=True)
            if radius
        )

    def test_without_a_run_the_start_is_shown(self):
        mechanism = PrivateSelection(inner=QUICK, candidates=RADII, runs=1.0)
        found = release(mechanism, small_problem(), trials=30)
        none = np.array([not one for one in found.info["chosen"]])
        assert 3 <= none.sum() <= 20  # e^-1 of 30
        assert np.all(found.theta[none] == 0.0)
        assert np.all(np.any(found.theta[~none] != 0.0, axis=1))

    def test_a_trial_does_not_depend_on_its_neighbours(self):
        mechanism = PrivateSelection(inner=QUICK, candidates=RADII)
        few, many = (release(mechanism, small_problem(), trials=k).theta for k in (2, 5))
        assert few.tobytes() == many[:2].tobytes()

    def test_losses_are_held_to_the_bound_of_the_score(self):
        """One record moves the sum of a score by the declared sensitivity at most."""
        problem = small_problem(n=5, radius=50.0)
        theta = np.random.default_rng(0).normal(size=(20, problem.p)) * 20.0
        score = (
            PrivateSelection(inner=QUICK).plan(problem.spec(), BUDGET).events[0].candidates[0][-1]
        )
        row = np.eye(problem.p)[0]
        for label in (1.0, -1.0):
            first = replace_record(problem, 0, row, label)
            second = replace_record(problem, 0, -row, label)
            gone = replace_record(problem, 0, 0.0 * row, label)
            values = [
                CentralView(one).clipped_losses(theta, score.record_norm)
                for one in (first, second, gone)
            ]
            moved = np.max(np.abs(values[0] - values[1])), np.max(np.abs(values[0] - values[2]))
            assert moved[0] <= score.sensitivity(REPLACE) * (1 + 1e-12)
            assert 0.5 * score.record_norm < moved[1] <= score.sensitivity(REMOVE) * (1 + 1e-12)

    def test_nothing_but_released_values_decides(self):
        """Neighbours that get the same noisy values make the same choices and show the same."""
        problem = small_problem(n=6)
        mechanism = PrivateSelection(inner=QUICK, candidates={**RADII, "ridge": [0.0, 0.1]})
        plan = mechanism.plan(problem.spec(), BUDGET)
        row = np.array([1.0, 0.0, 0.0])
        first, second = (replace_record(problem, 0, side * row, 1.0) for side in (1.0, -1.0))
        for seed in range(3):
            found = replay(mechanism, plan, first, second, seed)
            assert found.private, found.faults
        assert found.worst > 0.1

    def test_a_run_too_many_is_refused(self):
        """The gate of a plan with one run at most does not open the runs of another."""
        problem = small_problem()
        mechanism = PrivateSelection(inner=QUICK, candidates=RADII)
        plan = mechanism.plan(problem.spec(), BUDGET)
        fewer = dataclasses.replace(plan.events[0], mean=1.0)
        gate = Gate([seed_sequence(0, "test")], plan=((fewer,), REPLACE))
        with pytest.raises(PrivacyError, match="no event of the plan"):
            mechanism.release(CentralView(problem), plan, gate)


class TestFreeValidation:
    INNER = "sufficient_statistics"

    def test_it_costs_nothing(self):
        spec = regression().spec()
        chosen = PrivateSelection(inner=self.INNER, candidates=RADII).plan(spec, BUDGET)
        alone = PrivateSelection(inner={"name": self.INNER, "noise": "gaussian"}).inner
        assert chosen.events == alone.plan(spec, BUDGET).events
        assert chosen.settings["tuning"] == {
            "candidates": 2, "epsilon": 0.0, "how": "free validation"
        }  # fmt: skip

    def test_at_delta_zero_the_choice_is_paid_for(self):
        plan = PrivateSelection(inner=self.INNER, candidates=RADII).plan(
            regression().spec(), Budget(1.0, 0.0)
        )
        assert isinstance(plan.events[0], NegativeBinomialSelection)

    def test_it_takes_the_radius_of_a_short_optimum_and_gains_by_it(self):
        """|theta*| = .2: among .2, 1 and 10 the smallest is taken most often, and risk falls."""
        problem = regression(n=2000, length=0.2)
        radii = {"constraint.radius": [0.2, 1.0, 10.0]}
        budget = Budget(0.1, 1e-6)
        best, plain = (
            release(PrivateSelection(inner=self.INNER, candidates=c), problem, budget, 40)
            for c in (radii, {})
        )
        chosen = [one["constraint.radius"] for one in best.info["chosen"]]
        assert chosen.count(0.2) > 20
        risks = [np.median(problem.objective(one.theta)) for one in (best, plain)]
        assert risks[0] < risks[1]

    def test_the_two_halves_are_independent_and_unbiased(self):
        """tau Z and -Z / tau beside N: no correlation, of variances 1 + tau^2 and 1 + 1 / tau^2."""
        event = Gaussian(2.0, 1.0)
        stream = Gate([seed_sequence(0, "halves")], plan=((event,), REPLACE)).stream(event, 40_000)
        released, copy = stream.add(np.zeros((1, 40_000)), 0)[0], stream.draw_copy(0)[0]
        first, second = released + copy, released - copy
        assert abs(np.corrcoef(first, second)[0, 1]) < 0.03
        assert np.std(first) == pytest.approx(2.0 * math.sqrt(2.0), rel=0.02)
        assert not np.array_equal(copy, stream.draw_copy(1)[0])


class TestAudit:
    @pytest.mark.parametrize("relation", [REPLACE, REMOVE])
    def test_the_attack_reaches_its_claim(self, relation):
        budget = Budget(1.0, 1e-5, relation)
        adversary = PrivateSelection().adversary(budget)
        assert adversary.floor == 0.8
        found = attack(adversary, budget, quick=True)
        assert not found.faults
        assert 0.5 < found.tightness <= 1.0

    @pytest.mark.slow
    @pytest.mark.parametrize("relation", [REPLACE, REMOVE])
    def test_with_all_runs_the_attack_reaches_its_floor(self, relation):
        budget = Budget(1.0, 1e-5, relation)
        found = attack(PrivateSelection().adversary(budget), budget)
        assert (found.floor, found.faults) == (0.8, ())

    @pytest.mark.parametrize(("runs", "least"), [(1.0, 0.8), (3.0, 0.75), (10.0, 0.5)])
    def test_how_near_the_choice_comes_to_its_claim(self, runs, least):
        """Of Gaussian runs whose score is their output, by quadrature: .868, .778 and .574."""
        mu = calibrate.selection_mu(PoissonSelection([[Gaussian(1.0, 1.0)]], runs).runs, 1.0, 1e-6)
        event = PoissonSelection([[Gaussian(1.0 / mu, 1.0)]], runs)
        assert least < exact_loss.noise_loss(event, 1.0, 1e-6, REMOVE) <= 1.0

    def test_of_pure_runs_the_claim_is_reached(self):
        event = NegativeBinomialSelection([[Laplace(4.0, 1.0)]], 1.0, 1e-2)
        assert 0.8 < exact_loss.noise_loss(event, 0.75, 0.0, REMOVE) <= 1.0

    def test_a_choice_that_is_not_paid_for_is_found(self):
        """Runs with the noise of a single one spend more than the budget, even in an example."""
        mu = calibrate.mu(1.0, 1e-6)
        for runs in (3.0, 10.0):
            event = PoissonSelection([[Gaussian(1.0 / mu, 1.0)]], runs)
            assert exact_loss.noise_loss(event, 1.0, 1e-6, REMOVE) > 1.0
        pure = NegativeBinomialSelection([[Laplace(1.0, 1.0)]], 0.0, 0.1)
        assert exact_loss.noise_loss(pure, 1.0, 0.0, REMOVE) > 1.0
