"""The metric of each task, against predictions made by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import sparse

from dperm_cli.core import registry
from dperm_cli.runner.cells import metrics
from tests.conftest import small_problem

TASKS = [("logistic", "accuracy"), ("squared", "r2"), ("multinomial", "accuracy")]
TASKS += [("l1_median", "mean_distance"), ("l2_median", "mean_distance")]


def by_hand(problem, x, y, theta):
    if problem.data.task == "location":
        return np.mean([np.sqrt(np.sum((row - theta) ** 2)) for row in x])
    if problem.data.task == "regression":
        return 1 - np.sum((y - x @ theta) ** 2) / np.sum((y - np.mean(y)) ** 2)
    if problem.data.task == "binary":
        return np.mean([(row @ theta >= 0) == (label > 0) for row, label in zip(x, y, strict=True)])
    w = np.array([theta[k :: problem.data.classes] for k in range(problem.data.classes)])
    return np.mean(
        [max(range(3), key=lambda k: w[k] @ row) == t for row, t in zip(x, y, strict=True)]
    )


@pytest.mark.parametrize(("loss", "name"), TASKS)
@pytest.mark.parametrize("form", ["dense", "csr"])
def test_every_task_has_its_metric(loss, name, form, monkeypatch):
    monkeypatch.setattr(metrics, "_BLOCK", 20)  # several blocks of rows
    problem = small_problem(loss)
    x, y = problem.data.x, problem.data.y
    rows = sparse.csr_array(x) if form == "csr" else x
    data = dataclasses.replace(problem.data, x=rows, x_test=rows[:7], y_test=y[:7])
    theta = np.random.default_rng(1).standard_normal(problem.p)
    found = metrics.score(dataclasses.replace(problem, data=data), theta)
    assert found["metric"] == name
    assert found["train_metric"] == pytest.approx(by_hand(problem, x, y, theta))
    assert found["test_metric"] == pytest.approx(by_hand(problem, x[:7], y[:7], theta))
    assert metrics.score(problem, theta)["test_metric"] is None


def test_every_task_of_the_folder_is_known():
    tasks = {task for name in registry.names("loss") for task in registry.load("loss", name).tasks}
    assert tasks <= set(metrics.METRICS)
