"""The store: one Parquet file per cell, written whole or not at all.

Every file carries two checksums in its footer. ``dperm.sha256`` covers every byte of the file
(taken with the checksum's own digits at zero), so any truncation or flipped bit is noticed;
``dperm.content`` covers the values of the columns that two equal runs must share.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dperm_cli.core.errors import StorageError
from dperm_cli.results.schema import (
    COLUMNS,
    SCHEMA_VERSION,
    STABLE,
    STATUSES,
    arrow_schema,
    normalise,
)

MANIFEST = "manifest.json"
_MARK = b"dperm-sha256:"
_BLANK = b"0" * 64
_CELL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")


class Store:
    """The records of one study, under ``<out>/records``.

    Nothing touches the disk before the first ``write``. A file that fails its checksum counts as
    absent: ``has`` is False, ``read`` is None, and ``state`` and ``verify`` tell it apart.
    Storage problems raise StorageError with the path; two writers never see half a file.
    """

    def __init__(self, out: str | os.PathLike[str]) -> None:
        self.out = Path(out)
        self.records = self.out / "records"

    def path(self, cell: str) -> Path:
        """Where the cell's record lives; ValueError when ``cell`` is no plain name."""
        if not _CELL.fullmatch(cell):
            raise ValueError(f"cell {cell!r} is not a hash")
        return self.records / f"{cell}.parquet"

    def state(self, cell: str) -> str:
        """``whole``, ``broken`` or ``absent``."""
        data = read_bytes(self.path(cell))
        return "absent" if data is None else "whole" if intact(data) else "broken"

    def has(self, cell: str) -> bool:
        """True when the cell's record is there and whole."""
        return self.state(cell) == "whole"

    def write(self, cell: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write the cell's rows (at least one) in one atomic step, replacing what was there."""
        path = self.path(cell)
        full = [normalise({"cell": cell, **row}) for row in rows]
        _check_rows(cell, full)
        atomic_write(path, encode(full))

    def read(self, cell: str) -> list[dict[str, Any]] | None:
        """The cell's rows in trial order, or None when it is absent or broken."""
        data = read_bytes(self.path(cell))
        return decode(data) if data is not None and intact(data) else None

    def cells(self) -> list[str]:
        """Names of all record files, sorted."""
        with storage_errors(self.records):
            if not self.records.exists():
                return []
            names = sorted(name[:-8] for name in os.listdir(self.records) if _is_record(name))
        return [name for name in names if _CELL.fullmatch(name)]

    def read_all(self, cells: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Rows of the given cells, else of the manifest's cells, else of all; absent ones skipped.

        Rows come in the order of the cells, and inside a cell in trial order.
        """
        if cells is None:
            manifest = self.read_manifest()
            cells = manifest["cells"] if manifest else self.cells()
        unique = dict.fromkeys(cells or ())
        return [row for cell in unique for row in self.read(cell) or ()]

    def verify(self) -> list[str]:
        """Paths of the files that are broken: records by checksum, the manifest by its form."""
        broken = [str(self.path(cell)) for cell in self.cells() if self.state(cell) != "whole"]
        if read_bytes(self.out / MANIFEST) is not None and self.read_manifest() is None:
            broken.append(str(self.out / MANIFEST))
        return broken

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Write ``manifest.json``; ``manifest["cells"]`` lists the study's cells in order."""
        if not all(_CELL.fullmatch(cell) for cell in manifest["cells"]):
            raise ValueError("manifest cells must be hashes")
        text = json.dumps(manifest, indent=2, sort_keys=True, allow_nan=False)
        atomic_write(self.out / MANIFEST, text.encode() + b"\n")

    def read_manifest(self) -> dict[str, Any] | None:
        """The manifest, or None when it is absent or unreadable."""
        data = read_bytes(self.out / MANIFEST)
        try:
            manifest = json.loads(data) if data is not None else None
            cells = [_CELL.fullmatch(cell) for cell in manifest["cells"]] if manifest else []
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        return manifest if cells and all(cells) else None


def encode(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Full records as the bytes of a Parquet file: equal rows give equal bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pylist([dict(row) for row in rows], schema=arrow_schema())
    sink = pa.BufferOutputStream()
    options = {"compression": "zstd", "write_statistics": False}
    with pq.ParquetWriter(sink, table.schema, **options) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(
            {
                "dperm.schema": str(SCHEMA_VERSION),
                "dperm.content": content_digest(rows),
                "dperm.sha256": (_MARK + _BLANK).decode(),
            }
        )
    blank = sink.getvalue().to_pybytes()
    return _with_digest(blank, hashlib.sha256(blank).hexdigest().encode())


def decode(data: bytes) -> list[dict[str, Any]]:
    """The rows in the bytes of a Parquet file; columns this version lacks are left out."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = pq.read_table(pa.BufferReader(data)).to_pylist()
    return [{column.name: row.get(column.name) for column in COLUMNS} for row in found]


def intact(data: bytes) -> bool:
    """True when the bytes match the checksum they carry."""
    start = data.rfind(_MARK) + len(_MARK)
    if start < len(_MARK) or start + 64 > len(data):
        return False
    digest = data[start : start + 64]
    return hashlib.sha256(_with_digest(data, _BLANK)).hexdigest().encode() == digest


def content_digest(rows: Iterable[Mapping[str, Any]]) -> str:
    """SHA-256 of the values in the columns that two equal runs share (no diagnostics).

    ``repr`` of a double is exact, so different values never share a text.
    """
    digest = hashlib.sha256()
    for row in rows:
        digest.update(repr([(name, row.get(name)) for name in STABLE]).encode())
    return digest.hexdigest()


def atomic_write(path: Path, data: bytes) -> None:
    """Put the bytes at ``path``: all of them or, on any error, what was there before."""
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
        try:
            _write_synced(temporary, data)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        _sync_folder(path.parent)


@contextlib.contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn an OSError into a StorageError that names the path."""
    try:
        yield
    except OSError as error:
        words = error.strerror or type(error).__name__
        raise StorageError(f"{path}: {words.lower()}") from error


def _write_synced(path: Path, data: bytes) -> None:
    with open(path, "xb") as handle:
        handle.write(data)
        handle.flush()
        os.fsync(handle.fileno())


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable where the system allows it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def read_bytes(path: Path) -> bytes | None:
    """The file's bytes, None when there is none; StorageError names the path."""
    with storage_errors(path):
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None


def _with_digest(data: bytes, digest: bytes) -> bytes:
    """The file's bytes with the digits of its checksum replaced (the footer's mark is last)."""
    start = data.rfind(_MARK) + len(_MARK)
    return data[:start] + digest + data[start + 64 :]


def _is_record(name: str) -> bool:
    return name.endswith(".parquet") and not name.startswith(".")


def _check_rows(cell: str, rows: Sequence[Mapping[str, Any]]) -> None:
    if not rows:
        raise ValueError(f"cell {cell} has no rows")
    if any(row["cell"] != cell for row in rows):
        raise ValueError(f"a row of cell {cell} names another cell")
    if any(row["status"] not in STATUSES or row["relation"] is None for row in rows):
        raise ValueError(f"a row of cell {cell} lacks its status or its neighbouring relation")
    if [row["trial"] for row in rows] not in ([None], list(range(len(rows)))):
        raise ValueError(f"trials of cell {cell} are not 0, 1, 2, ...")
