"""Whichever loop runs, its noise is as loud as the event says, new at every step and in each trial.

Linear losses of equal rows: every noisy sum is one known vector and its noise, and the released
point is their mean, up to a known factor. What is left after the vector is taken off has a known
variance in every coordinate, which is compared with its mean square in 400 trials, within five
standard errors. The paths are those of the plain loops, of the compiled ones (dense, CSR, batches,
lasso), of the coordinates of few rows, and of noise on a grid.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

from dperm_cli.core import registry
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.loops import reduced_sgd
from dperm_cli.mechanisms.gradient.noisy_gd import NoisyGd
from dperm_cli.mechanisms.gradient.noisy_sgd import NoisySgd
from dperm_cli.mechanisms.gradient.one_pass_sgd import OnePassSgd
from dperm_cli.mechanisms.shared import row_span
from dperm_cli.mechanisms.shared.secure_plan import secure_plan
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem
from dperm_cli.views.central import CentralView
from dperm_cli.views.grid import GridView

TRIALS, STEPS, N, RIDGE, MOST = 400, 8, 4, 1.0, 0.25
FEW, MANY = 48, 7  # columns: the rows span little of the space, or all of it is walked
BUDGET = Budget(1.0, 1e-3)
SGD = {"learning_rate": "strongly_convex", "output": "last", "steps": STEPS}


class Silent:
    """A tape that changes nothing, and so only closes the compiled path."""

    def take_draw(self, stream, value, drawn, public):
        return drawn


def alike(p: int, form=np.asarray, ridge: float = RIDGE, lasso: float = 0.0) -> Problem:
    """N equal rows under the linear loss, in a ball that is never left."""
    x = np.tile(np.full(p, 0.9 / math.sqrt(p)), (N, 1))
    data = Data.of_records(
        "alike", "binary", form(x), np.ones(N), row_bound=1.0, target_bound=1.0, fingerprint="a"
    )
    ball = registry.load("constraint", "l2_ball")(1e9, p)
    return Problem(data, registry.load("loss", "linear")(), ball, ridge, lasso)


def released(mechanism, problem, budget=BUDGET, tape=None, secure=False):
    plan = mechanism.plan(problem.spec(), budget)
    if secure:
        plan, grid = secure_plan(mechanism, plan, problem.spec(), problem.loss)
        gate = Gate.secure(TRIALS, grid, (plan.events, budget.relation), source=words(7))
        return plan, mechanism.release(GridView(problem, grid), plan, gate).theta
    seeds = [seed_sequence(5, "paths", trial) for trial in range(TRIALS)]
    gate = Gate(seeds, tape, (plan.events, budget.relation))
    return plan, mechanism.release(CentralView(problem), plan, gate).theta


def words(seed: int):
    rng = np.random.default_rng(seed)
    return lambda count: rng.integers(0, 2**64, count, dtype=np.uint64)


def assert_as_loud(noise: np.ndarray, deviation: float) -> None:
    """Of [TRIALS, coordinates]: mean square 1 in deviations, and no part common to all trials."""
    z = noise / deviation
    error, off = float(np.std(z * z)) / math.sqrt(z.size), abs(float(np.mean(z * z)) - 1.0)
    assert off < MOST
    assert off < 5.0 * error < MOST, "too few numbers for a test of this power"
    common = TRIALS * float(np.mean(np.mean(z, axis=0) ** 2))
    assert common < 1.0 + 5.0 * math.sqrt(2.0 / z.shape[1])


def parts_of(noise: np.ndarray, problem: Problem) -> list[np.ndarray]:
    """The coordinates beside the rows; of few rows those within their frame and those beyond."""
    x = problem.data.x
    dense = x.toarray() if sparse.issparse(x) else x
    along = dense[0] / np.linalg.norm(dense[0])
    beside = noise - np.outer(noise @ along, along)
    # the rows' direction is one of the frame's own, and its complement comes after the frame
    basis = reduced_sgd.frame(x).basis
    u, size, _ = np.linalg.svd(basis - np.outer(along, along @ basis), full_matrices=True)
    assert np.allclose(size[: N - 1], 1.0)
    inner = u[:, : N - 1]
    outer = u[:, N - 1 :]
    outer = np.linalg.svd(outer - np.outer(along, along @ outer))[0][:, : problem.p - N]
    return [beside @ inner, beside @ outer]


SGD_PATHS = {
    "few rows": (FEW, np.asarray, {}, None),
    "few rows, batches": (FEW, np.asarray, {"batch": 2}, None),
    "few rows, poisson": (FEW, np.asarray, {"batch": 2, "sampling": "poisson"}, None),
    "dense": (MANY, np.asarray, {}, None),
    "dense batches": (MANY, np.asarray, {"batch": 2}, None),
    "dense poisson": (MANY, np.asarray, {"batch": 2, "sampling": "poisson"}, None),
    "csr": (MANY, sparse.csr_array, {}, None),
    "csr poisson": (MANY, sparse.csr_array, {"batch": 2, "sampling": "poisson"}, None),
    "plain": (MANY, np.asarray, {}, Silent()),
    "plain poisson": (MANY, np.asarray, {"batch": 1, "sampling": "poisson"}, Silent()),
}


@pytest.mark.in_turn
@pytest.mark.parametrize("path", SGD_PATHS)
def test_stochastic_steps(path):
    """theta_T = -(mean of T noisy sums) / (n ridge) with the step 1 / (n ridge t)."""
    p, form, fields, tape = SGD_PATHS[path]
    problem, mechanism = alike(p, form), NoisySgd(**SGD, **fields)
    plan, theta = released(mechanism, problem, tape=tape)
    assert row_span.can_reduce(problem.spec(), plan, STEPS) is (p == FEW)
    deviation = plan.noise_scale / (N * RIDGE * math.sqrt(STEPS))
    for part in parts_of(theta, problem):
        assert_as_loud(part, deviation)
    if fields.get("sampling") != "poisson":
        row = problem.data.x[[0]]
        row = (row.toarray() if sparse.issparse(row) else row)[0]
        towards = float(np.mean(theta @ row)) / float(row @ row)
        # rows under the linear loss pull theta towards them: -g / ridge
        assert abs(towards - 1.0 / RIDGE) < 6.0 * deviation / math.sqrt(TRIALS * (row @ row))


def test_stochastic_steps_with_a_lasso():
    """The pull is one number in each coordinate and step; noise is beside it as loud as ever."""
    problem = alike(MANY, lasso=1e-9)
    plan, theta = released(NoisySgd(**SGD), problem)
    for part in parts_of(theta, problem):
        assert_as_loud(part, plan.noise_scale / (N * RIDGE * math.sqrt(STEPS)))


@pytest.mark.parametrize("path", ["few rows", "plain", "grid"])
@pytest.mark.parametrize("averaging", ["last", "uniform"])
def test_full_gradients(path, averaging):
    """theta_T = -eta (sum of T noisy sums); the mean of the iterates weighs sum t by T - t."""
    p = FEW if path == "few rows" else MANY
    problem = alike(p, ridge=0.0)
    mechanism = NoisyGd(steps=STEPS, step_size=0.01, momentum=0.0, averaging=averaging)
    plan, theta = released(mechanism, problem, secure=path == "grid")
    assert row_span.can_reduce(problem.spec(), plan, N, extra=STEPS) is (path == "few rows")
    weights = np.ones(STEPS) if averaging == "last" else np.arange(STEPS - 1, 0, -1) / STEPS
    deviation = 0.01 * plan.noise_scale * float(np.linalg.norm(weights))
    for part in parts_of(theta, problem):
        assert_as_loud(part, deviation)


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_one_pass(relation, delta):
    """The noise of a batch's sum over the size of the batch; (p + 1) scale^2 for a Gamma norm."""
    problem = alike(MANY)
    mechanism = OnePassSgd(batches=2, learning_rate="strongly_convex", output="last")
    plan, theta = released(mechanism, problem, Budget(1.0, delta, relation))
    square = plan.noise_scale**2 * (1.0 if delta else MANY + 1.0)
    deviation = math.sqrt(square / 2.0) / (N / 2 * RIDGE)
    for part in parts_of(theta, problem):
        assert_as_loud(part, deviation)


def test_a_louder_or_repeated_draw_is_heard():
    """What these tests are for: 0.85 of the noise, and one draw for all steps or all trials."""
    problem = alike(FEW, ridge=0.0)
    mechanism = NoisyGd(steps=STEPS, step_size=0.01, momentum=0.0, averaging="last")
    plan, theta = released(mechanism, problem)
    deviation = 0.01 * plan.noise_scale * math.sqrt(STEPS)
    for part in parts_of(theta, problem):
        for wrong in (0.85 * part, math.sqrt(STEPS) * part, np.tile(part[:1], (TRIALS, 1))):
            with pytest.raises(AssertionError):
                assert_as_loud(wrong, deviation)
