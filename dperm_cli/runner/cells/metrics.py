"""Measure how well the released point predicts, on the training and the held-out records."""

from __future__ import annotations

from typing import Any

import numpy as np

from dperm_cli.problem.data import Matrix
from dperm_cli.problem.problem import Problem
from dperm_cli.problem.row_products import multiply_rows

_BLOCK = 1 << 20  # entries of the rows made dense at once


# What the constant predictor of a task says, learnt from the training labels alone.
BASELINES = {"binary": "majority", "multiclass": "majority", "regression": "mean"}
BASELINES["location"] = "mean"


def score(problem: Problem, theta: np.ndarray) -> dict[str, Any]:
    """``train_metric``, ``test_metric`` (None without a test set) and the metric's name.

    ``accuracy`` for labels and classes, ``r2`` for targets, ``mean_distance`` for locations;
    ``residual_norm`` |X theta - y|_2 for labels that are fitted by least squares.
    """
    data, (name, metric) = problem.data, _metric_of(problem)
    row: dict[str, Any] = {"metric": name, "test_metric": None}
    row["train_metric"] = metric(data.x, data.y, theta)
    if data.x_test is not None and data.y_test is not None and len(data.y_test):
        row["test_metric"] = metric(data.x_test, data.y_test, theta)
    return row


def score_references(problem: Problem, optimum: np.ndarray) -> dict[str, Any]:
    """What a metric is judged by: the metric of the optimum, of the data-free point, and of the
    baseline, which says the majority's label or the mean of the training records to everybody.

    They are facts about the records, computed without noise.

    Args:
        problem: The problem without noise.
        optimum: Its non-private minimiser.

    Returns:
        ``baseline``, its name, ``baseline_metric``, ``optimum_metric`` and ``floor_metric``: on the
        held-out records, or on the training records where none are held out.
    """
    data, (name, metric) = problem.data, _metric_of(problem)
    x, y = data.x, data.y
    if data.x_test is not None and data.y_test is not None and len(data.y_test):
        x, y = data.x_test, data.y_test
    # a constant predictor is linear in rows of one coordinate, which is 1
    ones, baseline = np.ones((len(y), 1)), BASELINES[data.task]
    if name == "residual_norm":
        constant, baseline = np.array([data.y.mean()]), "mean"
    elif data.task == "location":
        ones, constant = x, np.asarray(data.x.mean(axis=0)).ravel()
    elif data.task == "multiclass":
        constant = np.bincount(data.y.astype(int), minlength=data.classes).astype(float)
    else:
        constant = np.array([data.y.mean()])
    return {
        "baseline": baseline,
        "baseline_metric": metric(ones, y, constant),
        "optimum_metric": metric(x, y, optimum),
        "floor_metric": metric(x, y, problem.constraint.centre()),
    }


def _metric_of(problem: Problem) -> tuple[str, Any]:
    """The metric of a problem, and the name of its column."""
    if problem.data.task in problem.loss.extra_tasks:
        return "residual_norm", residual_norm
    return METRICS[problem.data.task]


def accuracy(x: Matrix, y: np.ndarray, theta: np.ndarray) -> float:
    """Share of records whose sign is predicted; a margin of zero counts as +1."""
    is_right = (multiply_rows(x, theta) >= 0.0) == (y > 0.0)
    return int(np.count_nonzero(is_right)) / len(y)


def class_accuracy(x: Matrix, y: np.ndarray, theta: np.ndarray) -> float:
    """Share of records whose label has the largest score x W, the first of equal ones counting.

    ``theta`` is W [columns, classes], row after row.
    """
    scores = multiply_rows(x, theta.reshape(x.shape[1], -1))
    return float(np.mean(np.argmax(scores, axis=1) == y))


def residual_norm(x: Matrix, y: np.ndarray, theta: np.ndarray) -> float:
    """|X theta - y|_2; smaller is better."""
    return float(np.linalg.norm(multiply_rows(x, theta) - y))


def r2(x: Matrix, y: np.ndarray, theta: np.ndarray) -> float | None:
    """1 - residual over total sum of squares; None when the targets do not vary."""
    total = float(np.sum((y - y.mean()) ** 2))
    residual = float(np.sum((y - multiply_rows(x, theta)) ** 2))
    return 1.0 - residual / total if total > 0 else None


def mean_distance(x: Matrix, y: np.ndarray, theta: np.ndarray) -> float:
    """Mean Euclidean distance of the records to theta, whatever the loss; smaller is better."""
    total, step = 0.0, max(1, _BLOCK // x.shape[1])
    for start in range(0, x.shape[0], step):
        rows = x[start : start + step]
        dense = rows if isinstance(rows, np.ndarray) else rows.toarray()
        total += float(np.sum(np.linalg.norm(dense - theta, axis=1)))
    return total / x.shape[0]


# The metric of a task and the name of its column.
METRICS = {
    "binary": ("accuracy", accuracy),
    "regression": ("r2", r2),
    "multiclass": ("accuracy", class_accuracy),
    "location": ("mean_distance", mean_distance),
}
