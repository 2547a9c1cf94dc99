"""Noisy gradients in the coordinates of few rows have the law of the plain loops.

Two-sample Kolmogorov-Smirnov tests of 20,000 draws each on functions of the released point, inside
and outside the span of the rows; the seeds are fixed, and a fresh set of them would raise an alarm
less than once in a thousand (12 tests at 1e-4 each). That they would notice is tested as well: a
chi^2 of 5 % more degrees of freedom is found out, and so is a direction that stays in the span.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dperm_cli.core.seeds import seed_sequence
from dperm_cli.datasets.shared.row_pipeline import make_data
from dperm_cli.loops import reduced_sgd, sgd
from dperm_cli.loops.projections import L2_BALL
from dperm_cli.loops.sealed_noise import SealedBatches
from dperm_cli.losses.logistic import Logistic
from dperm_cli.mechanisms.gradient import noisy_gd, noisy_sgd
from dperm_cli.mechanisms.shared import row_span
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.problem import Problem
from dperm_cli.sets.l1_ball import L1Ball
from dperm_cli.sets.l2_ball import L2Ball
from dperm_cli.views.central import CentralView

N, P, TRIALS, ALARM = 4, 48, 20_000, 1e-4
BUDGET = Budget(1.0, 1e-3, "replace_one")


def problem(n: int = N, p: int = P, radius: float = 1.0, ridge: float = 0.0) -> Problem:
    """Few records, two of them alike: the rank is below n."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((n, p))
    x /= np.linalg.norm(x, axis=1, keepdims=True) * (1 + 1e-12)
    x[1] = x[0]
    y = np.where(np.arange(n) % 3 == 2, -1.0, 1.0)
    data = make_data("few", "binary", x, y, None, None, row_bound=1.0, preprocessing=())
    body = L2Ball(radius, p)
    return Problem(data, Logistic(), body, ridge)  # type: ignore[arg-type]


def parts(theta: np.ndarray, x: np.ndarray) -> dict[str, np.ndarray]:
    """Norms in and out of the span, two margins, a coordinate; rounded, for the boundary's atom."""
    basis = reduced_sgd.frame(x).basis
    inside = theta @ basis
    rest = theta - inside @ basis.T
    found = {
        "norm": np.linalg.norm(theta, axis=1),
        "inside": np.linalg.norm(inside, axis=1),
        "outside": np.linalg.norm(rest, axis=1),
        "margin": theta @ x[0],
        "coordinate": theta[:, 7],
        "outside coordinate": rest[:, 11],
    }
    return {name: np.round(value, 9) for name, value in found.items()}


def keys(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**63, (TRIALS, 2)).astype(np.uint64)


def batches(seed: int) -> SealedBatches:
    """Twelve steps of one record each, for all chains."""
    return SealedBatches(keys(seed), keys(seed + 1), 8.0, 12, N)


def walk(ridge: float, size: float):
    return {
        "loss_code": Logistic().code, "set_code": L2_BALL, "size": size,
        "eta_kind": sgd.INV_SQRT, "eta0": 0.03, "ridge": ridge,
    }  # fmt: skip


