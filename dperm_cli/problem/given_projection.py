"""The matrix of records that were projected before they were read [KJ16, compressed setting]."""

from __future__ import annotations

from typing import Any

import numpy as np

from dperm_cli.problem.random_projection import Stored, blocks


class Given(Stored):
    """Phi [m, d] of full row rank, for rows of R^d that stand for projected ones, Phi^T x~.

    <Phi^T x~, theta> = <x~, Phi theta>: the loss of such a row is that of x~ there. ``apply``
    gives x~ itself back, by Phi's right inverse.
    """

    def __init__(self, phi: np.ndarray) -> None:
        super().__init__(phi.T)
        self._inverse = np.linalg.pinv(phi)

    def apply(self, x: Any) -> np.ndarray:
        out = np.empty((x.shape[0], self.m))
        for part in blocks(x.shape[0], self.m):
            out[part] = x[part] @ self._inverse
        return out
