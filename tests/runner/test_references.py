"""What a metric is judged by, against predictions made by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dperm_cli.runner.cells import metrics
from tests.conftest import small_problem

LOSSES = ("logistic", "squared", "multinomial", "l1_median")


def predict_by_hand(problem, y):
    """The metric on labels y of whoever says the training records' majority or mean."""
    train = problem.data.y
    if problem.data.task == "regression":
        return 1 - np.sum((y - train.mean()) ** 2) / np.sum((y - y.mean()) ** 2)
    values, counts = np.unique(train, return_counts=True)
    return np.mean(y == values[np.argmax(counts)])


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("split", [False, True])
def test_baseline_optimum_and_floor_are_of_the_records_that_are_judged(loss, split):
    problem = small_problem(loss)
    x, y = problem.data.x, problem.data.y
    if split:
        data = dataclasses.replace(problem.data, x_test=x[:7], y_test=y[:7])
        problem = dataclasses.replace(problem, data=data)
    optimum = np.random.default_rng(1).standard_normal(problem.p)
    found = metrics.score_references(problem, optimum)
    at = "test_metric" if split else "train_metric"
    assert found["optimum_metric"] == metrics.score(problem, optimum)[at]
    assert found["floor_metric"] == metrics.score(problem, problem.constraint.centre())[at]
    if loss == "l1_median":
        centre = x.mean(axis=0)
        expected = np.mean(np.linalg.norm((x[:7] if split else x) - centre, axis=1))
        assert found["baseline"] == "mean"
    else:
        expected = predict_by_hand(problem, y[:7] if split else y)
        assert found["baseline"] == ("mean" if loss == "squared" else "majority")
    assert found["baseline_metric"] == pytest.approx(expected)


def test_the_majority_is_that_of_the_training_records():
    problem = small_problem("logistic")
    y = np.where(np.arange(problem.data.n) < 3, 1.0, -1.0)
    data = dataclasses.replace(problem.data, y=y, x_test=problem.data.x[:4], y_test=np.ones(4))
    found = metrics.score_references(dataclasses.replace(problem, data=data), np.zeros(problem.p))
    assert found["baseline_metric"] == 0.0
