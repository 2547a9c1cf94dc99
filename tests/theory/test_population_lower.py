"""Lower bounds on the population risk: printed numbers, exact sums, none above an upper bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from dperm_cli.bounds import population_lower
from dperm_cli.bounds.all_bounds import choose_best_bounds
from dperm_cli.bounds.hidden_lower import Privacy
from dperm_cli.mechanisms.gradient.one_pass_sgd import OnePassSgd
from dperm_cli.mechanisms.perturbation.phased_erm import PhasedErm
from dperm_cli.privacy.budget import Budget
from tests.theory.bounds_data import bare

README = {"n": 456, "p": 30}


@pytest.mark.parametrize(("epsilon", "value"), [(0.1, 1.4008), (1.0, 0.27134), (10.0, 0.040951)])
def test_hidden_signs_on_the_readme_s_problem(epsilon, value):
    law = Privacy.of(Budget(epsilon, 4.81e-6), gaussian=True)
    assert 10.0 * population_lower.find_private_risk(law, **README) == pytest.approx(
        value, rel=1e-3
    )


def test_sampling_error_on_the_readme_s_problem_and_for_many_records():
    assert 10.0 * population_lower.find_sampling_risk(456) == pytest.approx(0.15923, abs=1e-5)
    sizes = (1000, 20_001, 10**6, 10**9)
    found = [math.sqrt(n) * population_lower.find_sampling_risk(n) for n in sizes]
    assert found == pytest.approx([0.34] * 4, abs=5e-4)


@pytest.mark.parametrize("n", [1, 2, 7, 30])
@pytest.mark.parametrize("mean", [0.01, 0.3, 1.0])
def test_distance_of_two_sums_of_signs(n, mean):
    counts = np.arange(n + 1)
    apart = binom.pmf(counts, n, (1.0 + mean) / 2.0) - binom.pmf(counts, n, (1.0 - mean) / 2.0)
    exact = float(np.sum(np.maximum(apart, 0.0)))
    assert population_lower._find_distance(n, mean) == pytest.approx(exact, abs=1e-8)


@pytest.mark.parametrize("chance", [1e-3, 0.02, 0.5, 1.0])
@pytest.mark.parametrize("n", [1, 30, 5000])
def test_mean_shares_are_sums_over_the_law(n, chance):
    law = Privacy.of(Budget(0.5, 1e-6))
    counts = np.arange(n + 1)
    shares = np.where(counts > 0, law.square(1, np.maximum(counts, 1)), 0.0)
    exact = float(binom.pmf(counts, n, chance) @ shares)
    found = population_lower._find_mean_shares(law, n, [0.5 * chance, chance])[1]
    assert exact - 1e-12 <= found <= exact * 1.03 + 1e-9


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize(("n", "p"), [(2, 1), (1000, 8), (1000, 400), (10**6, 30), (10**9, 10**4)])
def test_none_is_above_the_trivial_risk(n, p, epsilon, relation):
    for delta in (0.0, 1e-12):
        at = bare(n=n, p=p, epsilon=epsilon, delta=delta, relation=relation)
        found = choose_best_bounds(at)["population_bound_lower"]
        assert 0.0 < found <= 1.0  # L R, the risk of the centre
    assert population_lower.hidden_signs.applies(bare(ridge=0.1)) is not None
    assert population_lower.sampling_error.applies(bare(constraint="box")) is not None


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize(("n", "p"), [(1000, 8), (50, 3), (20_000, 30)])
def test_mechanisms_with_an_upper_bound_are_above_it(n, p, epsilon):
    known = {"phased_erm": PhasedErm(), "one_pass_sgd": OnePassSgd(output="average")}
    for name, mechanism in known.items():
        spec, budget = bare(n=n, p=p, smoothness=0.25).spec, Budget(epsilon, 1e-6)
        plan = mechanism.plan(spec, budget)
        at = bare(
            n=n, p=p, epsilon=epsilon, delta=1e-6, mechanism=name, steps=plan.steps,
            smoothness=0.25, noise_scale=plan.noise_scale, **plan.settings,
        )  # fmt: skip
        found = choose_best_bounds(at)
        assert found["population_bound_lower"] <= found["population_bound_upper"]


def test_private_mean_of_signs_is_above_it():
    """The distributions of the proof, and a private answer to them: noisy sums."""
    n, p, epsilon, radius = 400, 5, 0.5, 1.0
    law = Privacy.of(Budget(epsilon, 1e-6), gaussian=True)
    rng, risks = np.random.default_rng(2), []
    for share in (0.05, 0.1, 0.2, 0.4):
        signs = rng.choice([-1.0, 1.0], (3000, p))
        counts = rng.multinomial(n, [*[share / p] * p, 1.0 - share], 3000)[:, :p]
        noisy = signs * counts + 2.0 / law.mu * rng.standard_normal((3000, p))
        theta = radius * noisy / np.linalg.norm(noisy, axis=1)[:, None]
        risk = share / p * (radius * math.sqrt(p) - np.sum(theta * signs, axis=1))
        risks.append(float(risk.mean()))
    bound = population_lower.find_private_risk(law, n, p)
    assert bound <= max(risks) <= 3.0 * bound
