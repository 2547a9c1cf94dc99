"""Solve linear systems with M = X^T diag(d) X + diag(b) + c w w^T, for d and b non-negative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from dperm_cli.problem.row_products import add_rows, multiply_rows
from dperm_cli.problem.split_rows import fill_rows, is_sparse, sum_parts

_DENSE_ENTRIES = 20_000_000
_BLOCK_ENTRIES = 1_000_000
_PROXIMAL = 1e-12
_JITTER = 1e-14
_REFINEMENTS = 3

Solver = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


class NewtonSystem:
    """Factors M of order p or, with fewer records than that, its Woodbury form of order n + 1."""

    def __init__(self, x: Any) -> None:
        n, p = x.shape
        if is_sparse(x) and n * p <= _DENSE_ENTRIES:
            x = fill_rows(x)
        self._x, self._n, self._p = x, n, p
        self._by_records = n < p
        if self._by_records:
            self._squares = x.multiply(x) if sparse.issparse(x) else np.square(x)

    def factor(self, d: np.ndarray, b: np.ndarray, c: float, w: np.ndarray) -> Solver:
        """A function v -> (u, X u) with M u = v; LinAlgError when M cannot be factored."""
        make = self._woodbury if self._by_records else self._direct
        if self._by_records:
            # A proximal term: without it the null space of X costs all the digits of u.
            b = b + _PROXIMAL * self._diagonal(d)
        inner = make(d, b, c, w)

        def residual(v: np.ndarray, u: np.ndarray, z: np.ndarray) -> np.ndarray:
            return v - add_rows(self._x, d * z) - b * u - c * w * (w @ u)

        return lambda v: _refine_solution(inner, residual, v)

    def _diagonal(self, d: np.ndarray) -> np.ndarray:
        """diag(X^T diag(d) X)."""
        return np.asarray(self._squares.T @ d)

    def _direct(self, d: np.ndarray, b: np.ndarray, c: float, w: np.ndarray) -> Solver:
        from scipy import linalg  # loaded by need: it takes long, and few problems come here

        matrix = self._gram(d) + c * np.outer(w, w)
        matrix[np.diag_indices(self._p)] += b
        # Equilibrated, so that one jitter fits every scale of the coordinates.
        scale = 1.0 / np.sqrt(np.maximum(np.diag(matrix), np.finfo(float).tiny))
        factor = _cholesky(matrix * scale[:, None] * scale)

        def solve(v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            u = scale * linalg.cho_solve(factor, scale * v, check_finite=False)
            return u, multiply_rows(self._x, u)

        return solve

    def _woodbury(self, d: np.ndarray, b: np.ndarray, c: float, w: np.ndarray) -> Solver:
        """With R = [sqrt(d) X; sqrt(c) w] and B = diag(b), from K = I + R B^-1 R^T.

        R u = K^-1 R B^-1 v gives the margins without the cancellation in X u, which matters where
        the weights d are huge (records that are interpolated).
        """
        from scipy import linalg

        inverse = 1.0 / np.maximum(b, np.finfo(float).tiny)
        root = np.sqrt(d)
        rows = np.vstack([_dense(self._x) * root[:, None], np.sqrt(c) * w])
        small = (rows * inverse) @ rows.T
        small[np.diag_indices(self._n + 1)] += 1.0
        scale = 1.0 / np.sqrt(np.diag(small))
        factor = _cholesky(small * scale[:, None] * scale)
        safe = np.where(root > 0, root, 1.0)

        def solve(v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            right = scale * (rows @ (inverse * v))
            image = scale * linalg.cho_solve(factor, right, check_finite=False)
            u = inverse * (v - rows.T @ image)
            return u, np.where(root > 0, image[:-1] / safe, multiply_rows(self._x, u))

        return solve

    def _gram(self, d: np.ndarray) -> np.ndarray:
        """X^T diag(d) X, a block of rows at a time."""
        return sum_parts(self._x, _add_gram, d, entries=self._p**2)


def _add_gram(x: Any, d: np.ndarray) -> np.ndarray:
    n, p = x.shape
    step = max(1, _BLOCK_ENTRIES // p)
    total = np.zeros((p, p))
    for start in range(0, n, step):
        part = slice(start, start + step)
        rows = _dense(x[part]) * np.sqrt(d[part])[:, None]
        total += rows.T @ rows
    return total


def _refine_solution(
    inner: Solver, residual: Callable, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Iterative refinement, kept while the residual falls."""
    u, z = inner(v)
    error = residual(v, u, z)
    for _ in range(_REFINEMENTS):
        du, dz = inner(error)
        remaining = residual(v, u + du, z + dz)
        if not np.linalg.norm(remaining) < 0.5 * np.linalg.norm(error):
            break
        u, z, error = u + du, z + dz, remaining
    return u, z


def _cholesky(matrix: np.ndarray) -> tuple[np.ndarray, bool]:
    """The factor of a matrix with unit diagonal; as little as possible is added to the diagonal."""
    from scipy import linalg

    jitter = _JITTER
    order = np.diag_indices(len(matrix))
    while jitter < 1e-4:
        trial = matrix.copy()
        trial[order] += jitter
        try:
            return linalg.cho_factor(trial, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            jitter *= 100.0
    raise np.linalg.LinAlgError("the Newton matrix is not positive definite")


def _dense(x: Any) -> np.ndarray:
    return x.toarray() if sparse.issparse(x) else x
