"""Minimisers with noise on a grid: what the solver and rounding may do is paid for, and no more."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest

from dperm_cli.audit.replay import Recorder
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.mechanisms.combinators.auto import Auto
from dperm_cli.mechanisms.combinators.huberized import Huberized
from dperm_cli.mechanisms.perturbation.approximate_minima_perturbation import (
    ApproximateMinimaPerturbation,
)
from dperm_cli.mechanisms.perturbation.objective_perturbation import ObjectivePerturbation
from dperm_cli.mechanisms.perturbation.output_perturbation import OutputPerturbation
from dperm_cli.mechanisms.shared import minimisers_on_grid
from dperm_cli.mechanisms.shared.secure_plan import secure_plan
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.sets import make_ball
from dperm_cli.solvers import perturbed_minimiser
from dperm_cli.views.central import CentralView
from dperm_cli.views.grid import GridView
from tests.conftest import small_problem
from tests.privacy._secure import BUDGET, off_grid, with_rows

RELATIONS = ("replace_one", "add_remove")
MECHANISMS = {
    "output": (OutputPerturbation("gaussian"), "logistic"),
    "objective": (ObjectivePerturbation("gaussian"), "logistic"),
    "amp": (ApproximateMinimaPerturbation("gaussian"), "logistic"),
    "output pure": (OutputPerturbation("gamma"), "logistic"),
    "objective pure": (ObjectivePerturbation("gamma"), "logistic"),
    "huberized": (Huberized(inner=ObjectivePerturbation("gaussian")), "hinge"),
}


def planned(name, budget=BUDGET, **facts):
    """A mechanism, a problem, its plan, the plan on a grid, and the grid."""
    mechanism, loss = MECHANISMS[name]
    problem = small_problem(loss=loss, ridge=0.05, **facts)
    plan = mechanism.plan(problem.spec(), budget)
    return mechanism, problem, plan, *secure_plan(mechanism, plan, problem.spec(), problem.loss)


def inner_settings(plan):
    return plan.settings.get("inner", plan.settings)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("name", MECHANISMS)
def test_the_guarantee_holds_at_the_noise_of_research(name, epsilon, relation):
    budget = Budget(epsilon, 1e-6, relation)
    _, problem, plan, moved, grid = planned(name, budget, n=300)
    found = account(moved.events, delta=1e-6, relation=relation).epsilon
    assert 0.98 * epsilon < found <= epsilon
    assert moved.noise_scale <= plan.noise_scale * 1.0001
    assert moved.noise_scale == moved.events[0].scale
    distance, spec = inner_settings(moved)["distance"], problem.spec()
    last = moved.events[-1]
    # whatever a solver and rounding may do is in the sensitivity of what is released
    rounded = 2.0 * distance + math.sqrt(spec.p) * grid.step
    if len(moved.events) == 1:
        exact = spec.gradient_gap if relation == "replace_one" else spec.lipschitz
        assert last.sensitivity(relation) >= exact / (spec.n * spec.strong_convexity) + rounded
        return
    first, before = moved.events[0], plan.events[0]
    term = math.sqrt(spec.p) * 2.0**first.own_grid / first.strength
    assert last.sensitivity(relation) == pytest.approx(rounded + term, rel=1e-12)
    assert last.sensitivity(relation) >= rounded + term
    assert last.ratio(relation) <= plan.events[1].ratio(relation)
    assert first.record_norm > before.record_norm
    assert first.curvature > before.curvature


@pytest.mark.parametrize("name", MECHANISMS)
def test_all_that_is_released_lies_on_the_grid_for_both_neighbours(name):
    mechanism, problem, _, moved, grid = planned(name, n=20)
    y = problem.data.y.copy()
    y[3] = -y[3]
    for one in (problem, with_rows(problem, problem.data.x, y)):
        recorder = Recorder()
        gate = Gate.secure(40, grid, (moved.events, "replace_one"), recorder)
        theta = mechanism.release(GridView(one, grid), moved, gate).theta
        assert np.all(problem.constraint.contains(theta))
        assert off_grid(np.asarray(recorder.calls[-1].drawn), grid.step) == 0
        assert len(np.unique(theta, axis=0)) > 1


def test_a_seeded_release_is_off_the_grid():
    mechanism, problem, plan, _, grid = planned("output", n=20)
    recorder = Recorder()
    gate = Gate([seed_sequence(0, "plain", k) for k in range(40)], recorder)
    mechanism.release(CentralView(problem), plan, gate)
    drawn = np.asarray(recorder.calls[-1].drawn)
    assert off_grid(drawn, grid.step) > 0.9 * drawn.size


def push_solver(monkeypatch, share, signs):
    """A solver that errs by a share of the distance, in the direction that ``signs`` gives next."""
    locate, turn = perturbed_minimiser.locate, itertools.cycle(signs)

    def err(problem, tilts, modulus, distance):
        points, bounds = locate(problem, tilts, modulus, 1e-3 * distance)
        way = next(turn) * share * distance / math.sqrt(points.shape[1])
        return points + way, np.minimum(bounds, distance)

    monkeypatch.setattr(perturbed_minimiser, "locate", err)


@pytest.mark.parametrize("name", ["objective", "amp"])
@pytest.mark.parametrize(("share", "holds"), [(0.99, True), (1.2, False)])
def test_a_solver_that_errs_by_the_distance_is_paid_for(name, share, holds, monkeypatch):
    """At one linear term the points found on neighbours are 2 rho apart: the second noise's own."""
    mechanism, problem, _, moved, grid = planned(name, n=20)
    second = moved.events[1]
    push_solver(monkeypatch, share, (1.0, -1.0))
    settings, b = inner_settings(moved), np.zeros((1, problem.data.p))
    seen = []
    for _ in range(2):
        view = GridView(problem, grid)
        seen.append(view.find_perturbed_minimisers(b, settings["added"], settings["distance"]))
    apart = float(np.linalg.norm(np.rint(seen[0] / grid.step) - np.rint(seen[1] / grid.step)))
    assert (apart * grid.step <= second.sensitivity("replace_one")) is holds
    assert apart * grid.step > 0.9 * second.sensitivity("replace_one")
    # and such a solver ends in a release like any other
    gate = Gate.secure(2, grid, (moved.events, "replace_one"))
    theta = mechanism.release(GridView(problem, grid), moved, gate).theta
    assert np.all(problem.constraint.contains(theta))


