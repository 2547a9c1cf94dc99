"""Work on records part by part: here, or by other processes that map the parts they are given.

What is computed of the records is a function of one part of them (``map_parts``). On one machine it
is called here, by several threads. ``SplitRows`` hand it to whoever runs it, such as a cluster. The
parts and the order in which they are added up are the same, and so are the bits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from dperm_cli.core import npy_files
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import DpermError
from dperm_cli.core.files import storage_errors
from dperm_cli.loops.record_parts import SMALL, add_pairs, divide, is_one_part
from dperm_cli.loops.thread_count import run_in_threads
from dperm_cli.problem.data_folder import FACTS, map_part

# A function of the rows of a part, and of the pieces of other arrays that belong to them.
Work = Callable[..., Any]

_WHOLE = "split=rows: something here needs the whole rows in one process; leave split= out"


@dataclass(frozen=True)
class Pass:
    """One pass over the records: what is computed of each part.

    Attributes:
        folder: Where the records are stored (``problem.data_folder``).
        fingerprint: Of the records that are meant.
        work: The function of a part; it can be pickled.
        parts: Where each part begins and ends.
        pieces: For each part what ``work`` takes after its rows; None stands for the labels that
            are stored beside them.
        is_filled: Whether ``work`` takes sparse rows as dense ones.
    """

    folder: Path
    fingerprint: str
    work: Work
    parts: tuple[tuple[int, int], ...]
    pieces: tuple[tuple[np.ndarray | None, ...], ...] = field(repr=False)
    is_filled: bool = False

    def take(self, numbers: Sequence[int]) -> Pass:
        """The same over the parts with these numbers alone."""
        parts = tuple(self.parts[number] for number in numbers)
        return replace(self, parts=parts, pieces=tuple(self.pieces[number] for number in numbers))

    def compute(self) -> list[Any]:
        """What ``work`` gives for each part. Nothing but these parts is mapped.

        Raises:
            DpermError: The folder holds other records than those that are meant.
            StorageError: It cannot be read.
        """
        with storage_errors(self.folder):
            facts = json.loads((self.folder / FACTS).read_text())
            if facts.get("fingerprint") != self.fingerprint:
                raise DpermError(f"{self.folder} on a worker's machine holds other records")
            work = partial(self._compute_part, facts)
            return run_in_threads(work, range(len(self.parts)))

    def _compute_part(self, facts: dict[str, Any], number: int) -> Any:
        begin, end = self.parts[number]
        x = map_part(self.folder, facts, begin, end)
        x = fill_rows(x) if self.is_filled else x
        pieces = [
            npy_files.map_rows(self.folder / "y.npy", begin, end) if piece is None else piece
            for piece in self.pieces[number]
        ]
        return self.work(x, *pieces)


class SplitRows:
    """Rows [n, p] of a stored folder, dense or sparse, of which this process reads none.

    They stand where an array of rows stands. Sums over records and products with vectors are made
    by ``run``; whatever else asks for the rows is refused.

    Args:
        folder: Where the records are stored, on a path that all processes see.
        fingerprint: Of the records.
        rows: The rows as they are mapped here; they are not kept.
        labels: The labels or targets [n] that are stored beside them.
        run: Gives what each part of a pass comes to, in the order of the parts.
    """

    def __init__(
        self,
        folder: Path,
        fingerprint: str,
        rows: Any,
        labels: np.ndarray,
        run: Callable[[Pass], list[Any]],
    ) -> None:
        self.shape: tuple[int, int] = rows.shape
        self.dtype, self.is_sparse = rows.dtype, sparse.issparse(rows)
        self.entries = count_entries(rows)
        self._folder, self._fingerprint = folder, fingerprint
        self._labels, self._run, self._is_filled = labels, run, False

    def fill(self) -> SplitRows:
        """Sparse rows as dense ones, for whoever works on them."""
        found = copy(self)
        found.is_sparse, found._is_filled = False, True
        return found

    def map_parts(
        self, work: Work, *along: np.ndarray, parts: Sequence[tuple[int, int]] = (),
        entries: int = 0,
    ) -> list[Any]:  # fmt: skip
        """``work`` of every part, in order.

        Args:
            work: From the rows of a part and the pieces of ``along`` that belong to them to
                anything that can be pickled. It is pickled itself.
            along: Arrays [n, ...]. The labels are not sent: whoever works on a part has them.
            parts: Where other parts than the usual ones begin and end.
            entries: As of ``divide``.
        """
        n, p = self.shape
        parts = parts or divide(n, p, entries, is_sparse=self.is_sparse)
        pieces = tuple(
            tuple(None if array is self._labels else _cut(array, part) for array in along)
            for part in parts
        )
        one = Pass(self._folder, self._fingerprint, work, tuple(parts), pieces, self._is_filled)
        return self._run(one)

    def _refuse(self, *_args: Any, **_more: Any) -> NoReturn:
        raise DpermError(_WHOLE)

    __array__ = __getitem__ = __matmul__ = __rmatmul__ = __iter__ = _refuse
    T = property(_refuse)


def is_dense(x: Any) -> bool:
    """Whether rows are stored whole, be it that this process reads them or others."""
    return isinstance(x, np.ndarray) or (isinstance(x, SplitRows) and not x.is_sparse)


def is_stored(x: Any) -> bool:
    """Whether there are rows, dense or sparse; a kernel's may be made as they are multiplied."""
    return isinstance(x, np.ndarray | SplitRows) or sparse.issparse(x)


