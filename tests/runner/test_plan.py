"""Forecasts: attack risk against the published table, curves that rise, refusals that say why."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

import dperm_cli
from dperm_cli.core.errors import Unsupported
from dperm_cli.privacy.accounting.attack_risk import find_attack_risk
from dperm_cli.privacy.accounting.calibrate import mu
from dperm_cli.privacy.budget import Guarantee
from dperm_cli.privacy.events import Gaussian, Laplace
from dperm_cli.runner.forecasts import risk_curves
from dperm_cli.runner.forecasts.forecast import make_forecast
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
    ones, zeros = np.ones(1), np.zeros(1)
    risks = np.array([[0.01, 1.0]])
    curves = RiskCurves(np.array([0.1, 1.0]), risks, ones, zeros, zeros, ones)
    assert curves.at(0.01) == pytest.approx([1e-4])
    assert curves.at(10.0) == pytest.approx([1.0])


def test_sparse_public_records_have_the_curves_of_dense_ones(monkeypatch):
    question = parse_request(["like=breast_cancer", "epsilon=1"]).question
    data, spec = question.like, question.spec(100, 1.0)
    monkeypatch.setattr(risk_curves, "STEPS", 20)
    monkeypatch.setattr(risk_curves, "OPTIMUM_STEPS", 50)
    rows = data.with_rows(sparse.csr_array(data.x))
    found, expected = (risk_curves.simulate_public(spec, one) for one in (rows, data))
    assert np.array_equal(found.risks, expected.risks)
    monkeypatch.setattr(risk_curves, "MOST_NUMBERS", 10)
    with pytest.raises(Unsupported, match="too many to simulate"):
        risk_curves.simulate_public(spec, rows)


@pytest.mark.parametrize("radius", [1.0, 10.0])
def test_risk_of_the_simulation_rises_with_the_noise(radius):
    words = ["task=binary", "p=3", "n=100", "epsilon=1", f"constraint.radius={radius}"]
    curves = parse_request(words).question.simulate().curves
    assert np.all(np.diff(curves.risks, axis=1) >= 0.0)
    assert np.all(curves.risks[:, 0] < curves.floors)
    assert len(np.unique(curves.problems)) == 9


def ask(*words: str):
    return make_forecast(parse_request([*words]).question, attacks=False).rows


def test_runs_on_public_records_say_what_a_run_measures(tmp_path):
    """A table of one's own that is like the public one has the risk that is foreseen."""
    keys = ("dataset=diabetes", "mechanism=sufficient_statistics", "epsilon=1", "trials=40")
    study = dperm_cli.run(*keys, f"out={tmp_path}/study", progress=False)
    (measured,) = study.frame()["excess_risk_per_record_median"]
    first, *others = ask("like=diabetes", "epsilon=1")
    assert first["mechanism"] == "sufficient_statistics"
    assert first["source"] == "run on like"
    assert first["q05"] < first["excess_risk_per_record"] < first["q95"]
    assert 1 / 1.4 < first["excess_risk_per_record"] / measured < 1.4
    assert {row["source"] for row in others} == {"run on like", "simulated"}


@pytest.mark.slow
def test_other_numbers_of_records_run_on_parts_and_on_copies():
    rows = {n: ask("like=diabetes", "epsilon=1", f"n={n}")[0] for n in (100, 354, 1000)}
    risks = [row["excess_risk_per_record"] for row in rows.values()]
    assert {row["source"] for row in rows.values()} == {"run on like"}
    assert risks == sorted(risks, reverse=True)
    assert risks[0] > 1.5 * risks[2]


@pytest.mark.slow
def test_a_target_is_found_on_runs():
    (first, *_) = ask("like=diabetes", "target=0.01")
    assert first["source"] == "run on like"
    assert 1 / 1.4 < first["excess_risk_per_record"] / 0.01 < 1.4


def test_what_is_too_large_to_run_is_simulated():
    assert {row["source"] for row in ask("like=diabetes", "epsilon=1", "n=3000000")} == {
        "simulated"
    }


@pytest.mark.parametrize(("words", "radius"), [
    *((["task=binary"], radius) for radius in (1e-6, 1.0, 10.0, 1e6)),
    *((["task=regression", "lasso=0.01"], radius) for radius in (1e-6, 1.0, 10.0, 1e6)),
    (["task=multiclass", "ridge=0.01"], 1.0),
    *(pytest.param(["task=multiclass", "ridge=0.01"], radius, marks=pytest.mark.slow)
      for radius in (1e-6, 10.0, 1e6)),
])  # fmt: skip
def test_a_descent_that_ends_when_it_no_longer_moves_gives_the_same_curves(
    words, radius, monkeypatch
):
    """Whatever the scale of the set is."""
    keys = ["p=3", "n=200", "epsilon=1", f"constraint.radius={radius}"]
    monkeypatch.setattr(risk_curves, "OPTIMUM_STEPS", 400)
    question = parse_request([*words, *keys]).question
    found = question.simulate().curves
    monkeypatch.setattr(risk_curves, "STILL", -1.0)  # every step is made
    full = question.simulate().curves
    np.testing.assert_allclose(found.risks, full.risks, rtol=1e-4, atol=1e-9 * np.max(full.risks))
    np.testing.assert_allclose(found.optima, full.optima, rtol=1e-10)
