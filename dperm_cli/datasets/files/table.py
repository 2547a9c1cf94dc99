"""Records in one's own table of any columns, encoded as its schema file declares."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np

from dperm_cli.core.data_files import locate
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import Check, FromRun, Help
from dperm_cli.core.read_errors import report_read_errors
from dperm_cli.datasets.shared.file_options import FileOptions
from dperm_cli.datasets.shared.row_pipeline import Raw
from dperm_cli.datasets.shared.table_cells import (
    Cells,
    count_table_records,
    read_cells,
    read_header,
)
from dperm_cli.datasets.shared.table_columns import check_delimiter
from dperm_cli.datasets.shared.table_schema import TableSchema, parse_schema, read_schema_file

_ZEROED = "a record that cannot be used is a row of zeros"


def _schema_text(key: str, value: Any) -> str:
    """The name of a schema file, or a schema as JSON."""
    if isinstance(value, Mapping):
        return json.dumps(value)
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        allowed = "must name the schema of the table: `dperm schema TABLE > schema.yaml` drafts one"
        raise InputError(key, value, allowed)
    return value


@dataclass(frozen=True, kw_only=True)
class Table(FileOptions):
    """A csv or Parquet table with numbers, categories, dates, missing cells and identifiers.

    schema : the YAML file that declares the columns, the target and the unit of privacy, or its
        content as a map.
    delimiter : of a csv file.

    >>> told = {"target": {"column": "sick", "classes": ["no", "yes"]},
    ...         "columns": {"age": {"kind": "number", "bounds": [0, 100]}}}
    >>> Table(path="table.csv", schema=told).named_columns()
    (('age', 'age=missing', 'constant'), 'sick')
    """

    added_keys: ClassVar[Mapping[str, Any]] = {}

    schema: Annotated[Any, Check(_schema_text), Help("YAML file; `dperm schema` drafts one")] = None
    delimiter: Annotated[str, Check(check_delimiter), Help("one of , ; | : space tab")] = ","
    task: Annotated[Any, FromRun()] = "binary"
    labels: Annotated[Any, FromRun()] = None
    target_bounds: Annotated[Any, FromRun()] = None
    bounds: Annotated[Any, FromRun()] = None
    scaling: Annotated[Any, FromRun()] = "none"
    centred: Annotated[Any, FromRun()] = True
    unsafe_scaling: Annotated[Any, FromRun()] = False
    intercept: Annotated[Any, FromRun()] = False
    invalid: Annotated[Any, FromRun()] = "zero"

    def __post_init__(self) -> None:
        target = self.table.target
        for name, value in (
            ("task", target.task),
            ("labels", target.labels),
            ("target_bounds", target.model_bounds),
        ):
            self._keep(name, value)
        super().__post_init__()

    @cached_property
    def table(self) -> TableSchema:
        """What the schema file declares."""
        word = _schema_text("dataset.schema", self.schema)
        if word.startswith("{"):
            return parse_schema(json.loads(word))
        return read_schema_file("dataset.schema", word, locate("dataset.schema", word, None))

    def count_columns(self, data_dir: Path | None = None) -> int:
        return len(self.table.names)

    def named_columns(self, data_dir: Path | None = None) -> tuple[tuple[str, ...], str]:
        """(names of the coordinates, name of the target)."""
        return self.table.names, self.table.target.column

    def count_records(self, key: str, path: Path) -> tuple[int, int]:
        found = count_table_records(key, path, self.limit)
        return super().count_records(key, path) if found is None else found

    def _make_raw(self, x: Any, y: np.ndarray, x_test: Any = None, y_test: Any = None) -> Raw:
        """The encoded records; those that cannot be used are rows of zeros."""
        notes = (f"encoded by a declared schema; {_ZEROED}", *self._describe_unit())
        return replace(super()._make_raw(x, y, x_test, y_test), notes=notes)

    def list_files(self, data_dir: Path | None = None) -> Sequence[Path] | None:
        """The tables, and the file of the schema."""
        files, word = super().list_files(data_dir), _schema_text("dataset.schema", self.schema)
        more = () if word.startswith("{") else (locate("dataset.schema", word, None),)
        return None if files is None else (*files, *more)

    def _describe_unit(self) -> list[str]:
        unit = self.table.unit
        if unit.column is None:
            return []
        return [f"of each {unit.column} the first {unit.at_most} records, rows of zeros for others"]

    def read_header(self, key: str, path: Path) -> list[str]:
        """The names of the table's columns."""
        return read_header(key, path, self.delimiter, self.limit)

    def read_cells(self, key: str, path: Path) -> Iterator[Cells]:
        """The texts of the cells by column, in blocks of records."""
        return read_cells(key, path, self.delimiter, self.limit)

    def read_blocks(self, key: str, path: Path) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        table, seen = self.table, Counter[str]()
        table.check_header(key, path.name, self.read_header(key, path))
        for cells in self.read_cells(key, path):
            x, dropped = table.encode(cells)
            y = table.target.encode(cells[table.target.column])
            unused = dropped | ~np.isfinite(y)
            if table.unit.column is not None:
                unused |= count_beyond(cells[table.unit.column], table.unit.at_most, seen)
            x[unused], y[unused] = 0.0, self._zero_value
            yield x, y

    def _checked_blocks(
        self, key: str, path: Path, done: int = 0
    ) -> Iterator[tuple[Any, np.ndarray]]:
        with report_read_errors(key, path):
            for x, y in self.read_after(key, path, done):
                if len(y):
                    yield x, y

    @property
    def _zero_value(self) -> float:
        """The label or target of a row of zeros; without features its loss has no slope."""
        if self.task != "regression":
            return dict(self.labels).popitem()[1] if self.task == "binary" else 0.0
        low, high = self.target_bounds
        return 0.5 * (low + high)


def count_beyond(names: Sequence[str], most: int, seen: Counter[str]) -> np.ndarray:
    """Which records [m] come after the first ``most`` of the same person.

    Args:
        names: who each record is about.
        most: how many records of one person count.
        seen: how many of each person came before; it is updated.
    """
    beyond = np.zeros(len(names), dtype=bool)
    for i, name in enumerate(names):
        seen[name] += 1
        beyond[i] = seen[name] > most
    return beyond
