"""Forecasts: attack risk against the published table, curves that rise, refusals that say why."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dperm_cli.privacy.accounting.attack_risk import find_attack_risk
from dperm_cli.privacy.accounting.calibrate import mu
from dperm_cli.privacy.budget import Guarantee
from dperm_cli.privacy.events import Gaussian, Laplace
from dperm_cli.runner.forecasts.risk_curves import RiskCurves
from dperm_cli.runner.verbs.plan_request import parse_request


@pytest.mark.parametrize(("epsilon", "delta", "expected"), [
    (1.0, 4.81e-6, (0.10221, 0.01925, 0.00230)),
    (1.0, 1e-6, (0.09421, 0.01832, 0.00216)),
    (3.0, 1e-6, (0.25396, 0.04661, 0.00729)),
])  # fmt: skip
def test_gaussian_noise_leaves_what_its_trade_off_function_says(epsilon, delta, expected):
    events = (Gaussian(1.0 / mu(epsilon, delta), record_norm=1.0),)
    guarantee = Guarantee("approx", epsilon, delta, "add_remove", "gaussian")
    found = find_attack_risk(events, guarantee)
    rates = found.true_positive_rates
    told = (found.advantage, rates[0.01], rates[0.001])
    assert told == pytest.approx(expected, abs=6e-6)


def test_pure_noise_leaves_no_more_than_its_epsilon():
    events = (Laplace(scale=1.0, record_norm=1.0),)
    found = find_attack_risk(events, Guarantee("pure", 1.0, 0.0, "add_remove", "laplace"))
    assert found.true_positive_rates[0.01] == pytest.approx(0.02718, abs=1e-5)
    assert found.advantage <= math.tanh(0.5) + 1e-12


def test_a_curve_is_quadratic_below_its_least_noise():
    curves = RiskCurves(np.array([0.1, 1.0]), np.array([[0.01, 1.0]]), np.ones(1), np.zeros(1))
    assert curves.at(0.01) == pytest.approx([1e-4])
    assert curves.at(10.0) == pytest.approx([1.0])


@pytest.mark.parametrize("radius", [1.0, 10.0])
def test_risk_of_the_simulation_rises_with_the_noise(radius):
    words = ["task=binary", "p=3", "n=100", "epsilon=1", f"constraint.radius={radius}"]
    curves = parse_request(words).question.simulate().curves
    assert np.all(np.diff(curves.risks, axis=1) >= 0.0)
    assert np.all(curves.risks[:, 0] < curves.floors)
    assert len(np.unique(curves.problems)) == 9
