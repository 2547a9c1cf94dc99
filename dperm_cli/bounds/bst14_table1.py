"""The cells of [BST14, Table I], for any L, |C| and Delta, with constants taken as one.

Rows: ``lipschitz``, ``smooth`` (Lipschitz and O(p)-smooth), ``strongly_convex``,
``smooth_strongly_convex``. Columns, for each kind of guarantee: the bound known before, the paper's
upper bound and its lower bound. Four cells are empty, since earlier methods were already optimal
for smooth losses.

The paper prints the table for L = |C| = 1. In general every cell is multiplied by L |C|, Delta is
replaced by Delta |C| / L, and no cell exceeds n L |C| [BST14, caption of Table I].
"""

from __future__ import annotations

import math
from collections.abc import Callable

from dperm_cli.core.dataclass import dataclass

ROWS = ("lipschitz", "smooth", "strongly_convex", "smooth_strongly_convex")
COLUMNS = (
    "pure_previous",
    "pure_upper",
    "pure_lower",
    "approx_previous",
    "approx_upper",
    "approx_lower",
)


@dataclass(frozen=True)
class TableInputs:
    """The numbers that a cell is a function of, as in [BST14].

    >>> at = TableInputs(n=1000, p=20, epsilon=0.5, lipschitz=2.0, diameter=3.0)
    >>> at.unit, at.private
    (6.0, 40.0)
    """

    n: int
    p: int
    epsilon: float
    delta: float = 0.0
    lipschitz: float = 1.0
    diameter: float = 1.0
    strong_convexity: float = 0.0

    @property
    def unit(self) -> float:
        """L |C|."""
        return self.lipschitz * self.diameter

    @property
    def curvature(self) -> float:
        """Delta |C| / L, at most 2."""
        return self.strong_convexity * self.diameter / self.lipschitz

    @property
    def private(self) -> float:
        """p / epsilon: the size of the noise under a pure guarantee."""
        return self.p / self.epsilon

    @property
    def approx_noise_variance(self) -> float:
        """p / epsilon^2: the squared size of the noise under (epsilon, delta)."""
        return self.p / self.epsilon**2

    @property
    def log_delta(self) -> float:
        return math.log(1.0 / self.delta)

    @property
    def log_n_delta(self) -> float:
        return math.log(self.n / self.delta)


Formula = Callable[[TableInputs], float]

# Each formula follows the form in which the paper prints it.
CELLS: dict[tuple[str, str], Formula] = {
    # p sqrt(n) / eps
    ("lipschitz", "pure_previous"): lambda x: x.private * math.sqrt(x.n),
    # p / eps
    ("lipschitz", "pure_upper"): lambda x: x.private,
    # p / eps
    ("lipschitz", "pure_lower"): lambda x: x.private,
    # sqrt(p n) ln(1/delta) / eps
    ("lipschitz", "approx_previous"): lambda x: (
        math.sqrt(x.n * x.approx_noise_variance) * x.log_delta
    ),
    # sqrt(p) ln^2(n/delta) / eps
    ("lipschitz", "approx_upper"): lambda x: math.sqrt(x.approx_noise_variance) * x.log_n_delta**2,
    # sqrt(p) / eps
    ("lipschitz", "approx_lower"): lambda x: math.sqrt(x.approx_noise_variance),
    # p / eps
    ("smooth", "pure_previous"): lambda x: x.private,
    # p / eps
    ("smooth", "pure_lower"): lambda x: x.private,
    # sqrt(p) ln(1/delta) / eps
    ("smooth", "approx_previous"): lambda x: math.sqrt(x.approx_noise_variance) * x.log_delta,
    # sqrt(p) / eps
    ("smooth", "approx_lower"): lambda x: math.sqrt(x.approx_noise_variance),
    # p^2 / (sqrt(n) Delta eps^2)
    ("strongly_convex", "pure_previous"): lambda x: x.private**2 / (math.sqrt(x.n) * x.curvature),
    # (ln(n) / Delta) p^2 / (n eps^2)
    ("strongly_convex", "pure_upper"): lambda x: math.log(x.n) / x.curvature * x.private**2 / x.n,
    # p^2 / (n eps^2)
    ("strongly_convex", "pure_lower"): lambda x: x.private**2 / x.n,
    # p ln(1/delta) / (sqrt(n) Delta eps^2)
    ("strongly_convex", "approx_previous"): lambda x: (
        x.approx_noise_variance * x.log_delta / (math.sqrt(x.n) * x.curvature)
    ),
    # (ln^3(n/delta) / Delta) p / (n eps^2)
    ("strongly_convex", "approx_upper"): lambda x: (
        x.log_n_delta**3 / x.curvature * x.approx_noise_variance / x.n
    ),
    # p / (n eps^2)
    ("strongly_convex", "approx_lower"): lambda x: x.approx_noise_variance / x.n,
    # p^2 / (n Delta eps^2)
    ("smooth_strongly_convex", "pure_previous"): lambda x: x.private**2 / (x.n * x.curvature),
    # p^2 / (n eps^2)
    ("smooth_strongly_convex", "pure_lower"): lambda x: x.private**2 / x.n,
    # p ln(1/delta) / (n Delta eps^2)
    ("smooth_strongly_convex", "approx_previous"): lambda x: (
        x.approx_noise_variance * x.log_delta / (x.n * x.curvature)
    ),
    # p / (n eps^2)
    ("smooth_strongly_convex", "approx_lower"): lambda x: x.approx_noise_variance / x.n,
}


def cell(row: str, column: str, at: TableInputs) -> float | None:
    """A cell's value, at most n L |C|; None where the table is empty."""
    if row not in ROWS or column not in COLUMNS:
        raise KeyError(f"Table I has no cell ({row}, {column})")
    if (row, column) not in CELLS:
        return None
    return at.unit * min(float(at.n), CELLS[row, column](at))
