"""Records in a text table (csv, tsv, ...), plain or compressed."""

from __future__ import annotations

import csv as stdlib_csv
import io
import itertools
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import Auto, Check, Help
from dperm_cli.core.number_text import number_in
from dperm_cli.core.read_errors import report_read_errors
from dperm_cli.datasets.shared.invalid_records import read_cell
from dperm_cli.datasets.shared.row_blocks import BLOCK_CELLS
from dperm_cli.datasets.shared.table_cells import open_text, split_lines
from dperm_cli.datasets.shared.table_columns import TableOptions, check_delimiter, is_named
from dperm_cli.datasets.shared.text_tables import nearest_floats

LEAST_ROWS = 64  # of a table with very many columns that are read at once


@dataclass(frozen=True, kw_only=True)
class Csv(TableOptions):
    """Numeric feature columns and one target column; no cell may be empty.

    header : whether the first line holds the column names (without it, give positions); ``auto``
        takes it for names, and refuses one that holds a number, since it may be a record, unless
        ``target`` names one of its cells.
    delimiter : one of , ; | : ``space`` or ``tab``.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "records.csv").write_text("age,dose,sick")
    ...     Csv(path=f"{folder}/records.csv", target="sick").named_columns()
    (('age', 'dose'), 'sick')
    """

    header: Annotated[
        bool | Auto, Help("the first line holds names (auto = refused if it has numbers)")
    ] = "auto"
    delimiter: Annotated[str, Check(check_delimiter), Help("one of , ; | : space tab")] = ","

    def read_blocks(self, key: str, path: Path) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        first = self.header_line(key, path)
        names = self._names(first)
        wanted, target = self.choose(names)
        if self.invalid == "zero":
            yield from self._read_lines(path, len(first), wanted, target)
            return
        before = 0
        for table in self._tables(key, path, len(first), target):
            x = np.empty((len(table), len(wanted)))
            for j, i in enumerate(wanted):
                x[:, j] = _numeric(key, path, table[i], names[i], before)
            if target is None:
                yield x, np.zeros(len(x))
            elif self.task == "regression":
                yield x, _numeric(key, path, table[target], names[target], before)
            else:
                yield x, table[target].fillna("").to_numpy(dtype=str)
            before += len(table)

    def count_columns(self, data_dir: Path | None = None) -> int | None:
        path = self.locate(data_dir)
        with report_read_errors("dataset.path", path):
            return len(self.choose(self._names(self.header_line("dataset.path", path)))[0])

    def count_records(self, key: str, path: Path) -> tuple[int, int]:
        lines, size = super().count_records(key, path)
        self.header_line(key, path)  # refused where it might be a record
        return lines - int(bool(self.header)), size

    def _names(self, first: list[str]) -> list[str]:
        """The columns' names from the first line; their positions where it is a record."""
        return [c.strip() for c in first] if self.header else [str(i) for i in range(len(first))]

    def header_of(self, key: str, path: Path) -> list[str] | None:
        """The first line, where it holds the column names."""
        return [c.strip() for c in self.header_line(key, path)] if self.header else None

    def _text(self, path: Path) -> io.TextIOWrapper:
        return open_text(path, self.limit, "replace" if self.invalid == "zero" else "strict")

    def _read_lines(
        self, path: Path, width: int, wanted: list[int], target: int | None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The records one line at a time, so that none decides how another one is read."""
        with self._text(path) as text:
            lines = itertools.islice(text, int(bool(self.header)), None)
            for records in split_lines(lines, self.delimiter, width, _rows_at_once(width)):
                values = array("d")
                for cells in records:
                    values.extend([read_cell(cells[i]) for i in wanted])
                labels = ["" if target is None else cells[target] for cells in records]
                x = np.array(values).reshape(len(records), len(wanted))
                yield x, np.array(labels, dtype=object)

    def header_line(self, key: str, path: Path) -> list[str]:
        """The cells of the first line, whatever they are."""
        with self._text(path) as text:
            try:
                # A limit, so that a file without line ends is not taken in whole.
                line = text.readline(1 << 24)
                first = next(
                    stdlib_csv.reader([line], delimiter=self.delimiter, skipinitialspace=True), []
                )
            except stdlib_csv.Error as error:
                raise InputError(key, path.name, f"is not a text table ({error})") from None
        if not first:
            raise InputError(key, path.name, "is empty")
        number = next((cell for cell in first if number_in(cell) is not None), None)
        if self.header == "auto" and number is not None and not is_named(self.target, first):
            allowed = f"the first line of {path.name} holds the number {number.strip()[:40]}: say "
            allowed += "dataset.header=false if it is a record, true if it names the columns"
            raise InputError("dataset.header", "auto", allowed)
        return first

    def _tables(self, key: str, path: Path, width: int, target: int | None) -> Iterator[Any]:
        """The records as pandas tables of some rows each, all of the first line's width."""
        import pandas as pd

        text_columns: Any = {} if self.task in ("regression", "location") else {target: str}
        checked = False
        with self._text(path) as text:
            try:
                reader: Any = pd.read_csv(
                    text, header=None, skiprows=int(bool(self.header)), sep=self.delimiter,
                    dtype=text_columns, keep_default_na=False, na_values=[""],
                    skipinitialspace=True, low_memory=False, chunksize=_rows_at_once(width),
                    **nearest_floats(pd.__version__),
                )  # fmt: skip
                with reader as tables:
                    for table in tables:
                        # A line that is too short reads as one with empty cells at its end.
                        odd = table.shape[1] != width or table.iloc[:, -1].isna().any()
                        if odd and not checked:
                            self._check_lines(key, path, width)
                            checked = True
                        if table.shape[1] != width:
                            allowed = f"records have {table.shape[1]} columns, the first line "
                            raise InputError(key, path.name, f"{allowed}{width}")
                        yield table
            except pd.errors.EmptyDataError:
                raise InputError(key, path.name, "holds no records") from None
            except (pd.errors.ParserError, ValueError) as error:
                self._check_lines(key, path, width)
                words = str(error).rpartition("C error: ")[2].strip()
                raise InputError(key, path.name, f"is not a regular table ({words})") from None

    def _check_lines(self, key: str, path: Path, width: int) -> None:
        """InputError about the first line that has another number of fields than the first one."""
        with self._text(path) as text:
            reader = stdlib_csv.reader(text, delimiter=self.delimiter, skipinitialspace=True)
            try:
                for fields in reader:
                    if fields and len(fields) != width:
                        allowed = f"line {reader.line_num} has {len(fields)} fields, "
                        allowed += f"the first line {width}"
                        raise InputError(key, path.name, allowed)
            except stdlib_csv.Error:
                return


def _rows_at_once(width: int) -> int:
    return max(LEAST_ROWS, BLOCK_CELLS // width)


def _numeric(key: str, path: Path, column: Any, name: str, before: int) -> np.ndarray:
    """A column as float64, nan where a cell is empty; InputError says where the first text is.

    ``before`` records were read.
    """
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column.dtype):
        return column.to_numpy(dtype=np.float64)
    try:
        numbers: Any = pd.to_numeric(column, errors="coerce")
    except OverflowError:
        allowed = f"column {name!r} holds a whole number of more than 308 digits"
        raise InputError(key, path.name, allowed) from None
    text = np.flatnonzero(numbers.isna() & column.notna())
    if text.size:
        # the text itself is a value of a record
        allowed = f"record {before + text[0] + 1}, column {name!r} holds text, not a number"
        if key.startswith("dataset."):
            allowed += (
                "; leave the column out with dataset.drop, or take dataset=table with a schema"
            )
        raise InputError(key, path.name, allowed)
    return numbers.to_numpy(dtype=np.float64)
