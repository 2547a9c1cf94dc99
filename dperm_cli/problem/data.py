"""A data set as the rest of dperm sees it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

# np.ndarray [n, p] in C order, or scipy.sparse.csr_array (scipy ships no types)
Matrix = Any


@dataclass(frozen=True)
class Data:
    """Records with bounds that were declared, never measured.

    Attributes
    ----------
    name : the data set's name.
    task : ``binary`` (labels -1 and +1) or ``regression`` (targets within +-target_bound).
    x : training rows [n, p], float64, C order or CSR; every row has L2 norm <= row_bound.
    y : training labels [n], float64.
    row_bound, target_bound : the declared bounds (target_bound is 1 for binary tasks).
    x_test, y_test : held-out rows of the same scaling, or None.
    fingerprint : hex digest of the arrays above (a cache key).
    preprocessing : what was done to the rows, in words, in order.
    data_dependent : True when a step was fitted to the data (min-max, standardisation): no
        mechanism's guarantee covers such a step.
    minimiser : the population minimiser of a synthetic set [p], or None.
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

    @property
    def n(self) -> int:
        return int(self.x.shape[0])

    @property
    def p(self) -> int:
        return int(self.x.shape[1])


def padded(data: Data, population: int) -> Data:
    """The data filled up to ``population`` records with rows of zeros.

    A zero row has a constant loss of the margin: it adds nothing to a gradient.
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
