"""Make neighbouring sets of raw records that are hard to hide, before any row rule is applied.

Each kind is a way in which one record can matter most. Records are raw: a row may be longer than
the declared bound, and whoever loads them has to shorten it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.files import open_atomically, write_atomically
from dperm_cli.core.seeds import generator, seed_sequence

HUGE = 1e8  # times the bound
_ULPS = (2.0**-53, 2.0**-52, 1e-15, 3e-14)  # by which a norm may exceed its bound


@dataclass(frozen=True)
class Shape:
    """The public facts that made-up records have to fit.

    ``targets`` is the number of classes of a multiclass task, 2 elsewhere.
    """

    n: int
    p: int
    task: str
    row_bound: float
    classes: int = 2
    nonnegative: bool = False


Record = tuple[np.ndarray, float]


def _word(value: float) -> str:
    value = float(value)
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


@dataclass(frozen=True)
class Records:
    """Raw rows [n, p] and labels or targets [n]."""

    x: np.ndarray
    y: np.ndarray

    @property
    def n(self) -> int:
        return len(self.y)

    def write(self, path: Path) -> None:
        """Write a file for the reader that its ending names: labels stand last in text files."""
        x, y = self.x, self.y
        if path.suffix == ".csv":
            table = np.column_stack([x, y])
            text = "\n".join(",".join(map(_word, row)) for row in table) + "\n"
            write_atomically(path, text.encode(), sync=False)
        elif path.suffix == ".npz":
            with open_atomically(path, sync=False) as file:
                np.savez(file, x=x, y=y)
        elif path.suffix == ".svmlight":
            lines = []
            for row, label in zip(x, y, strict=True):
                cells = [f"{j + 1}:{_word(row[j])}" for j in np.flatnonzero(row)]
                lines.append(" ".join([_word(label), *cells]))
            write_atomically(path, ("\n".join(lines) + "\n").encode(), sync=False)
        else:
            import pyarrow as pa
            import pyarrow.parquet as pq

            columns = {f"x{j}": x[:, j] for j in range(x.shape[1])}
            whole = bool(np.all(y == np.round(y)))
            table = pa.table({**columns, "y": y.astype(np.int64) if whole else y})
            with open_atomically(path, sync=False) as file:
                pq.write_table(table, file)

    def replace(self, index: int, record: Record) -> Records:
        """The same with another record at ``index``."""
        x, y = self.x.copy(), self.y.copy()
        x[index], y[index] = record
        return Records(x, y)

    def drop(self, index: int) -> Records:
        """The same without the record at ``index``."""
        return Records(np.delete(self.x, index, axis=0), np.delete(self.y, index))


@dataclass(frozen=True)
class Pair:
    """Two neighbouring sets of raw records; record ``index`` is the one that differs.

    Where ``removed``, the second set has no record in its place, otherwise another one.
    """

    kind: str
    first: Records
    second: Records
    index: int
    removed: bool = False

    def list_shared(self) -> tuple[np.ndarray, np.ndarray]:
        """The indices of the shared records in both sets, [n - 1] each."""
        mine = np.delete(np.arange(self.first.n), self.index)
        return mine, mine - (mine > self.index) if self.removed else mine


def _zero_row(shape: Shape, at: Record) -> Record:
    return np.zeros(shape.p), at[1]


def _label_flip(shape: Shape, at: Record) -> Record:
    row, y = at
    if shape.task == "location":
        return -row, y
    return row, (shape.classes - 1.0 - y if shape.task == "multiclass" else -y)


def _opposite_rows(shape: Shape, at: Record) -> Record:
    row, y = at
    return (np.roll(row, 1) if shape.nonnegative else -row), y


def _orthogonal_rows(shape: Shape, at: Record) -> Record:
    row, y = at
    if shape.p < 2:
        return -row, y
    other = np.zeros(shape.p)
    other[int(np.argmin(np.abs(row)))] = shape.row_bound
    if not shape.nonnegative:
        other -= row * (other @ row) / max(float(row @ row), 1e-300)
    length = np.linalg.norm(other)
    return other * (shape.row_bound / length if length > 0 else 1.0), y


def _far_label(shape: Shape, at: Record) -> Record:
    return _opposite_rows(shape, at if shape.task == "location" else _label_flip(shape, at))


_OTHERS: dict[str, Callable[[Shape, Record], Record]] = {
    "alone": _zero_row,
    "alone, label flip": _label_flip,
    "zero row": _zero_row,
    "label flip": _label_flip,
    "opposite rows": _opposite_rows,
    "orthogonal rows": _orthogonal_rows,
    "one class": _label_flip,
    "cancelling": _far_label,
    "huge row": _opposite_rows,
    "norm above the bound": _label_flip,
}
KINDS = tuple(_OTHERS)
ALONE = KINDS[:2]  # where all other records are rows of zeros, and nothing hides the one


def make(
    kind: str,
    shape: Shape,
    relation: str,
    seed: int = 0,
    drop: bool = False,
    last: bool = False,
) -> Pair:
    """The pair of a kind.

    Args:
        kind: one of ``KINDS``.
        shape: what the records have to fit.
        relation: under ``add_remove`` the second set has nothing in place of the record.
        seed: of the records that both sets share.
        drop: whether that record is left out; else a row of zeros stands in its place, which keeps
            the number of records.
        last: whether it is the last record, so that no other one moves up where it is left out.

    Returns:
        Pair: raw records; rows of most kinds have the norm of the bound.
    """
    rng = generator(seed_sequence(seed, "audit", "pair", kind, repr(shape)))
    index = shape.n - 1 if last else seed % shape.n
    x, y = _make_shared(kind, shape, rng)
    x[index], y[index] = _record(kind, shape, rng, y[index])
    if kind == "cancelling" and shape.n > 1:
        # what the record does is undone by another one, so that the whole gradient turns with it
        x[(index + 1) % shape.n], y[(index + 1) % shape.n] = -x[index], y[index]
        if shape.nonnegative:
            x[(index + 1) % shape.n] *= -1.0
    first = Records(x, y)
    if relation == "add_remove":
        return leave_out(kind, first, index, drop)
    other = _OTHERS[kind](shape, (x[index], y[index]))
    return Pair(kind, first, first.replace(index, other), index)


def leave_out(kind: str, first: Records, index: int, drop: bool) -> Pair:
    """``first`` and the same without a record, or with a row of zeros in its place."""
    if drop:
        return Pair(kind, first, first.drop(index), index, removed=True)
    nothing = np.zeros(first.x.shape[1]), first.y[index]
    return Pair(kind, first, first.replace(index, nothing), index)


def zeros(shape: Shape) -> Records:
    """Rows of zeros: a loss of the margin has no gradient there, and a release is noise alone."""
    y = np.ones(shape.n)
    if shape.task in ("multiclass", "location"):
        y = np.zeros(shape.n)
    return Records(np.zeros((shape.n, shape.p)), y)


def _make_shared(
    kind: str, shape: Shape, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The records, of which one is going to be replaced: half of them as long as the bound."""
    if kind in ALONE:
        return np.zeros((shape.n, shape.p)), zeros(shape).y.copy()
    x = rng.standard_normal((shape.n, shape.p))
    if shape.nonnegative:
        x = np.abs(x)
    length = np.linalg.norm(x, axis=1, keepdims=True)
    size = np.where(np.arange(shape.n) % 2, rng.uniform(0.1, 1.0, shape.n), 1.0)[:, None]
    x *= shape.row_bound * size / np.where(length > 0.0, length, 1.0)
    x[rng.uniform(size=x.shape) < 0.2] = 0.0  # some entries are not there in sparse rows
    if kind == "one class":
        return x, zeros(shape).y.copy()
    return x, _labels(shape, shape.n, rng)


def _labels(shape: Shape, count: int, rng: np.random.Generator) -> np.ndarray:
    if shape.task == "location":
        return np.zeros(count)
    if shape.task == "multiclass":
        return rng.integers(shape.classes, size=count).astype(float)
    return rng.choice([-1.0, 1.0], count)


def _record(kind: str, shape: Shape, rng: np.random.Generator, y: float) -> Record:
    """The record itself, on an axis or in a direction of all coordinates."""
    row = np.zeros(shape.p)
    row[int(rng.integers(shape.p))] = 1.0
    if kind in ("norm above the bound", "huge row", "one class"):
        row = rng.standard_normal(shape.p)
        row = np.abs(row) if shape.nonnegative else row
        row /= np.linalg.norm(row)
    size = HUGE if kind == "huge row" else 1.0
    if kind == "norm above the bound":
        size = 1.0 + _ULPS[int(rng.integers(len(_ULPS)))]
    row = row * (shape.row_bound * size)
    if shape.task == "multiclass":
        y = 0.0  # the flip goes to the last class
    return row, y
