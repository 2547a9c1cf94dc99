"""Records in a Parquet table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dperm_cli.core.errors import InputError
from dperm_cli.core.files import TooLarge
from dperm_cli.core.memory_limits import current_limit
from dperm_cli.core.parquet_files import ParquetReader
from dperm_cli.datasets.shared.row_blocks import INSTEAD
from dperm_cli.datasets.shared.table_cells import report_arrow_errors
from dperm_cli.datasets.shared.table_columns import TableOptions


@dataclass(frozen=True, kw_only=True)
class Parquet(TableOptions):
    """Numeric feature columns and one target column; no cell may be null.

    >>> Parquet(path="records.parquet", target="sick").choose(["age", "sick", "dose"])
    ([0, 2], 1)
    """

    def read_blocks(self, key: str, path: Path) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        return self.read_after(key, path, 0)

    def read_after(
        self, key: str, path: Path, done: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The row groups after those of the first ``done`` records, which are not read."""
        file = _open(key, path, self.limit)
        names = file.column_names
        if not names:
            raise InputError(key, path.name, "holds no columns")
        wanted, target = self.choose(names)
        for index in range(file.facts.num_row_groups):
            if done > 0:
                done -= file.facts.row_group(index).num_rows
                continue
            with report_arrow_errors(key, path):
                table = file.read_group(index)
            yield self._read_table(key, path, table, names, wanted, target)

    def _read_table(
        self, key: str, path: Path, table: Any, names: list[str], wanted: list[int],
        target: int | None,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        x = np.empty((table.num_rows, len(wanted)))
        for j, i in enumerate(wanted):
            x[:, j] = _numeric(key, path, table.column(i), names[i])
        if target is None:
            y = np.zeros(len(x))
        elif self.task == "regression":
            y = _numeric(key, path, table.column(target), names[target])
        elif self.invalid == "zero":
            y = np.array([_text(v) for v in table.column(target)], dtype=object)
        else:
            words = table.column(target).to_pylist()
            if words and all(isinstance(v, bool) for v in words):
                y = np.array(words)
            else:
                y = np.array(["" if v is None else str(v) for v in words], dtype=str)
        return x, y

    def count_records(self, key: str, path: Path) -> tuple[int, int]:
        with report_arrow_errors(key, path):
            facts = ParquetReader(path).facts
            sizes = (facts.row_group(i).total_byte_size for i in range(facts.num_row_groups))
            return facts.num_rows, sum(sizes)

    def header_of(self, key: str, path: Path) -> list[str]:
        """The names in the file's footer."""
        with report_arrow_errors(key, path):
            return ParquetReader(path).column_names


def _open(key: str, path: Path, limit: int) -> ParquetReader:
    """The file, after a check that its rows fit; they are still to be read."""
    with report_arrow_errors(key, path):
        found = ParquetReader(path)
        facts = found.facts
        # Run-length coding: a few bytes may stand for any number of equal cells.
        if 8 * facts.num_rows * facts.num_columns > max(limit, path.stat().st_size):
            raise InputError(key, path.name, str(TooLarge(limit)))
        groups = [facts.row_group(i).num_rows for i in range(facts.num_row_groups)]
        # all rows, and beside them the table of a row group and the rows that are made of it
        rows = facts.num_rows + (2 if len(groups) > 1 else 1) * max(groups, default=0)
        more = 8 * rows * facts.num_columns
        current_limit().check(more, f"reading {path.name}", INSTEAD)
        return found


def _text(value: Any) -> str:
    """A label as text; none where it is null or no UTF-8."""
    try:
        found = value.as_py()
    except ValueError:
        return ""
    return "" if found is None else str(found)


def _numeric(key: str, path: Path, column: Any, name: str) -> np.ndarray:
    import pyarrow as pa

    kind = column.type
    known = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    if not any(is_kind(kind) for is_kind in known):
        raise InputError(key, path.name, f"column {name!r} holds {kind}, not numbers")
    values = np.array(
        [np.nan if v is None else float(v) for v in column.to_pylist()]
        if pa.types.is_decimal(kind)
        else column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    )
    return values.astype(np.float64)
