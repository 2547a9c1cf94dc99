"""No private mechanism is near the best setting in hindsight everywhere (noisy_gd.md)."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

from dperm_cli.core import registry
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.mechanisms.gradient.noisy_gd import NoisyGd
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem
from dperm_cli.views.central import CentralView

PAGE = Path(__file__).parents[2] / "docs" / "proofs" / "noisy_gd.md"
CELLS = [(0.1, 1e-9), (1.0, 1e-6), (10.0, 1e-6)]
SENSITIVITIES = {"replace_one": 2.0, "add_remove": 1.0}
RECORDS, TRIALS = 2000, 4000


def least_ratio(epsilon, delta, k, relation):
    """The bound of the proposition for one k."""
    moved = delta * math.expm1(k * epsilon) / math.expm1(epsilon)
    return (1.0 - moved) * (k * calibrate.mu(epsilon, delta) / SENSITIVITIES[relation]) ** 2


def best_k(epsilon, delta):
    most = int(math.log1p(math.expm1(epsilon) / delta) / epsilon)
    return max(range(1, most + 1), key=lambda k: least_ratio(epsilon, delta, k, "add_remove"))


@pytest.mark.parametrize(("epsilon", "delta"), CELLS)
def test_the_page_has_the_numbers(epsilon, delta):
    name = re.escape(f"{epsilon:g}, {delta:.0e}".replace("e-0", "e-"))
    (line,) = re.findall(rf"\| {name} \|(.+)\|", PAGE.read_text())
    k, replaced, added = (float(one) for one in line.split("|"))
    assert k == best_k(epsilon, delta)
    assert replaced == round(least_ratio(epsilon, delta, k, "replace_one"), 2)
    assert added == round(least_ratio(epsilon, delta, k, "add_remove"), 2)
    assert replaced > 1.5


@pytest.mark.parametrize("relation", sorted(SENSITIVITIES))
@pytest.mark.parametrize(("epsilon", "delta"), CELLS)
def test_one_step_of_descent_has_the_risk_of_the_proof(epsilon, delta, relation):
    """On the data set with k records to learn from, against the point that stays at 0."""
    k = best_k(epsilon, delta)
    y = np.where(np.arange(RECORDS) < k, 1.0, 0.0)
    data = Data.of_records(
        "steps", "regression", np.ones((RECORDS, 1)), y, 1.0, 1.0, fingerprint=""
    )
    ball = registry.load("constraint", "l2_ball")(1.0, 1)
    problem = Problem(data, registry.load("loss", "linear")(), ball, ridge=1.0)
    mechanism = NoisyGd(steps=1, step_size=1.0 / RECORDS, momentum=0.0, averaging="last")
    plan = mechanism.plan(problem.spec(), Budget(epsilon, delta, relation))
    noise = SENSITIVITIES[relation] / calibrate.mu(epsilon, delta)
    assert plan.noise_scale == pytest.approx(noise)
    gate = Gate([seed_sequence(0, "steps", trial) for trial in range(TRIALS)])
    theta = mechanism.release(CentralView(problem), plan, gate).theta
    optimum = problem.objective(np.array([[k / RECORDS]]))[0]
    excess = problem.objective(theta) - optimum
    stays = float(problem.objective(np.zeros((1, 1)))[0] - optimum)
    assert stays == pytest.approx(k**2 / (2.0 * RECORDS))
    error = np.std(excess) / math.sqrt(TRIALS)
    assert np.mean(excess) <= noise**2 / (2.0 * RECORDS) + 4.0 * error
    assert stays / np.mean(excess) >= 0.9 * (k * calibrate.mu(epsilon, delta)
                                             / SENSITIVITIES[relation]) ** 2  # fmt: skip
