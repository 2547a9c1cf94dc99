"""Exact sums on a grid, of every kind that mechanisms release: gradients, distances, moments."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy import sparse

from dperm_cli.audit.replay import Player, Recorder
from dperm_cli.core import registry
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.symmetric import triangle_size, unpack_symmetric
from dperm_cli.loops import exact_sums, sgd
from dperm_cli.mechanisms.gradient.noisy_gd import NoisyGd
from dperm_cli.mechanisms.shared.secure_plan import make_secure_plan
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.privacy.secure_grid import Grid
from dperm_cli.problem import random_projection
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem
from dperm_cli.sets import make_ball
from dperm_cli.views.central import CentralView
from dperm_cli.views.grid import GridView
from tests.conftest import small_problem
from tests.privacy._secure import off_grid, with_rows

RELATIONS = ["replace_one", "add_remove"]
FORMS = {"dense": np.ascontiguousarray, "csr": sparse.csr_array}
GRID = Grid(-30)


def gradients(problem: Problem) -> np.ndarray:
    theta = np.random.default_rng(3).standard_normal((4, problem.p)) / 4
    return GridView(problem, GRID).gradient_sum(theta)


def moments(problem: Problem) -> np.ndarray:
    return GridView(problem, GRID).packed_moments(1.0)


def plain_gradients(problem: Problem) -> np.ndarray:
    return problem.data_gradient(np.random.default_rng(3).standard_normal((4, problem.p)) / 4)


def plain_moments(problem: Problem) -> np.ndarray:
    return CentralView(problem).packed_moments(1.0)


def curvature(problem: Problem) -> np.ndarray:
    return GridView(problem, GRID).packed_curvature(np.zeros(problem.p))


def plain_curvature(problem: Problem) -> np.ndarray:
    return CentralView(problem).packed_curvature(np.zeros(problem.p))


SUMS = {
    "logistic": (curvature, plain_curvature),
    "huberized_hinge": (curvature, plain_curvature),
    "multinomial": (gradients, plain_gradients),
    "l1_median": (gradients, plain_gradients),
    "l2_median": (gradients, plain_gradients),
    "squared": (moments, plain_moments),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("loss", SUMS)
def test_sums_are_exact_whatever_the_order_of_the_records(loss, form):
    exact, plain = SUMS[loss]
    problem, make = small_problem(loss=loss, n=57, p=7), FORMS[form]
    x, y = problem.data.x, problem.data.y
    order = np.random.default_rng(2).permutation(57)
    total = exact(with_rows(problem, make(x), y))
    assert off_grid(total, GRID.step) == 0
    assert np.array_equal(total, exact(with_rows(problem, make(x[order]), y[order])))
    parts = [exact(with_rows(problem, make(x[i : i + 1]), y[i : i + 1])) for i in range(57)]
    assert np.array_equal(total, np.sum(parts, axis=0))
    # it is what research noise is added to, up to half a step for every record
    assert np.max(np.abs(total - plain(problem))) <= 57 * 0.5 * GRID.step * 1.01


def test_a_mapped_row_follows_from_its_record_alone():
    """A product over all rows may add up in another order when the others change."""
    problem = small_problem(n=23, p=7)
    phi = random_projection.Stored(np.random.default_rng(1).standard_normal((7, 5)))
    theta, other = np.full((1, 5), 0.1), make_ball(1.0, 5)
    x, y = problem.data.x, problem.data.y

    def add(rows, labels):
        view = GridView(with_rows(problem, rows, labels), GRID)
        return view.map_each_row(phi.apply_alone, 0.5, other).gradient_sum(theta)

    parts = [add(x[i : i + 1], y[i : i + 1]) for i in range(23)]
    assert np.array_equal(add(x, y), np.sum(parts, axis=0))
    assert all(np.linalg.norm(part) <= 0.5 for part in parts)


def test_batches_are_parts_of_the_sum():
    problem = small_problem(n=50, p=5)
    view, theta = GridView(problem, GRID), np.full((2, 5), 0.1)
    parts = [view.batch_gradient(theta, part) for part in view.parts(7, by_content=False)]
    assert np.array_equal(np.sum(parts, axis=0), view.gradient_sum(theta))


@pytest.mark.parametrize("loss", SUMS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
def test_a_record_beyond_its_bound_moves_a_sum_by_no_more_than_the_bound(loss, bad):
    exact, _ = SUMS[loss]
    problem = small_problem(loss=loss, n=3, p=4)
    x = problem.data.x.copy()
    without = exact(with_rows(problem, x[1:], problem.data.y[1:]))
    x[0, 1] = bad
    moved = np.linalg.norm(exact(with_rows(problem, x, problem.data.y)) - without, axis=-1)
    spec = problem.spec()
    bound = {moments: math.sqrt(2.0), curvature: spec.smoothness}.get(exact, spec.lipschitz)
    assert np.all(moved <= bound * (1.0 + 1e-6))


SHORT = [(1e-150, 1e-150), (2.7e-162, 2.7e-162), (2.2e-162, 1.5e-162), (5e-324, 5e-324), (0.0, 0.0)]


@pytest.mark.parametrize(("first", "others"), SHORT)
def test_a_record_next_to_the_point_moves_a_sum_by_no_more_than_the_bound(first, others):
    """Squares of such distances lose their digits: a slope had the length 6.8 at p = 100."""
    x = np.full((1, 100), others)
    x[0, 0] = first
    data = Data.of_records("near", "location", x, np.zeros(1), 1.0, 1.0, fingerprint="near")
    problem = Problem(data, registry.load("loss", "l2_median")(), make_ball(1.0, 100))
    for view in (GridView(problem, GRID), CentralView(problem)):
        moved = np.linalg.norm(view.gradient_sum(np.zeros((1, 100))))
        assert moved == pytest.approx(1.0 if first else 0.0, abs=1e-6)


def least_squares(rows, targets) -> Problem:
    x, y = np.array(rows, dtype=float), np.array(targets, dtype=float)
    data = Data.of_records("pair", "regression", x, y, 1.0, 1.0, fingerprint="pair")
    return Problem(data, registry.load("loss", "squared")(), make_ball(1.0, x.shape[1]))


@pytest.mark.parametrize("relation", RELATIONS)
def test_moments_of_neighbours_stay_within_the_event_and_nearly_reach_it(relation):
    mechanism = registry.load("mechanism", "sufficient_statistics")(noise="gaussian")
    budget, across = Budget(1.0, 1e-6, relation), math.sqrt(0.75)
    worst = [([across, 0.5], 1.0), ([across, -0.5], -1.0)]
    if relation == "add_remove":
        worst = [([1.0, 0.0], 1.0), ([0.0, 0.0], 0.0)]
    rng, largest = np.random.default_rng(11), 0.0
    for trial in range(200):
        pair = worst
        if trial:
            rows = rng.standard_normal((2, 2))
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
            pair = [(rows[0], rng.uniform(-1, 1)), (rows[1], rng.choice([-1.0, 1.0]))]
            if relation == "add_remove":
                pair[0] = ([0.0, 0.0], 0.0)
        problems = [least_squares([row, [0.3, 0.2]], [target, 0.5]) for row, target in pair]
        plan, grid = make_secure_plan(mechanism, problems[0].spec(), budget, problems[0].loss)
        sums = [GridView(one, grid).packed_moments(1.0) for one in problems]
        moved = float(np.linalg.norm(sums[0] - sums[1]))
        assert moved <= plan.events[0].sensitivity(relation)
        largest = max(largest, moved / plan.events[0].sensitivity(relation))
    assert largest > 0.99999


@pytest.mark.parametrize("share", [0.5, 2.0])
@pytest.mark.parametrize("form", FORMS)
def test_joint_moments_are_exact_whatever_the_order_of_the_records(form, share):
    problem, make = small_problem(loss="squared", n=57, p=7), FORMS[form]
    x, y = problem.data.x, problem.data.y
    order = np.random.default_rng(2).permutation(57)

    def add(rows, targets):
        view = GridView(with_rows(problem, make(rows), targets), GRID)
        return view.packed_joint_moments(1.25, share)

    total = add(x, y)
    assert off_grid(total, GRID.step) == 0
    assert np.array_equal(total, add(x[order], y[order]))
    assert np.array_equal(total, np.sum([add(x[i : i + 1], y[i : i + 1]) for i in range(57)], 0))
    plain = CentralView(problem).packed_joint_moments(1.25, share)
    assert np.max(np.abs(total - plain)) <= 57 * 0.5 * GRID.step * 1.01


@pytest.mark.parametrize("relation", RELATIONS)
def test_joint_moments_of_neighbours_stay_within_the_event_and_nearly_reach_it(relation):
    """In the nuclear norm, which the noise is made for; the worst rows are orthogonal with their
    targets."""
    mechanism = registry.load("mechanism", "sufficient_statistics")(noise="wishart")
    budget, rng, largest = Budget(1.0, 0.0, relation), np.random.default_rng(12), 0.0
    worst = ([math.sqrt(0.75), 0.5], 1.0), ([math.sqrt(0.75), -0.5], -1.0)
    for trial in range(200):
        pair = list(worst)
        if trial:
            rows = rng.standard_normal((2, 2)) * rng.choice([1.0, 1e3])
            rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)
            pair = [(rows[0], rng.uniform(-2, 2)), (rows[1], rng.choice([-1.0, 1.0]))]
        if relation == "add_remove":
            pair[1] = ([0.0, 0.0], 0.7)
        problems = [least_squares([row, [0.3, 0.2]], [target, 0.5]) for row, target in pair]
        plan, grid = make_secure_plan(mechanism, problems[0].spec(), budget, problems[0].loss)
        sums = [GridView(one, grid).packed_joint_moments(1.0, 0.5)[None] for one in problems]
        largest = max(largest, plan.events[0].meter(relation).move(*sums))
        assert largest <= 1.0
    assert largest > 0.99999


def test_wishart_noise_on_a_grid_has_the_scale_of_research():
    mechanism = registry.load("mechanism", "sufficient_statistics")(noise="wishart")
    for relation in RELATIONS:
        for epsilon in (0.1, 1.0, 10.0):
            problem, budget = small_problem(loss="squared"), Budget(epsilon, 0.0, relation)
            plan = mechanism.plan(problem.spec(), budget)
            moved, _ = make_secure_plan(mechanism, problem.spec(), budget, problem.loss)
            assert 1.0 < moved.noise_scale / plan.noise_scale < 1.0001
            assert account(moved.events, delta=0.0, relation=relation).epsilon <= epsilon


@pytest.mark.parametrize(("weight", "held"), [(3.0, 1.0), (-1.0, 0.0), (np.nan, 0.0), (0.5, 0.5)])
def test_a_weight_of_a_moment_is_held_to_its_bounds(weight, held):
    rows = sgd.rows(np.array([[0.6, 0.8]]), np.zeros(1))
    out = np.empty(6, np.int64)
    exact_sums.moment_sum(rows, 2, np.array([weight]), np.zeros(1), 1.0, 0.0, 0.0, 2.0**20, out)
    expected = held * np.array([0.36, 0.48 * math.sqrt(2.0), 0.64])
    np.testing.assert_allclose(out[:3] / 2.0**20, expected, atol=2.0**-20)


CASES = [
    ("mirror_descent", {"steps": 20}, {"constraint": "l1_ball"}),
    ("mirror_descent", {"steps": 20}, {}),
    ("frank_wolfe", {"steps": 10}, {}),
    ("noisy_sgd", {"steps": 20}, {}),
    ("noisy_sgd", {"steps": 20, "batch": 3, "sampling": "poisson"}, {}),
    ("noisy_sgd", {"steps": 20, "batch": 2}, {"ridge": 0.2}),
    ("one_pass_sgd", {"batches": 3, "noise": "gaussian"}, {}),
    ("one_pass_sgd", {"batches": 3, "noise": "gamma"}, {}),
    ("sufficient_statistics", {"noise": "gaussian"}, {"loss": "squared"}),
    ("sufficient_statistics", {"noise": "wishart"}, {"loss": "squared"}),
    ("newton", {"steps": 5}, {}),
    ("newton", {"steps": 5}, {"loss": "huberized_hinge"}),
    ("newton", {"steps": 5}, {"loss": "squared", "ridge": 0.1}),
    ("newton", {"steps": 5}, {"loss": "logistic", "constraint": "simplex"}),
    ("projected", {"inner": NoisyGd(steps=20), "m": 2}, {}),
    ("standard_projection", {"inner": NoisyGd(steps=20), "m": 2}, {}),
    ("huberized", {"inner": NoisyGd(steps=20)}, {"loss": "hinge"}),
    ("localization", {"inner": NoisyGd(steps=5)}, {"ridge": 0.3}),
    ("noisy_gd", {"steps": 20}, {"loss": "multinomial"}),
    ("noisy_gd", {"steps": 20}, {"loss": "l2_median"}),
    ("noisy_gd", {"steps": 20}, {"loss": "l1_median"}),
]


def other_record(problem: Problem, rng, relation: str) -> Problem:
    """The problem with one random record replaced by a random one, or by an empty one."""
    index = int(rng.integers(problem.data.n))
    row = rng.standard_normal(problem.data.p)
    row *= 0.0 if relation == "add_remove" else 1.0 / np.linalg.norm(row)
    x, y = problem.data.x.copy(), problem.data.y.copy()
    x[index], y[index] = row, rng.choice(problem.data.y)
    return with_rows(problem, x, y)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("name", "keys", "facts"), CASES)
def test_replay_on_the_grid(name, keys, facts, relation):
    """Record on D, freeze, run on D': equal calls, and no value moves by more than declared."""
    if relation == "add_remove" and "median" in facts.get("loss", ""):
        pytest.skip("an empty record has no place among points")
    if relation == "add_remove" and name == "one_pass_sgd":
        pytest.skip("batches by names: see test_one_pass_by_names")
    if relation == "add_remove" and name == "noisy_sgd" and "sampling" not in keys:
        pytest.skip("batches of a fixed size have no such guarantee")
    mechanism, problem = registry.load("mechanism", name)(**keys), small_problem(n=6, **facts)
    budget = Budget(1.0, 1e-6, relation)
    plan, grid = make_secure_plan(mechanism, problem.spec(), budget, problem.loss)
    assert account(plan.events, delta=1e-6, relation=relation).epsilon <= 1.0
    allowed, rng, worst = (plan.events, relation), np.random.default_rng(7), 0.0
    for _ in range(10):
        recorder = Recorder()
        gate = Gate.secure(2, grid, allowed, recorder)
        first = mechanism.release(GridView(problem, grid), plan, gate)
        player = Player(recorder.calls)
        other = GridView(other_record(problem, rng, relation), grid)
        again = mechanism.release(other, plan, Gate.secure(2, grid, allowed, player))
        assert player.faults == []
        assert np.array_equal(first.theta, again.theta)
        worst = max(worst, player.worst)
    assert 0.05 < worst <= 1.0


