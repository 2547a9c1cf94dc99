"""Random matrices Phi (m x d) that depend on public facts alone [KJ16, Def. 3, Thm 3.1].

Every kind is scaled so that E |Phi x|^2 = |x|^2 for every x, and is drawn from (seed, kind, m, d)
and from nothing else: neighbouring data sets have the same matrix.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from dperm_cli.core.memo import GIB, memoise
from dperm_cli.core.seeds import generator, seed_sequence
from dperm_cli.loops import row_maps

KINDS = ("gaussian", "rademacher", "sparse_sign", "sphere", "cube", "fast")
MOST_ENTRIES = 200_000_000  # most entries of a stored matrix: 1.6 GB
_BLOCK_ENTRIES = 8_000_000  # entries of a dense block of rows: 64 MB
_POWER_STEPS = 20
_NONZEROS = 8  # most nonzero entries in a column of sparse signs


class Projection(Protocol):
    """A linear map R^d -> R^m. ``entries`` is the number of 8-byte numbers that it stores.

    ``maps_alone`` says that ``apply_alone`` exists, which rounds each row by itself.
    """

    m: int
    d: int
    entries: int
    maps_alone: bool

    def apply(self, x: Any) -> np.ndarray:
        """Phi x for each row of x [n, d], dense or CSR; sparse rows are never all made dense."""
        ...

    def apply_alone(self, x: Any, bound: float) -> np.ndarray:
        """As ``apply``, shortened to norm ``bound``; a row's bits follow from that row alone."""
        ...

    def back(self, g: np.ndarray) -> np.ndarray:
        """Phi^T g for each row of [..., m]."""
        ...

    def columns(self, chosen: np.ndarray) -> np.ndarray:
        """Columns of Phi by their index [k], as rows [k, m]."""
        ...


class Identity:
    """Phi = I, for m = d: an exact isometry, which a random matrix could not improve on."""

    def __init__(self, d: int) -> None:
        self.m = self.d = d
        self.entries = 0
        self.maps_alone = True

    def apply(self, x: Any) -> np.ndarray:
        return x

    def apply_alone(self, x: Any, bound: float) -> np.ndarray:
        found = np.array(x.toarray() if sparse.issparse(x) else x, dtype=float, order="C")
        row_maps.shorten_rows(found, bound)
        return found

    def back(self, g: np.ndarray) -> np.ndarray:
        return np.asarray(g, dtype=float)

    def columns(self, chosen: np.ndarray) -> np.ndarray:
        found = np.zeros((len(chosen), self.d))
        found[np.arange(len(chosen)), chosen] = 1.0
        return found


class Stored:
    """A matrix held as its transpose, ``table`` [d, m]: one row for each coordinate of x."""

    def __init__(self, table: np.ndarray) -> None:
        self.table = np.ascontiguousarray(table, dtype=float)
        self.d, self.m = self.table.shape
        self.entries = self.table.size
        self.maps_alone = True

    def apply_alone(self, x: Any, bound: float) -> np.ndarray:
        out, table = np.empty((x.shape[0], self.m)), self.row_table()
        for part in blocks(x.shape[0], self.d):
            rows = x[part].toarray() if sparse.issparse(x) else np.ascontiguousarray(x[part])
            row_maps.multiply_rows(rows, table, bound, out[part])
        return out

    def row_table(self) -> np.ndarray:
        """The matrix [d, m] that rows are multiplied by."""
        return self.table

    def apply(self, x: Any) -> np.ndarray:
        out = np.empty((x.shape[0], self.m))
        for part in blocks(x.shape[0], self.m):
            out[part] = x[part] @ self.table
        return out

    def back(self, g: np.ndarray) -> np.ndarray:
        return np.asarray(g, dtype=float) @ self.table.T

    def columns(self, chosen: np.ndarray) -> np.ndarray:
        return self.table[chosen]


class Cosines:
    """sqrt(N / m) times m rows of the orthonormal cosine transform of sign-flipped coordinates.

    Zeros fill the coordinates up to N >= d, a number with small factors. Nothing is stored but d
    signs and m frequencies; a row takes N log N operations. The frequencies are a random subset, so
    that E |Phi x|^2 = |x|^2; entries are at most sqrt(2 / m).
    """

    def __init__(self, m: int, d: int, rng: np.random.Generator) -> None:
        from scipy.fft import next_fast_len

        self.m, self.d, self.entries, self.maps_alone = m, d, m + d, False
        self.length = int(next_fast_len(d, real=True) or d)
        self._signs = rng.choice(np.array([-1.0, 1.0]), size=d)
        self._rows = np.sort(rng.permutation(self.length)[:m])
        self.factor = math.sqrt(self.length / m)

    def apply_alone(self, x: Any, bound: float) -> np.ndarray:
        raise NotImplementedError("a library's cosine transform takes rows together")

    def apply(self, x: Any) -> np.ndarray:
        from scipy.fft import dct

        out = np.empty((x.shape[0], self.m))
        for part in blocks(x.shape[0], self.d):
            rows = x[part].toarray() if sparse.issparse(x) else np.asarray(x[part])
            turned = np.asarray(dct(rows * self._signs, n=self.length, norm="ortho"))
            out[part] = turned[:, self._rows]
        return self.factor * out

    def back(self, g: np.ndarray) -> np.ndarray:
        from scipy.fft import idct

        g = np.asarray(g, dtype=float)
        spread = np.zeros((*g.shape[:-1], self.length))
        spread[..., self._rows] = self.factor * g
        return np.asarray(idct(spread, norm="ortho"))[..., : self.d] * self._signs

    def columns(self, chosen: np.ndarray) -> np.ndarray:
        size = self.length
        angles = np.pi / (2 * size) * np.outer(2.0 * chosen + 1.0, self._rows)
        scale = np.where(self._rows == 0, math.sqrt(1.0 / size), math.sqrt(2.0 / size))
        return self.factor * scale * np.cos(angles) * self._signs[chosen][:, None]


