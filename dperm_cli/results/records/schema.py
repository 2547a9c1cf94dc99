"""The record: one flat, typed row per trial.

``record_columns.csv`` is the single description of a record; ``docs/records.md`` is checked
against it.
"""

from __future__ import annotations

import csv
import functools
import itertools
import json
import math
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.near_names import nearest
from dperm_cli.core.shared_json import SharedJson

SCHEMA_VERSION = 2  # the form of a record; docs/records.md says what each form is
STATUSES = ("ok", "unsupported", "failed", "planned")


@dataclass(frozen=True)
class Column:
    """One column of a record or of a summary.

    ``kind`` is ``text``, ``int``, ``float``, ``bool``, ``list`` (of doubles) or ``json`` (text);
    ``unit`` is empty for plain numbers. ``role``: ``identity`` names the cell and what was asked,
    ``public`` follows from public facts alone, ``result`` depends on the records of the data set
    (and is no private release unless it says so), ``diagnostic`` may differ between two equal runs.
    """

    name: str
    kind: str
    unit: str
    role: str
    doc: str


def read_columns(file: str) -> tuple[Column, ...]:
    """The columns that a csv file beside this module describes, in order."""
    with open(Path(__file__).with_name(file), encoding="utf-8", newline="") as lines:
        return tuple(Column(**entry) for entry in csv.DictReader(lines))


COLUMNS = read_columns("record_columns.csv")
BY_NAME: dict[str, Column] = {column.name: column for column in COLUMNS}
STABLE_COLUMNS: tuple[str, ...] = tuple(c.name for c in COLUMNS if c.role != "diagnostic")
DIAGNOSTICS: tuple[str, ...] = tuple(c.name for c in COLUMNS if c.role == "diagnostic")
# Columns that are neither in a file nor in its digest where they are null, so that the records of
# seeded runs, and of shipped plug-ins, keep their bytes.
OPTIONAL: tuple[str, ...] = (
    "release", "plugins", "bound_lower_gaussian", "bound_lower_gaussian_id",
    "bound_factor_gaussian", "minimax_upper", "minimax_upper_id", "minimax_factor",
    "bound_released", "bound_released_95",
)  # fmt: skip
_PLAIN_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
# Of the kinds that hold one plain value: the types that are taken, and the type of the value.
_PLAIN: dict[str, tuple[Any, type]] = {
    "text": (str, str),
    "int": (Integral, int),
    "float": (Real, float),
    "bool": ((bool, np.bool_), bool),
}
# Of a value that is stored as it is, which are most of them.
_OWN_TYPES = {"json": str} | {kind: plain for kind, (_, plain) in _PLAIN.items()}


def normalise(row: Mapping[str, Any]) -> dict[str, Any]:
    """A full record in column order: missing values become null.

    Raises ValueError for an unknown column and for a value of the wrong kind.
    """
    return normalise_all([row])[0]


def normalise_all(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """``normalise`` of each row. What a row holds of the one before, as a trial of a cell holds
    most of the one before, is taken as it was there.

    Raises ValueError for an unknown column and for a value of the wrong kind.
    """
    before: Mapping[str, Any] = {}
    found, last = [], dict[str, Any].fromkeys(BY_NAME)
    for row in rows:
        gone = {name: None for name in before if name not in row}
        is_new = (name not in before or value is not before[name] for name, value in row.items())
        new = {name: _store(name, row[name]) for name in itertools.compress(row, is_new)}
        last = last | gone | new
        found.append(last)
        before = row
    return found


def _store(name: str, value: Any) -> Any:
    """The value as its column holds it."""
    column = BY_NAME.get(name)
    if column is None:
        guess = nearest(name, BY_NAME)
        raise ValueError(f"record column {name!r} is unknown; nearest: {guess!r}")
    if value is None or type(value) is _OWN_TYPES.get(column.kind):
        return value
    return coerce(column, value)


def coerce(column: Column, value: Any) -> Any:
    """The value as a plain Python object of the column's kind; ValueError when it is not one."""
    if value is None:
        return None
    try:
        return _convert(column.kind, value)
    except (TypeError, ValueError, OverflowError):
        message = f"record column {column.name!r} wants {column.kind}, got {value!r:.80}"
        raise ValueError(message) from None


@functools.cache
def arrow_schema(without: tuple[str, ...] = ()):
    """The pyarrow schema of a record, without the columns named."""
    import pyarrow as pa

    kinds = {
        "text": pa.string(),
        "json": pa.string(),
        "int": pa.int64(),
        "float": pa.float64(),
        "bool": pa.bool_(),
        "list": pa.list_(pa.float64()),
    }
    columns = [column for column in COLUMNS if column.name not in without]
    return pa.schema([pa.field(column.name, kinds[column.kind]) for column in columns])


def replace_nonfinite(value: Any) -> Any:
    """A JSON-able tree with infinities and nan as words, since JSON has no such numbers."""
    if isinstance(value, Mapping):
        return {str(key): replace_nonfinite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [replace_nonfinite(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value


def canonical_json(value: Any) -> str:
    """JSON with sorted keys; infinities and nan become words."""
    return _PLAIN_JSON.encode(replace_nonfinite(value))


def json_lines(rows: Iterable[Any]) -> str:
    """Rows as ``canonical_json``, a line each."""
    return "\n".join(map(SharedJson(canonical_json).write, rows))


def _convert(kind: str, value: Any) -> Any:
    if kind == "json":
        return value if isinstance(value, str) else canonical_json(value)
    if kind == "list":
        array = np.asarray(value)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iuf"):
            raise TypeError
        return array.astype(np.float64).tolist()
    accepted, make = _PLAIN[kind]
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind != "bool"):
        raise TypeError
    return make(value)
