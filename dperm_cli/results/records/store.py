"""The store: one Parquet file per cell, written whole or not at all.

Every file carries two checksums in its footer. ``dperm.sha256`` covers every byte of the file
(taken with the checksum's own digits at zero), so any truncation or flipped bit is noticed;
``dperm.content`` covers the values of the columns that two equal runs must share. A third entry,
``dperm.status``, says how the cell ended, so that a sweep is counted without decoding its records.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dperm_cli.core.errors import StorageError
from dperm_cli.results.records.schema import (
    COLUMNS,
    OPTIONAL,
    SCHEMA_VERSION,
    STABLE_COLUMNS,
    STATUSES,
    arrow_schema,
    normalise,
)

MANIFEST = "manifest.json"
_MARK = b"dperm-sha256:"
_BLANK = b"0" * 64
_STATUS = re.compile(rb"dperm-status:([a-z]+);")
# Rows above which a file gains from compression: below, its overhead is most of the time.
_FEW_ROWS = 8
_TAIL = 1 << 16  # bytes at the end that hold the footer
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

    def status(self, cell: str) -> str:
        """How the cell ended (``ok``, ``unsupported``, ..), or ``broken`` or ``absent``."""
        data = read_bytes(self.path(cell))
        if data is None or not intact(data):
            return "absent" if data is None else "broken"
        # the last one: a reason or a configuration in the rows may spell the words as well
        found = _STATUS.findall(data, max(0, len(data) - _TAIL))
        return found[-1].decode() if found else _rows(self.path(cell), data)[0]["status"]

    def write(self, cell: str, rows: Iterable[Mapping[str, Any]], sync: bool = True) -> None:
        """Write the cell's rows (at least one) in one atomic step, replacing what was there.

        A release that nobody can draw again enters the log of releases first, and so does one
        that is replaced: ``results.ledger.release_log``.
        Without ``sync`` the system is left to bring the bytes to the disk when it likes: that
        survives any end of the process, and what a power cut tears off fails its checksum.
        """
        path = self.path(cell)
        full = [normalise({"cell": cell, **row}) for row in rows]
        _check_rows(cell, full)
        _check_release(cell, full)
        self._log(cell, full)
        atomic_write(path, encode(full), sync)

    def _log(self, cell: str, rows: Sequence[Mapping[str, Any]]) -> None:
        from dperm_cli.results.ledger import release_log  # which is made of this module

        new = release_log.make_entry(cell, rows) if release_log.has_fresh_noise(rows) else None
        versions = [release_log.read_entry(self, cell), new]
        release_log.append(self.out, [entry for entry in versions if entry is not None])

    def read(self, cell: str) -> list[dict[str, Any]] | None:
        """The cell's rows in trial order, or None when it is absent or broken."""
        data = read_bytes(self.path(cell))
        return _rows(self.path(cell), data) if data is not None and intact(data) else None

    def digest(self, cell: str) -> str | None:
        """The content digest that the cell's file carries; None when it is absent or broken."""
        data = read_bytes(self.path(cell))
        if data is None or not intact(data):
            return None
        import pyarrow as pa
        import pyarrow.parquet as pq

        with _refuse_foreign(self.path(cell)):
            found = pq.ParquetFile(pa.BufferReader(data)).metadata.metadata
            return found[b"dperm.content"].decode()

    def sync(self, cells: Iterable[str]) -> None:
        """Bring records written without ``sync`` to the disk."""
        for cell in cells:
            path = self.path(cell)
            with report_storage_errors(path), contextlib.suppress(FileNotFoundError):
                _sync_file(path)
        _sync_folder(self.records)

    def cells(self) -> list[str]:
        """Names of all record files, sorted."""
        with report_storage_errors(self.records):
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
            listed = manifest["cells"] if isinstance(manifest, dict) else None
            cells = [_CELL.fullmatch(cell) for cell in listed] if isinstance(listed, list) else []
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        return manifest if cells and all(cells) else None


