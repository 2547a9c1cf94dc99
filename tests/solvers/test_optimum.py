"""The certified optimum: bounds that hold, gaps that close, a cache that is checked."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse

from dperm_cli.core import registry
from dperm_cli.core.errors import StorageError
from dperm_cli.losses.base import largest_eigenvalue
from dperm_cli.losses.shared.margin_loss import margins
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem
from dperm_cli.solvers import conic, free_minimum, interior_point, optimum
from dperm_cli.solvers.newton_system import NewtonSystem

LOSSES = ["logistic", "hinge", "squared", "absolute"]
SETS = ["l2_ball", "l1_ball", "box"]
PAIRS = [(loss, shape) for loss in LOSSES for shape in SETS]


def make(x, y, loss="logistic", shape="l2_ball", size=1.0, ridge=0.0):
    one = registry.load("loss", loss)()
    lengths = np.linalg.norm(x.toarray() if sparse.issparse(x) else x, axis=1)
    y = np.asarray(y, dtype=float)
    data = Data.of_records(
        name="test",
        task=one.tasks[0],
        x=x,
        y=np.where(y < 0, -1.0, 1.0) if "binary" in one.tasks else y,
        row_bound=float(lengths.max(initial=1e-3)),
        target_bound=max(1.0, float(np.abs(y).max())),
        fingerprint="test",
    )
    return Problem(data, one, registry.load("constraint", shape)(size, x.shape[1]), ridge)


def rows(rng, n, p):
    x = rng.standard_normal((n, p))
    return x / np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True))


def sample(loss, shape, size=2.0, ridge=0.0, seed=0, n=60, p=5):
    rng = np.random.default_rng(seed)
    x = rows(rng, n, p)
    y = np.clip(x @ rng.standard_normal(p) + 0.3 * rng.standard_normal(n), -1, 1)
    return make(x, y, loss, shape, size, ridge)


def best_certificate(problem, found, relative):
    """The larger of the bounds from the dual and, on a very wide set, from the point alone."""
    lower = optimum.certificate(problem, found.theta, found.dual)
    if not optimum.is_vast(problem, relative):
        return lower
    return max(lower, free_minimum.lower_bound(problem, found.theta)[0])


def assert_certified(problem, found, relative=1e-6):
    excess = float(problem.objective(problem.constraint.centre())) - found.value
    floor = optimum.negligible(problem, found.theta, found.dual)
    assert found.converged
    assert problem.constraint.contains(found.theta, 1e-12)
    assert found.value == float(problem.objective(found.theta))
    assert found.lower == best_certificate(problem, found, relative)
    assert 0 <= found.gap <= max(relative * excess, floor)
    assert found.gap == found.value - found.lower


@pytest.mark.in_turn
@pytest.mark.parametrize(("loss", "shape"), PAIRS)
@pytest.mark.parametrize("ridge", [0.0, 1e-3, 1.0])
@pytest.mark.parametrize("size", [1e-3, 0.3, 10.0, 1e3])
def test_every_pair_is_certified(loss, shape, ridge, size):
    problem = sample(loss, shape, size, ridge)
    assert_certified(problem, optimum.solve(problem))


def hard_rows(kind, rng):
    x = rows(rng, 30, 4)
    return {
        "duplicate and constant columns": np.hstack([x, x, np.ones((30, 1)), np.zeros((30, 1))])
        / 3,
        "zero rows": np.where(np.arange(30)[:, None] % 2 == 0, 0.0, x),
        "nothing but zeros": np.zeros((30, 4)),
        "identical rows": np.repeat(x[:1], 30, axis=0),
        "one record": x[:1],
        "more columns than rows": rows(rng, 12, 40),
        "low rank": rows(rng, 30, 2) @ rng.standard_normal((2, 9)) / 5,
        "columns of very different scales": x * np.logspace(0, -6, 4),
        "sparse": sparse.csr_array(np.where(rng.random((30, 4)) < 0.3, x, 0.0)),
    }[kind]


HARD = [
    "duplicate and constant columns",
    "zero rows",
    "nothing but zeros",
    "identical rows",
    "one record",
    "more columns than rows",
    "low rank",
    "columns of very different scales",
    "sparse",
]


@pytest.mark.in_turn
@pytest.mark.parametrize("kind", HARD)
@pytest.mark.parametrize(("loss", "shape"), PAIRS)
@pytest.mark.parametrize("labels", ["noise", "one class"])
def test_hard_data(kind, loss, shape, labels):
    rng = np.random.default_rng(5)
    x = hard_rows(kind, rng)
    y = np.ones(x.shape[0]) if labels == "one class" else rng.uniform(-1, 1, x.shape[0])
    for size, ridge in ((0.1, 0.0), (100.0, 0.0), (10.0, 1e-4)):
        problem = make(x, y, loss, shape, size, ridge)
        assert_certified(problem, optimum.solve(problem))


@pytest.mark.parametrize(("loss", "shape"), PAIRS)
def test_agrees_with_an_independent_solver(loss, shape):
    """SLSQP on an epigraph form, in which every loss and set is smooth."""
    problem = sample(loss, shape, 0.8, 0.01, n=15, p=3)
    found = optimum.solve(problem)
    value = reference(problem)
    scale = float(problem.objective(np.zeros(3))) - found.value
    assert found.lower <= value + 1e-12
    assert value - found.value == pytest.approx(0.0, abs=1e-5 * scale)


def reference(problem):
    """minimise sum t_i + ridge over (theta+, theta-, t): the value that SLSQP reaches."""
    x, y, size, (n, p) = (
        problem.data.x,
        problem.data.y,
        problem.constraint.size,
        problem.data.x.shape,
    )
    name = problem.loss.name
    kinked = name in ("hinge", "absolute")

    def theta(v):
        return v[:p] - v[p : 2 * p]

    def objective(v):
        penalty = 0.5 * n * problem.ridge * theta(v) @ theta(v)
        return penalty + (
            np.sum(v[2 * p :]) if kinked else float(problem.objective(theta(v))) - penalty
        )

    limits = {
        "l2_ball": lambda v: np.array([size**2 - theta(v) @ theta(v)]),
        "l1_ball": lambda v: np.array([size - np.sum(v[: 2 * p])]),
        "box": lambda v: np.concatenate([size - theta(v), size + theta(v)]),
    }
    constraints = [{"type": "ineq", "fun": limits[problem.constraint.name]}]
    if name == "hinge":
        constraints.append({"type": "ineq", "fun": lambda v: v[2 * p :] - 1 + y * (x @ theta(v))})
    if name == "absolute":
        constraints.append({"type": "ineq", "fun": lambda v: v[2 * p :] - x @ theta(v) + y})
        constraints.append({"type": "ineq", "fun": lambda v: v[2 * p :] + x @ theta(v) - y})
    start = np.concatenate([np.full(2 * p, 1e-3), np.full(n if kinked else 0, 2.0)])
    bounds = [(0, None)] * start.size
    answer = optimize.minimize(
        objective,
        start,
        constraints=constraints,
        bounds=bounds,
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert answer.success
    return answer.fun


@pytest.mark.parametrize(("loss", "shape"), PAIRS)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), ridge=st.sampled_from([0.0, 1e-3, 1.0]))
def test_no_feasible_point_is_below_any_certificate(loss, shape, seed, ridge):
    """Bounds from random duals against the objective at random, extreme and descended points."""
    problem = sample(loss, shape, 1.5, ridge, seed=seed % 7, n=12, p=3)
    rng = np.random.default_rng(seed)
    c = problem.constraint
    points = c.project(rng.standard_normal((30, 3)) * rng.exponential(1.5, (30, 1)))
    points = np.vstack([points, c.lmo(rng.standard_normal((20, 3)))])
    best = points[np.argmin(problem.objective(points))]
    for _ in range(20):
        best = c.project(best - 0.02 * problem.gradient(best))
        points = np.vstack([points, best])
    lowest = float(np.min(problem.objective(points)))
    for theta in points[rng.integers(0, len(points), 5)]:
        dual = problem.loss.slope(margins(theta, problem.data), problem.data.y)
        for shrunk in (dual, rng.random() * dual):
            assert optimum.certificate(problem, theta, shrunk) <= lowest


@pytest.mark.parametrize(("loss", "shape"), PAIRS)
def test_a_wrong_dual_gives_a_lower_bound_never_a_higher_one(loss, shape):
    problem = sample(loss, shape, 1.5)
    found = optimum.solve(problem)
    rng = np.random.default_rng(1)
    halved = optimum.certificate(problem, found.theta, 0.5 * found.dual)
    shuffled = optimum.certificate(problem, found.theta, rng.permutation(found.dual))
    negated = optimum.certificate(problem, found.theta, -found.dual)
    assert max(halved, shuffled, negated) < found.lower - 1e3 * found.gap


@pytest.mark.parametrize("loss", ["logistic", "hinge", "absolute"])
def test_a_dual_outside_the_domain_proves_nothing(loss):
    problem = sample(loss, "box")
    dual = -1.5 * problem.data.y / np.abs(problem.data.y)
    assert optimum.certificate(problem, np.zeros(5), dual) == -np.inf


def test_the_allowance_is_small_and_positive():
    problem = sample("logistic", "l2_ball")
    found = optimum.solve(problem)
    allowance = optimum.rounding_allowance(problem, found.theta, found.dual)
    assert 0 < allowance < 1e-12 * problem.data.n * 10


def test_least_squares_in_closed_form():
    problem = sample("squared", "l2_ball", 100.0, 0.02)
    x, y, n = problem.data.x, problem.data.y, problem.data.n
    exact = np.linalg.solve(x.T @ x + n * 0.02 * np.eye(5), x.T @ y)
    np.testing.assert_allclose(optimum.solve(problem, relative_gap=1e-12).theta, exact, atol=1e-6)


def test_absolute_loss_finds_the_median():
    y = np.array([-0.9, -0.5, 0.1, 0.2, 0.8])
    found = optimum.solve(make(np.ones((5, 1)), y, "absolute", "box", 1.0))
    assert found.theta[0] == pytest.approx(0.1, abs=1e-5)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared", "absolute"])
def test_one_class_on_the_boundary(loss):
    """One record (1, 0), y = 1 and a set too small for z = 1: the best point is the far end."""
    for shape in SETS:
        found = optimum.solve(make(np.array([[1.0, 0.0]]), [1.0], loss, shape, 0.5))
        assert found.theta[0] == pytest.approx(0.5, abs=1e-5)


def test_optimum_at_a_vertex_of_the_l1_ball():
    x = np.diag([1.0, 0.5, 0.25])
    found = optimum.solve(make(x, np.ones(3), "hinge", "l1_ball", 0.8))
    np.testing.assert_allclose(found.theta, [0.8, 0.0, 0.0], atol=1e-5)


def test_optimum_at_the_centre_counts_as_converged():
    problem = make(np.array([[1.0], [1.0]]), [1.0, -1.0], "logistic", "l2_ball", 5.0)
    found = optimum.solve(problem)
    assert found.converged
    assert found.value == pytest.approx(2 * np.log(2))


@pytest.mark.parametrize(("loss", "shape"), PAIRS)
def test_first_order_fallback(loss, shape, monkeypatch):
    monkeypatch.setattr(interior_point, "applies", lambda problem: False)
    monkeypatch.setattr(conic, "applies", lambda problem: False)
    problem = sample(loss, shape, 2.0, 0.01)
    found = optimum.solve(problem, relative_gap=1e-3)
    assert found.method == "first_order"
    assert_certified(problem, found, 1e-3)


@dataclasses.dataclass(frozen=True)
class Bare:
    """A loss that offers what every loss must, and no capability."""

    inner: object

    def __getattr__(self, name):
        none = ("pieces", "curvature", "hessian", "envelope_dual", "cone_cost", "smoothness")
        return None if name in none else getattr(self.inner, name)


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_a_loss_known_by_its_protocol_only(loss):
    problem = sample(loss, "l2_ball", 2.0)
    problem = dataclasses.replace(problem, loss=Bare(problem.loss))
    assert not interior_point.applies(problem)
    found = optimum.solve(problem, relative_gap=0.03, seconds=5)
    assert found.method == "first_order"
    assert found.lower <= optimum.solve(sample(loss, "l2_ball", 2.0)).value
    assert_certified(problem, found, 0.03)


def test_spectral_bound():
    x = rows(np.random.default_rng(0), 40, 6)
    exact = np.linalg.eigvalsh(x.T @ x)[-1]
    assert exact <= largest_eigenvalue(x) <= 1.3 * exact
    assert exact <= largest_eigenvalue(sparse.csr_array(x)) <= 1.3 * exact


@pytest.mark.parametrize(("n", "p"), [(30, 6), (6, 30)])
@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_array])
def test_newton_system_solves(n, p, wrap):
    rng = np.random.default_rng(0)
    x, d, b, w = rows(rng, n, p), rng.random(n), 0.1 + rng.random(p), rng.standard_normal(p)
    matrix = x.T @ np.diag(d) @ x + np.diag(b) + 2.0 * np.outer(w, w)
    v = rng.standard_normal(p)
    u, z = NewtonSystem(wrap(x)).factor(d, b, 2.0, w)(v)
    np.testing.assert_allclose(matrix @ u, v, atol=1e-9)
    np.testing.assert_allclose(z, x @ u, atol=1e-9)


def test_a_busy_machine_gives_up_no_earlier(monkeypatch):
    """A clock that runs a hundred times as fast, while the processors' time stands."""
    times = {"wall": 0.0, "processors": 0.0}
    monkeypatch.setattr(optimum.time, "perf_counter", lambda: times["wall"])
    monkeypatch.setattr(optimum.time, "process_time", lambda: times["processors"])
    clock = optimum._Clock(60.0)
    times |= {"wall": 500.0, "processors": 50.0}
    assert clock.find_left("first_order") == 10.0
    assert clock.find_left("interior_point") == 100.0  # of the clock: ten times 60 s
    times["wall"] = 601.0
    assert clock.find_left("first_order") < 0.0
    times |= {"wall": 61.0, "processors": 120.0}  # two threads
    assert clock.find_left("first_order") < 0.0
    assert clock.find_left("interior_point") == 300.0 - 61.0


