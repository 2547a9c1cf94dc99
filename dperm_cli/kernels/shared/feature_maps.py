"""Finite feature maps psi: <psi(x), psi(z)> is a kernel of its own, near the one it stands for.

Each is made of public things alone: the kernel, its seed, public landmarks. A row beyond the bound
R is shortened to it, so that |psi(x)| <= R for every record, in floating point too.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.seeds import generator, seed_sequence
from dperm_cli.kernels.base import Kernel, products
from dperm_cli.loops import row_maps
from dperm_cli.problem.data import Matrix

_CUT = 1e-10  # eigenvalues of K_ZZ below this share of the largest count as zero
_BLOCK = 4096  # rows mapped at once


class Features(ABC):
    """A map of rows [m, columns] to [m, dim] with rows of norm at most ``bound``.

    Attributes:
        maps_alone: whether ``apply_alone`` exists, which rounds each row by itself.
    """

    bound: float

    @property
    def maps_alone(self) -> bool:
        return False

    @property
    @abstractmethod
    def dim(self) -> int:
        """Of what rows are mapped to."""

    @abstractmethod
    def raw(self, rows: Matrix) -> np.ndarray:
        """psi before rows are held to the bound."""

    def apply(self, rows: Matrix, kind: type = np.float64) -> np.ndarray:
        """psi of every row, [m, dim], in blocks."""
        out = np.empty((rows.shape[0], self.dim), kind)
        # what is rounded to float32 must not exceed the bound either
        bound = self.bound * (1.0 - 1e-6) if kind is np.float32 else self.bound
        for start in range(0, rows.shape[0], _BLOCK):
            out[start : start + _BLOCK] = shorten_rows(
                self.raw(rows[start : start + _BLOCK]), bound
            )
        return out

    def apply_alone(self, rows: Matrix) -> np.ndarray:
        """psi of every row, [m, dim], whose last bits follow from that row alone."""
        raise NotImplementedError(f"{type(self).__name__} maps rows together")


@dataclass(frozen=True)
class Explicit(Features):
    """The feature map of the kernel itself."""

    kernel: Kernel
    columns: int
    bound: float

    @property
    def dim(self) -> int:
        found = self.kernel.monomials(self.columns)
        assert found is not None
        return found

    def raw(self, rows: Matrix) -> np.ndarray:
        return self.kernel.explicit(rows)

    @property
    def maps_alone(self) -> bool:
        return self.kernel.maps_alone

    def apply_alone(self, rows: Matrix) -> np.ndarray:
        out = np.array(self.kernel.explicit(rows), dtype=float, order="C")
        row_maps.shorten_rows(out, self.bound)
        return out


@dataclass(frozen=True, eq=False)
class Landmarks(Features):
    """psi(x) = K_ZZ^{-1/2} K_Zx: phi(x) projected on the span of public points Z [Williams and
    Seeger 2001], in an orthonormal basis of that span; so |psi(x)| <= |phi(x)|.
    """

    kernel: Kernel
    points: Matrix
    bound: float

    @cached_property
    def _basis(self) -> tuple[np.ndarray, np.ndarray]:
        """(A [T, dim], eigenvalues [dim]): psi(x) = A^T K_Zx."""
        gram = self.kernel.gram(self.points, self.points)
        values, vectors = np.linalg.eigh(0.5 * (gram + gram.T))
        kept = values > _CUT * max(float(values[-1]), 0.0)
        return vectors[:, kept] / np.sqrt(values[kept]), values[kept]

    @property
    def weights(self) -> np.ndarray:
        """A [T, dim]; a column of zeros where the kernel is zero on all points."""
        found = self._basis[0]
        return found if found.shape[1] else np.zeros((found.shape[0], 1))

    @property
    def dim(self) -> int:
        return self.weights.shape[1]

    def raw(self, rows: Matrix) -> np.ndarray:
        return self.kernel.gram(rows, self.points) @ self.weights

    @property
    def maps_alone(self) -> bool:
        return self.kernel.maps_alone

    def apply_alone(self, rows: Matrix) -> np.ndarray:
        out, weights = np.empty((rows.shape[0], self.dim)), np.ascontiguousarray(self.weights)
        for start in range(0, rows.shape[0], _BLOCK):
            part = slice(start, start + _BLOCK)
            values = self.kernel.gram_alone(rows[part], self.points)
            row_maps.multiply_rows(np.ascontiguousarray(values), weights, self.bound, out[part])
        return out


@dataclass(frozen=True)
class Fourier(Features):
    """psi(x) = (cos <w_k, x>, sin <w_k, x>) / sqrt(size) of a shift-invariant kernel, |psi(x)| = 1.

    The w_k are drawn from the kernel's spectral law [Rahimi and Recht 2007].
    """

    kernel: Kernel
    columns: int
    size: int
    bound: float = 1.0
    _kept: dict[str, np.ndarray] = field(default_factory=dict, repr=False, compare=False)

    @property
    def maps_alone(self) -> bool:
        return True

    def apply_alone(self, rows: Matrix) -> np.ndarray:
        out, columns = np.empty((rows.shape[0], self.dim)), np.ascontiguousarray(self.frequencies.T)
        for start in range(0, rows.shape[0], _BLOCK):
            part: Any = rows[start : start + _BLOCK]
            dense = part.toarray() if sparse.issparse(part) else np.ascontiguousarray(part)
            row_maps.map_to_waves(dense, columns, self.bound, out[start : start + _BLOCK])
        return out

    @property
    def dim(self) -> int:
        return 2 * self.size

    @property
    def frequencies(self) -> np.ndarray:
        """[size, columns], a function of the kernel, its seed, the size and the columns."""
        if "w" not in self._kept:
            leaf = seed_sequence(self.kernel.seed, "frequencies", self.kernel.name, self.size)
            rng = generator(leaf)
            self._kept["w"] = self.kernel.frequencies(rng, self.size, self.columns)
        return self._kept["w"]

    def raw(self, rows: Matrix) -> np.ndarray:
        angles = products(rows, self.frequencies)
        return np.hstack([np.cos(angles), np.sin(angles)]) / math.sqrt(self.size)


def shorten_rows(rows: np.ndarray, bound: float) -> np.ndarray:
    """Rows longer than the bound shortened to it."""
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    over = norms > bound
    if np.any(over):
        rows = rows.copy()
        rows[over] *= ((1.0 - 1e-15) * bound / norms[over])[:, None]
    return rows
