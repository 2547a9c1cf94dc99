"""PROJERM: the inner mechanism in R^m, clipping, and points that come back to the set."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dperm_cli.audit import statistical_attack
from dperm_cli.audit.replay import replay
from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.mechanisms.compression.projected import Projected
from dperm_cli.mechanisms.shared import projected_problem
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem import projection_dimension, random_projection
from dperm_cli.views import central
from dperm_cli.views.central import CentralView
from tests.conftest import small_problem

PURE, APPROX = Budget(1.0, 0.0), Budget(1.0, 1e-5)
INNER = ("objective_perturbation", "output_perturbation", {"name": "noisy_gd", "steps": 8})
SETS = ("l1_ball", "l2_ball", "simplex", "polytope", "ellipsoid", "box")


def released(mechanism, problem, budget, trials=2):
    plan = mechanism.plan(problem.spec(), budget)
    seeds = [seed_sequence(0, "test", trial) for trial in range(trials)]
    gate = Gate(seeds, plan=(plan.events, budget.relation))
    return plan, mechanism.release(CentralView(problem), plan, gate)


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("constraint", SETS)
def test_releases_are_in_the_set_and_project_to_what_the_inner_mechanism_gave(inner, constraint):
    problem = small_problem(loss="squared", constraint=constraint, n=100, p=8, ridge=0.1)
    mechanism = Projected(inner=inner, m=4)
    plan, out = released(mechanism, problem, APPROX)
    assert np.all(problem.constraint.contains(out.theta))
    assert out.info["residual"] <= 1e-8 * problem.constraint.radius
    assert out.info["gauge"] <= 1.0 + 1e-8
    image = plan.space.constraint.project(plan.space.phi.apply(out.theta))
    np.testing.assert_allclose(plan.space.phi.apply(out.theta), image, atol=1e-8)
    assert plan.settings["m"] == 4


@pytest.mark.parametrize("loss", ["hinge", "absolute"])
def test_minimisers_of_losses_with_kinks_are_certified_in_the_image(loss):
    """The gap that output perturbation's noise is made for is proved, or nothing is released."""
    problem = small_problem(loss=loss, constraint="l1_ball", n=100, p=20, ridge=0.1)
    plan, out = released(Projected(inner="output_perturbation", m=6), problem, APPROX)
    assert np.all(problem.constraint.contains(out.theta))
    assert plan.settings["inner"]["minimiser_gap"] < 1e-6


def test_the_plan_is_the_inner_mechanism_s_for_clipped_rows_over_the_image():
    problem = small_problem(loss="squared", constraint="l1_ball", n=50, p=30)
    plan = Projected(m=4).plan(problem.spec(), PURE)
    reach = plan.settings["projected_radius"]
    assert plan.settings["row_bound"] == 2.0
    # |grad| <= 2 (2 radius(Phi C) + 1), the Lipschitz constant of rows shortened to 2
    assert plan.events[0].record_norm == pytest.approx(2.0 * (2.0 * reach + 1.0))
    norms = np.linalg.norm(plan.space.phi.columns(np.arange(30)), axis=1)
    assert reach == pytest.approx(1.5 * np.max(norms))
    assert plan.guarantee.epsilon == pytest.approx(1.0)
    assert plan.guarantee.kind == "pure"


def test_phi_follows_public_facts_alone():
    first = small_problem(loss="squared", constraint="l1_ball", n=50, p=30, seed=1)
    second = small_problem(loss="squared", constraint="l1_ball", n=50, p=30, seed=2)
    one, two = (Projected(m=4).plan(p.spec(), PURE) for p in (first, second))
    assert one.space.phi is two.space.phi
    other = Projected(m=4, phi_seed=1).plan(first.spec(), PURE)
    assert not np.array_equal(other.space.phi.table, one.space.phi.table)


