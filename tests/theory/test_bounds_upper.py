"""Explicit upper bounds: their formulas, and that mechanisms stay below them on data.

Runs fix their seeds; a mean over trials may exceed its expectation by chance, so that 5 standard
errors are taken off it.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy.stats import gamma

from dperm_cli.bounds import all_bounds, bst14_combined, bst14_upper
from dperm_cli.bounds.base import Setting, risk_range
from dperm_cli.bounds.bst14 import (
    harmonic,
    noisy_sgd_constant_step,
    noisy_sgd_convex,
    noisy_sgd_strongly_convex,
    suffix_start,
)
from dperm_cli.core import registry
from dperm_cli.core.fields import fields_of
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.mechanisms.gradient.noisy_sgd import NoisySgd
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.solvers.optimum import solve
from dperm_cli.views.central import CentralView
from tests.conftest import small_problem
from tests.theory.bounds_data import bare

OUTPUTS = ("last", "average", "suffix_average")


def explicit(at):
    """The explicit upper bounds on the empirical excess risk that apply, by id."""
    kind = [
        b
        for b in all_bounds.ALL
        if (b.kind, b.constant, b.quantity) == ("upper", "explicit", "excess_risk")
    ]
    return {b.id: b.value(at) for b in kind if b.applies(at) is None}


# --- noisy SGD


def worst_of_sgd(steps, curvature, output, seed=0, trials=4000):
    """Mean F - F* of projected SGD on [-1, 1] for F = (curvature / 2) theta^2 - or |theta| - under
    gradient noise, and the second moment of its gradients."""
    rng = np.random.default_rng(seed)
    theta, path, most = np.ones(trials), [], 0.0
    noise = 3.0
    level = 1.0 if curvature == 0 else curvature
    bound = math.sqrt(level**2 + noise**2)
    for t in range(1, steps + 1):
        slope = np.sign(theta) if curvature == 0 else curvature * theta
        g = slope + noise * rng.standard_normal(trials)
        most = max(most, float(np.mean(g**2)))
        eta = 2.0 / (bound * math.sqrt(t)) if curvature == 0 else 1.0 / (curvature * t)
        theta = np.clip(theta - eta * g, -1.0, 1.0)
        path.append(theta)
    kept = {"last": path[-1:], "average": path, "suffix_average": path[suffix_start(steps) - 2 :]}
    found = np.mean(kept[output], axis=0)
    risk = np.abs(found) if curvature == 0 else curvature / 2 * found**2
    return risk.mean() - 5 * risk.std() / math.sqrt(trials), bound


@pytest.mark.parametrize("steps", [1, 2, 3, 10, 200])
def test_constant_steps_have_the_least_bound_and_keep_to_it(steps):
    rng, noise, trials = np.random.default_rng(steps), 3.0, 4000
    bound = math.sqrt(1.0 + noise**2)
    theta, total, eta = np.zeros(trials), np.zeros(trials), 1.0 / (bound * math.sqrt(steps + 1))
    for _ in range(steps):  # F = |theta - 1| on [-1, 1], from the centre
        g = np.where(theta < 1.0, -1.0, 1.0) + noise * rng.standard_normal(trials)
        theta = np.clip(theta - eta * g, -1.0, 1.0)
        total += theta
    risk = 1.0 - total / steps
    at = sgd_setting(steps, bound, "average", 0.0)
    at = dataclasses.replace(at, settings={**at.settings, "learning_rate": "constant"})
    value = noisy_sgd_constant_step.value(at)
    assert risk.mean() - 5 * risk.std() / math.sqrt(trials) <= value
    assert value == pytest.approx(bound * math.sqrt(steps + 1) / steps)
    others = [noisy_sgd_convex.value(sgd_setting(steps, bound, o, 0.0)) for o in OUTPUTS]
    assert value < min(others) / 1.4
    assert noisy_sgd_constant_step.applies(at) is None
    last = dataclasses.replace(at, settings={**at.settings, "output": "last"})
    assert "mean of the iterates" in (noisy_sgd_constant_step.applies(last) or "")


def test_what_the_page_says_of_constant_steps():
    """The bounds of docs/proofs/noisy_sgd.md, on the embedded data."""
    found = {}
    for rate, output in (("constant", "average"), ("convex", "suffix_average"), ("convex", "last")):
        mechanism = NoisySgd(learning_rate=rate, output=output)
        spec = bare(n=456, p=30, radius=10.0).spec
        for epsilon in (1.0, 10.0):
            plan = mechanism.plan(spec, Budget(epsilon, 456.0**-2))
            at = bare(n=456, p=30, radius=10.0, mechanism="noisy_sgd", steps=plan.steps)
            at = dataclasses.replace(at, settings=plan.settings)
            found[rate, output, epsilon] = round(explicit(at).popitem()[1])
    assert list(found.values()) == [470, 102, 1492, 323, 20105, 4357]


def sgd_setting(steps, bound, output, ridge):
    rate = "strongly_convex" if ridge else "convex"
    return bare(
        n=1, p=1, mechanism="noisy_sgd", delta=1e-3, steps=steps, ridge=ridge,
        learning_rate=rate, gradient_bound=bound, output=output,
    )  # fmt: skip


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("steps", [1, 2, 3, 10, 200])
def test_convex_rate_holds(output, steps):
    risk, bound = worst_of_sgd(steps, 0.0, output)
    at = sgd_setting(steps, bound, output, 0.0)
    assert noisy_sgd_convex.applies(at) is None
    assert risk <= noisy_sgd_convex.value(at)


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("steps", [1, 2, 3, 10, 200])
def test_strongly_convex_rate_holds_and_is_not_far_off(output, steps):
    risk, bound = worst_of_sgd(steps, 0.5, output)
    at = sgd_setting(steps, bound, output, 0.5)
    assert noisy_sgd_strongly_convex.applies(at) is None
    value = noisy_sgd_strongly_convex.value(at)
    assert risk <= value
    if steps == 200 and output != "average":
        assert value <= 40 * risk


def test_strongly_convex_formulas():
    last = sgd_setting(9, 3.0, "last", 0.5)
    h = math.fsum(1 / k for k in range(1, 11))
    assert noisy_sgd_strongly_convex.value(last) == pytest.approx(
        9.0 * (2 * h + 1) / (2 * 0.5 * 10)
    )
    average = sgd_setting(9, 3.0, "average", 0.5)
    assert noisy_sgd_strongly_convex.value(average) == pytest.approx(9.0 * h / (2 * 0.5 * 9))
    suffix = sgd_setting(9, 3.0, "suffix_average", 0.5)
    part = 1 + sum(1 / k for k in range(6, 11))
    assert noisy_sgd_strongly_convex.value(suffix) == pytest.approx(9.0 * part / (2 * 0.5 * 5))


def test_last_iterate_sum_is_what_the_proof_says():
    """The double sum of the proof, for N up to 40, against its closed form."""
    for n in range(2, 41):
        total = sum(
            1 / (k * (k + 1)) * sum(1 / t for t in range(n - k, n + 1)) for k in range(1, n)
        )
        assert total == pytest.approx((harmonic(n - 1) + 1 - 1 / n) / n)
        assert (harmonic(n) / n + total) <= (2 * harmonic(n) + 1) / n


def test_harmonic_numbers():
    for count in (1, 20, 21, 1000):
        exact = math.fsum(1 / k for k in range(1, count + 1))
        assert exact - 1e-15 <= harmonic(count) <= exact + 1e-7


# --- the exponential mechanism


@pytest.mark.parametrize("p", [1, 2, 3])
def test_mean_and_tail_of_the_exponential_law(p):
    """F = |theta - corner| on a cube, by quadrature: mean below p / c, tail above."""
    c, line = 7.0, (np.arange(120) + 0.5) / 60 - 1
    grids = np.meshgrid(*[line] * p)
    f = np.sqrt(sum((g - 0.3) ** 2 for g in grids)).ravel()
    law = np.exp(-c * f)
    law /= law.sum()
    mean = float(law @ f)
    assert mean <= bst14_upper.exponential_risk(p, c)
    assert mean >= 0.7 * bst14_upper.exponential_risk(p, c)  # a cone: p / c but for the set's end
    for failure in (0.3, 0.01, 1e-4):
        level = bst14_upper.paper_quantile(p, c, math.log(1 / failure))
        assert law[f >= level].sum() <= failure
    assert bst14_upper.paper_exponential_risk(p, c) > 4 * bst14_upper.exponential_risk(p, c)


def test_printed_tail_at_the_printed_exponent():
    # (8 L |C| / epsilon) ((p + 1) ln 3 + t) at c = epsilon / (2 L |C|)
    epsilon, p, t = 0.3, 4, 2.0
    expected = 8 * 2.0 / epsilon * (5 * math.log(3) + t)
    assert bst14_upper.paper_quantile(p, epsilon / 4.0, t) == pytest.approx(expected)


def test_quadratic_and_distance_cost_what_they_should():
    sampler = {"exponent": 0.5, "kappa": 3.0, "dist_inf": 0.1}
    at = bare(p=4, radius=2.0, mechanism="regularized_exponential", delta=1e-6, sampler=sampler)
    assert explicit(at) == {"exponential Thm 2": pytest.approx(math.exp(0.1) * (4 + 6) / 0.5)}
    heuristic = dataclasses.replace(at, settings={"sampler": {**sampler, "dist_inf": None}})
    assert explicit(heuristic) == {}


def test_a_law_on_a_net_has_its_own_bound():
    """ln(N) / c + the net's own risk; nothing that is proved on the whole set."""
    sampler = {"exponent": 0.5, "dist_inf": 0.0}
    net = {"points_at_most": 1000, "discretisation_risk": 0.7}
    whole, at = bare(p=2, sampler=sampler), bare(p=2, sampler={**sampler, **net})
    assert set(explicit(whole)) == {"exponential Thm 2", "BST14 Thm 3.2 (constants)"}
    expected = math.log(1000) / 0.5 + 0.7
    assert explicit(at) == {"exponential net": pytest.approx(expected)}
    assert "order_upper" in all_bounds.choose_best_bounds(whole)
    assert "order_upper" not in all_bounds.choose_best_bounds(at)


