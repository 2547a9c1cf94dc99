"""``Data``: the records of a data set with their declared bounds and public facts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.digests import hash_parts
from dperm_cli.problem.public_facts import Block, Bounds, Matrix, PublicFacts
from dperm_cli.problem.record_names import NO_RECORD, name_records

_BLOCK_RECORDS = 1 << 16


@dataclass(frozen=True)
class Data:
    """Records with bounds that were declared, never measured.

    Every record has a name, made of the record as it was read; a loader makes it (``of_records``)
    and whatever is computed from the rows passes it on. Other rows come from ``with_rows`` (each
    of its own record), ``take``, ``with_record(s)`` or ``pad_with_zeros``, and not from
    ``replace``.

    Attributes
    ----------
    name : the data set's name.
    task : ``binary`` (labels -1 and +1), ``regression`` (targets within +-target_bound),
        ``multiclass`` (labels 0 .. classes - 1) or ``location`` (rows alone; y is zero).
    x : training rows [n, p], float64, C order or CSR; every row has L2 norm <= row_bound.
    y : training labels [n], float64.
    names : of the training records [n], uint64 (``record_names``): private, as the records are.
    row_bound, target_bound : the declared bounds (target_bound is 1 for binary tasks).
    x_test, y_test : held-out rows of the same scaling, or None.
    split : whether they were split off the records: which they are, and how many, then follows
        the number of records.
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
    blocks : of the columns, where rows hold those of several scalings side by side; other rows
        have none.

    >>> data = Data.of_records("toy", "binary", np.eye(3), np.ones(3), 1.0, 1.0, fingerprint="")
    >>> changed = data.with_record(0, np.zeros(3), -1.0)
    >>> (data.names == changed.names).tolist()
    [False, True, True]
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
    split: bool = False
    blocks: tuple[Block, ...] = ()
    names: np.ndarray = field(kw_only=True, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "blocks", tuple(Block(*block) for block in self.blocks))
        if self.names.dtype != np.uint64 or self.names.shape != (self.x.shape[0],):
            found = f"{self.names.dtype}{list(self.names.shape)}"
            raise ValueError(f"{self.x.shape[0]} rows need as many uint64 names, not {found}")

    @classmethod
    def of_records(cls, name: str, task: str, x: Matrix, y: np.ndarray, *facts, **more) -> Data:
        """A data set of records as they were read; their names are made from x and y.

        Args: as the constructor's, without ``names``.
        """
        return cls(name, task, x, y, *facts, **more, names=name_records(x, y))

    @classmethod
    def of_part(cls, facts: PublicFacts, x: Matrix, y: np.ndarray) -> Data:
        """Some records of a data set, for sums over them; they have no names of their own."""
        bounds, names = (facts.row_bound, facts.target_bound), np.zeros(len(y), np.uint64)
        return cls("", facts.task, x, y, *bounds, "", classes=facts.classes, names=names)

    @property
    def n(self) -> int:
        return int(self.x.shape[0])

    @property
    def p(self) -> int:
        """Number of columns."""
        return int(self.x.shape[1])

    @property
    def identity(self) -> str:
        """Hex digest of fingerprint and names, equal only for records that were read equal."""
        return hash_parts(self.fingerprint, np.ascontiguousarray(self.names, dtype="<u8"))

    def take(self, batch: np.ndarray | slice) -> Data:
        """The training records with these indices [b]."""
        return replace(
            self, x=self.x[batch], y=self.y[batch], names=self.names[batch],
            x_test=None, y_test=None,
        )  # fmt: skip

    def with_rows(self, x: Matrix, **facts: Any) -> Data:
        """The same records with other rows, row i made of row i alone; they keep their names.

        Args:
            x: the new rows [n, any].
            facts: other fields that change with them, such as ``row_bound`` and ``x_test``.
        """
        return replace(self, x=x, **({"blocks": ()} | facts))

    def with_records(self, x: Matrix, y: np.ndarray, **facts: Any) -> Data:
        """Other records, as they were read, under the same bounds; they get names of their own."""
        return replace(self, x=x, y=y, names=name_records(x, y), **facts)

    def with_record(self, index: int, row: np.ndarray, target: float, **facts: Any) -> Data:
        """The data set with one record replaced; the others keep their names."""
        y, names = self.y.copy(), self.names.copy()
        y[index] = target
        names[index] = name_records(np.atleast_2d(row), np.array([target]))[0]
        if isinstance(self.x, np.ndarray):
            x = self.x.copy()
            x[index] = row
        else:
            rows = sparse.lil_array(self.x)
            rows[index] = row
            x = sparse.csr_array(rows)
        return replace(self, x=x, y=y, names=names, **facts)

    def facts(self, n: int | None = None) -> PublicFacts:
        """What is public of the data set.

        Args:
            n: the declared population; None where the number of records is public or disclosed.

        With a declared population, rows that were split off the records are no public points.
        """
        hidden = n is not None and self.split
        return PublicFacts(
            n=self.n if n is None else n, p=self.p, task=self.task, classes=self.classes,
            row_bound=self.row_bound, target_bound=self.target_bound,
            entry_bound=self.entry_bound, phi=self.phi, phi_row_bound=self.phi_row_bound,
            points=None if hidden else self.x_test, hidden_points=hidden, blocks=self.blocks,
        )  # fmt: skip


class Minorant(NamedTuple):
    """An affine function <slope, theta> + constant that is below a summed loss everywhere.

    Attributes:
        slope: its slope, [p].
        constant: -inf where a dual point proves nothing.
        slopes: a bound on the sum over records of the norms of their slopes.
        terms: a bound on the sum of the moduli of the constant's terms. ``slopes`` and ``terms``
            serve to bound the rounding error of a certificate.

    >>> below = Minorant(slope=np.array([1.0]), constant=-2.0, slopes=1.0, terms=2.0)
    >>> float(below.slope @ np.array([3.0]) + below.constant)
    1.0
    """

    slope: np.ndarray
    constant: float
    slopes: float
    terms: float


def sum_blocks(function: Callable[[Data], np.ndarray], data: Data) -> np.ndarray:
    """The sum over blocks of records of ``function``, which never sees more than a block."""
    if data.n <= _BLOCK_RECORDS:
        return function(data)
    starts = range(0, data.n, _BLOCK_RECORDS)
    return np.sum([function(data.take(slice(at, at + _BLOCK_RECORDS))) for at in starts], axis=0)


def pad_with_zeros(data: Data, population: int) -> Data:
    """The data filled up to ``population`` records with rows of zeros.

    A zero row has a constant loss of the margin (or of the margins of all classes): it adds nothing
    to a gradient. It has the name ``NO_RECORD``.
    """
    extra = population - data.n
    if extra == 0:
        return data
    if isinstance(data.x, np.ndarray):
        x: Any = np.vstack([data.x, np.zeros((extra, data.p))])
    elif sparse.issparse(data.x):
        x = data.x.copy()
        x.resize((population, data.p))
    else:
        x = data.x.pad_with_zeros(extra)  # rows that are not made yet
    names = np.append(data.names, np.full(extra, NO_RECORD))
    return replace(data, x=x, y=np.append(data.y, np.ones(extra)), names=names)


__all__ = ["Bounds", "Data", "Matrix", "Minorant", "PublicFacts", "pad_with_zeros", "sum_blocks"]
