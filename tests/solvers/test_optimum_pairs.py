"""Every loss on every set: certified by what its pair needs, checked by other means."""

from __future__ import annotations

import builtins
import dataclasses

import numpy as np
import pytest
from scipy import optimize, sparse

from dperm_cli.core import registry
from dperm_cli.core.fields import keys_of
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem
from dperm_cli.solvers import conic, dual_points, interior_point, optimum
from dperm_cli.solvers.cone_programs import Program

LOSSES, SETS = registry.names("loss"), registry.names("constraint")
PAIRS = [(loss, shape) for loss in LOSSES for shape in SETS]
SPREAD = np.random.default_rng(3).standard_normal((12, 4)).tolist()
# Sets that the registry's defaults leave out, by name and further fields; p = 4.
OTHERS = {
    "lp_ball 1": ("lp_ball", {"power": 1.0}),
    "lp_ball 3": ("lp_ball", {"power": 3.0}),
    "lp_ball inf": ("lp_ball", {"power": float("inf")}),
    "hull": ("polytope", {"points": SPREAD}),
    "half-spaces": ("polytope", {"matrix": [[1.0] * 4, *(-np.eye(4)).tolist()],
                                 "offset": [1.0, 0.5, 0.2, 0.3, 0.1]}),
    "simplex in a ball": ("intersection", {"inner": {"name": "simplex", "radius": 1.6}}),
    "box in a ball": ("intersection", {"inner": {"name": "box", "radius": 0.8}}),
    "image of a box": ("image", {"inner": {"name": "box", "radius": 0.5}}),
    "image of a ball": ("image", {"inner": {"name": "l2_ball", "radius": 0.5}}),
    "image of an Lp ball": ("image", {"inner": {"name": "lp_ball", "radius": 1.0, "power": 1.5}}),
}  # fmt: skip


def shaped(name, p, radius=1.2, **fields):
    cls = registry.load("constraint", name)
    return cls(**{keys_of(cls)["radius"].name: radius}, p=p, **fields)