@memoise(budget=GIB)
def draw(kind: str, m: int, d: int, seed: int, *path: object) -> Projection:
    """The matrix of these public facts; at m = d the identity, whatever the kind.

    gaussian : entries N(0, 1/m).
    rademacher : entries +-1/sqrt(m).
    sparse_sign : s = min(8, m) entries +-1/sqrt(s) in every column, at random places.
    sphere : columns uniform on the unit sphere of R^m, so that |Phi e_j| = 1 exactly.
    cube : entries uniform on +-sqrt(3/m): rows uniform on a cube, isotropic.
    fast : a subsampled cosine transform with random signs (``Cosines``), nothing stored.
    """
    if m == d:
        return Identity(d)
    rng = generator(seed_sequence(seed, "projection", kind, m, d, *path))
    if kind == "fast":
        return Cosines(m, d, rng)
    return Stored(_TABLES[kind](rng, m, d))


def stored_entries(kind: str, m: int, d: int) -> int:
    """How many numbers ``draw`` would store, to refuse a matrix that is too large."""
    if m == d:
        return 0
    return m + d if kind == "fast" else m * d


def norm(phi: Projection) -> float:
    """An upper bound on |Phi x| over |x| <= 1: exact up to rounding, 1 for the identity."""
    if isinstance(phi, Identity):
        return 1.0
    if isinstance(phi, Cosines):
        return phi.factor  # at most: some rows and columns of an orthonormal matrix
    return math.sqrt(max(float(np.linalg.eigvalsh(gram(phi))[-1]), 0.0)) * (1.0 + 1e-12)


def exceeds(phi: Projection, bound: float) -> bool:
    """Whether |Phi| is certainly above a bound: some |Phi^T y| / |y| is, for a y of 20 steps.

    A step costs two products with Phi, where ``norm`` needs the matrix of ``gram``.
    """
    y = np.ones(phi.m)
    for _ in range(_POWER_STEPS):
        y /= max(float(np.linalg.norm(y)), 1e-300)
        back = phi.back(y)
        if float(np.linalg.norm(back)) > (1.0 + 1e-9) * bound:
            return True
        y = phi.apply(back[None])[0]
    return False


def gram(phi: Projection) -> np.ndarray:
    """Phi Phi^T, [m, m]."""
    total = np.zeros((phi.m, phi.m))
    for part in blocks(phi.d, phi.m):
        columns = phi.columns(np.arange(phi.d)[part])
        total += columns.T @ columns
    return total


def column_norms(phi: Projection) -> np.ndarray:
    """|Phi e_j| for every coordinate, [d]."""
    found = np.empty(phi.d)
    for part in blocks(phi.d, phi.m):
        columns = phi.columns(np.arange(phi.d)[part])
        found[part] = np.sqrt(np.einsum("ij,ij->i", columns, columns))
    return found


def blocks(n: int, width: int) -> list[slice]:
    """Slices that cover 0 .. n - 1, each of at most about 8 million numbers when ``width`` wide."""
    step = max(1, _BLOCK_ENTRIES // max(width, 1))
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def _gaussian(rng: np.random.Generator, m: int, d: int) -> np.ndarray:
    table = rng.standard_normal((d, m))
    table *= 1.0 / math.sqrt(m)
    return table


def _rademacher(rng: np.random.Generator, m: int, d: int) -> np.ndarray:
    return _signs(rng, (d, m)) * (1.0 / math.sqrt(m))


def _sparse_sign(rng: np.random.Generator, m: int, d: int) -> np.ndarray:
    s, coins = min(_NONZEROS, m), rng.spawn(1)[0]
    table = np.zeros((d, m))
    for part in blocks(d, m):
        order = rng.random((part.stop - part.start, m))
        places = np.argpartition(order, s - 1, axis=1)[:, :s]
        values = _signs(coins, places.shape) / math.sqrt(s)
        np.put_along_axis(table[part], places, values, axis=1)
    return table


def _sphere(rng: np.random.Generator, m: int, d: int) -> np.ndarray:
    table = rng.standard_normal((d, m))
    table /= np.sqrt(np.einsum("ij,ij->i", table, table))[:, None]
    return table


def _cube(rng: np.random.Generator, m: int, d: int) -> np.ndarray:
    table = rng.random((d, m))
    table -= 0.5
    table *= 2.0 * math.sqrt(3.0 / m)
    return table


def _signs(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return 2.0 * rng.integers(0, 2, size=shape).astype(float) - 1.0


_TABLES = {
    "gaussian": _gaussian,
    "rademacher": _rademacher,
    "sparse_sign": _sparse_sign,
    "sphere": _sphere,
    "cube": _cube,
}