def test_one_pass_by_names():
    """A record that comes or goes moves one batch, and no other."""
    mechanism, problem = registry.load("mechanism", "one_pass_sgd")(batches=3), small_problem(n=8)
    budget = Budget(1.0, 1e-6, "add_remove")
    plan, grid = make_secure_plan(mechanism, problem.spec(), budget, problem.loss)
    fewer = replace(problem, data=problem.data.take(np.arange(7)))
    theta = np.full((1, problem.p), 0.1)
    sums = []
    for one in (problem, fewer):
        view = GridView(one, grid)
        parts = view.parts(3, by_content=True)
        sums.append([view.batch_gradient(theta, part) for part in parts])
    moved = [float(np.linalg.norm(a - b)) for a, b in zip(*sums, strict=True)]
    assert sorted(moved)[:2] == [0.0, 0.0]
    assert 0.0 < max(moved) <= plan.events[0].sensitivity("add_remove")


@pytest.mark.parametrize(("name", "keys", "words"), [
    ("newton", {"curvature": "direction"}, "mechanism.curvature=matrix"),
])  # fmt: skip
def test_what_has_no_form_on_a_grid_names_what_has(name, keys, words):
    mechanism = registry.load("mechanism", name)(**keys)
    problem, budget = small_problem(loss="squared"), Budget(1.0, 1e-6)
    with pytest.raises(Unsupported, match=words):
        make_secure_plan(mechanism, problem.spec(), budget, problem.loss)