def test_running_out_of_time_is_reported_honestly():
    problem = sample("hinge", "l1_ball")
    found = optimum.solve(problem, seconds=0.0)
    assert not found.converged
    assert found.iterations == 0
    assert found.gap == found.value - found.lower
    assert found.lower <= optimum.solve(problem).value <= found.value


def test_progress_sees_every_iteration():
    seen = []
    found = optimum.solve(sample("logistic", "box"), progress=lambda *args: seen.append(args))
    assert [iteration for iteration, _ in seen] == list(range(found.iterations + 1))
    assert seen[-1][1] == found.gap


def test_dense_and_sparse_agree():
    dense = sample("hinge", "l1_ball")
    data = dataclasses.replace(dense.data, x=sparse.csr_array(dense.data.x))
    found = [optimum.solve(p) for p in (dense, dataclasses.replace(dense, data=data))]
    assert abs(found[0].value - found[1].value) <= max(f.gap for f in found)


# the cache


def counted(monkeypatch):
    calls = []
    solve = optimum.solve

    def spy(*args, **kwargs):
        calls.append(1)
        return solve(*args, **kwargs)

    monkeypatch.setattr(optimum, "solve", spy)
    return calls


def test_cache_returns_what_was_stored(tmp_path, monkeypatch):
    calls, problem = counted(monkeypatch), sample("hinge", "box")
    first = optimum.solve_or_load(problem, tmp_path / "deep")
    again = optimum.solve_or_load(problem, tmp_path / "deep")
    assert len(calls) == 1
    np.testing.assert_array_equal(first.theta, again.theta)
    assert (first.value, first.lower, first.method) == (again.value, again.lower, again.method)
    assert_certified(problem, again)
    assert [f.name for f in (tmp_path / "deep").iterdir()] == [
        f"optimum-{problem.fingerprint()}.npz"
    ]