def records(loss, n=30, p=4, seed=0, classes=3):
    """Random records of the loss's first task: rows in the unit ball, labels from a noisy score."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, p))
    x /= np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True))
    score = np.clip(x @ rng.standard_normal(p) + 0.3 * rng.standard_normal(n), -1.0, 1.0)
    labels = {
        "binary": np.where(score < 0, -1.0, 1.0),
        "regression": score,
        "multiclass": np.floor(0.4999 * (score + 1.0) * classes),
        "location": np.zeros(n),
    }
    x = x + 0.5 * (loss.tasks[0] == "location") * np.eye(p)[0]
    y, bound = labels[loss.tasks[0]], float(np.max(np.linalg.norm(x, axis=1)))
    return Data.of_records(
        "small", loss.tasks[0], x, y, bound, 1.0, f"small-{seed}", classes=classes
    )


def pair(loss, shape, ridge=0.0, radius=1.2, **sizes):
    one = registry.load("loss", loss)()
    data = records(one, **sizes)
    name, fields = OTHERS.get(shape, (shape, {}))
    return Problem(data, one, shaped(name, one.dimension(data.facts()), radius, **fields), ridge)


def assert_certified(problem, found, relative=1e-6):
    excess = float(problem.objective(problem.constraint.centre())) - found.value
    floor = optimum.negligible(problem, found.theta, found.dual)
    assert found.converged
    assert problem.constraint.contains(found.theta, 1e-9)
    assert found.value == float(problem.objective(found.theta))
    assert 0 <= found.gap <= max(relative * excess, floor)
    assert found.gap == found.value - found.lower


def feasible(problem, rng, count=15):
    """Projected and extreme points, and where a few projected steps lead from the best of them."""
    c = problem.constraint
    points = [c.project(v) for v in rng.standard_normal((count, problem.p)) * 1.5]
    points += [c.lmo(v) for v in rng.standard_normal((count, problem.p))]
    points = [v for v in points if c.contains(v, 1e-12)]
    best = min(points, key=problem.objective)
    for _ in range(20):
        best = c.project(best - 0.02 * problem.gradient(best))
        points.append(best)
    return points


@pytest.mark.in_turn
@pytest.mark.parametrize(("loss", "shape"), PAIRS)
def test_every_pair_of_the_registry_is_certified(loss, shape):
    for ridge in (0.0, 1e-2):
        problem = pair(loss, shape, ridge)
        assert_certified(problem, optimum.solve(problem))


@pytest.mark.in_turn
@pytest.mark.parametrize("radius", [1e-2, 30.0])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "huberized_positive_part", "l2_median"])
@pytest.mark.parametrize("shape", [s for s in SETS if s not in ("l2_ball", "l1_ball", "box")])
def test_small_and_large_sets(loss, shape, radius):
    problem = pair(loss, shape, radius=radius)
    assert_certified(problem, optimum.solve(problem))


@pytest.mark.parametrize("shape", OTHERS)
@pytest.mark.parametrize("loss", ["logistic", "absolute", "l1_median"])
def test_every_form_of_the_sets(loss, shape):
    problem = pair(loss, shape, 1e-3)
    assert_certified(problem, optimum.solve(problem))


@pytest.mark.in_turn
@pytest.mark.parametrize("shape", ["l2_ball", "l1_ball", "box"])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "huberized_hinge", "squared", "absolute"])
def test_two_methods_agree(loss, shape, monkeypatch):
    """The own interior point and the conic route, on the sets that both know."""
    problem = pair(loss, shape, 1e-3)
    own = optimum.solve(problem)
    monkeypatch.setattr(interior_point, "applies", lambda problem: False)
    other = optimum.solve(problem)
    assert (own.method, other.method) == ("interior_point", "conic")
    assert own.lower <= other.value
    assert other.lower <= own.value


@pytest.mark.parametrize("loss", ["hinge", "l1_median", "l2_median", "logistic", "multinomial"])
@pytest.mark.parametrize("shape", ["simplex", "ellipsoid", "intersection"])
def test_first_order_alone_certifies_more_slowly(loss, shape, monkeypatch):
    monkeypatch.setattr(conic, "applies", lambda problem: False)
    problem = pair(loss, shape, 1e-2)
    found = optimum.solve(problem, relative_gap=1e-3)
    assert found.method == "first_order"
    assert_certified(problem, found, 1e-3)


def test_out_of_reach_of_the_conic_solver_first_order_serves(monkeypatch):
    monkeypatch.setattr("dperm_cli.solvers.conic.applies", lambda problem: False)
    found = optimum.solve(pair("logistic", "simplex", 0.1), relative_gap=1e-3)
    assert found.method == "first_order"
    assert found.converged


def test_the_conic_solver_is_not_imported_where_it_is_not_needed(monkeypatch):
    original = builtins.__import__

    def guarded(name, *args, **kwargs):
        assert name != "clarabel"
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", guarded)
    assert optimum.solve(pair("logistic", "l2_ball")).converged
    with pytest.raises(AssertionError):
        optimum.solve(pair("logistic", "simplex"))


# bounds that hold


@pytest.mark.in_turn
@pytest.mark.parametrize(("loss", "shape"), PAIRS)
def test_no_dual_certifies_above_a_feasible_point(loss, shape):
    """Duals at random points, shrunk, permuted and negated ones; bounds against many points."""
    rng = np.random.default_rng(1)
    problem = pair(loss, shape, ridge=1e-2 * (len(loss + shape) % 2), n=12)
    points = feasible(problem, rng)
    lowest = min(float(problem.objective(v)) for v in points)
    found = optimum.solve(problem)
    assert found.lower <= lowest
    duals = [found.dual, 0.5 * found.dual, -found.dual, rng.permutation(found.dual)]
    duals += [dual_points.make_dual_point(problem, v) for v in points[:3]]
    duals += [rng.random() * dual_points.make_dual_point(problem, v, 0.1) for v in points[:3]]
    for dual in duals:
        assert optimum.certificate(problem, points[0], dual) <= lowest


@pytest.mark.parametrize(("loss", "shape"), PAIRS)
def test_a_dual_of_something_else_bounds_poorly(loss, shape):
    """A certificate that ignored its dual would pass the tests above."""
    if loss == "linear":
        pytest.skip("its dual is the same everywhere")
    problem = pair(loss, shape, 1e-2)
    found = optimum.solve(problem)
    assert optimum.certificate(problem, found.theta, found.dual) == found.lower
    assert optimum.certificate(problem, found.theta, 0.5 * found.dual) < found.lower - 1e-4


# other solvers

SMOOTH = ["logistic", "squared", "huberized_hinge", "multinomial"]
INEQUALITIES = {
    "simplex": lambda v: v,
    "ellipsoid": lambda v: 1.2**2 - np.sum(np.arange(1, v.size + 1) * v**2),
    "lp_ball": lambda v: 1.2**1.5 - np.sum(np.sqrt(v**2 + 1e-14) ** 1.5),
    "intersection": lambda v: np.append(
        1.2**2 - v @ v, np.sqrt(v.size) / 1.5 * 1.2 - signs(v.size) @ v
    ),
    "polytope": lambda v: 1.2 - signs(v.size) @ v,
}


def signs(p):
    """All of {-1, 1}^p: the L1 ball's facets."""
    return 1.0 - 2.0 * ((np.arange(2**p)[:, None] >> np.arange(p)) & 1)


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("shape", INEQUALITIES)
def test_agrees_with_sequential_quadratic_programming(loss, shape):
    problem = pair(loss, shape, 1e-2, n=20, p=3)
    found = optimum.solve(problem)
    rules = [{"type": "ineq", "fun": INEQUALITIES[shape]}]
    if shape == "simplex":
        rules.append({"type": "eq", "fun": lambda v: np.sum(v) - 1.2})
    start = problem.constraint.centre() + 1e-3 * (shape != "simplex")
    answer = optimize.minimize(
        lambda v: float(problem.objective(v)),
        start,
        jac=problem.gradient,
        constraints=rules,
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-13},
    )
    scale = float(problem.objective(start)) - found.value
    assert answer.fun - found.value == pytest.approx(0.0, abs=1e-5 * scale)