def test_curvature_of_several_margins_has_no_exact_sum():
    problem, mechanism = small_problem(loss="multinomial"), registry.load("mechanism", "newton")()
    with pytest.raises(Unsupported, match=r"more than one margin.*use mechanism=noisy_gd"):
        make_secure_plan(mechanism, problem.spec(), Budget(1.0, 1e-6), problem.loss)


def test_curvature_away_from_the_origin_is_the_largest():
    """A margin that is no 0 would be a product of a row, which is not exact."""
    problem = small_problem(loss="huberized_hinge", n=9, p=3)
    view = GridView(problem, GRID)
    most = problem.loss.smoothness * unpack_symmetric(
        CentralView(replace(problem, loss=registry.load("loss", "squared")())).packed_curvature(
            np.zeros(3)), 3)  # fmt: skip
    found = unpack_symmetric(view.packed_curvature(np.full(3, 0.1)), 3)
    np.testing.assert_allclose(found, most, atol=9 * GRID.step)


@pytest.mark.parametrize("relation", RELATIONS)
def test_curvature_of_neighbours_stays_within_the_event_and_nearly_reaches_it(relation):
    mechanism, budget = registry.load("mechanism", "newton")(), Budget(1.0, 1e-6, relation)
    rng, largest = np.random.default_rng(11), 0.0
    for _ in range(200):
        rows = rng.standard_normal((2, 3))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        rows[1] *= relation == "replace_one"
        problem = small_problem(n=2, p=3)
        pair = [with_rows(problem, np.array([row, [0.3, 0.2, 0.1]]), np.ones(2)) for row in rows]
        plan, grid = make_secure_plan(mechanism, problem.spec(), budget, problem.loss)
        sums = [GridView(one, grid).packed_curvature(np.zeros(3)) for one in pair]
        moved = float(np.linalg.norm(sums[0] - sums[1]))
        assert moved <= plan.events[1].sensitivity(relation)
        largest = max(largest, moved / plan.events[1].sensitivity(relation))
    assert largest > 0.99


