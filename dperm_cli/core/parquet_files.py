"""The one way in which dperm reads Parquet.

Arrow's own reader runs in this thread alone. With a Python file handle, or with threads of Arrow's
pool, a read that is given up may still be at work when the interpreter ends, and aborts it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


class ParquetReader:
    """A Parquet file that is open for reading; nothing but its footer has been read yet."""

    def __init__(self, source: Path | bytes) -> None:
        """Open a file, or bytes in memory.

        Args:
            source: The path of a file that exists, or the bytes of one.

        Raises:
            pyarrow.ArrowException: It is not Parquet.
            OSError: It cannot be read.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        if isinstance(source, bytes):
            held = pa.BufferReader(source)
        else:
            with open(source, "rb"):
                pass  # Python says why a file cannot be opened, in words that others expect
            # not mapped into memory, where a file that is cut short meanwhile kills the reader, and
            # not given as a path, of which a folder named key=value would add a column
            held = pa.OSFile(os.fsencode(source))
        self._file = pq.ParquetFile(held, pre_buffer=False)

    @property
    def column_names(self) -> list[str]:
        """The names of the columns, in the file's order."""
        return [str(name) for name in self._file.schema_arrow.names]

    @property
    def types(self) -> dict[str, Any]:
        """The type of each column, of pyarrow's."""
        return {str(field.name): field.type for field in self._file.schema_arrow}

    @property
    def facts(self) -> Any:
        """What the footer says: numbers of rows and columns, ``metadata`` as key-value pairs."""
        return self._file.metadata

    def read_rows(self) -> Any:
        """All of it, as a ``pyarrow.Table``."""
        return self._file.read(use_threads=False)

    def read_group(self, index: int) -> Any:
        """The rows of one row group, as a ``pyarrow.Table``."""
        return self._file.read_row_group(index, use_threads=False)