def fill_rows(x: Any) -> Any:
    """Sparse rows as dense ones."""
    if isinstance(x, SplitRows):
        return x.fill()
    return x.toarray() if sparse.issparse(x) else x


def is_sparse(x: Any) -> bool:
    """Whether rows are sparse, be it that this process reads them or others."""
    return sparse.issparse(x) or (isinstance(x, SplitRows) and x.is_sparse)


def count_entries(x: Any) -> int:
    """How many entries rows hold; the zeros of sparse rows are none."""
    if isinstance(x, SplitRows):
        return x.entries
    return int(x.nnz if sparse.issparse(x) else x.size)


def require_whole(x: Any) -> None:
    """DpermError for rows that this process does not read."""
    if isinstance(x, SplitRows):
        raise DpermError(_WHOLE)


def map_parts(x: Any, work: Work, *along: np.ndarray, entries: int = 0) -> list[Any]:
    """``work`` of every part of the rows, in order.

    Args:
        x: Rows [n, p], dense or sparse.
        work: From the rows of a part and the pieces of ``along`` that belong to them to anything.
            For ``SplitRows`` it has to be one that can be pickled.
        along: Arrays [n, ...].
        entries: As of ``divide``.
    """
    if isinstance(x, SplitRows):
        return x.map_parts(work, *along, entries=entries)
    if not is_stored(x):  # rows that are made as they are multiplied
        return [work(x, *along)]
    rows: Any = x.tocsr() if sparse.issparse(x) else x
    n, p = rows.shape
    if isinstance(rows, np.ndarray) and is_one_part(n):
        return [work(rows, *map(np.ascontiguousarray, along))]

    def compute(part: tuple[int, int]) -> Any:
        return work(_cut_rows(rows, *part), *(_cut(array, part) for array in along))

    parts = divide(n, p, entries, is_sparse=is_sparse(x))
    is_small = count_entries(x) <= SMALL
    return [compute(part) for part in parts] if is_small else run_in_threads(compute, parts)


def _cut_rows(x: Any, begin: int, end: int) -> Any:
    if not sparse.issparse(x):
        return x[begin:end]
    if (begin, end) == (0, x.shape[0]):
        return x
    first, last = x.indptr[begin], x.indptr[end]  # a slice of scipy's would copy the entries
    parts = (x.data[first:last], x.indices[first:last], x.indptr[begin : end + 1] - first)
    make: Any = type(x)
    return make(parts, shape=(end - begin, x.shape[1]), copy=False)


def _cut(array: np.ndarray, part: tuple[int, int]) -> np.ndarray:
    # in C order: products of other orders may have other last bits, and a copy sent is in this one
    return np.ascontiguousarray(array[slice(*part)])


def sum_parts(x: Any, work: Work, *along: np.ndarray, entries: int = 0) -> Any:
    """The sum over all parts of what ``work`` gives for each, in a fixed order."""
    return add_pairs(map_parts(x, work, *along, entries=entries))


def join_parts(x: Any, work: Work, *along: np.ndarray) -> np.ndarray:
    """One array [n, ...] of what ``work`` gives for each part, [records, ...]."""
    found = map_parts(x, work, *along)
    return found[0] if len(found) == 1 else np.concatenate(found)