def linear_neighbours(n):
    """Minimisers that are all of the exact sensitivity apart: linear losses, one turned round."""
    return with_first(n, 1.0), with_first(n, -1.0)


def with_first(n, label):
    problem = small_problem(loss="linear", n=n, p=1, ridge=4.0)
    y = np.ones(n)
    y[0] = label
    return with_rows(problem, np.ones((n, 1)), y)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize(("share", "holds"), [(0.999, True), (1.2, False)])
def test_output_perturbation_pays_for_both_minimisers(n, share, holds, monkeypatch):
    """The distance on either side, which nothing but the sensitivity's share for it covers.

    The distance is made large enough to be seen beside the steps of the grid.
    """
    monkeypatch.setattr(perturbed_minimiser, "_NEAREST", 1e-8)
    first, second = linear_neighbours(n)
    mechanism = OutputPerturbation("gaussian")
    plan = mechanism.plan(first.spec(), BUDGET)
    moved, grid = secure_plan(mechanism, plan, first.spec(), first.loss)
    allowed, worst = (moved.events, "replace_one"), 0.0
    for signs in ((1.0, -1.0), (-1.0, 1.0)):
        with monkeypatch.context() as patched:
            push_solver(patched, share, signs)
            recorder = Recorder()
            gate = Gate.secure(2, grid, allowed, recorder)
            mechanism.release(GridView(first, grid), moved, gate)
            gate = Gate.secure(2, grid, allowed, ListenTo(recorder))
            mechanism.release(GridView(second, grid), moved, gate)
            worst = max(worst, gate.tape.moved)
    exact = worst / moved.events[0].sensitivity("replace_one")
    assert (exact <= 1.0) is holds
    assert exact > 1.0 - 1e-8


