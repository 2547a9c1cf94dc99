"""The cells of [KJ16, Table 1] and the bounds that its Section 4 compares, constants taken as one.

Sums over records: n times the table's entries. Rows: ``compressed`` (only Phi x is seen),
``traditional``; columns ``pure`` and ``approx``. A cell is at most 2 n lambda R, what ignoring the
data costs. The (epsilon, delta) cell of the traditional row is that of [TTZ15], with the curvature
Gamma; ``mirror_descent`` is that of [TTZ14], from Section 4. The widths are divided by the radius
R: the table is for sets of radius 1, and as printed it does not scale with the set.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from dperm_cli.core.dataclass import dataclass

ROWS = ("compressed", "traditional")
COLUMNS = ("pure", "approx")

# Which norm of a row each method's bound is about [KJ16, footnote 8].
ROW_NORMS = {
    "projected": "l2",
    "standard_projection": "l2",
    "exponential": "l2",
    "noisy_sgd": "l2",
    "noisy_gd": "l2",
    "objective_perturbation": "l2",
    "output_perturbation": "l2",
    "frank_wolfe": "linf",
    "mirror_descent": "linf",
}


@dataclass(frozen=True)
class TableInputs:
    """What a cell is a function of; ``curvature`` is one record's Gamma over the set.

    >>> at = TableInputs(n=1000, epsilon=0.5, width=6.0, radius=2.0)
    >>> at.trivial, at.effective
    (4000.0, 3.0)
    """

    n: int
    epsilon: float
    delta: float = 0.0
    width: float = 1.0
    radius: float = 1.0
    lipschitz: float = 1.0
    psi: float = 1.0
    curvature: float = 1.0
    potential: float = 1.0  # max of Psi over the set, for mirror descent

    @property
    def trivial(self) -> float:
        """2 n lambda R [KJ16, footnote 5]."""
        return 2.0 * self.n * self.lipschitz * self.radius

    @property
    def budget(self) -> float:
        """epsilon n."""
        return self.epsilon * self.n

    @property
    def effective(self) -> float:
        """w / R, whose square is the effective dimension."""
        return self.width / self.radius


def _compressed_pure(x: TableInputs) -> float:
    share = x.psi ** (4.0 / 3.0) * x.effective ** (2.0 / 3.0) / x.budget ** (1.0 / 3.0)
    return x.n * x.lipschitz * x.radius * share


def _compressed_approx(x: TableInputs) -> float:
    share = x.psi * math.sqrt(x.effective / x.budget) * math.log(1.0 / x.delta) ** 2
    return x.n * x.lipschitz * x.radius * share


def _frank_wolfe(x: TableInputs) -> float:
    scale = x.curvature ** (1.0 / 3.0) * (x.lipschitz * x.width) ** (2.0 / 3.0)
    return x.n * scale * math.log(1.0 / x.delta) ** 2 / x.budget ** (2.0 / 3.0)


Formula = Callable[[TableInputs], float]

# Each as it is printed, and as a function of the inputs.
CELLS: dict[tuple[str, str], Formula] = {
    # psi^{4/3} lambda R (w/R)^{2/3} / (eps n)^{1/3}
    ("compressed", "pure"): _compressed_pure,
    # psi lambda R sqrt(w/R) ln^2(1/delta) / sqrt(eps n)
    ("compressed", "approx"): _compressed_approx,
    # lambda R (w/R)^{2/3} / (eps n)^{1/3}
    ("traditional", "pure"): _compressed_pure,
    # Gamma^{1/3} (lambda w)^{2/3} ln^2(1/delta) / (eps n)^{2/3}
    ("traditional", "approx"): _frank_wolfe,
}


def cell(row: str, column: str, at: TableInputs) -> float:
    """A cell's value, at most 2 n lambda R; the traditional row has psi = 1."""
    if (row, column) not in CELLS:
        raise KeyError(f"Table 1 has no cell ({row}, {column})")
    if row == "traditional":
        at = replace(at, psi=1.0)
    return min(at.trivial, CELLS[row, column](at))


def mirror_descent(at: TableInputs) -> float:
    """[TTZ14] as in [KJ16, Sec. 4], order: n lambda w sqrt(max Psi) ln(n / delta) / (eps n)."""
    logs = math.log(at.n / at.delta)
    value = at.n * at.lipschitz * at.width * math.sqrt(at.potential) * logs / at.budget
    return min(at.trivial, value)


def frank_wolfe_regression(at: TableInputs) -> float:
    """[TTZ15] for regression as in [KJ16, Sec. 4], order: n R^{4/3} w^{2/3} / (eps n)^{2/3}."""
    value = at.n * at.radius ** (4.0 / 3.0) * at.width ** (2.0 / 3.0) / at.budget ** (2.0 / 3.0)
    return min(at.trivial, value)
