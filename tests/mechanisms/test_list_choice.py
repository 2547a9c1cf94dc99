"""Choices from lists in their secure form: whole scores, their range, replay, laws, refusals."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse, stats

from dperm_cli.audit.replay import Player, Recorder
from dperm_cli.core.errors import PrivacyError, Unsupported
from dperm_cli.losses.shared.score_units import find_units
from dperm_cli.mechanisms.combinators.high_probability import HighProbability
from dperm_cli.mechanisms.gradient.frank_wolfe import FrankWolfe
from dperm_cli.mechanisms.sampling.exponential import Exponential
from dperm_cli.mechanisms.sampling.regularized_exponential import RegularizedExponential
from dperm_cli.mechanisms.shared import list_choice, vertex_choice
from dperm_cli.mechanisms.shared.secure_plan import secure_plan
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import ListChoice
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.problem import Problem
from dperm_cli.samplers.base import Target
from dperm_cli.samplers.net import Net
from dperm_cli.views.central import CentralView
from dperm_cli.views.grid import GridView
from tests.conftest import small_problem
from tests.privacy._secure import source, with_rows
from tests.privacy.test_secure_plans import other_record

PURE, APPROX = Budget(1.0, 0.0), Budget(1.0, 1e-6)
RELATIONS = ("replace_one", "add_remove")
COMPILED = ("logistic", "hinge", "squared", "absolute", "huberized_hinge")


def secure_form(mechanism, problem, budget):
    plan = mechanism.plan(problem.spec(), budget)
    moved, grid = secure_plan(mechanism, plan, problem.spec(), problem.loss)
    return plan, moved, grid


def release(mechanism, problem, moved, grid, trials=2, **options):
    gate = Gate.secure(trials, grid, (moved.events, moved.guarantee.relation), **options)
    return mechanism.release(GridView(problem, grid), moved, gate).theta


# --- whole scores ---------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", COMPILED)
@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_array])
def test_a_score_is_the_sum_of_rounded_losses(loss, stored):
    problem = small_problem(loss=loss, n=40)
    units, rng = find_units(problem.spec()), np.random.default_rng(1)
    points = problem.constraint.project(rng.standard_normal((6, problem.p)) * 2.0)
    each = problem.loss.values(points, problem.data)
    assert np.max(np.abs(each)) <= units.most
    view = CentralView(with_rows(problem, stored(problem.data.x), problem.data.y))
    scores = view.score_sum(points, units)
    assert scores.dtype == np.int64
    # a loss within its error of a half may be rounded either way
    assert np.max(np.abs(scores - np.sum(np.rint(each / units.size), axis=1))) <= 1
    assert np.all(np.abs(scores * units.size - each.sum(axis=1)) <= 40 * units.of_record / 2)
    order = rng.permutation(40)
    turned = with_rows(problem, stored(problem.data.x[order]), problem.data.y[order])
    assert np.array_equal(CentralView(turned).score_sum(points, units), scores)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("loss", COMPILED)
def test_neighbours_move_scores_by_what_is_declared(loss, relation):
    problem, rng = small_problem(loss=loss, n=5), np.random.default_rng(2)
    spec = problem.spec()
    units = find_units(spec)
    declared = spec.variation + units.of_record
    if relation == "replace_one":
        declared = min(spec.oscillation + 2.0 * units.of_record, 2.0 * declared)
    points = problem.constraint.project(5.0 * rng.standard_normal((60, problem.p)))
    worst = 0.0
    for _ in range(20):
        other = other_record(problem, rng, relation)
        scores = [CentralView(one).score_sum(points, units) for one in (problem, other)]
        worst = max(worst, np.ptp(scores[1] - scores[0]) * units.size / declared)
    assert 0.2 < worst <= 1.0


def test_what_rounding_adds_to_a_range_is_needed():
    """Linear losses -x theta on two points, in units of which two and a half are a loss.

    Ten records of 1, and one of eleven between -1 and 1: the rarer point shows the whole range.
    """
    unit, epsilon = 1.0 / 2.51, 1.0
    records, points = np.linspace(-1.0, 1.0, 11), np.array([-1.0, 1.0])
    scores = np.rint(-np.outer(records, points) / unit) + 10 * np.rint(-points / unit)
    found = []
    for charged in (4.0, 4.0 + 2.0 * unit):
        weights = np.exp(-epsilon / charged * unit * scores)
        logs = np.log(weights / weights.sum(axis=1, keepdims=True))
        found.append(float(np.max(np.abs(logs[:, None] - logs[None]))))
    assert np.allclose(found, [1.192, 0.990], atol=6e-4)


def test_losses_that_cannot_be_counted_are_refused_from_public_facts():
    spec = small_problem(loss="squared").spec()
    for change in ({"target_bound": 1e12}, {"n": 2**45}):
        with pytest.raises(Unsupported, match="cannot be counted exactly"):
            find_units(replace(spec, **change))
    with pytest.raises(Unsupported, match="no exact sum of losses"):
        find_units(small_problem(loss="l2_median").spec())


# --- the mechanisms -------------------------------------------------------------------------------

CASES = {
    "exponential": (Exponential(), "l2_ball", PURE, {}),
    "frank_wolfe pure": (FrankWolfe(oracle="choice", steps=9), "l1_ball", PURE, {}),
    "frank_wolfe": (FrankWolfe(oracle="choice", steps=9), "simplex", APPROX, {"ridge": 0.1}),
    "frank_wolfe table": (FrankWolfe(oracle="choice", steps=9), "box", APPROX, {"ridge": 0.1}),
    "frank_wolfe noise": (FrankWolfe(oracle="noise", steps=9), "l2_ball", APPROX, {}),
    "high_probability": (HighProbability(rho=0.5), "l2_ball", APPROX, {}),
}


def case(name, relation, n=8):
    mechanism, constraint, budget, options = CASES[name]
    problem = small_problem(n=n, p=2, constraint=constraint, **options)
    return mechanism, problem, Budget(budget.epsilon, budget.delta, relation)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", CASES)
def test_the_secure_plan_spends_the_budget_at_nearly_the_same_exponent(name, relation):
    mechanism, problem, budget = case(name, relation)
    plan, moved, _ = secure_form(mechanism, problem, budget)
    level = account(moved.events, delta=budget.delta, relation=relation)
    assert 0.85 < level.epsilon / budget.epsilon <= 1.0
    rule = "exponential" if budget.delta else "permute_and_flip"
    choices = [event for event in moved.events if isinstance(event, ListChoice)]
    assert {event.rule for event in choices} <= {rule}
    if choices:
        assert moved.events[-1].exponent == pytest.approx(plan.events[-1].exponent, rel=1e-4)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", CASES)
def test_replay_on_neighbours_finds_no_larger_move(name, relation):
    mechanism, problem, budget = case(name, relation)
    _, moved, grid = secure_form(mechanism, problem, budget)
    rng, worst = np.random.default_rng(4), 0.0
    for _ in range(6):
        recorder = Recorder()
        first = release(mechanism, problem, moved, grid, tape=recorder)
        player, other = Player(recorder.calls), other_record(problem, rng, relation)
        again = release(mechanism, other, moved, grid, tape=player)
        assert player.faults == []
        assert player.position == len(recorder.calls) > 0
        assert np.array_equal(first, again)
        worst = max(worst, player.worst)
    assert 0.05 < worst <= 1.0


@pytest.mark.parametrize("change", ["exponent", "record_oscillation"])
def test_replay_sees_an_event_that_declares_too_little(change):
    """Of linear losses on a line, whose scores move by all of the range."""
    from dperm_cli.mechanisms.shared.sampled_release import interval_pair

    first, second = interval_pair("replace_one", 4, 0.5)
    mechanism = Exponential(sampler=Net(covering=0.01))
    _, moved, grid = secure_form(mechanism, first, PURE)
    (event,) = moved.events
    recorder = Recorder()
    release(mechanism, first, moved, grid, tape=recorder)
    player = Player(recorder.calls)
    release(mechanism, second, moved, grid, tape=player)
    assert 0.97 < player.worst <= 1.0
    half = event.change_fields(
        **({"exponent": 2.0 * event.exponent} if change == "exponent" else
           {"record_oscillation": 0.9 * event.record_oscillation, "gap": None})
    )  # fmt: skip
    if change == "exponent":
        assert account((half,), delta=0.0, relation="replace_one").epsilon > 1.9
    else:
        assert half.meter("replace_one").move(np.zeros((1, 2)), np.array([[0.0, 2.0]])) > 1.0


def test_the_law_of_points_of_a_net_is_permute_and_flip():
    """Six points; heads of every coin by integers, and of 8,000 draws the shares."""
    problem = small_problem(n=12, p=1, radius=1.0)
    mechanism = Exponential(sampler=Net(covering=0.2))
    _, moved, grid = secure_form(mechanism, problem, PURE)
    points = moved.sampler.sampler.list_points(moved.sampler.target)
    units = find_units(problem.spec())
    scores = list_choice.count_objective(CentralView(problem), points, units)
    rate = moved.events[0].exponent * units.size
    heads = np.exp(-rate * (scores - scores.min()))
    law = np.zeros(len(points))
    for shown in itertools.product((0, 1), repeat=len(points)):
        if any(shown):
            chance = math.prod(h if s else 1 - h for h, s in zip(heads, shown, strict=True))
            law += chance * np.array(shown) / sum(shown)
    drawn = release(mechanism, problem, moved, grid, trials=8000, source=source(3))
    counts = np.array([np.sum(drawn[:, 0] == point) for point in points[:, 0]])
    assert counts.sum() == 8000
    assert stats.chisquare(counts, 8000 * law).pvalue > 1e-6
    plain = heads / heads.sum()
    assert stats.chisquare(counts, 8000 * plain).pvalue < 1e-6


def test_whole_scores_of_vertices_are_those_of_the_gradient():
    rng = np.random.default_rng(5)
    for constraint in ("l1_ball", "simplex", "box", "polytope"):
        body = small_problem(constraint=constraint, p=3).constraint
        vertices = vertex_choice.list_vertices(body)
        g = np.rint(rng.standard_normal((4, 3)) * 2**20) * 2.0**-18
        public = rng.standard_normal((4, 3))
        scores, unit = vertices.whole_scores(g, public, 2.0**-18)
        exactly = vertices.scores(g + public)
        assert scores.dtype == np.int64
        assert np.max(np.abs(scores * unit - exactly)) < 1e-4 * np.max(np.abs(exactly))
        corners = vertices.mix(np.eye(vertices.count))
        across, spread = vertices.spread(body.diameter)
        apart = corners[:, None] - corners[None]
        assert across >= np.max(np.linalg.norm(apart, axis=-1)) * (1.0 - 1e-12)
        assert spread >= np.max(np.sum(np.abs(apart), axis=-1)) * (1.0 - 1e-12)


def test_the_finest_net_that_fits_is_taken_and_a_covering_that_is_asked_for_stays():
    spec = small_problem(n=200, p=2).spec()
    target = Target(spec, 0.5)
    assert Net().within(target, 10**9) == Net()
    whole = Net().plan(target, 0.0).facts["points_at_most"]
    found = Net().within(target, whole // 3)
    assert whole / 5 < found.plan(target, 0.0).facts["points_at_most"] <= whole / 3
    assert Net(covering=1e-3).within(target, 5000) == Net(covering=1e-3)


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["proximal", "tangent_cells", "rejection"])
def test_samplers_of_a_continuum_are_refused_with_an_offer_in_numbers(name):
    from dperm_cli.core import registry

    mechanism = Exponential(sampler=registry.load("sampler", name)())
    problem = small_problem(n=30, p=2, radius=1.0)
    with pytest.raises(Unsupported) as refused:
        secure_form(mechanism, problem, PURE)
    words = str(refused.value)
    assert f"{name} has no secure form" in words
    assert "sampler=net" in words
    points = int(words.split("choice from ")[1].split()[0])
    assert 100 < points <= 1 << 20
    assert 0.0 < float(words.split("at most ")[1].split()[0]) < 1.0


def test_more_than_three_dimensions_are_refused_and_another_mechanism_is_named():
    problem = small_problem(n=30, p=5)
    with pytest.raises(Unsupported, match=r"has no secure form.*use mechanism="):
        secure_form(Exponential(), problem, PURE)


def test_a_law_that_is_strongly_convex_is_refused_and_another_mechanism_is_named():
    with pytest.raises(
        Unsupported, match=r"^regularized_exponential has no secure form; use mechanism=\w+"
    ):
        secure_form(RegularizedExponential(), small_problem(n=30, p=2, radius=1.0), APPROX)


def test_an_inner_mechanism_without_a_secure_form_leaves_none():
    mechanism = HighProbability(inner={"name": "regularized_exponential"})
    assert not mechanism.secure
    with pytest.raises(Unsupported, match="no secure form"):
        secure_form(mechanism, small_problem(n=12), APPROX)


def test_the_stream_takes_whole_numbers_once():
    event = ListChoice(1.0, 1.0)
    plan = ((event,), "replace_one")
    stream = Gate.secure(2, list_choice.grid_of(0.5), plan).stream(event, 3)
    for scores in (np.zeros((2, 3)), np.zeros(3, np.int64), np.zeros((3, 3), np.int64)):
        with pytest.raises(PrivacyError, match="scores of"):
            stream.choose(scores, 1.0, 0)
    assert stream.choose(np.array([[0, 10**9, 10**9]]), 1.0, 0).tolist() == [0, 0]
    with pytest.raises(PrivacyError, match="second time"):
        stream.choose(np.zeros((2, 3), np.int64), 1.0, 0)


def cell_rows(problem: Problem, *words):
    from dperm_cli.results.records.schema import normalise
    from dperm_cli.runner.cells import prepared_cell, run_cell
    from dperm_cli.solvers.optimum import solve
    from tests.privacy.test_secure_plans import cells

    (cell,) = cells("noise=secure", "trials=2", *words)
    prepared = prepared_cell.prepare(cell, problem.data)
    return [normalise(row) for row in run_cell.run(prepared, solve, debug=True)]


@pytest.mark.parametrize(
    "words",
    [
        ("mechanism=exponential", "constraint.radius=1"),
        ("mechanism=frank_wolfe", "constraint=l1_ball", "privacy=pure"),
        ("mechanism=high_probability", "mechanism.inner.steps=5"),
        ("mechanism=auto", "mechanism.among=[exponential]", "privacy=pure"),
    ],
)
def test_noise_secure_runs_them(words):
    rows = cell_rows(small_problem(n=40, p=2), *words)
    assert {row["status"] for row in rows} == {"ok"}
    assert {row["noise"] for row in rows} == {"secure"}
    assert rows[0]["arithmetic"].startswith("grid 2^-")
    assert 0.5 < rows[0]["epsilon_accounted"] <= rows[0]["epsilon"]
