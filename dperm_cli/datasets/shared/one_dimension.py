"""One-dimensional records (x, y) with x and y in {-1, 1} [BST14, App. A]."""

from __future__ import annotations

import numpy as np

from dperm_cli.datasets.shared.generated_rows import guard_memory
from dperm_cli.datasets.shared.row_pipeline import make_data
from dperm_cli.problem.data import Data


def records(name: str, groups: tuple[tuple[int, float, float], ...]) -> Data:
    """Data of groups (count, x, y), in this order."""
    with guard_memory(sum(count for count, _, _ in groups), 1):
        x = np.concatenate([np.full((count, 1), a) for count, a, _ in groups])
        y = np.concatenate([np.full(count, b) for count, _, b in groups])
    note = ", ".join(f"{count} x (x={a:+g}, y={b:+g})" for count, a, b in groups)
    return make_data(name, "regression", x, y, None, None, row_bound=1.0, preprocessing=(note,))
