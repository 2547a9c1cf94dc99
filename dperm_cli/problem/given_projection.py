"""The projection of records that the user projected before dperm read them [KJ16]."""

from __future__ import annotations

from typing import Any

import numpy as np

from dperm_cli.problem.random_projection import Stored, blocks


class GivenProjection(Stored):
    """Phi [m, d] of full row rank, for rows Phi^T x~ that represent projected rows x~ in R^m.

    Since <Phi^T x~, theta> = <x~, Phi theta>, a row has the loss that x~ has at Phi theta.
    ``apply`` recovers x~ with Phi's right inverse.
    """

    def __init__(self, phi: np.ndarray) -> None:
        super().__init__(phi.T)
        self._inverse = np.linalg.pinv(phi)

    def row_table(self) -> np.ndarray:
        """Phi's right inverse [d, m]."""
        return np.ascontiguousarray(self._inverse)

    def apply(self, x: Any) -> np.ndarray:
        out = np.empty((x.shape[0], self.m))
        for part in blocks(x.shape[0], self.m):
            out[part] = x[part] @ self._inverse
        return out
