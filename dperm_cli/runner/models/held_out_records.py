"""Held-out records as metrics read them: predictions, scores and chances, made one by one.

What a metric counts of a record may follow from that record and from the released point alone. A
library's product of matrices may round a row differently beside other rows. So scores are added up
column by column, and probabilities are asked for one record at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from dperm_cli.privacy.metrics.base import HeldOut
from dperm_cli.problem.data import Data

Chances = Callable[[np.ndarray], np.ndarray]


def make_held_out(
    data: Data, theta: np.ndarray, loss: Any, places: Sequence[int] = (), bent: bool = False
) -> HeldOut:
    """What metrics need of the held-out records of a table.

    Args:
        data: with held-out rows and their labels or targets.
        theta: the released point [p], or [p * classes].
        loss: of the model.
        places: the coordinates of the column that tells groups apart; records with none of them
            are of one more group.
        bent: whether rows and the curvature of the loss are needed.
    """
    chances = loss.chances
    rows: Any = data.x_test
    x = np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=float)
    y = np.asarray(data.y_test, dtype=float)
    groups = find_groups(x, places) if places else None
    if data.task == "multiclass":
        scores = add_columns(x, theta.reshape(-1, data.classes))
        labels, predicted = y.astype(np.int64), np.argmax(scores, axis=1)
        return HeldOut(labels, predicted, None, _own_chances(chances, scores, labels), groups)
    scores = add_columns(x, theta[:, None])[:, 0]
    if data.task == "regression":
        bound = data.target_bound
        made = HeldOut(
            np.clip(y / bound, -1.0, 1.0), np.clip(scores / bound, -1.0, 1.0), groups=groups
        )
        return add_curvature(made, x / data.row_bound, scores, y, loss) if bent else made
    labels, reach = (y > 0.0).astype(np.int64), find_reach(data, theta)
    scaled = np.clip(scores / reach, -1.0, 1.0) if reach > 0.0 else np.zeros_like(scores)
    predicted = (scores >= 0.0).astype(np.int64)
    made = HeldOut(labels, predicted, scaled, _own_chances(chances, scores, labels), groups)
    return add_curvature(made, x / data.row_bound, scores, y, loss) if bent else made


def add_curvature(
    held: HeldOut, rows: np.ndarray, scores: np.ndarray, y: np.ndarray, loss: Any
) -> HeldOut:
    """The same records with their rows, and the curvature of the loss at each over the largest."""
    bends = [float(loss.curvature(scores[k : k + 1], y[k : k + 1])[0]) for k in range(len(y))]
    shares = np.clip(np.array(bends) / loss.smoothness, 0.0, 1.0)
    return replace(held, rows=rows, bends=shares)


def find_reach(data: Data, theta: np.ndarray) -> float:
    """The largest score that a row of the declared bound can have."""
    return data.row_bound * math.sqrt(math.fsum(value * value for value in theta.tolist()))


def add_columns(x: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """x theta [n, k] in one order of operations for each row, for x [n, p] and theta [p, k]."""
    out = np.zeros((x.shape[0], theta.shape[1]))
    for column in range(x.shape[1]):
        out += x[:, column, None] * theta[column]
    return out


def find_groups(x: np.ndarray, places: Sequence[int]) -> np.ndarray:
    """The number of the one coordinate among ``places`` that is not 0 [n], else their number."""
    held = x[:, list(places)] != 0.0
    return np.where(held.any(axis=1), held.argmax(axis=1), len(places))


def _own_chances(
    chances: Chances | None, scores: np.ndarray, labels: np.ndarray
) -> np.ndarray | None:
    """The model's probability of each record's own label [n]."""
    if chances is None:
        return None
    found = np.empty(len(labels))
    for k, label in enumerate(labels.tolist()):
        told = chances(scores[k : k + 1])[0]
        if scores.ndim > 1:
            found[k] = told[label]
        else:
            found[k] = told if label else 1.0 - told
    return found
