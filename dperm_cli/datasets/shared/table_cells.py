"""The cells of a csv or Parquet table as texts, some records at a time.

No cell stops the reading and none decides how another one is read: a line of text is split by
itself, and one with another number of fields than the header is a record of empty cells.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dperm_cli.core.errors import InputError
from dperm_cli.core.memory_limits import current_limit
from dperm_cli.core.parquet_files import ParquetReader
from dperm_cli.datasets.shared.archives import open_bytes
from dperm_cli.datasets.shared.row_blocks import INSTEAD

RECORDS = 4096  # that are read at once
LONGEST_LINE = 1 << 24
PARQUET = ".parquet"

Cells = dict[str, list[str]]  # the texts of each column's cells


def read_header(key: str, path: Path, delimiter: str, limit: int) -> list[str]:
    """The names of a table's columns: the first line of a text, or the footer of a Parquet file.

    Args:
        key: what the user typed, for error lines.
        path: the table; one that ends in .parquet is of that format.
        delimiter: of a text.
        limit: bytes that a compressed text may unpack to.

    Raises:
        InputError: there is none.
    """
    if path.suffix.lower() == PARQUET:
        with report_arrow_errors(key, path):
            return ParquetReader(path).column_names
    with open_text(path, limit) as text:
        names = split_line(text.readline(LONGEST_LINE), delimiter)
    if not names:
        raise InputError(key, path.name, "has no line of column names")
    return [name.strip() for name in names]


def read_cells(
    key: str, path: Path, delimiter: str, limit: int, columns: Sequence[str] | None = None
) -> Iterator[Cells]:
    """The texts of the cells, by column, in blocks of records; a missing cell is an empty text.

    Args:
        key, path, delimiter, limit: as of ``read_header``.
        columns: those to be read, or None for all.

    Raises:
        InputError: it is no table; that follows from its form and not from a cell.
    """
    header = read_header(key, path, delimiter, limit)
    wanted = [i for i, name in enumerate(header) if columns is None or name in columns]
    if path.suffix.lower() == PARQUET:
        yield from _read_parquet(key, path, header, wanted)
        return
    with open_text(path, limit) as text:
        text.readline(LONGEST_LINE)
        for records in split_lines(text, delimiter, len(header), RECORDS):
            yield {header[i]: [record[i] for record in records] for i in wanted}


def count_table_records(key: str, path: Path, limit: int) -> tuple[int, int] | None:
    """(records, bytes) of a Parquet file from its footer; None for a text."""
    if path.suffix.lower() != PARQUET:
        return None
    with report_arrow_errors(key, path):
        facts = ParquetReader(path).facts
        groups = range(facts.num_row_groups)
        return facts.num_rows, sum(facts.row_group(i).total_byte_size for i in groups)


def open_text(path: Path, limit: int, errors: str = "replace") -> io.TextIOWrapper:
    """A text table, plain or compressed, opened for reading."""
    return io.TextIOWrapper(open_bytes(path, limit), "utf-8-sig", errors, newline="")


def split_lines(
    text: Iterator[str], delimiter: str, width: int, size: int
) -> Iterator[list[list[str]]]:
    """The fields of each line, ``size`` lines at a time; ``width`` empty ones where there are not
    so many. An empty line is no record, unless there is one column."""
    records = (line for line in text if width == 1 or line.strip(" \r\n"))
    nothing = [""] * width
    while some := list(itertools.islice(records, size)):
        split = (split_line(line, delimiter) for line in some)
        yield [cells if len(cells) == width else nothing for cells in split]


def split_line(line: str, delimiter: str) -> list[str]:
    """The fields of a line by itself; none where it cannot be split."""
    options: dict[str, Any] = {"delimiter": delimiter, "skipinitialspace": True}
    try:
        cells = next(csv.reader([line.rstrip("\r\n") + "\n"], **options), [])
    except csv.Error:
        return []
    # a quote that nothing closes takes in the end of the line
    return [] if cells and cells[-1].endswith("\n") else cells


def _read_parquet(key: str, path: Path, header: list[str], wanted: list[int]) -> Iterator[Cells]:
    with report_arrow_errors(key, path):
        file = ParquetReader(path)
        largest = max((file.facts.row_group(i).num_rows for i in range(file.facts.num_row_groups)),
                      default=0)  # fmt: skip
        # a row group is held whole, and a text takes more than a number
        current_limit().check(64 * largest * len(header), f"reading {path.name}", INSTEAD)
    for index in range(file.facts.num_row_groups):
        with report_arrow_errors(key, path):
            group = file.read_group(index)
            texts = {header[i]: _write_texts(key, path, header[i], group.column(i)) for i in wanted}
        for start in range(0, group.num_rows, RECORDS):
            yield {name: cells[start : start + RECORDS] for name, cells in texts.items()}


def _write_texts(key: str, path: Path, name: str, column: Any) -> list[str]:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        allowed = f"column {name!r} holds {kind}: neither numbers, words nor days"
        raise InputError(key, path.name, allowed)
    try:
        cells = column.to_pylist()
    except (pa.ArrowException, ValueError, ArithmeticError):
        cells = [_read_value(cell) for cell in column]  # some cell has no value in Python
    return ["" if cell is None else str(cell) for cell in cells]


def _read_value(cell: Any) -> Any:
    """A cell's value, None where Python has none for it: bytes that are no text, a day far off."""
    import pyarrow as pa

    try:
        return cell.as_py()
    except (pa.ArrowException, ValueError, ArithmeticError):
        return None


@contextmanager
def report_arrow_errors(key: str, path: Path) -> Iterator[None]:
    """Turn what pyarrow cannot read into one line about the file."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, ValueError) as error:
        words = str(error).splitlines()[0] if str(error) else "damaged"
        words = words.rpartition("'<Buffer>': ")[2]  # pyarrow speaks of the buffer, not of the file
        raise InputError(key, path.name, f"is not a Parquet file ({words})") from None
