"""A trial's bytes follow from its own seed: not from how many other trials there are."""

from __future__ import annotations

import numpy as np
import pytest

from dperm_cli.core import registry
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.views.choose import open_view
from tests.conftest import small_problem

KEYS = {"noisy_sgd": {"steps": 50}}
SETS = {"frank_wolfe": "l1_ball"}
SLOW = ("local_mirror_descent", "high_probability")
# their minimisers are sought for all trials together, each to the distance that is paid for
TOGETHER = ("approximate_minima_perturbation", "objective_perturbation", "huberized")
NAMES = [
    pytest.param(name, marks=pytest.mark.slow if name in SLOW else ())
    for name in registry.names("mechanism")
    if registry.load("mechanism", name).space != "kernel"
    and registry.load("mechanism", name)().features is None
]


def release(mechanism, problem, trials: int) -> np.ndarray:
    trust = "local" if mechanism.guarantees[0] == "local" else "central"
    delta = 1e-6 if mechanism.guarantees[0] == "approx" else 0.0
    plan = mechanism.plan(problem.spec(), Budget(1.0, delta, trust=trust))
    seeds = [seed_sequence(0, "trials", trial) for trial in range(trials)]
    gate = Gate(seeds, plan=(plan.events, "replace_one"))
    return np.asarray(mechanism.release(open_view(mechanism, problem), plan, gate).theta)


@pytest.mark.parametrize("name", NAMES)
def test_a_trial_does_not_depend_on_the_number_of_trials(name):
    mechanism = registry.load("mechanism", name)(**KEYS.get(name, {}))
    loss = "squared" if "quadratic" in mechanism.requires else "logistic"
    constraint = SETS.get(name, "l2_ball")
    problem = small_problem(loss=loss, constraint=constraint, n=30, p=5, ridge=0.1)
    few, many = (release(mechanism, problem, trials) for trials in (2, 5))
    if name in TOGETHER:
        assert few == pytest.approx(many[:2], abs=1e-7)
    else:
        assert few.tobytes() == many[:2].tobytes()
