"""Small data sets for every loss of the folder."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from dperm_cli.core import registry
from dperm_cli.problem.data import Bounds, Data

NAMES = registry.names("loss")
CLASSES = 3


def loss(name, **fields):
    return registry.load("loss", name)(**fields)


def labels(task, count, rng, target=1.0):
    if task == "binary":
        return np.sign(rng.standard_normal(count))
    if task == "multiclass":
        return rng.integers(0, CLASSES, count).astype(float)
    return np.zeros(count) if task == "location" else rng.uniform(-target, target, count)


def data(x, y, task, row=1.0, target=1.0, classes=CLASSES):
    return Data.of_records(
        "test", task, x, np.asarray(y, dtype=float), row, target, "none", classes=classes
    )


def random_data(name, n=40, columns=4, seed=0, form="dense"):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, columns)) * (rng.random((n, columns)) < 0.7)
    x /= np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True))
    task = loss(name).tasks[-1]
    y = labels(task, n, rng)
    return data(sparse.csr_array(x) if form == "csr" else x, y, task)


def bounds(row=1.0, target=1.0, radius=1.0, columns=3, classes=CLASSES):
    return Bounds(row, target, radius, columns, classes)
