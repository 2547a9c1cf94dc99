"""Read files of raw rows for a model, some rows at a time.

Columns are matched by name where the model has names; others in the file are not looked at.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np

from dperm_cli.core import npy_files
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError, make_printable
from dperm_cli.core.number_text import number_in
from dperm_cli.core.read_errors import first_words, report_read_errors
from dperm_cli.datasets.shared.archives import GIB
from dperm_cli.datasets.shared.file_options import FileOptions
from dperm_cli.datasets.shared.row_blocks import stack_blocks
from dperm_cli.datasets.shared.table_cells import read_cells, read_header
from dperm_cli.datasets.shared.table_schema import TableSchema
from dperm_cli.runner.models.input_schema import InputSchema

KEY = "ROWS"
COLUMNS = ("name", "position")  # how columns are found, the default first
SVMLIGHT = (".svmlight", ".libsvm", ".svm")
NO_ROWS = "holds no rows of numbers"
MOST_BYTES = 1024 * GIB  # of an unpacked file: some rows at a time are held
_SHOWN = 5


@dataclass(frozen=True, eq=False)
class QueryBlock:
    """Some rows for a model.

    Attributes:
        rows: raw rows [m, columns of the model], an array or a CSR matrix.
        identifiers: the texts of the columns that are passed through, m in each.
        unusable: rows that get no prediction, since a cell is missing whose column says
            ``missing: drop`` [m]; None where there are none.
    """

    rows: Any
    identifiers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    unusable: np.ndarray | None = None


def read_blocks(word: str, schema: InputSchema, by_position: bool = False) -> Iterator[QueryBlock]:
    """The rows of a file, at least one, in the order of the model's columns.

    Args:
        word: a csv file, or one that ends in .parquet, .npy, .npz (array ``x``) or .svmlight.
        schema: the columns of the model.
        by_position: whether the caller says that the columns are the model's in its order.

    Raises:
        InputError: naming the columns that are missing, or the first bad line.
    """
    if not os.path.isfile(word):
        raise InputError(KEY, word, "is not a file")
    if schema.table is None:
        yield QueryBlock(_read_numbers(word, schema, by_position))
        return
    if by_position:
        raise InputError("columns", "position", "the model's table has named columns of many kinds")
    with report_read_errors(KEY, Path(word)):
        yield from _read_table(word, schema.table)


def _read_table(word: str, table: TableSchema) -> Iterator[QueryBlock]:
    """The rows of a table in blocks, encoded as the training rows were."""
    path, read = Path(word), 0
    header = read_header(KEY, path, ",", MOST_BYTES)
    wanted = [name for name, _ in table.features]
    _check_names(word, wanted, header)
    passed = [name for name in table.identifiers if name in header]
    for cells in read_cells(KEY, path, ",", MOST_BYTES, [*wanted, *passed]):
        x, unusable = table.encode(cells)
        read += len(x)
        yield QueryBlock(x, {name: cells[name] for name in passed}, unusable)
    if not read:
        raise InputError(KEY, word, "holds no rows")


def _read_numbers(word: str, schema: InputSchema, by_position: bool) -> Any:
    """Raw rows [m, schema.count] of a file of numbers, all at once."""
    ending = os.path.splitext(word)[1].lower()
    with report_read_errors(KEY, Path(word)):
        if ending == ".parquet":
            rows = _parquet(word, schema, by_position)
        elif ending in (*SVMLIGHT, ".npy", ".npz"):
            rows = _svmlight(word, schema) if ending in SVMLIGHT else _array(word, ending)
            places(word, None, rows.shape[1], schema, by_position)
        else:
            rows = _csv(word, schema, by_position)
    return _check_rows(word, rows)


def places(
    word: str, names: Sequence[str] | None, width: int, schema: InputSchema, by_position: bool
) -> list[int]:
    """Where in the file the model's columns are, in the model's order.

    Other columns may stand beside them. Raises InputError for a missing column, and for a file
    without names where the model has them.
    """
    if schema.columns is None or by_position:
        if width != schema.count:
            allowed = f"has {width} columns; the model takes {schema.count}, by position"
            raise InputError(KEY, word, allowed)
        return list(range(width))
    if names is None:
        allowed = f"names no columns, and the model takes {_join_names(schema.columns)} by name; "
        allowed += "if they are in this order, say columns=position"
        raise InputError(KEY, word, allowed)
    _check_names(word, schema.columns, names)
    return [list(names).index(name) for name in schema.columns]


def _check_names(word: str, wanted: Sequence[str], names: Sequence[str]) -> None:
    """InputError unless each wanted column is there once."""
    missing = [name for name in wanted if name not in names]
    if missing:
        raise InputError(KEY, word, f"lacks {_columns(missing)}, which the model takes")
    twice = [name for name in wanted if list(names).count(name) > 1]
    if twice:
        raise InputError(KEY, word, f"has {_columns(twice[:1])} more than once")


def _csv(word: str, schema: InputSchema, by_position: bool) -> np.ndarray:
    from dperm_cli.datasets.files.csv import Csv

    named = schema.columns is not None and not by_position
    path = Path(word)
    line = Csv(path=word, task="location", header=False).header_line(KEY, path)
    names = names_in(word, line, schema if named else None)
    width = len(line)
    if not named and names is None and width != schema.count:
        allowed = f"line 1 has {width} columns; the model takes {schema.count}"
        raise InputError(KEY, word, allowed)
    chosen = places(word, names, width, schema, by_position)
    # columns that are not asked for are never read: a label may be text
    found = Csv(path=word, task="location", header=names is not None, columns=chosen)
    return _all_rows(found, word)


def names_in(word: str, line: list[str], schema: InputSchema | None) -> list[str] | None:
    """The first line as column names, or None where it is a row of numbers.

    ``schema`` is None where columns are taken by position.
    """
    cells = [cell.strip() for cell in line]
    numbers = [number_in(cell) is not None for cell in cells]
    if schema is not None and set(schema.columns or ()) <= set(cells):
        return cells  # names may be numbers
    if all(numbers):
        return None
    if any(numbers) and schema is None:
        raise InputError(KEY, word, "line 1 holds numbers and text: neither names nor a row")
    return cells


def _parquet(word: str, schema: InputSchema, by_position: bool) -> np.ndarray:
    from dperm_cli.datasets.files.parquet import Parquet

    path = Path(word)
    # columns that are not asked for are never read: a label may be text
    names = Parquet(path=word, task="location").header_of(KEY, path)
    chosen = places(word, names, len(names), schema, by_position)
    return _all_rows(Parquet(path=word, task="location", columns=chosen), word)


def _svmlight(word: str, schema: InputSchema) -> Any:
    from dperm_cli.datasets.files.svmlight import Svmlight

    return _all_rows(Svmlight(path=word, task="location", n_features=schema.count), word)


def _array(word: str, ending: str) -> np.ndarray:
    from dperm_cli.datasets.files.npz import Npz

    if ending == ".npz":
        return _all_rows(Npz(path=word, task="location"), word)
    try:
        rows = npy_files.real(npy_files.read_file(Path(word)))
    except npy_files.NotAnArray as error:
        allowed = f"cannot be read as .npy ({first_words(error)})"
        raise InputError(KEY, word, allowed) from error
    if rows.ndim != 2:
        raise InputError(KEY, word, f"holds an array of shape {rows.shape}, not rows of numbers")
    return rows


def _all_rows(file: FileOptions, word: str) -> Any:
    """The rows of all blocks of a file; predictions are made of them together."""
    path = Path(word)
    found = stack_blocks(file.read_blocks(KEY, path), path.name)
    if found is None:
        raise InputError(KEY, word, NO_ROWS)
    return found[0]


def _check_rows(word: str, rows: Any) -> Any:
    if not rows.shape[0]:
        raise InputError(KEY, word, NO_ROWS)
    if isinstance(rows, np.ndarray):
        bad = np.flatnonzero(~np.all(np.isfinite(rows), axis=1))
        first = int(bad[0]) if len(bad) else None
    else:
        bad = np.flatnonzero(~np.isfinite(rows.data))
        first = int(np.searchsorted(rows.indptr, bad[0], side="right")) - 1 if len(bad) else None
    if first is not None:
        raise InputError(
            KEY, word, f"row {first + 1} holds a number that is missing, nan or infinite"
        )
    return rows


def _columns(names: Sequence[str]) -> str:
    return f"{'column' if len(names) == 1 else 'columns'} {_join_names(names)}"


def _join_names(names: Sequence[str]) -> str:
    """Some of the names, without characters that a terminal would act upon."""
    shown = [make_printable(name, 60) for name in names[:_SHOWN]]
    more = f", .. ({len(names)} in all)" if len(names) > _SHOWN else ""
    return ", ".join(shown) + more
