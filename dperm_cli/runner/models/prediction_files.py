"""Write predictions block by block: as csv, as lines of JSON, or as Parquet."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dperm_cli.core.errors import InputError
from dperm_cli.core.files import OutputFile
from dperm_cli.results.records.row_facts import csv_lines

FORMATS = ("csv", "json", "parquet")
# columns of numbers, by the part of their name before "=", which names one of several classes
NUMBERS = ("score", "probability", "value")
Columns = Mapping[str, list[Any]]


def choose_format(asked: str | None, to: OutputFile | None) -> str:
    """What the predictions are written as.

    Args:
        asked: One of ``FORMATS``; None where nobody said.
        to: The file that they go to; None is stdout.

    Returns:
        What was asked for, else parquet for a file of that ending, else csv.

    Raises:
        InputError: Parquet for stdout, which carries text.
    """
    if asked is None:
        return "parquet" if to is not None and to.path.suffix.lower() == ".parquet" else "csv"
    if asked == "parquet" and to is None:
        raise InputError("format", asked, "is for a file: give out=FILE")
    return asked


@contextlib.contextmanager
def open_predictions(form: str, to: OutputFile | None) -> Iterator[Callable[[Columns], None]]:
    """A function that writes the next block of predictions; no more than a block is held.

    Args:
        form: One of ``FORMATS``.
        to: The file, which gets its content when all blocks are written; None is stdout.
    """
    if form == "parquet":
        assert to is not None
        with to.open() as file, _open_parquet(file) as write:
            yield write
        return
    names_written = False
    with contextlib.nullcontext(sys.stdout) if to is None else to.open_text() as text:

        def write_text(columns: Columns) -> None:
            nonlocal names_written
            rows = zip(*columns.values(), strict=True)
            if form == "json":
                made = (dict(zip(columns, row, strict=True)) for row in rows)
                text.writelines(json.dumps(line) + "\n" for line in made)
            else:
                text.write(csv_lines(columns, rows, with_names=not names_written))
            names_written = True

        yield write_text


@contextlib.contextmanager
def _open_parquet(file: Any) -> Iterator[Callable[[Columns], None]]:
    """Write blocks as row groups; the first one says which columns are numbers."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    writers: list[Any] = []

    def write(columns: Columns) -> None:
        if not writers:
            fields = [
                (name, pa.float64() if _is_number(name, cells) else pa.string())
                for name, cells in columns.items()
            ]
            writers.append(pq.ParquetWriter(file, pa.schema(fields)))
        schema = writers[0].schema
        arrays = [pa.array(columns[name], schema.field(name).type) for name in schema.names]
        writers[0].write_table(pa.Table.from_arrays(arrays, schema=schema))

    try:
        yield write
    finally:
        for writer in writers:
            writer.close()


def _is_number(name: str, cells: list[Any]) -> bool:
    """Whether a column holds numbers; of one without any cell its name says so."""
    first = next((cell for cell in cells if cell is not None), None)
    return name.partition("=")[0] in NUMBERS if first is None else isinstance(first, float)