def test_l1_median_is_the_coordinatewise_median():
    problem = pair("l1_median", "lp_ball inf", radius=5.0, n=31)
    found = optimum.solve(problem)
    np.testing.assert_allclose(found.theta, np.median(problem.data.x, axis=0), atol=1e-6)


def test_l2_median_at_a_record():
    """Where one record outweighs the pull of the others it is the median: a kink in all
    directions at once."""
    problem = pair("l2_median", "simplex", n=5)
    x = 0.3 * np.vstack([np.eye(4)[:3], [[1, 1, 1, 1]] * 3])
    data = problem.data.with_records(x, np.zeros(6))
    problem = dataclasses.replace(problem, data=data)
    found = optimum.solve(problem)
    assert_certified(problem, found)
    np.testing.assert_allclose(found.theta, 0.3, atol=1e-5)


def test_linear_loss_is_minimised_by_the_oracle():
    problem = pair("linear", "hull")
    g = problem.gradient(np.zeros(4))
    assert optimum.solve(problem).value == pytest.approx(g @ problem.constraint.lmo(g), abs=1e-9)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "huberized_hinge", "squared", "l2_median"])
def test_dense_and_sparse_agree(loss):
    dense = pair(loss, "simplex", 1e-3)
    data = dataclasses.replace(dense.data, x=sparse.csr_array(dense.data.x))
    found = [optimum.solve(p) for p in (dense, dataclasses.replace(dense, data=data))]
    assert abs(found[0].value - found[1].value) <= max(f.gap for f in found)


