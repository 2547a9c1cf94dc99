"""Records that a Python call is given: ``dperm_cli.run(X=..., y=...)``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy import sparse

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import Allowed, FromRun, Help
from dperm_cli.datasets.base import Size
from dperm_cli.datasets.shared.row_pipeline import Raw
from dperm_cli.datasets.shared.table_columns import TableOptions
from dperm_cli.problem.data import Data

_NOT_A_MATRIX = "must be a matrix of numbers [n, p]: an array of numpy, or a frame of pandas"


@dataclass(frozen=True)
class Table:
    """Columns of equal length under their names; the last one is the target where y was given.

    >>> table = Table.of_arguments([[0.5, 1.0], [0.0, 1.0]], [1, -1])
    >>> table.names, table.n
    (('x1', 'x2', 'y'), 2)
    """

    names: tuple[str, ...]
    columns: Sequence[np.ndarray]
    n: int
    has_target: bool = False

    @classmethod
    def of_arguments(cls, X: Any, y: Any = None) -> Table | None:
        """The table of rows X [n, p] and labels or targets y [n]; None without X.

        Args:
            X: Of numpy, lists of numbers, or a frame of pandas, whose columns have names.
            y: Of numpy, a list, or a series of pandas.

        Raises:
            InputError: They are something else, of different lengths, or a frame and a series whose
                indices differ; no value is shown.
        """
        if X is None:
            if y is not None:
                raise InputError("y", "...", "needs X=, the rows that it belongs to")
            return None
        names, columns = _read_frame(X) if _is_frame(X) else _read_matrix(X)
        n = len(columns[0])
        if y is not None:
            _refuse_other_index(X, y)
            label, values = _read_target(y)
            if len(values) != n:
                raise InputError(
                    "y", f"{len(values)} values", f"must be {n}: one for each row of X"
                )
            while label in names:
                label += "_"
            names, columns = [*names, label], [*columns, values]
        return cls(tuple(names), columns, n, y is not None)


_held: ContextVar[Table | None] = ContextVar("table", default=None)


@contextmanager
def hold_table(table: Table | None) -> Iterator[None]:
    """Have these records at hand for ``dataset=arrays`` while the block runs."""
    token = _held.set(table)
    try:
        yield
    finally:
        _held.reset(token)


@dataclass(frozen=True, kw_only=True)
class Arrays(TableOptions):
    """Rows and targets of a Python call, prepared as those of a file are.

    title : what rows, tables and figures call the data set.

    >>> with hold_table(Table.of_arguments([[3.0, 4.0], [0.0, 9.0]], [1, -1])):
    ...     data = Arrays(title="toy", test_fraction=0.0, intercept=False).load()
    >>> data.name, data.x.round(3).tolist(), data.y.tolist()
    ('toy', [[0.6, 0.8], [0.0, 1.0]], [1.0, -1.0])
    """

    bounds_words: ClassVar[str] = "dataset={'bounds': [[low, high], ...]}"

    path: Annotated[Any, FromRun()] = "X"
    test_path: Annotated[Any, FromRun()] = None
    max_size: Annotated[Any, FromRun()] = 8.0
    title: Annotated[str, Allowed("must be a name"), Help("of the data, in tables")] = "arrays"

    def load(self, data_dir: Path | None = None) -> Data:
        """The given records, split, scaled and bounded, under their title."""
        return replace(super().load(data_dir), name=self.title)

    def raw(self, data_dir: Path | None = None) -> Raw:
        """The given records, with labels mapped; no error shows a value of them."""
        try:
            return super().raw(data_dir)
        except InputError as error:
            places = {"dataset.path": ("X", "..."), "dataset.labels": ("y", "...")}
            fault = InputError(*places.get(error.key, (error.key, error.value)), error.allowed)
        raise fault

    def locate(self, data_dir: Path | None = None) -> Path:
        _require_table()
        return Path(str(self.path))

    def list_files(self, data_dir: Path | None = None) -> None:
        """None: the records are in memory already."""

    def find_size(self, data_dir: Path | None = None, count: bool = False) -> Size:
        table = _require_table()
        wanted, _ = self.choose(list(table.names))
        return Size(table.n, len(wanted), self.held_out(table.n))

    def choose(self, header: list[str]) -> tuple[list[int], int | None]:
        """Positions of features and target; InputError unless y or a column of X is the target."""
        given, target = _require_table().has_target, self.target
        if given and (self.task == "location" or target not in (None, header[-1])):
            allowed = "task=location has no target" if target is None else "cannot stand beside y="
            raise InputError("y" if target is None else "dataset.target", target or "...", allowed)
        if not given and target is None and self.task != "location":
            allowed = "must be given: labels or targets, or dataset={'target': a column of X}"
            raise InputError("y", None, allowed)
        return super().choose(header)

    def header_of(self, key: str, path: Path) -> list[str]:
        return list(_require_table().names)

    def read_blocks(self, key: str, path: Path) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        table = _require_table()
        wanted, target = self.choose(list(table.names))
        x = np.empty((table.n, len(wanted)))
        for j, i in enumerate(wanted):
            x[:, j] = _make_real(table.names[i], table.columns[i])
        y = np.zeros(table.n) if target is None else _make_labels(table.columns[target])
        yield x, y


def _require_table() -> Table:
    table = _held.get()
    if table is None:
        allowed = "is for records given from Python: dperm_cli.run(X=..., y=...)"
        raise InputError("dataset", "arrays", allowed)
    return table


def _refuse_other_index(X: Any, y: Any) -> None:
    """A frame and a series are paired row by row: their indices must say that they belong so."""
    if _is_frame(X) and _is_series(y) and not X.index.equals(y.index):
        allowed = "has another index than X: give y.loc[X.index], or y.to_numpy() for the same rows"
        raise InputError("y", f"<{type(y).__name__}>", allowed)


def _is_frame(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "pandas" and value.ndim == 2


def _is_series(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "pandas" and value.ndim == 1


def _read_frame(frame: Any) -> tuple[list[str], list[np.ndarray]]:
    if not len(frame.columns):
        raise InputError("X", "...", _NOT_A_MATRIX)
    names = [str(name) for name in frame.columns]
    return names, [_read_series(frame.iloc[:, i]) for i in range(len(names))]


def _read_series(series: Any) -> np.ndarray:
    """Numbers as float64 with nan for what is missing, booleans, and anything else as it is."""
    from pandas.api import types

    kind = series.dtype
    if types.is_bool_dtype(kind) and not series.isna().any():
        return series.to_numpy(dtype=bool)  # labels true and false
    if types.is_integer_dtype(kind) or types.is_float_dtype(kind):
        return series.to_numpy(dtype=np.float64, na_value=np.nan)
    return series.to_numpy(dtype=object, na_value="")


def _read_matrix(X: Any) -> tuple[list[str], list[np.ndarray]]:
    if sparse.issparse(X):
        raise InputError("X", f"<{type(X).__name__}>", "is sparse: give X.toarray(), or a file in "
                         "the format svmlight (dataset=svmlight)")  # fmt: skip
    found: Any = None
    with suppress(ValueError, TypeError):
        found = _read_array("X", X)
    if found is None:
        raise InputError("X", f"<{type(X).__name__}>", _NOT_A_MATRIX)
    if found.ndim != 2 or found.dtype.kind not in "biuf" or 0 in found.shape:
        kind = found.dtype.type.__name__.rstrip("_")
        seen = f"<{type(X).__name__} of shape {list(found.shape)}, type {kind}>"
        raise InputError("X", seen, _NOT_A_MATRIX)
    return [f"x{i + 1}" for i in range(found.shape[1])], list(found.T)


def _read_array(key: str, value: Any) -> np.ndarray:
    if np.ma.is_masked(value):
        raise InputError(
            key, f"<{type(value).__name__}>", "has masked values: leave these rows out"
        )
    return np.asarray(value)


def _read_target(y: Any) -> tuple[str, np.ndarray]:
    named = _is_series(y)
    values = _read_series(y) if named else _read_array("y", y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        allowed = "must be one label or target for each row: an array of numpy or a series"
        raise InputError("y", f"<{type(y).__name__}>", allowed)
    return str(y.name) if named and y.name is not None else "y", values


def _make_real(name: str, column: np.ndarray) -> np.ndarray:
    if column.dtype.kind not in "biuf":
        raise InputError("X", f"column {name}", "must hold numbers")
    return column.astype(np.float64)


def _make_labels(column: np.ndarray) -> np.ndarray:
    """Labels as the readers of files give them: numbers, or text that is empty where missing."""
    if column.dtype.kind in "biuf":
        return column
    return np.array([_write_label(value) for value in column.tolist()], dtype=str)


def _write_label(value: Any) -> str:
    return "" if value is None or value != value else str(value)
