"""A kernel given as a matrix over numbered objects; a row of the data is one object's number."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import Allowed, Help, Positive, Required
from dperm_cli.core.memo import GIB, memoise
from dperm_cli.kernels.base import Kernel, dense
from dperm_cli.kernels.shared.point_files import array_of
from dperm_cli.problem.data import Matrix

NO_MATRIX = "must name a file with the matrix"
_ROOM = 1e-8  # negative eigenvalues that rounding explains, as a share of the largest entry


@dataclass(frozen=True, kw_only=True)
class Precomputed(Kernel):
    """K(x, z) = M[x, z]: a row of the data set holds one number, that of its object, from 0.

    Attributes:
        path: the file with M (.npy, or .npz with ``k``), symmetric and positive semidefinite.
        cap: the declared R. Objects with M[x, x] above R^2 are shortened to R in feature space.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/k.npy", [[1.0, 0.5], [0.5, 4.0]])
    ...     kernel = Precomputed(path=f"{folder}/k.npy", cap=1.0)
    ...     kernel.matrix.round(3).tolist()
    [[1.0, 0.25], [0.25, 1.0]]
    """

    path: Annotated[
        str | None,
        Required(NO_MATRIX),
        Allowed(NO_MATRIX),
        Help("a .npy file, or .npz with k; required"),
    ] = None
    cap: Annotated[Positive, Help("R: longer objects are shortened to it in feature space")] = 1.0

    @property
    def matrix(self) -> np.ndarray:
        """M with its diagonal at most cap^2, read once."""
        assert self.path is not None
        return _matrix(self.path, float(self.cap))

    maps_alone: ClassVar[bool] = True

    def gram(self, a: Matrix, b: Matrix) -> np.ndarray:
        return self.matrix[np.ix_(self._numbers(a), self._numbers(b))]

    def gram_alone(self, a: Matrix, b: Matrix) -> np.ndarray:
        """Entries of the matrix; zeros where a row is no object's number.

        Under secure noise nothing of a record may be refused.
        """
        numbers = self._first_column(a)
        known = (numbers >= 0.0) & (numbers < len(self.matrix)) & (numbers == np.rint(numbers))
        out = np.zeros((len(numbers), b.shape[0]))
        out[known] = self.gram(numbers[known, None], b)
        return out

    def diagonal(self, a: Matrix) -> np.ndarray:
        return self.matrix.diagonal()[self._numbers(a)]

    def bound(self, row_bound: float) -> float:
        return self.cap

    def _first_column(self, a: Matrix) -> np.ndarray:
        rows = dense(a)
        if rows.shape[1] != 1:
            allowed = f"needs rows of one column, an object's number; these have {rows.shape[1]}"
            raise InputError("kernel", "precomputed", allowed)
        return rows[:, 0]

    def _numbers(self, a: Matrix) -> np.ndarray:
        column = self._first_column(a)
        numbers = column.astype(np.int64)
        if np.any(numbers != column) or np.any((numbers < 0) | (numbers >= len(self.matrix))):
            allowed = f"needs objects numbered 0 to {len(self.matrix) - 1}, with dataset.rows=none"
            raise InputError("kernel", "precomputed", allowed)
        return numbers


@memoise(budget=GIB)
def _matrix(path: str, cap: float) -> np.ndarray:
    """The matrix after all checks, with its diagonal at most cap^2."""
    found = array_of("kernel.path", path, "k")
    if found.ndim != 2 or found.shape[0] != found.shape[1]:
        raise InputError("kernel.path", path, f"holds an array of shape {found.shape}")
    size = float(np.max(np.abs(found), initial=0.0))
    if not np.allclose(found, found.T, rtol=0.0, atol=1e-10 * size):
        raise InputError("kernel.path", path, "is not symmetric")
    least = float(np.linalg.eigvalsh(found)[0]) if len(found) else 0.0
    if least < -_ROOM * size * max(1, len(found)):
        allowed = f"is not positive semidefinite: it has the eigenvalue {least:.3g}"
        raise InputError("kernel.path", path, allowed)
    # add to the diagonal what removes negative eigenvalues that come from rounding
    found = 0.5 * (found + found.T) + max(0.0, -2.0 * least) * np.eye(len(found))
    root = np.sqrt(np.maximum(found.diagonal(), 0.0))
    shrink = np.where(root > cap, cap / np.where(root > 0.0, root, 1.0), 1.0)
    return found * shrink[:, None] * shrink