class Snapshot(Store):
    """A store whose records are read once each: for what looks at all of them several times.

    Rows are shared between the calls; they are not to be changed.
    """

    def __init__(self, out: str | os.PathLike[str]) -> None:
        super().__init__(out)
        self._read: dict[str, tuple[str, list[dict[str, Any]] | None]] = {}

    def state(self, cell: str) -> str:
        return self._known(cell)[0]

    def read(self, cell: str) -> list[dict[str, Any]] | None:
        return self._known(cell)[1]

    def _known(self, cell: str) -> tuple[str, list[dict[str, Any]] | None]:
        if cell not in self._read:
            data = read_bytes(self.path(cell))
            whole = data is not None and intact(data)
            state = "absent" if data is None else "whole" if whole else "broken"
            rows = _rows(self.path(cell), data) if data is not None and whole else None
            self._read[cell] = state, rows
        return self._read[cell]


def encode(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Full records as the bytes of a Parquet file: equal rows give equal bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    without = tuple(name for name in OPTIONAL if all(row.get(name) is None for row in rows))
    table = pa.Table.from_pylist([dict(row) for row in rows], schema=_schema(without))
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
    return _with_digest(blank, hashlib.sha256(blank).hexdigest().encode())


def decode(data: bytes) -> list[dict[str, Any]]:
    """The rows in the bytes of a Parquet file; columns this version lacks are left out.

    ValueError where a column is not of its kind.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    # one thread: a record is small, and workers must not fight over cores
    table = pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False)
    kinds = _schema(())
    for field in table.schema:
        if field.name in kinds.names and field.type != kinds.field(field.name).type:
            raise ValueError(f"column {field.name} is of another kind")
    found = table.to_pylist()
    return [{column.name: row.get(column.name) for column in COLUMNS} for row in found]


def _rows(path: Path, data: bytes) -> list[dict[str, Any]]:
    """The rows of a file with a true checksum, which anybody can make: StorageError for others."""
    with _refuse_foreign(path):
        found = decode(data)
        if not found:
            raise ValueError("it has no rows")
        return found


@contextlib.contextmanager
def _refuse_foreign(path: Path) -> Iterator[None]:
    """Turn whatever a file that dperm did not write does to its reader into a StorageError."""
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
    return hashlib.sha256(_with_digest(data, _BLANK)).hexdigest().encode() == digest


def content_digest(rows: Iterable[Mapping[str, Any]]) -> str:
    """SHA-256 of the values in the columns that two equal runs share (no diagnostics).

    ``repr`` of a double is exact, so different values never share a text.
    """
    digest = hashlib.sha256()
    for row in rows:
        values = [(name, row.get(name)) for name in STABLE_COLUMNS]
        kept = [pair for pair in values if pair[0] not in OPTIONAL or pair[1] is not None]
        digest.update(repr(kept).encode())
    return digest.hexdigest()


@functools.cache
def _schema(without: tuple[str, ...]):
    return arrow_schema(without)


def atomic_write(path: Path, data: bytes, sync: bool = True) -> None:
    """Put the bytes at ``path``: all of them or, on any error, what was there before."""
    with report_storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
        try:
            _write_new(temporary, data, sync)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        if sync:
            _sync_folder(path.parent)


@contextlib.contextmanager
def report_storage_errors(path: Path) -> Iterator[None]:
    """Turn an OSError into a StorageError that names the path."""
    try:
        yield
    except OSError as error:
        words = error.strerror or type(error).__name__
        raise StorageError(f"{path}: {words.lower()}") from error


def _write_new(path: Path, data: bytes, sync: bool) -> None:
    with open(path, "xb") as handle:
        handle.write(data)
        handle.flush()
        if sync:
            os.fsync(handle.fileno())


def _sync_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable where the system allows it."""
    with contextlib.suppress(OSError):
        _sync_file(folder)


def read_bytes(path: Path) -> bytes | None:
    """The file's bytes, None when there is none; StorageError names the path."""
    with report_storage_errors(path):
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


def _check_release(cell: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """ValueError unless a release with fresh noise has a name of its own, and no other row one."""
    from dperm_cli.results.ledger import release_log

    names = [row["release"] for row in rows]
    if release_log.has_fresh_noise(rows):
        right = release_log.is_name(names[0]) and len(set(names)) == 1
    else:
        right = not any(names)
    if not right:
        raise ValueError(f"cell {cell}: fresh noise, and no other, needs the name of its release")
