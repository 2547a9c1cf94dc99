"""The bounds that released gradients show hold, in expectation and for single runs."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dperm_cli
from dperm_cli.core import registry
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.mechanisms.shared.released_bound import FAILURE, ReleasedBound, move_bounds
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.privacy.secure_grid import Grid
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem
from dperm_cli.sets import make_ball
from dperm_cli.solvers.optimum import solve
from dperm_cli.views.central import CentralView
from dperm_cli.views.grid import GridView
from tests.conftest import small_problem

TRIALS = 4000


def run_adversary(rule, steps=12, noise=2.0, seed=5):
    """F = |theta| on [-1, 1] with noisy slopes: the mean point's risk, and the two bounds.

    ``rule`` moves the points: by the signs of what was released, away from the optimum, or by
    steps of the length of what was released.
    """
    rng = np.random.default_rng(seed)
    point, total = np.full((TRIALS, 1), 0.5), np.zeros((TRIALS, 1))
    shown = ReleasedBound(make_ball(1.0, 1), TRIALS)
    for _ in range(steps):
        noisy = np.sign(point) + noise * rng.standard_normal((TRIALS, 1))
        total += point
        shown.add(point, noisy)
        if rule == "away":  # where the noise has just said that the slope is flat
            point = np.where(np.abs(noisy) < 1.0, 1.0, -0.1)
        elif rule == "against":
            point = np.clip(np.sign(noisy), -1.0, 1.0)
        else:
            point = np.clip(point - 0.3 * noisy, -1.0, 1.0)
    found = shown.columns(noise, 0.0)
    return np.abs(total[:, 0] / steps), found["bound_released"], found["bound_released_95"]


@pytest.mark.parametrize("rule", ["away", "against", "descent"])
@pytest.mark.parametrize("steps", [1, 3, 40])
def test_the_bounds_hold_for_steps_that_follow_from_the_noise(rule, steps):
    risk, bound, likely = run_adversary(rule, steps)
    above = bound - risk
    assert above.mean() >= -5 * above.std() / math.sqrt(TRIALS)
    chance = np.mean(risk > likely)
    assert chance <= FAILURE + 5 * math.sqrt(FAILURE / TRIALS)


def test_the_plain_bound_is_none_for_single_runs():
    """Without the second term many runs have a risk above the bound; with it hardly any."""
    risk, bound, likely = run_adversary("against", 40, noise=20.0)
    assert np.mean(risk > bound) > 0.02
    assert np.mean(risk > likely) < FAILURE


def test_a_bound_says_less_where_gradients_are_rounded():
    shown = ReleasedBound(make_ball(2.0, 3), 1)
    shown.add(np.zeros((1, 3)), np.array([[3.0, 0.0, 4.0]]))
    exact, rounded = shown.columns(1.0, 0.0), shown.columns(1.0, 0.25)
    assert exact["bound_released"] == pytest.approx([10.0])
    assert rounded["bound_released"] == pytest.approx([11.0])
    wander = 4.0 * math.sqrt(2.0 * math.log(20.0))
    assert exact["bound_released_95"] == pytest.approx([10.0 + wander])


RUNS = [
    ("noisy_gd", {"averaging": "uniform", "steps": 30}, "logistic", "l2_ball"),
    ("noisy_gd", {"averaging": "suffix", "steps": 31}, "logistic", "box"),
    ("noisy_gd", {"averaging": "suffix", "steps": 30}, "hinge", "l1_ball"),
    ("noisy_gd", {"step_size": "theory", "steps": 30}, "hinge", "l2_ball"),
    ("newton", {"output": "suffix"}, "logistic", "l2_ball"),
    ("newton", {"output": "suffix", "curvature": "direction"}, "logistic", "l2_ball"),
]


@pytest.mark.parametrize(("name", "fields", "loss", "constraint"), RUNS)
@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_mechanisms_stay_below_the_bounds_that_they_release(name, fields, loss, constraint, ridge):
    mechanism = registry.load("mechanism", name)(**fields)
    problem = small_problem(loss=loss, n=60, p=3, radius=1.0, ridge=ridge, constraint=constraint)
    spec = problem.spec()
    plan = mechanism.plan(spec, Budget(8.0, 1e-4))
    seeds = [seed_sequence(3, "released bound", name, trial) for trial in range(200)]
    found = mechanism.release(CentralView(problem), plan, Gate(seeds))
    risk = problem.objective(found.theta) - solve(problem).value
    above = found.info["bound_released"] - risk
    assert above.mean() >= -5 * above.std() / math.sqrt(len(above))
    assert np.mean(risk > found.info["bound_released_95"]) <= 0.1
    # and they say something: less than the trivial bound of the set
    assert np.median(found.info["bound_released"]) < spec.n * spec.lipschitz * 2.0


@pytest.mark.parametrize("fields", [{}, {"averaging": "last"}, {"step_size": 0.1}])
def test_outputs_that_are_no_mean_of_queried_points_show_none(fields):
    mechanism = registry.load("mechanism", "noisy_gd")(steps=3, **fields)
    problem = small_problem(loss="logistic", n=20, p=2)
    plan = mechanism.plan(problem.spec(), Budget(1.0, 1e-4))
    found = mechanism.release(
        CentralView(problem), plan, Gate([seed_sequence(1, "released bound")])
    )
    assert not found.info


def test_rows_have_the_bounds_and_what_the_page_says_of_them(tmp_path):
    keys = {"mechanism": "noisy_gd", "mechanism.averaging": "suffix", "epsilon": [1, 10]}
    rows = dperm_cli.run(**keys, trials=4, out=tmp_path / "out", progress=False).trials()
    risk = rows.groupby("epsilon")[["bound_released", "bound_released_95", "floor_excess_risk"]]
    at = risk.mean().to_dict("index")
    assert at[10.0]["bound_released"] < at[10.0]["floor_excess_risk"] / 3
    assert at[1.0]["bound_released"] > at[1.0]["floor_excess_risk"]
    assert (rows["excess_risk"] <= rows["bound_released_95"]).all()


def test_the_error_of_rounded_gradients_is_counted():
    problem = small_problem(loss="logistic", n=40, p=3)
    theta = np.random.default_rng(0).uniform(-0.3, 0.3, (20, 3))
    exact, coarse = CentralView(problem), GridView(problem, Grid(-6))
    off = np.linalg.norm(exact.gradient_sum(theta) - coarse.gradient_sum(theta), axis=1)
    assert exact.gradient_error == 0.0
    assert off.max() <= coarse.gradient_error <= 40 * off.max()


@pytest.mark.parametrize(
    ("inner", "fields"), [("newton", {"output": "suffix"}), ("noisy_gd", {"averaging": "uniform"})]
)
def test_a_rounded_loss_adds_what_rounding_may(inner, fields):
    """Records at a kink, which a wide rounding moves far: the bound counts n width / 4."""
    y = np.where(np.arange(1000) % 10 < 6, 1.0, -1.0)
    data = Data.of_records("kinks", "binary", np.ones((1000, 1)), y, 1.0, 1.0, fingerprint="kinks")
    problem = Problem(data, registry.load("loss", "hinge")(), make_ball(3.0, 1))
    inside = registry.load("mechanism", inner)(**fields)
    mechanism = registry.load("mechanism", "huberized")(inner=inside, width=5.0)
    plan = mechanism.plan(problem.spec(), Budget(10.0, 1e-6))
    seeds = [seed_sequence(5, "released bound", inner, trial) for trial in range(20)]
    found = mechanism.release(CentralView(problem), plan, Gate(seeds))
    risk = problem.objective(found.theta) - solve(problem).value
    assert risk.mean() > found.info["bound_released"].mean() - 1250.0  # without what is added
    assert (risk <= found.info["bound_released_95"]).all()


@pytest.mark.parametrize(("ridge", "shown"), [(0.0, True), (1.0, False)])
def test_rows_whose_regulariser_is_weighed_otherwise_show_no_bounds(ridge, shown, tmp_path):
    """The mechanism weighs it by the declared population, the excess risk by the records."""
    keys = {"mechanism": "noisy_gd", "mechanism.averaging": "suffix", "ridge": ridge}
    keys |= {"privacy.relation": "add_remove", "privacy.population": 4560, "epsilon": 100}
    made = dperm_cli.run(**keys, trials=2, out=tmp_path / "out", progress=False)
    row = made.trials().iloc[0]
    found = [row.get(name) for name in ("bound_released", "bound_released_95", "bound_lower")]
    assert [one is not None and np.isfinite(one) for one in found] == [shown] * 3


def test_bounds_about_another_problem_are_left_out():
    shown = {"bound_released": np.ones(2), "bound_released_95": np.ones(2), "chosen": [1, 2]}
    assert move_bounds(shown, None) == {"chosen": [1, 2]}
    moved = move_bounds(shown, 0.5)
    assert moved["bound_released"].tolist() == [1.5, 1.5]
    assert moved["bound_released_95"].tolist() == [1.5, 1.5]
    assert moved["chosen"] == [1, 2]