@pytest.mark.parametrize("points", [2, 50, 3000])
def test_net_risk_on_nets(points):
    """F = n |theta - a| on a net of [-1, 1], by summation: F is ln(N) / c above the net's least."""
    grid = -1 + (2 * np.arange(points) + 1) / points
    for n, a in ((1, 0.3), (100, 1.0), (1e4, -0.123)):
        f, covering = n * np.abs(grid - a), 1.0 / points
        law = np.exp(-0.5 * (f - f.min()))
        mean = float(law @ f) / float(law.sum())
        assert mean <= bst14_upper.net_risk(points, 0.5, n * covering)
    # one good point among equally bad ones, such that the choice is hard: no constant to spare
    bad = math.log(points)
    mean = bad * (points - 1) / (points - 1 + math.exp(bad))
    assert 0.3 * bst14_upper.net_risk(points, 1.0, 0.0) < mean


# --- moments


@pytest.mark.parametrize("p", [1, 3, 12])
def test_moments_of_the_noise(p):
    rng = np.random.default_rng(p)
    norms = rng.gamma(p, 0.7, 200_000)
    mean, square = bst14_upper.gamma_moments(p, 0.7)
    assert norms.mean() == pytest.approx(mean, rel=0.01)
    assert np.mean(norms**2) == pytest.approx(square, rel=0.02)
    norms = np.linalg.norm(0.7 * rng.standard_normal((200_000, p)), axis=1)
    mean, square = bst14_upper.gaussian_moments(p, 0.7)
    assert norms.mean() == pytest.approx(mean, rel=0.01)
    assert np.mean(norms**2) == pytest.approx(square, rel=0.02)