class ListenTo:
    """How far the value that passes is from the one that passed before."""

    def __init__(self, recorder):
        self.before, self.moved = recorder.calls[0].value, 0.0

    def take_draw(self, stream, value, drawn, public):
        self.moved = float(np.max(np.linalg.norm(value - self.before, axis=1)))
        return drawn


def rounded_laplace(k, ratio):
    """The chance that ratio * Laplace(1), rounded to integers, is k."""
    k = np.abs(np.asarray(k, dtype=float))
    tail = np.sinh(0.5 / ratio) * np.exp(-k / ratio)
    return np.where(k == 0.0, -np.expm1(-0.5 / ratio), tail)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_exact_law_in_one_dimension(n):
    """Records of {-1, 0, 1}, their mean over 2 as minimiser, solvers off by -rho or rho, a coarse
    grid: the log ratio of all outcomes stays within epsilon; without rho and g it does not."""
    epsilon, rho, step = 0.5, 0.04, 0.05
    exact = 1.0 / n
    outcomes = np.arange(-200, 201)

    def worst(sensitivity):
        ratio, found = sensitivity / epsilon / step, 0.0
        for data in itertools.product((-1.0, 0.0, 1.0), repeat=n):
            for other in (-1.0, 0.0, 1.0):
                near = (other, *data[1:])
                for signs in itertools.product((-1.0, 1.0), repeat=2):
                    places = [
                        round((sum(d) / (2.0 * n) + sign * rho) / step)
                        for d, sign in zip((data, near), signs, strict=True)
                    ]
                    laws = [np.log(rounded_laplace(outcomes - at, ratio)) for at in places]
                    found = max(found, float(np.max(np.abs(laws[0] - laws[1]))))
        return found / epsilon

    assert 0.8 < worst(exact + 2.0 * rho + step) <= 1.0
    assert worst(exact) > 1.05


def hostile(problem):
    """The same sizes with zeros, one record many times, ends of the labels, and huge margins."""
    n, p = problem.data.x.shape
    ends = np.where(np.arange(n) % 2, 1.0, -1.0)
    line = np.zeros((n, p))
    line[:, 0] = 1.0
    tiny = np.full((n, p), 1e-300)
    yield with_rows(problem, np.zeros((n, p)), ends)
    yield with_rows(problem, line, np.ones(n))
    yield with_rows(problem, line * ends[:, None], ends)
    yield with_rows(problem, line, ends)
    yield with_rows(problem, tiny, ends)


