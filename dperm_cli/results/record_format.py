"""Read and write a record: one Parquet file with two checksums and its status in the footer.

``dperm.sha256`` covers every byte of the file (taken with the checksum's own digits at zero), so
any truncation or flipped bit is noticed; ``dperm.content`` covers the values of the columns that
two equal runs must share. ``dperm.status`` says how the cell ended, and which one it is, so that a
sweep is counted without decoding its records.

``dperm.schema`` is the number of the record's form, ``dperm.code`` the code that made it, and
``dperm.diagnostics`` the columns that ``dperm.content`` leaves out. Form 1 has neither of the last
two. What is digested are the columns in the file, so that columns of a later dperm change nothing.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from dperm_cli import __version__
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.digests import hash_sha256
from dperm_cli.core.errors import StorageError
from dperm_cli.core.parquet_files import ParquetReader
from dperm_cli.results.records.arrow_columns import column_of
from dperm_cli.results.records.schema import (
    COLUMNS,
    DIAGNOSTICS,
    OPTIONAL,
    SCHEMA_VERSION,
    STABLE_COLUMNS,
    arrow_schema,
)

_MARK = b"dperm-sha256:"
_BLANK = b"0" * 64
_STATUS = re.compile(rb"dperm-status:([a-z]+);")
_CELL = re.compile(rb"dperm-cell:([A-Za-z0-9_-]+);")
# Rows above which dictionaries and zstd make a file smaller: below, they only take time.
_FEW_ROWS = 64
_TAIL = 1 << 16  # bytes at the end that hold the footer
# How the digest spells values in each form. ``repr`` spells letters as this Python knows them.
_SPELLINGS = {1: repr, 2: ascii}
_DIAGNOSTICS_OF_FORM_1 = ("seconds", "seconds_optimum")


@dataclass(frozen=True)
class CodeIdentity:
    """The code that made a record.

    Attributes:
        version: Of dperm.
        sources: A digest of the source files: of the modules, and of all that they import.
        modules: The modules that this starts from, so that it can be taken again.
    """

    version: str
    sources: str
    modules: tuple[str, ...]


@dataclass(frozen=True)
class Footer:
    """What the footer of an intact record says of it; ``code`` is None in form 1."""

    form: int
    content: str
    diagnostics: tuple[str, ...]
    code: CodeIdentity | None


def encode(rows: Sequence[Mapping[str, Any]], code: CodeIdentity | None = None) -> bytes:
    """Full records as the bytes of a Parquet file: equal arguments give equal bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    without, columns = _list_absent(rows), _list_columns(rows)
    arrays = [column_of(columns[name], kind) for name, kind in _list_kinds(without).items()]
    table = pa.Table.from_arrays(arrays, schema=arrow_schema(without))
    sink = pa.BufferOutputStream()
    first, few = rows[0], len(rows) <= _FEW_ROWS
    options = {"compression": "snappy" if few else "zstd", "use_dictionary": not few}
    options |= {"write_statistics": False, "store_schema": False}
    with pq.ParquetWriter(sink, table.schema, **options) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(
            {
                "dperm.schema": str(SCHEMA_VERSION),
                "dperm.content": _digest_stable(columns),
                "dperm.diagnostics": json.dumps(DIAGNOSTICS),
                "dperm.code": json.dumps(None if code is None else asdict(code)),
                "dperm.status": f"dperm-status:{first['status']};dperm-cell:{first.get('cell')};",
                "dperm.sha256": (_MARK + _BLANK).decode(),
            }
        )
    blank = sink.getvalue().to_pybytes()
    return _with_digest(blank, hash_sha256(blank).encode())


def decode(data: bytes) -> list[dict[str, Any]]:
    """The rows in the bytes of a Parquet file; columns this version lacks are left out.

    ValueError where a column is not of its kind.
    """
    return _read_rows(ParquetReader(data))


def _read_rows(reader: ParquetReader) -> list[dict[str, Any]]:
    table, kinds = reader.read_rows(), _list_kinds()
    for field in table.schema:
        if field.type != kinds.get(field.name, field.type):
            raise ValueError(f"column {field.name} is of another kind")
    names = [column.name for column in COLUMNS]
    full = ({**_list_values_before(row), **row} for row in table.to_pylist())
    return [{name: row.get(name) for name in names} for row in full]


@cache
def _list_kinds(without: tuple[str, ...] = ()) -> dict[str, Any]:
    """The type of each column of a record, in order."""
    return {field.name: field.type for field in arrow_schema(without)}


def _list_values_before(row: Mapping[str, Any]) -> dict[str, Any]:
    """What held when a record had no such columns yet."""
    public = row.get("relation") == "replace_one"
    source = "public" if public else "from the data"
    return {"lasso": 0.0, "population": row.get("n"), "population_source": source}


