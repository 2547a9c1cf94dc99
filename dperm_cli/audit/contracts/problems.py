"""Small problems on which contracts are tried."""

from __future__ import annotations

from typing import Any

import numpy as np

from dperm_cli.audit import declared_grid
from dperm_cli.core import registry
from dperm_cli.core.fields import keys_of
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem

CLASSES = 3
TASKS = ("binary", "regression", "multiclass", "location")


def small_problem(
    loss: Any = declared_grid.LOSSES[0],
    constraint: str = declared_grid.SETS[0],
    n: int = 40,
    p: int = 3,
    radius: float = 1.5,
    ridge: float = 0.0,
    seed: int = 0,
) -> Problem:
    """A random problem with rows in the unit ball and some signal along the first axis.

    Args:
        loss: a loss, or the name of one.
        constraint: the name of a set.
        n, p: records and columns.
        radius: of the set.
        ridge: of the problem.
        seed: of the records.
    """
    form = registry.load("loss", loss)() if isinstance(loss, str) else loss
    name = loss if isinstance(loss, str) else repr(loss)
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, p))
    x /= np.linalg.norm(x, axis=1, keepdims=True) * rng.uniform(1.0, 3.0, (n, 1))
    score = np.clip(2.0 * x[:, 0] + 0.3 * rng.standard_normal(n), -1.0, 1.0)
    task = next(t for t in ("binary", "regression", *form.tasks) if t in form.tasks)
    data = Data.of_records(
        name="small",
        task=task,
        x=x,
        y=label_scores(task, score),
        row_bound=1.0,
        target_bound=1.0,
        fingerprint=f"small-{name}-{n}-{p}-{seed}",
        classes=CLASSES if task == "multiclass" else 2,
    )
    cls = registry.load("constraint", constraint)
    field = keys_of(cls)["radius"].name
    return Problem(data, form, cls(**{field: radius}, p=form.dimension(data.facts())), ridge)


def label_scores(task: str, score: np.ndarray) -> np.ndarray:
    """Labels of a task that follow from scores in [-1, 1], [n]."""
    return {
        "binary": np.where(score < 0.0, -1.0, 1.0),
        "regression": score,
        "multiclass": np.digitize(score, [-0.3, 0.3]).astype(float),
        "location": np.zeros(len(score)),
    }[task]
