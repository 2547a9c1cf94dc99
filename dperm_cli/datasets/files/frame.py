"""A frame of many kinds of columns that a Python call is given, encoded by a declared schema."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import FromRun
from dperm_cli.datasets.files.table import Table
from dperm_cli.datasets.shared.table_cells import RECORDS, Cells

_NO_FRAME = "must be a frame of pandas or polars with named columns, as the schema declares them"


def read_frame(X: Any) -> Cells:
    """The texts of a frame's cells by column, an empty text for a missing one.

    Args:
        X: a frame of pandas, polars or whatever else has ``columns`` and ``frame[name].to_list()``.

    Raises:
        InputError: it is none, or two columns have one name. No value is shown.
    """
    try:
        names = [str(name) for name in X.columns]
        if len(set(names)) == len(names):
            return {str(name): write_cells(X[name].to_list()) for name in X.columns}
    except (AttributeError, TypeError):
        raise InputError("X", f"<{type(X).__name__}>", _NO_FRAME) from None
    twice = next(name for name in names if names.count(name) > 1)
    raise InputError("X", f"column {twice!r}", "is there more than once")


def write_cells(values: Sequence[Any]) -> list[str]:
    """Values as a table has them: a missing one (None, nan, NaT, NA) is an empty text.

    So is one that has no text, as a number of too many digits. No cell stops a fit.

    >>> write_cells([61, 0.5, "f", None, float("nan")])
    ['61', '0.5', 'f', '', '']
    """
    return [_write_cell(value) for value in values]


def _write_cell(value: Any) -> str:
    """The text of a value, empty where it is missing or where it has none; it never raises."""
    if value is None:
        return ""
    try:
        text = str(value)
    except Exception:  # a number of too many digits, or whatever an object may do
        return ""
    try:
        return "" if value != value else text
    except Exception:  # of pandas, NA has no truth value; nor has an array
        return "" if text == "<NA>" else text


_held: ContextVar[Cells | None] = ContextVar("cells", default=None)


@contextmanager
def hold_cells(cells: Cells) -> Iterator[None]:
    """Have this table at hand for ``dataset=frame`` while the block runs."""
    token = _held.set(cells)
    try:
        yield
    finally:
        _held.reset(token)


@dataclass(frozen=True, kw_only=True)
class Frame(Table):
    """A table of a Python call: its features, and the target under the name that is declared.

    >>> told = {"target": {"column": "sick", "classes": ["no", "yes"]},
    ...         "columns": {"age": {"kind": "number", "bounds": [0, 100]}}}
    >>> with hold_cells({"age": ["50", "75"], "sick": ["no", "yes"]}):
    ...     Frame(schema=told, test_fraction=0.0, rows="clip").load().y.tolist()
    [-1.0, 1.0]
    """

    path: Annotated[Any, FromRun()] = "X"
    test_path: Annotated[Any, FromRun()] = None
    max_size: Annotated[Any, FromRun()] = 8.0
    delimiter: Annotated[Any, FromRun()] = ","

    def locate(self, data_dir: Path | None = None) -> Path:
        _require_cells()
        return Path(str(self.path))

    def list_files(self, data_dir: Path | None = None) -> None:
        """None: the records are in memory already."""

    def count_records(self, key: str, path: Path) -> tuple[int, int]:
        return len(next(iter(_require_cells().values()))), 0

    def read_header(self, key: str, path: Path) -> list[str]:
        return list(_require_cells())

    def read_cells(self, key: str, path: Path) -> Iterator[Cells]:
        held = _require_cells()
        n = len(next(iter(held.values())))
        for start in range(0, n, RECORDS):
            yield {name: cells[start : start + RECORDS] for name, cells in held.items()}


def _require_cells() -> Cells:
    held = _held.get()
    if held is None:
        allowed = "is for a frame that an estimator with schema= is given; of a file, dataset=table"
        raise InputError("dataset", "frame", allowed)
    return held


def encode_rows(frame: Frame, cells: Cells) -> np.ndarray:
    """Rows to predict [m, width] from the columns that the schema declares; others are ignored.

    Raises:
        InputError: a column is missing, or a row has no prediction since a cell is missing whose
            column says ``missing: drop``.
    """
    table = frame.table
    for name, _ in table.features:
        if name not in cells:
            raise InputError("X", f"column {name!r}", "is missing, and the schema declares it")
    rows, dropped = table.encode(cells)
    if dropped.any():
        where = f"row {int(np.flatnonzero(dropped)[0]) + 1}"
        allowed = "has no prediction: a cell is missing whose column says missing: drop"
        raise InputError("X", where, allowed)
    return rows
