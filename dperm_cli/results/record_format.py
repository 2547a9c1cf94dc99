"""Read and write a record: one Parquet file with two checksums and its status in the footer.

``dperm.sha256`` covers every byte of the file (taken with the checksum's own digits at zero), so
any truncation or flipped bit is noticed; ``dperm.content`` covers the values of the columns that
two equal runs must share. ``dperm.status`` says how the cell ended, so that a sweep is counted
without decoding its records.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dperm_cli.core.digests import hash_sha256
from dperm_cli.core.errors import StorageError
from dperm_cli.core.parquet_files import ParquetReader
from dperm_cli.results.records.schema import (
    COLUMNS,
    OPTIONAL,
    SCHEMA_VERSION,
    STABLE_COLUMNS,
    arrow_schema,
)

_MARK = b"dperm-sha256:"
_BLANK = b"0" * 64
_STATUS = re.compile(rb"dperm-status:([a-z]+);")
# Rows above which a file gains from compression: below, its overhead is most of the time.
_FEW_ROWS = 8
_TAIL = 1 << 16  # bytes at the end that hold the footer


def encode(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Full records as the bytes of a Parquet file: equal rows give equal bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    without = tuple(name for name in OPTIONAL if all(row.get(name) is None for row in rows))
    table = pa.Table.from_pylist([dict(row) for row in rows], schema=arrow_schema(without))
    sink = pa.BufferOutputStream()
    few = len(rows) <= _FEW_ROWS
    options = {"compression": "none" if few else "zstd", "use_dictionary": not few}
    with pq.ParquetWriter(sink, table.schema, write_statistics=False, **options) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(
            {
                "dperm.schema": str(SCHEMA_VERSION),
                "dperm.content": content_digest(rows),
                "dperm.status": f"dperm-status:{rows[0]['status']};",
                "dperm.sha256": (_MARK + _BLANK).decode(),
            }
        )
    blank = sink.getvalue().to_pybytes()
    return _with_digest(blank, hash_sha256(blank).encode())


def decode(data: bytes) -> list[dict[str, Any]]:
    """The rows in the bytes of a Parquet file; columns this version lacks are left out.

    ValueError where a column is not of its kind.
    """
    table = ParquetReader(data).read_rows()
    kinds = arrow_schema()
    for field in table.schema:
        if field.name in kinds.names and field.type != kinds.field(field.name).type:
            raise ValueError(f"column {field.name} is of another kind")
    found = table.to_pylist()
    return [{column.name: row.get(column.name) for column in COLUMNS} for row in found]


def decode_file(path: Path, data: bytes) -> list[dict[str, Any]]:
    """The rows of a file with a true checksum, which anybody can make: StorageError for others."""
    with blame_strangers(path):
        found = decode(data)
        if not found:
            raise ValueError("it has no rows")
        return found


@contextlib.contextmanager
def blame_strangers(path: Path) -> Iterator[None]:
    """Raise StorageError for any error while reading a file that dperm did not write."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        words = " ".join(str(error).split())[:100]
        raise StorageError(f"{path}: is no record that dperm wrote ({words})") from None


def intact(data: bytes) -> bool:
    """True when the bytes match the checksum they carry."""
    start = data.rfind(_MARK) + len(_MARK)
    if start < len(_MARK) or start + 64 > len(data):
        return False
    digest = data[start : start + 64]
    return hash_sha256(_with_digest(data, _BLANK)).encode() == digest


def content_digest(rows: Iterable[Mapping[str, Any]]) -> str:
    """SHA-256 of the values in the columns that two equal runs share (no diagnostics).

    ``repr`` of a double is exact, so different values never share a text.
    """
    texts = []
    for row in rows:
        values = [(name, row.get(name)) for name in STABLE_COLUMNS]
        kept = [pair for pair in values if pair[0] not in OPTIONAL or pair[1] is not None]
        texts.append(repr(kept))
    return hash_sha256(*texts)


def _with_digest(data: bytes, digest: bytes) -> bytes:
    """The file's bytes with the digits of its checksum replaced (the footer's mark is last)."""
    start = data.rfind(_MARK) + len(_MARK)
    return data[:start] + digest + data[start + 64 :]


def read_status(path: Path, data: bytes) -> str:
    """How the cell of an intact file ended."""
    # the last one: a reason or a configuration in the rows may spell the words as well
    found = _STATUS.findall(data, max(0, len(data) - _TAIL))
    return found[-1].decode() if found else decode_file(path, data)[0]["status"]


def read_digest(path: Path, data: bytes) -> str:
    """The content digest that an intact file carries."""
    with blame_strangers(path):
        found = ParquetReader(data).facts.metadata
        return found[b"dperm.content"].decode()
