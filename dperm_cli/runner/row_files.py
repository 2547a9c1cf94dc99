"""Files of raw rows for a model, whose columns are bound by name where the model has names."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dperm_cli.core.errors import InputError
from dperm_cli.runner.input_schema import InputSchema

KEY = "ROWS"
SVMLIGHT = (".svmlight", ".libsvm", ".svm")
_SHOWN = 5


def read(word: str, schema: InputSchema, by_position: bool = False) -> Any:
    """Raw rows [m, schema.count] of a file, at least one, in the order of the model's columns.

    Args:
        word: a csv file, or one that ends in .parquet, .npy, .npz (array ``x``) or .svmlight.
        schema: the columns of the model.
        by_position: whether the caller says that the columns are the model's in its order.

    Returns:
        An array, or a CSR matrix from svmlight text.

    Raises:
        InputError: naming the columns that are missing or too many, or the first bad line.
    """
    if not os.path.isfile(word):
        raise InputError(KEY, word, "is not a file")
    ending = os.path.splitext(word)[1].lower()
    if ending in SVMLIGHT:
        rows = _svmlight(word, schema)
        places(word, None, schema.count, schema, by_position)
    elif ending in (".npy", ".npz"):
        rows = _array(word, ending)
        places(word, None, rows.shape[1], schema, by_position)
    elif ending == ".parquet":
        rows = _parquet(word, schema, by_position)
    else:
        rows = _csv(word, schema, by_position)
    return _checked(word, rows)


def places(
    word: str, names: Sequence[str] | None, width: int, schema: InputSchema, by_position: bool
) -> list[int]:
    """Where in the file the model's columns are, in the model's order.

    The column of labels may stand beside them. Raises InputError for a missing column, another one
    too many, and a file without names where the model has them.
    """
    if schema.columns is None or by_position:
        if width != schema.count:
            allowed = f"has {width} columns; the model takes {schema.count}, by position"
            raise InputError(KEY, word, allowed)
        return list(range(width))
    if names is None:
        allowed = f"names no columns, and the model takes {_listed(schema.columns)} by name; if "
        allowed += "they are in this order, say columns=position"
        raise InputError(KEY, word, allowed)
    missing = [name for name in schema.columns if name not in names]
    if missing:
        raise InputError(KEY, word, f"lacks {_columns(missing)}, which the model takes")
    twice = [name for name in schema.columns if list(names).count(name) > 1]
    if twice:
        raise InputError(KEY, word, f"has {_columns(twice[:1])} more than once")
    extra = [name for name in names if name not in schema.columns and name != schema.target]
    if extra:
        raise InputError(KEY, word, f"has {_columns(extra)}, which the model does not take")
    return [list(names).index(name) for name in schema.columns]


def _csv(word: str, schema: InputSchema, by_position: bool) -> np.ndarray:
    named = schema.columns is not None and not by_position
    chosen, width, first = list(range(schema.count)), schema.count, True
    found: list[list[float]] = []
    with open(word, encoding="utf-8-sig", errors="replace", newline="") as file:
        reader = csv.reader(file)
        try:
            for line in reader:
                if not line:
                    continue
                if first:
                    first = False
                    names = _names(word, line, schema if named else None)
                    if named or names is not None:
                        chosen = places(word, names, len(line), schema, by_position)
                        width = len(line)
                        continue
                if len(line) != width:
                    allowed = f"line {reader.line_num} has {len(line)} columns; "
                    allowed += f"{'its header has' if named else 'the model takes'} {width}"
                    raise InputError(KEY, word, allowed)
                found.append(_numbers(word, [line[i] for i in chosen], reader.line_num))
        except csv.Error as error:
            raise InputError(KEY, word, f"line {reader.line_num}: {error}") from None
    return np.array(found, dtype=float).reshape(len(found), schema.count)


def _names(word: str, line: list[str], schema: InputSchema | None) -> list[str] | None:
    """The first line as column names, or None where it is a row of numbers."""
    cells = [cell.strip() for cell in line]
    numbers = [_number(cell) is not None for cell in cells]
    if schema is not None and set(schema.columns or ()) <= set(cells):
        return cells  # names may be numbers
    if all(numbers):
        return None
    if any(numbers) and schema is None:
        raise InputError(KEY, word, "line 1 holds numbers and text: neither names nor a row")
    return cells


def _numbers(word: str, cells: Sequence[str], place: int) -> list[float]:
    numbers = [_number(cell) for cell in cells]
    if any(number is None for number in numbers):
        raise InputError(KEY, word, f"line {place} holds what is no number")
    return [number for number in numbers if number is not None]


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _parquet(word: str, schema: InputSchema, by_position: bool) -> np.ndarray:
    from dperm_cli.problem.datasets._files import reading
    from dperm_cli.problem.datasets.parquet import Parquet

    path = Path(word)
    with reading(KEY, path):
        # columns that are not asked for are never read: a label may be text
        names = Parquet(path=word, task="location").header_of(KEY, path)
        chosen = places(word, names, len(names), schema, by_position)
        rows, _ = Parquet(path=word, task="location", columns=chosen).read(KEY, path)
    return rows


def _svmlight(word: str, schema: InputSchema) -> Any:
    from dperm_cli.problem.datasets._files import reading
    from dperm_cli.problem.datasets.svmlight import Svmlight

    path = Path(word)
    with reading(KEY, path):
        rows, _ = Svmlight(path=word, task="location", n_features=schema.count).read(KEY, path)
    return rows


def _array(word: str, ending: str) -> np.ndarray:
    from dperm_cli.problem.datasets._files import reading
    from dperm_cli.problem.datasets.npz import Npz

    path = Path(word)
    if ending == ".npz":
        with reading(KEY, path):
            return Npz(path=word, task="location").read(KEY, path)[0]
    try:
        with open(path, "rb") as file:
            _check_header(file, path.stat().st_size)
            rows = np.load(file, allow_pickle=False)
        rows = np.asarray(rows, dtype=float)
    except (OSError, ValueError, EOFError, TypeError, MemoryError):
        raise InputError(KEY, word, "cannot be read as .npy") from None
    if rows.ndim != 2:
        raise InputError(KEY, word, f"holds an array of shape {rows.shape}, not rows of numbers")
    return rows


def _check_header(file: Any, size: int) -> None:
    """ValueError where the header of a .npy file speaks of more numbers than the file holds."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    else:
        shape, _, dtype = np.lib.format.read_array_header_2_0(file)
    if dtype.hasobject or math.prod(shape) * dtype.itemsize > size:
        raise ValueError("more than the file holds")
    file.seek(0)


def _checked(word: str, rows: Any) -> Any:
    if not rows.shape[0]:
        raise InputError(KEY, word, "holds no rows of numbers")
    if isinstance(rows, np.ndarray):
        bad = np.flatnonzero(~np.all(np.isfinite(rows), axis=1))
        first = int(bad[0]) if len(bad) else None
    else:
        bad = np.flatnonzero(~np.isfinite(rows.data))
        first = int(np.searchsorted(rows.indptr, bad[0], side="right")) - 1 if len(bad) else None
    if first is not None:
        raise InputError(KEY, word, f"row {first + 1} holds a number that is nan or infinite")
    return rows


def _columns(names: Sequence[str]) -> str:
    return f"{'column' if len(names) == 1 else 'columns'} {_listed(names)}"


def _listed(names: Sequence[str]) -> str:
    """Some of the names, without characters that a terminal would act upon."""
    shown = ["".join(c if c.isprintable() else "?" for c in name)[:60] for name in names[:_SHOWN]]
    more = f", .. ({len(names)} in all)" if len(names) > _SHOWN else ""
    return ", ".join(shown) + more