def decode_file(path: Path, data: bytes) -> list[dict[str, Any]]:
    """The rows of a file with a true checksum, which anybody can make: StorageError for others."""
    with blame_strangers(path):
        reader = ParquetReader(data)
    _read_footer(path, reader)
    with blame_strangers(path):
        found = _read_rows(reader)
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
    digest = read_checksum(data)
    return bool(digest) and hash_sha256(_with_digest(data, _BLANK)).encode() == digest


def read_checksum(data: bytes) -> bytes:
    """The digits of the checksum that a file carries; none where it has no checksum."""
    start = data.rfind(_MARK) + len(_MARK)
    if start < len(_MARK) or start + 64 > len(data):
        return b""
    return data[start : start + 64]


def content_digest(rows: Iterable[Mapping[str, Any]]) -> str:
    """SHA-256 of the values in the columns that two equal runs share (no diagnostics).

    ``repr`` of a double is exact, so different values never share a text.
    """
    return _digest_stable(_list_columns(list(rows)))


def _list_columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The values of each column that a file of these rows has."""
    without = _list_absent(rows)
    kept = [column.name for column in COLUMNS if column.name not in without]
    return {name: [row.get(name) for row in rows] for name in kept}


def _digest_stable(columns: Mapping[str, Sequence[Any]]) -> str:
    kept = {name: columns[name] for name in STABLE_COLUMNS if name in columns}
    return _digest_columns(kept, SCHEMA_VERSION)


def _list_absent(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The columns that a file of these rows does not have."""
    return tuple(name for name in OPTIONAL if all(row.get(name) is None for row in rows))


def _digest_columns(columns: Mapping[str, Sequence[Any]], form: int) -> str:
    """The digest of rows by their columns: of each row, the text of its list of (name, value)."""
    spelled = (_spell(name, values, _SPELLINGS[form]) for name, values in columns.items())
    return hash_sha256(*(f"[{', '.join(row)}]" for row in zip(*spelled, strict=True)))


def _spell(name: str, values: Sequence[Any], spell: Callable[[Any], str]) -> list[str]:
    if len(set(map(id, values))) == 1:  # rows of one cell share most of their values
        return [f"({spell(name)}, {spell(values[0])})"] * len(values)
    return [f"({spell(name)}, {spell(value)})" for value in values]


def _with_digest(data: bytes, digest: bytes) -> bytes:
    """The file's bytes with the digits of its checksum replaced (the footer's mark is last)."""
    start = data.rfind(_MARK) + len(_MARK)
    return data[:start] + digest + data[start + 64 :]


def read_status(path: Path, data: bytes) -> str:
    """How the cell of an intact file ended."""
    # the last one: a reason or a configuration in the rows may spell the words as well
    found = _STATUS.findall(data, max(0, len(data) - _TAIL))
    return found[-1].decode() if found else decode_file(path, data)[0]["status"]


def is_of_cell(path: Path, data: bytes, cell: str) -> bool:
    """Whether the rows of an intact file are those of this cell: a file may have been renamed."""
    found = _CELL.findall(data, max(0, len(data) - _TAIL))
    if found:
        return found[-1].decode() == cell
    return all(row["cell"] == cell for row in decode_file(path, data))  # of an earlier version


def read_footer(path: Path, data: bytes) -> Footer:
    """What the footer of an intact file says; StorageError for a form of a later dperm."""
    with blame_strangers(path):
        reader = ParquetReader(data)
    return _read_footer(path, reader)


def _read_footer(path: Path, reader: ParquetReader) -> Footer:
    with blame_strangers(path):
        found = reader.facts.metadata or {}
        form, content = int(found[b"dperm.schema"]), found[b"dperm.content"].decode()
        if form == 1:
            return Footer(form, content, _DIAGNOSTICS_OF_FORM_1, None)
        if form in _SPELLINGS:
            left_out = _read_texts(json.loads(found[b"dperm.diagnostics"]))
            return Footer(form, content, left_out, _read_code(json.loads(found[b"dperm.code"])))
    raise StorageError(
        f"{path}: is a record of form {form}; dperm {__version__} reads forms up to "
        f"{SCHEMA_VERSION}: install a newer dperm"
    )


def has_true_content(path: Path, data: bytes) -> bool:
    """Whether the values in an intact file are those that its content digest was taken of."""
    footer = read_footer(path, data)
    with blame_strangers(path):
        table = ParquetReader(data).read_rows()
        kept = [name for name in table.column_names if name not in footer.diagnostics]
        return _digest_columns(table.select(kept).to_pydict(), footer.form) == footer.content


def _read_code(found: Any) -> CodeIdentity | None:
    if found is None:
        return None
    version, sources = _read_texts([found["version"], found["sources"]])
    return CodeIdentity(version, sources, _read_texts(found["modules"]))


def _read_texts(found: Any) -> tuple[str, ...]:
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
        raise ValueError("its footer is not as dperm writes it")
    return tuple(found)
