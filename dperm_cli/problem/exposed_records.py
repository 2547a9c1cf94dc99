"""Count the training records that a released point gives away [BST14, Sec. 1, Motivation]."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Loss
from dperm_cli.problem.row_products import multiply_rows

CLOSE = 1e-6  # of the row bound, or of a margin


def count_exposed_records(loss: Loss, data: Data, theta: np.ndarray) -> int | None:
    """How many training records lie on a kink of the loss at theta [p]; None without a kink.

    For locations: the records that theta equals. For piecewise linear losses of the margin: those
    whose margin is at the kink, as of the support vectors that fix an unregularised support vector
    machine: whoever holds theta and such a record sees that it was there.
    """
    if data.task == "location":
        x = data.x.toarray() if sparse.issparse(data.x) else data.x
        return int(np.sum(np.linalg.norm(x - theta, axis=1) <= CLOSE * data.row_bound))
    if loss.pieces is None:
        return None
    sign, offset, up, down = loss.pieces(data.y)
    if up == -down:
        return None  # a line has no kink
    return int(np.sum(np.abs(sign * multiply_rows(data.x, theta) + offset) <= CLOSE))