def test_moments_have_as_many_entries_as_are_charged_for():
    problem = small_problem(loss="squared", p=4)
    assert len(moments(problem)) == triangle_size(4) + 4


def replaced_records(problem: Problem, rng, theta: np.ndarray):
    """Pairs of records that are far apart in gradient: along theta, against it, and random."""
    along = theta / np.linalg.norm(theta)
    for row in (along, -along, *rng.standard_normal((40, len(theta)))):
        row = row / np.linalg.norm(row)
        for other in (row, -row, *rng.standard_normal((5, len(theta)))):
            other = other / np.linalg.norm(other)
            for labels in ((1.0, 1.0), (1.0, -1.0)):
                yield np.stack([row, other]), np.array(labels)


@pytest.mark.parametrize("loss", ["logistic", "huberized_hinge", "squared"])
@pytest.mark.parametrize("radius", [0.5, 2.0])
def test_a_gap_of_smooth_losses_holds_of_computed_gradients(loss, radius):
    """Two records' rounded gradients differ by no more than the gap on the grid, and nearly so."""
    mechanism = registry.load("mechanism", "mirror_descent")(steps=5)
    problem = small_problem(loss=loss, n=4, p=2, radius=radius)
    budget, spec = Budget(1.0, 1e-6), problem.spec()
    plan, grid = make_secure_plan(mechanism, spec, budget, problem.loss)
    claimed = plan.events[0].sensitivity("replace_one")
    assert claimed <= min(spec.gradient_gap, 2.0 * spec.lipschitz) * (1.0 + 1e-5)
    rng, worst = np.random.default_rng(5), 0.0
    for theta in (np.array([radius, 0.0]), np.array([radius / 2, radius / 3])):
        for rows, labels in replaced_records(problem, rng, theta):
            one, other = (
                GridView(with_rows(problem, rows[[i]], labels[[i]]), grid) for i in range(2)
            )
            moved = one.gradient_sum(theta[None]) - other.gradient_sum(theta[None])
            worst = max(worst, float(np.linalg.norm(moved)) / claimed)
    assert 0.85 < worst <= 1.0


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize(("name", "keys", "loss"), [
    ("noisy_gd", {}, "logistic"), ("mirror_descent", {}, "logistic"),
    ("frank_wolfe", {"oracle": "noise"}, "logistic"),
    ("one_pass_sgd", {"noise": "gaussian"}, "logistic"),
    ("sufficient_statistics", {"noise": "gaussian"}, "squared"),
    ("noisy_gd", {}, "multinomial"), ("noisy_gd", {}, "l2_median"),
])  # fmt: skip
def test_the_grid_costs_no_noise_to_speak_of(name, keys, loss, epsilon, relation):
    mechanism = registry.load("mechanism", name)(**keys)
    problem = small_problem(loss=loss, n=500, p=5)
    budget = Budget(epsilon, 1e-6, relation)
    research = mechanism.plan(problem.spec(), budget)
    secure, _ = make_secure_plan(mechanism, problem.spec(), budget, problem.loss)
    assert research.noise_scale <= secure.noise_scale <= 1.0001 * research.noise_scale


