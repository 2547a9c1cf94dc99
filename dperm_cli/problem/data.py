"""A data set as the rest of dperm sees it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

# np.ndarray [n, p] in C order, or scipy.sparse.csr_array (scipy ships no types)
Matrix = Any


@dataclass(frozen=True)
class Data:
    """Records with bounds that were declared, never measured.

    Attributes
    ----------
    name : the data set's name.
    task : ``binary`` (labels -1 and +1), ``regression`` (targets within +-target_bound),
        ``multiclass`` (labels 0 .. classes - 1) or ``location`` (rows alone; y is zero).
    x : training rows [n, p], float64, C order or CSR; every row has L2 norm <= row_bound.
    y : training labels [n], float64.
    row_bound, target_bound : the declared bounds (target_bound is 1 for binary tasks).
    x_test, y_test : held-out rows of the same scaling, or None.
    fingerprint : hex digest of the arrays above (a cache key).
    preprocessing : what was done to the rows, in words, in order.
    data_dependent : True when a step was fitted to the data (min-max, standardisation): no
        mechanism's guarantee covers such a step.
    minimiser : the population minimiser of a synthetic set [p], or None.
    classes : number of classes of a multiclass task.
    phi, phi_row_bound : the public matrix [m, d] that the records came projected by, the rows being
        Phi^T x~, and the bound on |x~|; or None.
    entry_bound : the declared bound on the entries of a row, |x|_inf, where one was made (rows
        bounded in that norm); whoever changes ``x`` has to see to it as to ``row_bound``.
    """

    name: str
    task: str
    x: Matrix
    y: np.ndarray
    row_bound: float
    target_bound: float
    fingerprint: str
    x_test: Matrix | None = None
    y_test: np.ndarray | None = None
    preprocessing: tuple[str, ...] = ()
    data_dependent: bool = False
    minimiser: np.ndarray | None = field(default=None, repr=False)
    classes: int = 2
    entry_bound: float | None = None
    phi: np.ndarray | None = field(default=None, repr=False)
    phi_row_bound: float | None = None

    @property
    def n(self) -> int:
        return int(self.x.shape[0])

    @property
    def p(self) -> int:
        """Number of columns."""
        return int(self.x.shape[1])

    def take(self, batch: np.ndarray) -> Data:
        """The training records with these indices [b]."""
        return replace(self, x=self.x[batch], y=self.y[batch], x_test=None, y_test=None)


class Minorant(NamedTuple):
    """An affine function <slope, theta> + constant that lies below a summed loss everywhere.

    ``constant`` is -inf where a dual point proves nothing. ``slopes`` bounds the sum over records
    of the norms of their slopes, ``terms`` the sum of the moduli of the constant's terms: what a
    certificate's rounding error is measured by.
    """

    slope: np.ndarray
    constant: float
    slopes: float
    terms: float


@dataclass(frozen=True)
class Bounds:
    """The public bounds that a loss's constants follow from.

    ``row`` on the L2 norm of a row, ``target`` on |y|, ``radius`` on |theta| over the set;
    ``columns`` of the data and ``classes`` of a multiclass task.
    """

    row: float
    target: float
    radius: float
    columns: int
    classes: int = 2


def padded(data: Data, population: int) -> Data:
    """The data filled up to ``population`` records with rows of zeros.

    A zero row has a constant loss of the margin (or of the margins of all classes): it adds nothing
    to a gradient.
    """
    extra = population - data.n
    if extra == 0:
        return data
    if isinstance(data.x, np.ndarray):
        x = np.vstack([data.x, np.zeros((extra, data.p))])
    else:
        x = data.x.copy()
        x.resize((population, data.p))
    return replace(data, x=x, y=np.append(data.y, np.ones(extra)))