def test_chance_of_missing_the_minimiser():
    facts = {"radius": 5.0, "first_noise_scale": 0.5, "minimiser_gap": 0.0}
    at = bare(n=10, p=3, ridge=1.0, mechanism="localization")
    at = dataclasses.replace(at, settings=facts)
    assert bst14_combined.miss_probability(at) == pytest.approx(gamma.sf(10.0, 3))
    gauss = dataclasses.replace(at, kind="approx")
    assert bst14_combined.miss_probability(gauss) == pytest.approx(gamma.sf(50.0, 1.5))
    off = dataclasses.replace(at, settings={**facts, "minimiser_gap": 5.0})
    assert bst14_combined.miss_probability(off) == pytest.approx(gamma.sf(8.0, 3))


# --- mechanisms on data

RUNS = [
    ("exponential", {}, "hinge", 0.0, 0.0),
    ("exponential", {}, "logistic", 0.1, 0.0),
    ("regularized_exponential", {}, "logistic", 0.0, 1e-4),
    ("output_perturbation", {}, "logistic", 2.0, 0.0),
    ("output_perturbation", {}, "hinge", 2.0, 1e-4),
    ("objective_perturbation", {}, "logistic", 0.0, 0.0),
    ("objective_perturbation", {}, "logistic", 0.0, 1e-4),
    ("objective_perturbation", {}, "logistic", 1.0, 1e-4),
    ("approximate_minima_perturbation", {}, "logistic", 0.0, 1e-4),
    ("localization", {"inner": "exponential"}, "logistic", 2.0, 0.0),
    ("localization", {"inner": {"name": "noisy_sgd", "steps": 60}}, "logistic", 2.0, 1e-4),
    ("high_probability", {"inner": "exponential"}, "logistic", 0.0, 0.0),
    ("huberized", {"inner": "objective_perturbation"}, "hinge", 0.0, 1e-4),
    ("objective_perturbation", {"noise": "gamma"}, "logistic", 0.0, 1e-4),
    ("huberized", {"inner": "approximate_minima_perturbation"}, "hinge", 0.0, 1e-4),
    ("high_probability", {"inner": "output_perturbation"}, "logistic", 2.0, 1e-4),
    ("exponential", {"sampler": "net"}, "logistic", 0.0, 0.0),
    ("noisy_sgd", {}, "hinge", 1.0, 1e-4),
    ("noisy_sgd", {"output": "suffix_average"}, "logistic", 1.0, 1e-4),
    ("noisy_sgd", {"output": "average", "learning_rate": "constant"}, "logistic", 0.0, 1e-4),
    ("noisy_gd", {"step_size": "theory"}, "hinge", 0.0, 1e-4),
    ("sufficient_statistics", {"noise": "gaussian"}, "squared", 0.0, 1e-4),
    ("sufficient_statistics", {"noise": "wishart"}, "squared", 0.5, 0.0),
]