@pytest.mark.parametrize("size", [(1, 3), (5, 40), (60, 2)])
@pytest.mark.parametrize("radius", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("name", MECHANISMS)
def test_no_release_fails_for_what_the_records_are(name, radius, size):
    mechanism, loss = MECHANISMS[name]
    n, p = size
    problem = small_problem(loss=loss, n=n, p=p, ridge=0.05)
    problem = dataclasses.replace(problem, constraint=make_ball(radius, p))
    plan = mechanism.plan(problem.spec(), BUDGET)
    try:
        moved, grid = secure_plan(mechanism, plan, problem.spec(), problem.loss)
    except Unsupported:
        assert radius == 1e6  # by public facts alone
        return
    for one in (problem, *hostile(problem)):
        gate = Gate.secure(2, grid, (moved.events, "replace_one"))
        theta = mechanism.release(GridView(one, grid), moved, gate).theta
        assert np.all(problem.constraint.contains(theta))


def test_the_fallback_alone_is_enough_for_the_largest_linear_term(monkeypatch):
    """No accelerated step has a proof, and the linear term is the largest that a draw can be."""
    _, problem, _, moved, grid = planned("objective", n=30)
    first, settings, p = moved.events[0], moved.settings, problem.data.p

    def fail(self, start, distance):
        return start.copy(), np.full(len(start), np.inf)

    monkeypatch.setattr(perturbed_minimiser.TiltedDescent, "run", fail)
    size = minimisers_on_grid.LARGEST_DRAW * first.scale
    tilts = np.array([np.full(p, size), np.full(p, -size), np.eye(p)[0], np.zeros(p)])
    view = GridView(problem, grid)
    found = view.find_perturbed_minimisers(tilts, settings["added"], settings["distance"])
    assert np.all(problem.constraint.contains(found))


def test_a_linear_term_has_a_finer_grid_than_the_point():
    _, _, _, moved, _ = planned("objective", n=30)
    gate = Gate.secure(3, _grid_of("objective"), (moved.events, "replace_one"))
    noise = gate.stream(moved.events[0], 4)
    seen = []

    def point(b):
        seen.append(b)
        return np.zeros_like(b)

    noise.find(point, lambda theta: theta, 0, gate.stream(moved.events[1], 4))
    step = 2.0 ** moved.events[0].own_grid
    assert off_grid(seen[0], step) == 0
    assert 2.0**40 <= moved.events[0].scale / step < 2.0**41
    assert off_grid(seen[0], 2.0**10 * step) > 0


def _grid_of(name):
    return planned(name, n=30)[-1]


def test_refusals_name_what_to_use():
    def refuse(mechanism, budget=BUDGET, constraint=None, **facts):
        problem = small_problem(**{"n": 30, "ridge": 0.05, **facts})
        if constraint is not None:
            problem = dataclasses.replace(problem, constraint=constraint)
        plan = mechanism.plan(problem.spec(), budget)
        with pytest.raises(Unsupported) as caught:
            secure_plan(mechanism, plan, problem.spec(), problem.loss)
        return str(caught.value)

    output = OutputPerturbation("gaussian")
    assert "mechanism=huberized" in refuse(output, loss="hinge")
    assert "mechanism=noisy_gd" in refuse(output, loss="absolute")
    assert "more ridge" in refuse(output, ridge=1e-8)
    paper = ObjectivePerturbation(calibration="paper", allow_not_private=True)
    assert "without a guarantee" in refuse(paper)


def test_a_set_on_which_a_solver_may_fail_is_refused():
    from dperm_cli.sets.lp_ball import LpBall

    problem = small_problem(n=30, ridge=0.05)
    problem = dataclasses.replace(problem, constraint=LpBall(1.0, problem.data.p, 3.0))
    plan = OutputPerturbation("gaussian").plan(problem.spec(), BUDGET)
    with pytest.raises(Unsupported, match="constraint=l2_ball, box, l1_ball or simplex"):
        secure_plan(OutputPerturbation("gaussian"), plan, problem.spec(), problem.loss)


def test_auto_takes_a_secure_form_and_says_why_not_others():
    problem = small_problem(n=2000, p=40)
    auto = Auto(on_grid=True, among=("objective_perturbation", "frank_wolfe"))
    plan = auto.plan(problem.spec(), BUDGET)
    assert plan.settings["chosen"] == "objective_perturbation"
    moved, grid = secure_plan(auto, plan, problem.spec(), problem.loss)
    assert "distance" in moved.settings["inner"]
    gate = Gate.secure(2, grid, (moved.events, "replace_one"))
    assert auto.release(GridView(problem, grid), moved, gate).theta.shape == (2, 40)
    few = small_problem(n=2000, p=3, loss="hinge")
    refused = Auto(on_grid=True).plan(few.spec(), BUDGET).settings["refused"]
    assert "kinks" in refused["objective_perturbation"]


@pytest.mark.parametrize("mechanism", ["output_perturbation", "objective_perturbation"])
def test_a_secure_row_says_what_it_is(mechanism):
    from dperm_cli.results.records.schema import normalise
    from dperm_cli.runner.cells import prepared_cell
    from dperm_cli.runner.cells import run_cell as runner
    from dperm_cli.runner.compose import study_plan
    from dperm_cli.runner.compose.command_line import parse
    from dperm_cli.solvers.optimum import solve

    words = ["noise=secure", f"mechanism={mechanism}", "mechanism.noise=gaussian", "trials=2"]
    (cell,) = study_plan.plan_study(parse([*words, "ridge=0.1"])).cells
    prepared = prepared_cell.prepare(cell, small_problem(n=30).data)
    rows = [normalise(row) for row in runner.run(prepared, solve, debug=True)]
    assert {row["status"] for row in rows} == {"ok"}
    assert rows[0]["arithmetic"].startswith("grid 2^-")
    assert 0.99 < rows[0]["epsilon_accounted"] / rows[0]["epsilon"] <= 1.0