def test_batches_are_named_by_the_records_and_not_by_their_projections():
    """The last bits of a projected row follow from the number of rows; its batch must not."""
    problem = small_problem(loss="squared", constraint="l1_ball", n=50, p=8)
    phi = random_projection.draw("gaussian", 3, 8, 0)
    image = projected_problem.image_set.image(problem.constraint, phi)

    def other_bits(x):
        return np.nextafter(phi.apply(x), np.inf)

    view = CentralView(problem)
    asked = [view, view.map_rows(phi.apply, 2.0, image), view.map_rows(other_bits, 2.0, image)]
    asked.append(asked[-1].replace_set(loss=problem.loss))
    first, *rest = (found.parts(7, by_content=True) for found in asked)
    for parts in rest:
        for one, other in zip(first, parts, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_the_clip_is_what_replay_holds_it_to(monkeypatch, relation, delta):
    """The adversary's rows arrive twice too long: with the clip they move by all of the
    sensitivity, without it by twice as much, and replay says so."""
    budget = Budget(1.0, delta, relation)
    found = Projected().adversary(budget)
    plan = found.mechanism.plan(found.first.spec(), budget)
    assert plan.settings["m"] == 1
    rows = plan.space.phi.apply(found.first.data.x)
    assert np.max(np.abs(rows)) == pytest.approx(2.0 * plan.space.row_bound)
    verdict = replay(found.mechanism, plan, found.first, found.second)
    assert verdict.private
    assert verdict.worst == pytest.approx(1.0, abs=1e-9)
    monkeypatch.setattr(central, "clip_rows", lambda rows, bound: rows)
    verdict = replay(found.mechanism, plan, found.first, found.second)
    assert not verdict.private
    assert verdict.worst == pytest.approx(2.0, abs=1e-6)


def test_nothing_is_projected_at_m_equal_to_d():
    problem = small_problem(loss="squared", constraint="l1_ball", n=50, ridge=0.1)
    plan, out = released(Projected(m=3), problem, APPROX)
    alone = plan.inner
    seeds = [seed_sequence(0, "test", trial) for trial in range(2)]
    same = Projected().inner.release(CentralView(problem), alone, Gate(seeds)).theta
    np.testing.assert_array_equal(out.theta, same)
    assert plan.settings["phi"] == "identity"
    assert plan.settings["row_bound"] == 1.0
    assert plan.events == Projected().inner.plan(problem.spec(), APPROX).events


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_balanced_m_minimises_the_sum_of_both_terms(delta):
    """For n = 1e5, epsilon = .01 and w = 3: the formula is the least of a fine grid."""
    n, epsilon, width = 10**5, 0.01, 3.0
    m = np.arange(1, 40000.0)
    noise = m / (n * epsilon)
    if delta > 0:
        noise = np.sqrt(m * math.log(1.0 / delta)) / (n * epsilon)
    best = m[np.argmin(noise + width / np.sqrt(m))]
    assert projection_dimension.balanced_dimension(n, epsilon, delta, width) == pytest.approx(
        best, abs=0.6
    )


def test_an_unlimited_budget_projects_nothing():
    spec = small_problem(loss="squared", constraint="l1_ball", n=50, p=8).spec()
    assert projected_problem.choose_m("balanced", spec, Budget(1.7e308, 0.0)) == 8
    assert projected_problem.choose_m("balanced", spec, Budget(1e-300, 0.0)) == 1


def test_the_paper_s_m_exceeds_d_and_says_by_how_much():
    spec = small_problem(loss="squared", constraint="l1_ball", n=1000, p=50).spec()
    with pytest.raises(Unsupported, match=r"Theorem 3.11 is \d+ .* d = 50"):
        Projected(m="paper").plan(spec, PURE)
    # w + sqrt(log n) = 1, log(n / beta) = 1: n epsilon and its power 2/3 by hand
    common = (1.0 + math.sqrt(math.log(100))) ** 2 * math.log(100 / 0.05)
    found = projection_dimension.paper_dimension(100, 0.5, 0.0, 1.0)
    assert found == pytest.approx(50.0 ** (2 / 3) * common)
    assert projection_dimension.paper_dimension(100, 0.5, 1e-5, 1.0) == pytest.approx(50 * common)


def test_refusals_say_what_to_do():
    def planned(mechanism=None, **given):
        problem = small_problem(**{"loss": "squared", "constraint": "l1_ball", "p": 8, **given})
        return (mechanism or Projected(m=4)).plan(problem.spec(), PURE)

    with pytest.raises(Unsupported, match="not a loss of the margin"):
        planned(loss="l2_median", constraint="l2_ball")
    with pytest.raises(Unsupported, match="more than the d = 8"):
        planned(Projected(m=9))
    with pytest.raises(Unsupported, match="set ridge"):
        planned(Projected(m=4, inner="output_perturbation"))
    with pytest.raises(Unsupported, match=r"give mechanism\.m a number"):
        Projected().events(small_problem(loss="squared").spec(), 1.0, Budget(math.inf, 0.5))
    fixed = Projected(m=2, inner={"name": "objective_perturbation", "noise": "gaussian"})
    assert fixed.events(small_problem(loss="squared").spec(), 1.0, Budget(math.inf, 0.5))
    reason = projected_problem.image_set.reason_against(
        small_problem(constraint="l1_ball", p=1000).constraint, "gaussian", 999
    )
    assert reason is None


def test_a_lasso_is_refused():
    import dataclasses

    problem = dataclasses.replace(small_problem(loss="squared", p=8), lasso=0.1)
    with pytest.raises(Unsupported, match="constraint=l1_ball"):
        Projected(m=4).plan(problem.spec(), PURE)


@pytest.mark.parametrize(
    ("field", "value"),
    [("m", 0), ("m", 2.5), ("m", "half"), ("phi", "none"), ("clip", 0.0), ("phi_seed", -1)],
)
def test_bad_fields_name_the_key(field, value):
    with pytest.raises(InputError) as caught:
        Projected(**{field: value})
    assert caught.value.key == f"mechanism.{field}"


def test_sparse_rows_give_what_dense_rows_give():
    from dataclasses import replace

    from scipy import sparse

    problem = small_problem(loss="logistic", constraint="l1_ball", n=40, p=12)
    thin = replace(problem, data=replace(problem.data, x=sparse.csr_array(problem.data.x)))
    one, two = (released(Projected(m=5), p, PURE)[1].theta for p in (problem, thin))
    np.testing.assert_allclose(one, two, atol=1e-7)


def test_a_large_budget_reaches_the_optimum_in_the_image():
    """What is released minimises the projected and clipped sum, though not the original one."""
    problem = small_problem(loss="logistic", constraint="l1_ball", n=200, p=12)
    plan, out = released(Projected(m=6), problem, Budget(1e7, 0.0))
    view = projected_problem.project_view(CentralView(problem), plan.space)
    v = plan.space.phi.apply(out.theta)
    best = view.minimiser(1e-9)
    assert np.all(view.objective(v) - view.objective(best) <= 1e-3)


@pytest.mark.stat
@pytest.mark.parametrize(
    ("relation", "delta"),
    [
        ("replace_one", 0.0),
        ("add_remove", 0.0),
        ("replace_one", 1e-5),
        pytest.param("add_remove", 1e-5, marks=pytest.mark.slow),
    ],
)
def test_audit(relation, delta):
    """The inner mechanism's own attack, through projection, clip and lifting."""
    budget = Budget(1.0, delta, relation)
    found = statistical_attack.attack(Projected().adversary(budget), budget)
    assert found.faults == ()
    assert found.is_control_caught


@pytest.mark.slow
def test_news20_in_62061_dimensions(data_folder):
    """m = 100 of 62,061: the rows are never made dense in R^d."""
    from dperm_cli.core import registry
    from dperm_cli.problem.problem import Problem

    data = registry.load("dataset", "news20")().load(data_folder)
    ball = registry.load("constraint", "l1_ball")(1.0, data.p)
    problem = Problem(data, registry.load("loss", "logistic")(), ball)
    plan, out = released(Projected(m=100), problem, PURE, trials=1)
    assert plan.space.phi.entries == 100 * data.p <= random_projection.MOST_ENTRIES
    assert np.all(ball.contains(out.theta))
    assert out.info["residual"] <= 1e-9
