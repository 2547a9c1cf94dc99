"""The noise that a mechanism says its point holds, beside the spread of its releases."""

import numpy as np
import pytest

from dperm_cli.losses.logistic import Logistic
from dperm_cli.losses.squared import Squared
from dperm_cli.mechanisms.gradient.noisy_gd import NoisyGd
from dperm_cli.mechanisms.perturbation.approximate_minima_perturbation import (
    ApproximateMinimaPerturbation,
)
from dperm_cli.mechanisms.perturbation.objective_perturbation import ObjectivePerturbation
from dperm_cli.mechanisms.perturbation.output_perturbation import OutputPerturbation
from dperm_cli.mechanisms.perturbation.sufficient_statistics import SufficientStatistics
from dperm_cli.mechanisms.shared.noise_law import noise_moment
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem
from dperm_cli.sets import make_ball
from dperm_cli.views.central import CentralView

TRIALS = 300


def make_problem(task):
    rng = np.random.default_rng(5)
    x = rng.normal(0, 0.4, (4000, 3))
    x /= np.maximum(1.0, np.linalg.norm(x, axis=1))[:, None]
    y = x @ np.array([0.5, -0.3, 0.2])
    if task == "binary":
        y = np.where(rng.random(4000) < 1 / (1 + np.exp(-3 * y)), 1.0, -1.0)
    data = Data.of_records("made", task, x, y, 1.0, 1.0, fingerprint=f"point noise {task}")
    loss = Logistic() if task == "binary" else Squared()
    return Problem(data, loss, make_ball(5.0, 3), 0.01)


@pytest.mark.parametrize(
    ("mechanism", "task", "budget"),
    [
        (OutputPerturbation("gamma"), "binary", Budget(1.0, 0.0)),
        (OutputPerturbation("gaussian"), "binary", Budget(1.0, 1e-6)),
        (ObjectivePerturbation("gamma"), "binary", Budget(1.0, 0.0)),
        (ObjectivePerturbation("gaussian"), "binary", Budget(1.0, 1e-6)),
        (ApproximateMinimaPerturbation("gamma"), "binary", Budget(1.0, 0.0)),
        (SufficientStatistics("gaussian"), "regression", Budget(1.0, 1e-6)),
    ],
)
def test_points_spread_as_their_noise_says(mechanism, task, budget):
    problem = make_problem(task)
    spec = problem.spec()
    plan = mechanism.plan(spec, budget)
    gate = Gate(
        [np.random.SeedSequence(seed) for seed in range(TRIALS)],
        plan=(plan.events, budget.relation),
    )
    theta = mechanism.release(CentralView(problem), plan, gate).theta
    middle = theta.mean(axis=0)
    noise = mechanism.point_noise(spec, plan, middle)
    x, z = problem.data.x, problem.data.x @ middle
    bend = (x * problem.loss.curvature(z, problem.data.y)[:, None]).T @ x
    inverse = np.linalg.inv(bend + noise.strength * np.eye(3))
    expected = np.zeros((3, 3))
    for matrix, parts in ((inverse, noise.on_gradient), (np.eye(3), noise.on_point)):
        for law, scale in parts:
            expected += matrix @ matrix * noise_moment(3, scale, law == "gamma_norm") / 3
    spread = np.cov(theta.T)
    assert np.diag(spread) == pytest.approx(np.diag(expected), rel=0.35)


def test_descents_say_nothing_of_their_noise():
    assert NoisyGd().point_noise is None
