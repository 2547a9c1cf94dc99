"""Accuracy and R^2 of a linear predictor, on the training and the held-out records."""

from __future__ import annotations

from typing import Any

import numpy as np

from dperm_cli.problem.data import Matrix
from dperm_cli.problem.problem import Problem


def score(problem: Problem, theta: np.ndarray) -> dict[str, Any]:
    """``train_metric``, ``test_metric`` (None without a test set) and the metric's name."""
    data = problem.data
    metric = accuracy if data.task == "binary" else r2
    row: dict[str, Any] = {"metric": metric.__name__, "test_metric": None}
    row["train_metric"] = metric(data.x, data.y, theta)
    if data.x_test is not None and data.y_test is not None and len(data.y_test):
        row["test_metric"] = metric(data.x_test, data.y_test, theta)
    return row


def accuracy(x: Matrix, y: np.ndarray, theta: np.ndarray) -> float:
    """Share of records whose sign is predicted; a margin of zero counts as +1."""
    predicted = np.where(np.asarray(x @ theta) >= 0.0, 1.0, -1.0)
    return float(np.mean(predicted == y))


def r2(x: Matrix, y: np.ndarray, theta: np.ndarray) -> float | None:
    """1 - residual over total sum of squares; None when the targets do not vary."""
    total = float(np.sum((y - y.mean()) ** 2))
    residual = float(np.sum((y - np.asarray(x @ theta)) ** 2))
    return 1.0 - residual / total if total > 0 else None
