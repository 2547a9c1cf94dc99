"""Work on records part by part: here, or by other processes that map the parts they are given.

What is computed of the records is a function of one part of them (``map_parts``). On one machine it
is called here, by several threads. ``SplitRows`` hand it to whoever runs it, such as a cluster. The
parts and the order in which they are added up are the same, and so are the bits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from dperm_cli.core import npy_files
from dperm_cli.core.errors import DpermError
from dperm_cli.core.files import storage_errors
from dperm_cli.loops.record_parts import SMALL, add_pairs, divide
from dperm_cli.loops.thread_count import run_in_threads
from dperm_cli.problem.data_folder import FACTS

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
    """

    folder: Path
    fingerprint: str
    work: Work
    parts: tuple[tuple[int, int], ...]
    pieces: tuple[tuple[np.ndarray | None, ...], ...] = field(repr=False)

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
            held = json.loads((self.folder / FACTS).read_text()).get("fingerprint")
            if held != self.fingerprint:
                raise DpermError(f"{self.folder} on a worker's machine holds other records")
            return run_in_threads(self._compute_part, range(len(self.parts)))

    def _compute_part(self, number: int) -> Any:
        begin, end = self.parts[number]
        x = npy_files.map_rows(self.folder / "x.npy", begin, end)
        pieces = [
            npy_files.map_rows(self.folder / "y.npy", begin, end) if piece is None else piece
            for piece in self.pieces[number]
        ]
        return self.work(x, *pieces)


class SplitRows:
    """Dense rows [n, p] of a stored folder, of which this process reads none.

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
        rows: np.ndarray,
        labels: np.ndarray,
        run: Callable[[Pass], list[Any]],
    ) -> None:
        self.shape: tuple[int, int] = rows.shape  # type: ignore[assignment]
        self.dtype, self.size = rows.dtype, rows.size
        self._folder, self._fingerprint = folder, fingerprint
        self._labels, self._run = labels, run

    def map_parts(
        self, work: Work, *along: np.ndarray, parts: Sequence[tuple[int, int]] = ()
    ) -> list[Any]:
        """``work`` of every part, in order.

        Args:
            work: From the rows of a part and the pieces of ``along`` that belong to them to
                anything that can be pickled. It is pickled itself.
            along: Arrays [n, ...]. The labels are not sent: whoever works on a part has them.
            parts: Where other parts than the usual ones begin and end.
        """
        parts = parts or divide(*self.shape)
        pieces = tuple(
            tuple(None if array is self._labels else _cut(array, part) for array in along)
            for part in parts
        )
        return self._run(Pass(self._folder, self._fingerprint, work, tuple(parts), pieces))

    def _refuse(self, *_args: Any, **_more: Any) -> NoReturn:
        raise DpermError(_WHOLE)

    __array__ = __getitem__ = __matmul__ = __rmatmul__ = __iter__ = _refuse
    T = property(_refuse)


def is_dense(x: Any) -> bool:
    """Whether rows are stored whole, be it that this process reads them or others."""
    return isinstance(x, np.ndarray | SplitRows)


def require_whole(x: Any) -> None:
    """DpermError for rows that this process does not read."""
    if isinstance(x, SplitRows):
        raise DpermError(_WHOLE)


def map_parts(x: Any, work: Work, *along: np.ndarray) -> list[Any]:
    """``work`` of every part of the rows, in order.

    Args:
        x: Dense rows [n, p].
        work: From the rows of a part and the pieces of ``along`` that belong to them to anything.
            For ``SplitRows`` it has to be one that can be pickled.
        along: Arrays [n, ...].
    """
    if isinstance(x, SplitRows):
        return x.map_parts(work, *along)

    def compute(part: tuple[int, int]) -> Any:
        return work(x[slice(*part)], *(_cut(array, part) for array in along))

    parts = divide(*x.shape)
    return [compute(part) for part in parts] if x.size <= SMALL else run_in_threads(compute, parts)


def _cut(array: np.ndarray, part: tuple[int, int]) -> np.ndarray:
    # in C order: products of other orders may have other last bits, and a copy sent is in this one
    return np.ascontiguousarray(array[slice(*part)])


def sum_parts(x: Any, work: Work, *along: np.ndarray) -> Any:
    """The sum over all parts of what ``work`` gives for each, in a fixed order."""
    return add_pairs(map_parts(x, work, *along))


def join_parts(x: Any, work: Work, *along: np.ndarray) -> np.ndarray:
    """One array [n, ...] of what ``work`` gives for each part, [records, ...]."""
    found = map_parts(x, work, *along)
    return found[0] if len(found) == 1 else np.concatenate(found)
