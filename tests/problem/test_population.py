"""Population risk: against integrals by other means, its error, and when there is none."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate

from dperm_cli.core import registry
from dperm_cli.problem.exposed_records import count_exposed_records
from dperm_cli.problem.population import excess_risk


def dataset(name, **keys):
    found = registry.load("dataset", name)(**keys)
    return found, found.load()


def at(found, data, loss, theta):
    risk = excess_risk(found, data, registry.load("loss", loss)(), np.asarray(theta, dtype=float))
    assert risk is not None
    return risk


CASES = (
    ("synthetic_logistic", "logistic", {"p": 4, "signal": 3.0}),
    ("sparse_regression", "squared", {"p": 4, "nonzeros": 2}),
    ("sparse_regression", "absolute", {"p": 4, "nonzeros": 2}),
    ("median_cloud", "l1_median", {"p": 4}),
    ("median_cloud", "l2_median", {"p": 4, "shape": "box"}),
)


@pytest.mark.stat
@pytest.mark.parametrize(("name", "loss", "keys"), CASES)
def test_agrees_with_the_loss_on_records_of_its_own(name, loss, keys):
    """The plain mean over 200,000 other records, 5 standard errors: false alarms below 1e-5.

    Half the excess, or twice, would lie more than 5 errors away.
    """
    found, data = dataset(name, n=200_000, seed=1, n_test=0, **keys)
    theta = data.minimiser + 0.3 * np.array([1.0, -1.0, 0.5, 0.0])
    risk, error = at(found, data, loss, theta)
    form = registry.load("loss", loss)()
    moved = form.values(theta, data) - form.values(data.minimiser, data)
    mean, spread = float(np.mean(moved)), float(np.std(moved)) / np.sqrt(data.n)
    room = 5.0 * np.hypot(error, spread)
    assert abs(risk - mean) < room
    assert 0.5 * risk > room


def test_logistic_on_a_circle_by_quadrature():
    """p = 2: rows on the unit circle, so that the expectation is one integral over the angle."""
    found, data = dataset("synthetic_logistic", p=2, n=10, n_test=0, signal=2.0)
    best, theta = data.minimiser, np.array([0.5, -1.0])

    def lost(angle):
        row = np.array([np.cos(angle), np.sin(angle)])
        z, least = row @ theta, row @ best
        likely = 1.0 / (1.0 + np.exp(-least))
        return likely * (np.log1p(np.exp(-z)) - np.log1p(np.exp(-least))) + (1 - likely) * (
            np.log1p(np.exp(z)) - np.log1p(np.exp(least))
        )

    exact = integrate.quad(lost, 0.0, 2.0 * np.pi)[0] / (2.0 * np.pi)
    risk, error = at(found, data, "logistic", theta)
    assert abs(risk - exact) < 5.0 * error
    assert error < 0.01 * exact


def test_logistic_at_several_points_and_sets_by_the_loss_itself():
    """What the rows have in common for every theta is kept apart for each data set."""
    for signal in (2.0, 5.0):
        found, data = dataset("synthetic_logistic", p=3, n=10, n_test=0, signal=signal)
        x, best = found.fresh(1 << 17, data.minimiser), data.minimiser
        likely = 1.0 / (1.0 + np.exp(-x @ best))
        for theta in (np.zeros(3), -best, np.array([0.5, -1.0, 2.0])):
            lost = [np.logaddexp(0.0, x @ at_) - likely * (x @ at_) for at_ in (theta, best)]
            risk, error = at(found, data, "logistic", theta)
            assert risk == pytest.approx(np.mean(lost[0] - lost[1]), rel=1e-10)
            spread = np.std(lost[0] - lost[1], ddof=1) / np.sqrt(len(x))
            assert error == pytest.approx(spread, rel=1e-10)


@pytest.mark.parametrize(("name", "loss", "keys"), CASES)
def test_is_least_at_the_minimiser_and_never_negative(name, loss, keys):
    found, data = dataset(name, n=10, n_test=0, **keys)
    assert at(found, data, loss, data.minimiser)[0] == pytest.approx(0.0, abs=1e-12)
    rng = np.random.default_rng(0)
    near = [at(found, data, loss, data.minimiser + 0.01 * rng.standard_normal(4))
            for _ in range(3)]  # fmt: skip
    assert all(risk > 0.0 for risk, _ in near)
    # close to the minimiser the error falls with the risk
    assert all(error < 0.02 * risk for risk, error in near)


def test_fresh_rows_are_none_of_the_training_rows():
    found, data = dataset("synthetic_logistic", n=500, n_test=500)
    fresh = found.fresh(500, data.minimiser)
    for rows in (data.x, data.x_test):
        assert not np.isin(fresh[:, 0], rows[:, 0]).any()


def test_is_none_where_no_minimiser_is_known():
    found, data = dataset("synthetic_logistic", n=10, n_test=0)
    assert excess_risk(found, data, registry.load("loss", "hinge")(), data.minimiser) is None
    found, data = dataset("bst14_packing", n=100, signal=10)
    assert excess_risk(found, data, registry.load("loss", "linear")(), np.zeros(10)) is None


def test_records_exposed():
    _, data = dataset("median_cloud", n=9, p=1)
    median = np.median(data.x, axis=0)
    form = registry.load("loss", "l1_median")()
    assert count_exposed_records(form, data, median) == 1
    assert count_exposed_records(form, data, median + 1e-3) == 0
    _, data = dataset("synthetic_logistic", n=50, p=3, n_test=0)
    hinge = registry.load("loss", "hinge")()
    # three margins set to the kink
    theta = np.linalg.solve(data.x[:3] * data.y[:3, None], np.ones(3))
    assert count_exposed_records(hinge, data, theta) == 3
    assert count_exposed_records(hinge, data, 1.01 * theta) == 0
    assert count_exposed_records(registry.load("loss", "logistic")(), data, theta) is None