@pytest.mark.parametrize(
    "name", ["logistic", "squared", "huberized_hinge", "huberized_positive_part"]
)
def test_compiled_slopes_are_as_exact_as_lemma_4_asks(name):
    """Against 50 digits: within 2^-46 of the largest slope."""
    loss = registry.load("loss", name)()
    problem = small_problem(loss=loss, n=1, p=1, radius=40.0)
    grid, theta = Grid(-48), np.linspace(-40.0, 40.0, 401)[:, None]
    one = with_rows(problem, np.array([[1.0]]), np.array([1.0]))
    found = GridView(one, grid).gradient_sum(theta)[:, 0]
    exact = [float(slope_exactly(name, float(z[0]), loss)) for z in theta]
    room = grid.step + 2.0**-46 * problem.spec().lipschitz
    assert np.max(np.abs(found - np.array(exact))) <= room


def slope_exactly(name: str, z: float, loss):
    """The derivative of the loss of margin z at the label or target 1, in 50 digits."""
    with localcontext() as context:
        context.prec = 50
        value, one = Decimal(z), Decimal(1)
        if name == "logistic":
            return -one / (one + value.exp())
        if name == "squared":
            return value - one
        width = Decimal(loss.width)
        return -min(max((one - value + width) / (2 * width), Decimal(0)), one)
