"""Population risk: against integrals by other means, its error, and when there is none."""

from __future__ import annotations

import numpy as np
import pytest

from dperm_cli.core import registry
from dperm_cli.datasets.generated.synthetic_logistic import SyntheticLogistic
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


@pytest.mark.parametrize("rows", ["unit", "clip"])
@pytest.mark.parametrize(
    ("name", "loss", "keys"),
    [
        ("synthetic_logistic", "logistic", {"signal": 2.0}),
        ("sparse_regression", "squared", {"nonzeros": 2}),
        ("sparse_regression", "absolute", {"nonzeros": 2}),
        ("sparse_regression", "absolute", {"nonzeros": 2, "noise": 0.0}),
    ],
)
def test_rows_on_a_sphere_and_in_a_ball_by_the_rows_themselves(name, loss, keys, rows):
    """The mean loss of 200,000 fresh rows at several points, without the noise of labels."""
    found, data = dataset(name, p=3, n=10, n_test=0, rows=rows, row_bound=0.8, **keys)
    x, best = found.fresh(200_000, data.minimiser), data.minimiser
    for theta in (np.zeros(3), -best, best + 0.05, np.array([2.5, -1.0, 2.0])):
        z, star = x @ theta, x @ best
        if loss == "logistic":
            likely = 1.0 / (1.0 + np.exp(-star))
            terms = np.logaddexp(0.0, z) - np.logaddexp(0.0, star) - likely * (z - star)
        else:
            off, a = np.abs(z - star), found.noise
            beyond = np.where(off < a, off * off / (2.0 * a or 1.0), off - a / 2.0)
            terms = 0.5 * off * off if loss == "squared" else beyond
        risk, error = at(found, data, loss, theta)
        assert error == 0.0
        spread = float(np.std(terms)) / np.sqrt(len(x))
        # an error of the formula by 2 percent would be found
        assert abs(risk - float(np.mean(terms))) < 5.0 * spread + 1e-4 * risk
        assert 5.0 * spread < 0.02 * risk


def test_one_column():
    found, data = dataset("sparse_regression", p=1, nonzeros=1, n=10, n_test=0, noise=0.25)
    best = data.minimiser
    assert at(found, data, "absolute", best + 0.1)[0] == pytest.approx(0.1**2 / (2.0 * 0.25))
    assert at(found, data, "absolute", best - 1.0)[0] == pytest.approx(1.0 - 0.25 / 2.0)
    assert at(found, data, "squared", best - 1.0)[0] == pytest.approx(0.5)


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


class RowsOfAnyLaw(SyntheticLogistic):
    """Labels of a logistic model, on rows of which only its author knows the law."""

    row_sphere = None


def test_is_none_where_the_rows_law_is_not_known():
    found, data = dataset("synthetic_logistic", n=10, n_test=0)
    logistic = registry.load("loss", "logistic")()
    assert excess_risk(found, data, logistic, np.zeros(10)) is not None
    assert excess_risk(RowsOfAnyLaw(n=10, n_test=0), data, logistic, np.zeros(10)) is None


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