def test_cache_tells_problems_apart(tmp_path, monkeypatch):
    calls = counted(monkeypatch)
    for ridge in (0.0, 0.1):
        optimum.solve_or_load(sample("hinge", "box", ridge=ridge), tmp_path)
    assert len(calls) == 2


def test_cache_recomputes_when_more_is_asked(tmp_path, monkeypatch):
    calls, problem = counted(monkeypatch), sample("hinge", "box")
    optimum.solve_or_load(problem, tmp_path, relative_gap=1e-1)
    tight = optimum.solve_or_load(problem, tmp_path, relative_gap=1e-8)
    loose = optimum.solve_or_load(problem, tmp_path, relative_gap=1e-1)
    assert len(calls) == 2
    assert tight.gap == loose.gap


def test_cache_does_not_retry_what_time_did_not_allow(tmp_path, monkeypatch):
    calls, problem = counted(monkeypatch), sample("hinge", "box")
    first = optimum.solve_or_load(problem, tmp_path, seconds=0.0)
    assert optimum.solve_or_load(problem, tmp_path, seconds=0.0).gap == first.gap
    assert len(calls) == 1
    assert optimum.solve_or_load(problem, tmp_path, seconds=60.0).converged
    assert len(calls) == 2


@pytest.mark.parametrize("damage", ["empty", "truncated", "flipped", "text", "other", "pickle"])
def test_damaged_cache_is_recomputed(tmp_path, damage, monkeypatch):
    problem = sample("hinge", "box")
    good = optimum.solve_or_load(problem, tmp_path)
    path = next(tmp_path.iterdir())
    content = path.read_bytes()
    half = len(content) // 2
    if damage in ("other", "pickle"):
        theta = np.full(5, 9.0) if damage == "other" else np.array([None] * 5)
        np.savez(path, theta=theta, dual=good.dual, effort=np.zeros(4), method="x")
    else:
        flipped = content[:half] + bytes([content[half] ^ 0xFF]) + content[half + 1 :]
        broken = {"empty": b"", "truncated": content[:half], "text": b"hello", "flipped": flipped}
        path.write_bytes(broken[damage])
    calls = counted(monkeypatch)
    assert_certified(problem, optimum.solve_or_load(problem, tmp_path))
    assert len(calls) == 1
    optimum.solve_or_load(problem, tmp_path)
    assert len(calls) == 1


def test_a_forged_point_is_no_better_than_its_certificate(tmp_path):
    """A readable file with a poor dual: the gap is computed anew, found wide, and solved again."""
    problem = sample("hinge", "box")
    good = optimum.solve_or_load(problem, tmp_path)
    path = next(tmp_path.iterdir())
    np.savez(
        path, theta=good.theta, dual=0 * good.dual, effort=np.array([1.0, 0.0, 5.0, 3]), method="x"
    )
    assert_certified(problem, optimum.solve_or_load(problem, tmp_path))


def test_unwritable_folder_is_a_storage_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError):
        optimum.solve_or_load(sample("hinge", "box"), tmp_path / "file")