@pytest.mark.in_turn
@pytest.mark.parametrize(("name", "fields", "loss", "ridge", "delta"), RUNS)
def test_mechanisms_stay_below_their_bounds(name, fields, loss, ridge, delta):
    if name not in registry.names("mechanism"):
        pytest.skip(f"no mechanism {name}")
    cls = registry.load("mechanism", name)
    if "noise" in fields_of(cls) and "noise" not in fields:  # auto takes gamma for two parameters
        fields = {**fields, "noise": "gaussian" if delta else "gamma"}
    mechanism = cls(**fields)
    problem = small_problem(loss=loss, n=30, p=2, radius=0.5, ridge=ridge)
    spec, budget = problem.spec(), Budget(8.0, delta)
    plan = mechanism.plan(spec, budget)
    seeds = [seed_sequence(11, "test", name, trial) for trial in range(60)]
    theta = mechanism.release(CentralView(problem), plan, Gate(seeds)).theta
    risk = problem.objective(theta) - solve(problem).value
    kind = "approx" if delta else "pure"
    at = Setting(spec, budget, kind, name, plan.noise_scale, plan.steps, plan.settings)
    found = explicit(at)
    assert found, "an explicit bound applies"
    noise = getattr(mechanism, "noise", None)
    if name in ("objective_perturbation", "approximate_minima_perturbation"):
        chosen = noise if noise in ("gamma", "gaussian") else ("gaussian" if delta else "gamma")
        assert plan.settings["noise"] == chosen  # the bounds go by it
    least = risk.mean() - 5 * risk.std() / math.sqrt(len(risk))
    for key, value in found.items():
        assert least <= value, key
    row = all_bounds.choose_best_bounds(at)
    assert row["bound_upper"] == min(*found.values(), risk_range(at))
    assert row["bound_lower"] <= row["bound_upper"]
    if row["bound_lower"] > 0:
        assert row["bound_factor"] == row["bound_upper"] / row["bound_lower"]


def test_span_is_the_range_of_the_objective():
    at = bare(n=7, p=4, ridge=2.0, lasso=0.5, radius=1.5)
    assert risk_range(at) == pytest.approx(7 * (3.0 + 2.0 * 1.5**2 / 2 + 0.5 * 2 * 1.5))
