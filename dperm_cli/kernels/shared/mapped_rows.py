"""Feature-mapped rows; where they are many, stored in float32 and multiplied in float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from dperm_cli.kernels.shared.feature_maps import Features
from dperm_cli.loops import dual_ascent
from dperm_cli.problem.data import Matrix

MOST_DENSE_BYTES = 1 << 29  # bytes up to which mapped rows are plain float64
MOST = 1 << 31  # bytes beyond which mapped rows are refused
_BLOCK = 2048


class FeatureRows:
    """Rows [n, dim] in float32 that multiply as a matrix: ``x @ theta`` and ``x.T @ slopes``.

    Each product is computed in float64, column by column, so that it does not depend on the other
    columns. The last products are remembered, since an evaluation needs them several times.
    """

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self._known: dict[bytes, np.ndarray] = {}

    @property
    def shape(self) -> tuple[int, int]:
        return self.array.shape  # type: ignore[return-value]

    @property
    def T(self) -> Transposed:
        return Transposed(self.array)

    def remember(self, theta: np.ndarray) -> None:
        """Compute and remember the products with every row of theta [k, dim]."""
        found = dual_ascent.margins(self.array, np.ascontiguousarray(theta, dtype=float))
        self._known = {row.tobytes(): z for row, z in zip(theta, found, strict=True)}

    def __matmul__(self, right: np.ndarray) -> np.ndarray:
        columns = np.ascontiguousarray(np.asarray(right, dtype=float).reshape(self.shape[1], -1).T)
        key = columns.tobytes()
        if key in self._known:
            found = self._known[key][None, :]
        else:
            found = dual_ascent.margins(self.array, columns)
        return found[0] if np.ndim(right) == 1 else np.ascontiguousarray(found.T)

    def __getitem__(self, rows: Any) -> np.ndarray:
        return np.asarray(self.array[rows], dtype=float)


class Transposed:
    """The transpose of ``FeatureRows``, to be multiplied."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array
        self.shape = array.shape[::-1]

    def __matmul__(self, right: np.ndarray) -> np.ndarray:
        right = np.asarray(right, dtype=float)
        total = np.zeros((self.shape[0], *right.shape[1:]))
        for start in range(0, self.shape[1], _BLOCK):
            part = slice(start, start + _BLOCK)
            total += np.asarray(self._array[part], dtype=float).T @ right[part]
        return total


def map_rows(features: Features, x: Matrix) -> Any:
    """psi of every row: plain float64 where that is small, else ``FeatureRows``."""
    if uses_float32(x.shape[0], features.dim):
        return FeatureRows(features.apply(x, np.float32))
    return features.apply(x)


def uses_float32(n: int, dim: int) -> bool:
    """Whether ``map_rows`` keeps float32 of n rows.

    Only mechanisms that ask for the kernel's minimiser get such rows; n is public under the one
    relation that they are proved for.
    """
    return 8 * n * dim > MOST_DENSE_BYTES
