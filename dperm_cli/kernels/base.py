"""The base class of kernels: the keys of the group, and the public facts of the feature map."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from scipy import sparse

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import Allowed, Auto, CheckedFields, Choices, Help, Positive, Range, Seed
from dperm_cli.core.registry import Plugin
from dperm_cli.problem.data import Matrix

_BLOCK = 1 << 22  # entries held at once in ``sum_over_columns``
AUTO_OR_FILE = "must be auto or the name of a file"
BallRadius = Annotated[
    Positive | Literal["auto", "paper"],
    Allowed("must be a finite number > 0, auto or paper"),
    Help("auto = the least proved; paper = L R / ridge"),
]
# the width parameter of kernels that are functions of x - z
Gamma = Annotated[Positive, Help("how fast the kernel falls with the distance")]
FEATURES = ("auto", "exact", "explicit", "landmarks", "fourier")


@dataclass(frozen=True, kw_only=True)
class Kernel(Plugin, CheckedFields, ABC):
    """A kernel K(x, z) = <phi(x), phi(z)>, where phi is its feature map.

    A subclass defines ``gram``, ``diagonal`` and ``bound``, and may define ``gram_alone``,
    ``lipschitz`` and the finite maps.

    Attributes:
        features: ``exact`` uses the kernel itself. ``explicit``, ``landmarks`` and ``fourier`` use
            a finite map psi in place of phi (``feature_maps``); this changes the kernel, but not
            the privacy. ``auto`` decides by n, the columns and the mechanism.
        size: the number of landmarks, or of frequencies.
        landmarks: public points. ``auto`` takes the first held-out inputs; otherwise the name of a
            file of rows (.npy or .npz with ``x``), scaled as the data set is.
        queries: public points Z at which predictions are released: a number of held-out inputs, or
            a file as above.
        radius: of the ball that holds the minimiser, for mechanisms that work on parameters:
            ``auto`` (the least that is proved), ``paper`` (L R / lambda), or a number.
        seed: of the random frequencies, which are public.
        is_shift_invariant: whether K(x, z) is a function of x - z.
        matrix: the matrix of a kernel that is given by one.
        maps_alone: whether ``gram_alone`` exists, and ``explicit`` rounds each row by itself.

    >>> from dperm_cli.core.fields import keys_of
    >>> list(keys_of(Kernel))
    ['features', 'size', 'landmarks', 'queries', 'radius', 'seed']
    """

    features: Annotated[str, Choices(*FEATURES), Help("a finite map in its place")] = "auto"
    size: Annotated[int | Auto, Range(1, 20_000), Help("auto = 500 (frequencies: 250)")] = "auto"
    landmarks: Annotated[str, Allowed(AUTO_OR_FILE), Help("a file; auto = held-out inputs")] = (
        "auto"
    )
    queries: Annotated[
        int | str, Range(1, 20_000), Help("Z: held-out inputs (auto = 500) or a file")
    ] = "auto"
    radius: BallRadius = "auto"
    seed: Annotated[Seed, Help("of frequencies and held-out inputs")] = 0

    group: ClassVar[str] = "kernel"
    is_shift_invariant: ClassVar[bool] = False  # K(x, z) is a function of x - z
    matrix: ClassVar[Any] = None  # of a kernel that is given by one
    maps_alone: ClassVar[bool] = False

    @abstractmethod
    def gram(self, a: Matrix, b: Matrix) -> np.ndarray:
        """K(a_i, b_j) of rows [na, columns] and [nb, columns], shape [na, nb]."""

    def gram_alone(self, a: Matrix, b: Matrix) -> np.ndarray:
        """``gram``, where the last bits of a row follow from that row and ``b`` alone."""
        raise NotImplementedError(f"kernel={self.name} maps rows together")

    @abstractmethod
    def diagonal(self, a: Matrix) -> np.ndarray:
        """K(a_i, a_i), [na]."""

    @abstractmethod
    def bound(self, row_bound: float) -> float:
        """R = sup of |phi(x)| over rows of norm at most ``row_bound``: public, never measured."""

    def check_columns(self, columns: int) -> None:
        """InputError where ``bound`` does not hold for so many columns; here it always holds."""
        return

    def lipschitz(self, row_bound: float) -> float:
        """sup of |phi(x) - phi(z)| / |x - z| over such rows; inf where there is none."""
        return math.inf

    def monomials(self, columns: int) -> int | None:
        """The dimension of the exact finite map ``explicit``, or None without one."""
        return None

    def explicit(self, a: Matrix) -> np.ndarray:
        """phi(a_i), [na, monomials(columns)], for a kernel with a finite exact feature map."""
        raise NotImplementedError(f"kernel={self.name} has no finite map")

    def frequencies(self, rng: np.random.Generator, count: int, columns: int) -> np.ndarray:
        """Draws from the spectral law of a shift-invariant kernel, [count, columns]."""
        raise NotImplementedError(f"kernel={self.name} has no spectral law")


@dataclass(frozen=True, kw_only=True)
class ShiftKernel(Kernel):
    """A shift-invariant kernel: a function of x - z that is 1 at 0, so that R = 1.

    The larger gamma is, the faster the kernel falls with the distance.

    >>> from dperm_cli.kernels.rbf import Rbf
    >>> issubclass(Rbf, ShiftKernel), Rbf(gamma=2.0).bound(row_bound=10.0)
    (True, 1.0)
    """

    gamma: Gamma = 1.0

    is_shift_invariant: ClassVar[bool] = True

    def diagonal(self, a: Matrix) -> np.ndarray:
        return np.ones(a.shape[0])

    def bound(self, row_bound: float) -> float:
        return 1.0


def dense(a: Matrix) -> np.ndarray:
    """The rows as a float64 array."""
    return np.asarray(a.toarray() if sparse.issparse(a) else a, dtype=float)


def products(a: Matrix, b: Matrix) -> np.ndarray:
    """<a_i, b_j>, [na, nb]."""
    if sparse.issparse(b):
        b = b.toarray() if min(b.shape) and b.shape[1] <= 4096 else b
    found = a @ b.T
    return np.asarray(found.toarray() if sparse.issparse(found) else found, dtype=float)


def squares(a: Matrix) -> np.ndarray:
    """|a_i|^2, [na]."""
    if sparse.issparse(a):
        return np.asarray(a.multiply(a).sum(axis=1), dtype=float).reshape(-1)
    return np.einsum("ij,ij->i", a, a)


def distances(a: Matrix, b: Matrix) -> np.ndarray:
    """|a_i - b_j|^2, [na, nb], never below 0."""
    found = squares(a)[:, None] + squares(b)[None, :] - 2.0 * products(a, b)
    return np.maximum(found, 0.0)


def sum_over_columns(
    join: Callable[[np.ndarray, np.ndarray], np.ndarray], rows: np.ndarray, others: np.ndarray
) -> np.ndarray:
    """The sum over columns of ``join(row, other)`` for all pairs, [na, nb], computed in blocks."""
    out = np.empty((len(rows), len(others)))
    step = max(1, _BLOCK // max(1, others.size))
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        out[part] = join(rows[part, None, :], others[None, :, :]).sum(axis=2)
    return out


def finite(value: float, what: str) -> float:
    """The value; InputError where it is not finite."""
    if not math.isfinite(value):
        raise InputError("kernel", what, "its bound is beyond what can be computed")
    return value