def test_wide_sparse_rows_are_never_dense(monkeypatch):
    """20,000 columns, 40 entries: in the cone program they stay 40."""
    n, p = 20, 20_000
    rng = np.random.default_rng(0)
    x = sparse.csr_array(sparse.random_array((n, p), density=1e-4, rng=rng, format="csr"))
    y = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    data = Data.of_records(
        "wide", "binary", x, y, float(np.sqrt((x.multiply(x)).sum(axis=1).max())), 1.0, "w"
    )
    problem = Problem(data, registry.load("loss", "hinge")(), shaped("simplex", p, 1.0), 0.0)
    monkeypatch.setattr(type(x), "toarray", lambda self: pytest.fail("made dense"))
    assert_certified(problem, optimum.solve(problem))


def test_first_order_takes_over_where_the_conic_route_gets_stuck(monkeypatch):
    def stuck(problem, start, seconds):
        yield start, dual_points.make_dual_point(problem, start)

    monkeypatch.setattr(conic, "iterate", stuck)
    problem = pair("logistic", "simplex", 0.1)
    found = optimum.solve(problem, relative_gap=1e-4)
    assert found.method == "first_order"
    assert_certified(problem, found, 1e-4)


# the pieces


@pytest.mark.parametrize("loss", ["logistic", "squared", "multinomial"])
def test_hessian_is_the_gradient_s_slope(loss):
    problem = pair(loss, "simplex", 0.1)
    at, step = problem.constraint.centre(), 1e-5
    sides = [
        problem.gradient(at + step * e) - problem.gradient(at - step * e) for e in np.eye(problem.p)
    ]
    np.testing.assert_allclose(
        dual_points.hessian(problem, at), np.array(sides) / (2 * step), atol=1e-6
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_the_dual_s_slope_is_the_gradient(loss):
    problem = pair(loss, "simplex")
    at = problem.constraint.centre()
    slope = dual_points.gradient(problem, dual_points.make_dual_point(problem, at))
    np.testing.assert_allclose(slope, problem.data_gradient(at), atol=1e-12)


@pytest.mark.parametrize("loss", ["hinge", "absolute", "positive_part", "l1_median", "l2_median"])
def test_rounded_duals_meet_the_true_ones_and_stay_feasible(loss):
    problem = pair(loss, "simplex")
    at = problem.constraint.centre()
    np.testing.assert_allclose(
        dual_points.make_dual_point(problem, at, 1e-12),
        dual_points.make_dual_point(problem, at),
        atol=1e-9,
    )
    wide = problem.loss.minorant(dual_points.make_dual_point(problem, at, 0.7), problem.data)
    assert np.isfinite(wide.constant)


def test_a_cone_program_by_hand():
    """min x + y^2 / 2 over |(x, y)| <= 1, x^0.5 1^0.5 >= |t| with t = 0: x = 0, multiplier 1."""
    program = Program()
    x, y = program.variables(1), program.variables(1, 10.0)
    program.linear(x, 1.0)
    program.quadratic(y, np.ones(1))
    lift = sparse.coo_array(([1.0, 1.0], ([1, 2], [0, 1])), shape=(3, 2))
    program.add("second_order", [(lift, np.concatenate([x, y]))], [1.0, 0.0, 0.0])
    low = program.add("nonnegative", [(sparse.eye_array(1), x)], 0.0)
    answer = program.solve(cost_scale=0.5)
    np.testing.assert_allclose(answer.point, 0.0, atol=1e-9)
    np.testing.assert_allclose(answer.multipliers[low], 1.0, atol=1e-8)


def test_spread_of_the_medians_is_the_number_of_records():
    medians = pair("l2_median", "simplex")
    assert medians.loss.curvature_factor(medians.data) == 30.0


# the cache


@pytest.mark.parametrize("loss", ["l2_median", "multinomial", "linear"])
def test_cache_keeps_duals_of_any_shape(loss, tmp_path, monkeypatch):
    problem = pair(loss, "simplex")
    first = optimum.solve_or_load(problem, tmp_path)
    monkeypatch.setattr(optimum, "solve", lambda *a, **k: pytest.fail("solved again"))
    again = optimum.solve_or_load(problem, tmp_path)
    assert (first.value, first.lower, first.method) == (again.value, again.lower, again.method)
