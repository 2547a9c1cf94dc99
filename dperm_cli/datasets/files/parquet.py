"""Records in a Parquet table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dperm_cli.core.data_files import locate
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.memory_limits import current_limit
from dperm_cli.core.parquet_files import ParquetReader
from dperm_cli.core.read_errors import TooLarge, report_read_errors
from dperm_cli.datasets.shared.row_blocks import INSTEAD
from dperm_cli.datasets.shared.table_cells import report_arrow_errors
from dperm_cli.datasets.shared.table_columns import TableOptions


@dataclass(frozen=True, kw_only=True)
class Parquet(TableOptions):
    """Numeric feature columns and one target column; no cell may be null.

    The path may be a folder: its files that end in .parquet, in the order of their names, are then
    one table.

    >>> Parquet(path="records.parquet", target="sick").choose(["age", "sick", "dose"])
    ([0, 2], 1)
    """

    def read_blocks(self, key: str, path: Path) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        return self.read_after(key, path, 0)

    def read_after(
        self, key: str, path: Path, done: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The row groups after those of the first ``done`` records, which are not read."""
        first: list[str] | None = None
        for part in _list_parts(key, path):
            file = _open(key, part, self.limit)
            names = file.column_names
            if not names:
                raise InputError(key, part.name, "holds no columns")
            first = names if first is None else first
            if names != first:
                allowed = (
                    f"has other columns than the first file of {path.name}, or in another order"
                )
                raise InputError(key, part.name, allowed)
            wanted, target = self.choose(names)
            for index in range(file.facts.num_row_groups):
                if done > 0:
                    done -= file.facts.row_group(index).num_rows
                    continue
                with report_arrow_errors(key, part):
                    table = file.read_group(index)
                yield self._read_table(key, part, table, names, wanted, target)

    def list_files(self, data_dir: Path | None = None) -> Sequence[Path] | None:
        """The files, those of folders one by one."""
        places = super().list_files(data_dir) or ()
        keys = ("dataset.path", "dataset.test_path")
        return [part for key, path in zip(keys, places, strict=False)
                for part in _list_parts(key, path)]  # fmt: skip

    def count_columns(self, data_dir: Path | None = None) -> int | None:
        path = self.locate(data_dir)
        with report_read_errors("dataset.path", path):
            return len(self.choose(self.header_of("dataset.path", path))[0])

    def _locate(self, key: str, name: str, data_dir: Path | None) -> Path:
        return locate(key, name, data_dir, folders=True)

    def _records(self, key: str, path: Path) -> tuple[Any, np.ndarray]:
        with report_read_errors(key, path):
            parts = [_open(key, part, self.limit).facts for part in _list_parts(key, path)]
        # all rows, and beside them the table of a row group and the rows that are made of it
        groups = [facts.row_group(i).num_rows for facts in parts
                  for i in range(facts.num_row_groups)]  # fmt: skip
        rows = sum(groups) + (2 if len(groups) > 1 else 1) * max(groups, default=0)
        more = 8 * rows * max(facts.num_columns for facts in parts)
        current_limit().check(more, f"reading {path.name}", INSTEAD)
        return super()._records(key, path)

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
        n = size = 0
        for part in _list_parts(key, path):
            with report_arrow_errors(key, part):
                facts = ParquetReader(part).facts
                n += facts.num_rows
                size += sum(facts.row_group(i).total_byte_size for i in range(facts.num_row_groups))
        return n, size

    def header_of(self, key: str, path: Path) -> list[str]:
        """The names in the file's footer, of a folder in that of its first file."""
        part = _list_parts(key, path)[0]
        with report_arrow_errors(key, part):
            return ParquetReader(part).column_names


def _list_parts(key: str, path: Path) -> list[Path]:
    """The file itself, or the Parquet files of a folder in the order of their names."""
    if not path.is_dir():
        return [path]
    found = sorted(part for part in path.iterdir() if part.name[0] not in "._")
    inner = next((part for part in found if part.is_dir()), None)
    if inner is not None:
        allowed = f"holds the folder {inner.name}; name a folder whose files hold all the columns"
        raise InputError(key, str(path), allowed)
    parts = [part for part in found if part.suffix == ".parquet" and part.is_file()]
    if not parts:
        raise InputError(key, str(path), "is a folder without a file whose name ends in .parquet")
    return parts


def _open(key: str, path: Path, limit: int) -> ParquetReader:
    """The file, after a check that a row group fits; all rows are still to be read."""
    with report_arrow_errors(key, path):
        found = ParquetReader(path)
        facts = found.facts
        # Run-length coding: a few bytes may stand for any number of equal cells.
        if 8 * facts.num_rows * facts.num_columns > max(limit, path.stat().st_size):
            raise InputError(key, path.name, str(TooLarge(limit)))
        groups = [facts.row_group(i).num_rows for i in range(facts.num_row_groups)]
        more = 2 * 8 * max(groups, default=0) * facts.num_columns
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