def differ(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> dict[str, float]:
    found: dict[str, Any] = {name: stats.ks_2samp(first[name], second[name]) for name in first}
    return {name: float(test.pvalue) for name, test in found.items()}


@pytest.mark.slow
@pytest.mark.stat
@pytest.mark.parametrize(("ridge", "size"), [(0.0, 1.0), (0.6, 30.0)])
def test_the_stochastic_loop_has_the_same_law(ridge, size):
    found, rule = problem().data, walk(ridge, size)
    start = np.zeros((TRIALS, P))
    slow = parts(sgd.run(found.x, found.y, start, batches(1), **rule), found.x)
    framed = reduced_sgd.frame(found.x)
    fast = parts(reduced_sgd.run(framed, found.y, batches(3), **rule), found.x)
    assert min(differ(slow, fast).values()) > ALARM
    more = math.ceil(1.05 * (P - N - 1)) + 1
    wrong = parts(reduced_sgd.run(framed, found.y, batches(3), outer=more, **rule), found.x)
    assert min(differ(slow, wrong).values()) < ALARM


def released(mechanism, found: Problem, seed: int, trials: int) -> np.ndarray:
    plan = mechanism.plan(found.spec(), BUDGET)
    seeds = [seed_sequence(seed, "noise", trial) for trial in range(trials)]
    return mechanism.release(CentralView(found), plan, Gate(seeds)).theta


def test_a_trial_has_the_same_bytes_whatever_other_trials_there_are():
    mechanism, found = noisy_gd.NoisyGd(steps=6), problem(radius=4.0)
    plan = mechanism.plan(found.spec(), BUDGET)
    assert row_span.can_reduce(found.spec(), plan, N, extra=6)
    many = released(mechanism, found, 1, 7)
    for trials in (1, 2, 3):
        assert np.array_equal(released(mechanism, found, 1, trials), many[:trials])


@pytest.mark.slow
@pytest.mark.stat
@pytest.mark.parametrize("averaging", ["last", "auto", "suffix"])
def test_full_gradients_have_the_same_law(monkeypatch, averaging):
    step = 0.02 if averaging == "suffix" else "auto"
    mechanism = noisy_gd.NoisyGd(steps=6, averaging=averaging, step_size=step)
    found = problem(radius=0.5 if averaging == "last" else 4.0, ridge=0.1)
    x = found.data.x
    plan = mechanism.plan(found.spec(), BUDGET)
    assert row_span.can_reduce(found.spec(), plan, N, extra=6)
    fast = parts(released(mechanism, found, 1, TRIALS), x)
    monkeypatch.setattr(noisy_gd, "can_reduce", lambda *_, **__: False)
    slow = parts(released(mechanism, found, 2, TRIALS), x)
    assert min(differ(slow, fast).values()) > ALARM


@pytest.mark.slow
@pytest.mark.stat
def test_those_tests_have_power(monkeypatch):
    """Full gradients with chi^2 of 5 % more degrees of freedom, and a direction in the span."""
    mechanism, found = noisy_gd.NoisyGd(steps=6, averaging="last"), problem(radius=4.0)
    x = found.data.x
    right = parts(released(mechanism, found, 1, TRIALS), x)
    plain = reduced_sgd.chi2_of
    monkeypatch.setattr(reduced_sgd, "chi2_of", lambda z, k: plain(z, math.ceil(1.05 * k)))
    assert min(differ(right, parts(released(mechanism, found, 2, TRIALS), x)).values()) < ALARM
    monkeypatch.setattr(reduced_sgd, "chi2_of", plain)

    def inward(framed, given, step):
        return np.tile(framed.basis[:, 0], (len(given), 1))

    monkeypatch.setattr(reduced_sgd, "outward", inward)
    assert min(differ(right, parts(released(mechanism, found, 2, TRIALS), x)).values()) < ALARM


def test_chi2_of_a_normal_number_is_chi2():
    z = np.array([-8.0, -3.0, -0.1, 0.0, 0.1, 3.0, 8.0])
    for degrees in (1, 7, 4000):
        np.testing.assert_allclose(
            stats.chi2.logsf(reduced_sgd.chi2_of(z, degrees), degrees), stats.norm.logsf(z),
            rtol=1e-6, atol=1e-12,
        )  # fmt: skip
    # Wilson and Hilferty's cube is that close to the quantile, in deviations, at the most degrees
    degrees, z = float(row_span.MOST_DEGREES), np.linspace(-9.4, 9.4, 20_001)
    found, share = reduced_sgd.chi2_of(z, degrees), 2.0 / (9.0 * degrees)
    cube = degrees * (1.0 - share + z * math.sqrt(share)) ** 3
    np.testing.assert_allclose(found, cube, atol=1e-5 * math.sqrt(2.0 * degrees), rtol=0.0)
    assert np.all(np.diff(found) > 0.0)


def test_the_shapes_are_decided_by_public_facts():
    """The same frame and the same decision for any rows of this number, whatever their rank."""
    spec = problem().spec()
    plan = noisy_sgd.NoisySgd().plan(spec, BUDGET)
    assert row_span.can_reduce(spec, plan, plan.steps)
    shapes = set()
    for rank in (0, 1, N):
        x = np.zeros((N, P))
        x[:rank] = problem().data.x[:rank]
        framed = reduced_sgd.frame(x)
        shapes.add((framed.basis.shape, framed.rows.shape))
        np.testing.assert_allclose(framed.basis.T @ framed.basis, np.eye(N), atol=1e-12)
        np.testing.assert_allclose(framed.rows @ framed.basis.T, x, atol=1e-12)
    assert shapes == {((P, N), (N, N))}


def test_where_the_plain_loop_stays():
    found = problem()
    spec = found.spec()
    plan = noisy_sgd.NoisySgd().plan(spec, BUDGET)
    body = L1Ball(1.0, P)
    wide = replace(spec, n=P // 2)
    rare = replace(plan, guarantee=replace(plan.guarantee, delta=1e-30))
    assert not row_span.can_reduce(replace(spec, constraint=body), plan, 100)  # type: ignore[arg-type]
    assert not row_span.can_reduce(wide, plan, 10_000)
    assert not row_span.can_reduce(spec, plan, N - 1)
    assert not row_span.can_reduce(spec, rare, 100)
    # of numbers that are drawn in few steps, most are for the direction outside the rows
    one = replace(plan, steps=1, guarantee=replace(plan.guarantee, delta=1e-11))
    far = replace(spec, n=1, p=10**6, constraint=L2Ball(1.0, 10**6))  # type: ignore[arg-type]
    assert not row_span.can_reduce(far, one, 1)
    far_too_far = replace(far, p=row_span.MOST_DEGREES + 1)
    sure = replace(one, guarantee=plan.guarantee)
    assert row_span.can_reduce(far, sure, 1)
    assert not row_span.can_reduce(far_too_far, sure, 1)


def test_the_point_is_in_the_ball_and_the_same_every_time():
    found = problem(n=5, p=200, radius=0.7)
    for mechanism in (noisy_sgd.NoisySgd(), noisy_gd.NoisyGd(steps=20)):
        first, again = (released(mechanism, found, 3, 6) for _ in range(2))
        np.testing.assert_array_equal(first, again)
        assert np.all(np.linalg.norm(first, axis=1) <= 0.7 * (1 + 1e-12))
        # the trials' outside parts share no direction
        rest = (
            first
            - first
            @ reduced_sgd.frame(found.data.x).basis
            @ reduced_sgd.frame(found.data.x).basis.T
        )
        rest /= np.linalg.norm(rest, axis=1, keepdims=True)
        assert np.max(np.abs(rest @ rest.T - np.eye(6))) < 0.5


def test_the_reduced_loop_refuses_what_it_cannot_do():
    framed, y = reduced_sgd.frame(problem().data.x), problem().data.y
    for wrong in ({"set_code": 1}, {"lasso": 0.1}, {"average": sgd.AVERAGE}, {"outer": 2}):
        with pytest.raises(ValueError, match=r"the reduced loop|rows leave"):
            reduced_sgd.run(framed, y, batches(1), **{**walk(0.0, 1.0), **wrong})
