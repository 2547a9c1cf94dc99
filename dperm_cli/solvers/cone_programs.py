"""Cone programs: minimise <v, P v> / 2 + <q, v> where affine functions of v lie in cones."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from dperm_cli.core.dataclass import dataclass

_TOLERANCE = 1e-11
_SOLVED = 1e-13


@dataclass(frozen=True)
class Answer:
    """The point v, and the multipliers of every group of rows.

    Multipliers m are those of the Lagrangian objective - <m, rows>: at a solution P v + q is the
    sum over row groups of (rows' matrix)^T m.
    """

    point: np.ndarray
    multipliers: np.ndarray


class Program:
    """Collects variables, cost and rows; ``solve`` hands them to the conic solver.

    Rows are given as terms (matrix, columns) and a constant: sum of matrix @ v[columns] + constant
    is to lie in the cone. Row groups are known by the slice of rows that ``add`` returns.
    """

    def __init__(self) -> None:
        self.columns = self.rows = 0
        self._entries: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._quadratic: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._constants: list[np.ndarray] = []
        self._cones: list[tuple[str, float]] = []
        self._cost: list[tuple[np.ndarray, np.ndarray]] = []
        self._scales: list[np.ndarray] = []

    def variables(self, count: int, scale: float = 1.0) -> np.ndarray:
        """Indices of new variables, whose size is of the order of ``scale``."""
        first, self.columns = self.columns, self.columns + count
        self._scales.append(np.full(count, scale))
        return np.arange(first, self.columns)

    def linear(self, columns: np.ndarray, coefficients: Any) -> None:
        """Add <coefficients, v[columns]> to the cost."""
        self._cost.append((columns, np.broadcast_to(coefficients, columns.shape)))

    def quadratic(self, columns: np.ndarray, matrix: Any) -> None:
        """Add <u, matrix u> / 2 with u = v[columns], or a diagonal of that, to the cost."""
        square = sparse.diags_array(matrix) if np.ndim(matrix) == 1 else sparse.coo_array(matrix)
        upper = sparse.coo_array(sparse.triu(square))
        self._quadratic.append((columns[upper.row], columns[upper.col], upper.data))

    def add(
        self, cone: str, terms: list[tuple[Any, np.ndarray]], constant: Any, power: float = 0.0
    ) -> slice:
        """Rows in ``zero``, ``nonnegative``, ``second_order`` (first the bound, then the vector)
        or ``power`` (one group (a, b, c), a^power b^(1 - power) >= |c|)."""
        constant = np.atleast_1d(np.asarray(constant, dtype=float))
        first, self.rows = self.rows, self.rows + constant.size
        for matrix, columns in terms:
            entries = sparse.coo_array(matrix)
            self._entries.append((entries.row + first, columns[entries.col], entries.data))
        self._constants.append(constant)
        self._cones.append((cone, power if cone == "power" else float(constant.size)))
        return slice(first, self.rows)

    def solve(
        self, cost_scale: float = 1.0, seconds: float = 60.0, equilibrate: bool = True
    ) -> Answer:
        """The solver's last iterate, whatever its status: the caller computes what it certifies."""
        import clarabel

        library: Any = clarabel  # compiled, without types
        scale = np.concatenate(self._scales)
        rows = _assemble(self._entries, (self.rows, self.columns))
        quadratic = _assemble(self._quadratic, (self.columns, self.columns))
        spread = sparse.diags_array(scale)
        cost = np.zeros(self.columns)
        for columns, coefficients in self._cost:
            np.add.at(cost, columns, coefficients)
        solver = library.DefaultSolver(
            sparse.csc_matrix(spread @ quadratic @ spread * cost_scale),
            cost * scale * cost_scale,
            sparse.csc_matrix(-(rows @ spread)),
            np.concatenate(self._constants),
            [_cone(library, *cone) for cone in self._cones],
            _settings(library, seconds, equilibrate),
        )
        found = solver.solve()
        point = np.asarray(found.x) * scale
        return Answer(point, np.asarray(found.z) / cost_scale)


def _assemble(entries: list, shape: tuple[int, int]) -> sparse.csc_array:
    if not entries:
        return sparse.csc_array(shape)
    rows, columns, values = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    return sparse.csc_array(sparse.coo_array((values, (rows, columns)), shape=shape))


def _cone(library: Any, kind: str, number: float) -> Any:
    if kind == "power":
        return library.PowerConeT(number)
    names = {
        "zero": library.ZeroConeT,
        "nonnegative": library.NonnegativeConeT,
        "second_order": library.SecondOrderConeT,
    }
    return names[kind](int(number))


def _settings(library: Any, seconds: float, equilibrate: bool) -> Any:
    settings = library.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.equilibrate_enable = equilibrate
    settings.time_limit = seconds
    settings.tol_feas = settings.tol_gap_abs = _TOLERANCE
    settings.tol_gap_rel = _SOLVED
    return settings
