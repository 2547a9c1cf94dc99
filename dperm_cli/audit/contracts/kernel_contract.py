"""What every kernel promises: a positive semidefinite function with a declared bound."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np
from scipy import sparse

from dperm_cli.audit.contracts.examples import make_examples
from dperm_cli.audit.contracts.promises import count_tried, promise, require, show
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.kernels.base import Kernel
from dperm_cli.kernels.shared.feature_maps import Explicit, Fourier, Landmarks

ROWS = (1.0, 2.5)  # row bounds
_COLUMNS = 4
_FREQUENCIES = 20_000
_CLOSE = 1e-10


@dataclass(frozen=True)
class Subject:
    """A kernel with its defaults and with other keys of its own."""

    examples: tuple[Any, ...]


def make_subject(cls: type[Any], others: Any = None) -> Subject:
    """The kernel to be checked, from its class; keys of every kernel keep their defaults."""
    common = {field.name: field.default for field in fields(Kernel)}
    return Subject(make_examples(cls, **common))


def _cases(subject: Subject) -> Iterator[tuple[Any, np.ndarray, float]]:
    """Each kernel with rows [n, columns] up to a row bound, one of them of that norm."""
    for kernel in subject.examples:
        for bound in ROWS:
            rng = np.random.default_rng(0)
            x = rng.standard_normal((24, _COLUMNS))
            x *= bound / np.linalg.norm(x, axis=1, keepdims=True)
            x[12:] *= rng.random((12, 1))
            x[-2:] = np.abs(x[-2:])
            try:
                kernel.check_columns(_COLUMNS)
            except InputError:
                continue
            yield kernel, x, bound


@promise(
    "the kernel is symmetric and positive semidefinite",
    mend="gram(a, b) must be <phi(a_i), phi(b_j)> for some map phi: no eigenvalue of "
    "gram(a, a) is below 0; minima rest on it",
)
def check_semidefinite(subject: Subject) -> str:
    count = 0
    for kernel, x, _ in _cases(subject):
        gram = kernel.gram(x, x)
        require(gram.shape == (len(x), len(x)), f"{kernel}: gram has shape {gram.shape}")
        require(np.isfinite(gram), f"{kernel}: gram is not finite")
        size = max(1.0, float(np.max(np.abs(gram))))
        require(np.abs(gram - gram.T) <= _CLOSE * size, f"{kernel}: gram(a, a) is not symmetric")
        least = float(np.linalg.eigvalsh(gram)[0])
        require(least >= -1e-8 * size, f"{kernel}: an eigenvalue of gram(a, a) is {show(least)}")
        part = kernel.gram(x[:5], x)
        require(
            np.abs(part - gram[:5]) <= _CLOSE * size,
            f"{kernel}: gram of some rows is not "
            "part of that of all: a_i and b_j alone must decide it",
        )
        count += gram.size
    return f"{count} entries"


@promise(
    "diagonal is K(x, x), and sparse rows give what dense ones do",
    mend="diagonal(a) = [K(a_i, a_i)]; use dense, products, squares and distances of "
    "kernels.base for rows of either form",
)
def check_diagonal(subject: Subject) -> str:
    for kernel, x, _ in _cases(subject):
        gram, thin = kernel.gram(x, x), sparse.csr_array(x)
        size = max(1.0, float(np.max(np.abs(gram))))
        off = np.abs(np.diag(gram) - kernel.diagonal(x))
        require(off <= 1e-8 * size, f"{kernel}: diagonal is {show(np.max(off))} off gram's")
        for a, b in ((thin, x), (thin, thin), (x, thin)):
            require(
                np.abs(kernel.gram(a, b) - gram) <= 1e-8 * size,
                f"{kernel}: gram of sparse rows is another",
            )
        require(
            np.abs(kernel.diagonal(thin) - np.diag(gram)) <= 1e-8 * size,
            f"{kernel}: diagonal of sparse rows is another",
        )
    return f"{len(subject.examples)} sets of keys"


@promise(
    "no feature is longer than bound(row_bound)",
    mend="bound(row_bound) is sup sqrt(K(x, x)) over rows of that norm, from public numbers "
    "alone; the sensitivity is in proportion to it",
)
def check_bound(subject: Subject) -> str:
    count = 0
    for kernel, x, row in _cases(subject):
        bound, most = kernel.bound(row), math.sqrt(float(np.max(kernel.diagonal(x))))
        require(
            most <= bound * (1 + 1e-9),
            f"{kernel}: bound({row:g}) is {show(bound)}, and a row "
            f"of that norm has a feature of norm {show(most)}",
        )
        count += len(x)
    return f"{count} rows"


@promise(
    "features move no faster than lipschitz(row_bound) says",
    mend="lipschitz(row_bound) bounds |phi(x) - phi(z)| / |x - z|; leave it out where there "
    "is no such bound (inf)",
)
def check_lipschitz(subject: Subject) -> str:
    count = 0
    for kernel, x, row in _cases(subject):
        bound = kernel.lipschitz(row)
        if math.isinf(bound):
            continue
        for z in (x * (1 - 1e-3), x[::-1], 0.5 * x):
            both = np.array([kernel.gram(x[i : i + 1], z[i : i + 1])[0, 0] for i in range(len(x))])
            square = np.maximum(kernel.diagonal(x) + kernel.diagonal(z) - 2.0 * both, 0.0)
            far = np.linalg.norm(x - z, axis=1)
            ratio = np.sqrt(square[far > 0]) / far[far > 0]
            require(
                ratio <= bound * (1 + 1e-5),
                f"{kernel}: lipschitz({row:g}) is {show(bound)}, "
                f"and a feature moves by {show(np.max(ratio))} times the distance",
            )
            count += len(ratio)
    return count_tried(count, "pairs of rows", "no such bound is declared")


@promise(
    "finite maps stand for the kernel: monomials, frequencies, landmarks",
    mend="explicit(a) @ explicit(b).T = gram(a, b) with monomials(columns) columns; "
    "frequencies draws from the spectral law of a kernel with is_shift_invariant = True",
)
def check_maps(subject: Subject) -> str:
    seen = []
    for kernel, x, row in _cases(subject):
        gram = kernel.gram(x, x)
        size = max(1.0, float(np.max(np.abs(gram))))
        count = kernel.monomials(_COLUMNS)
        if count is not None:
            psi = Explicit(kernel, _COLUMNS, kernel.bound(row)).apply(x)
            require(psi.shape == (len(x), count), f"{kernel}: explicit has shape {psi.shape}")
            require(
                np.abs(psi @ psi.T - gram) <= 1e-8 * size,
                f"{kernel}: products of explicit features are not gram",
            )
            seen.append("monomials")
        if kernel.is_shift_invariant:
            seen.append("frequencies")
            psi = Fourier(kernel, _COLUMNS, _FREQUENCIES).apply(x)
            off = float(np.max(np.abs(psi @ psi.T - gram)))
            # an entry is a mean of cosines of variance 1/2 at most: 6 standard errors
            require(
                off <= 6.0 * math.sqrt(0.5 / _FREQUENCIES),
                f"{kernel}: the mean over frequencies is {show(off)} off gram",
            )
        points = x[::3]
        own = Landmarks(kernel, points, kernel.bound(row)).apply(points)
        require(
            np.abs(own @ own.T - kernel.gram(points, points)) <= 1e-6 * size,
            f"{kernel}: features of landmarks are not gram",
        )
    return ", ".join(dict.fromkeys([*seen, "landmarks"]))


@promise(
    "a row of gram_alone follows from that row alone",
    mend="gram_alone(a, b) must be gram(a, b) up to rounding, added up row by row in one order "
    "(loops.kernel_rows), never by a product of matrices; or set maps_alone = False",
)
def check_rows_alone(subject: Subject) -> str:
    count = 0
    for kernel, x, row in _cases(subject):
        if not kernel.maps_alone:
            continue
        points = x[::3].copy()
        gram, alone = kernel.gram(x, points), kernel.gram_alone(x, points)
        size = max(1.0, float(np.max(np.abs(gram))))
        require(np.abs(alone - gram) <= 1e-8 * size, f"{kernel}: gram_alone is not gram")
        made: list[Any] = [lambda rows, own=kernel, to=points: own.gram_alone(rows, to)]
        if kernel.monomials(_COLUMNS) is not None:
            made.append(Explicit(kernel, _COLUMNS, kernel.bound(row)).apply_alone)
        for one in made:
            found = one(x)
            for i in range(len(x)):
                require(
                    one(x[i : i + 1].copy()).tobytes() == found[i : i + 1].tobytes(),
                    f"{kernel}: a row made by itself has other bits than beside others",
                )
        count += 1
    return count_tried(count, "kernels", "it does not say that it maps rows one by one")
