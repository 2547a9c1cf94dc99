"""The store: one Parquet file per cell (``results.record_format``), written whole or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dperm_cli.core.files import (
    read_bytes,
    storage_errors,
    sync_file,
    sync_folder,
    write_atomically,
)
from dperm_cli.results.ledger import release_log
from dperm_cli.results.ledger.release_log_lines import CELL_NAME, is_name
from dperm_cli.results.record_format import (
    CodeIdentity,
    Footer,
    decode_file,
    encode,
    has_true_content,
    intact,
    is_of_cell,
    read_checksum,
    read_footer,
    read_status,
)
from dperm_cli.results.records import written_rows
from dperm_cli.results.records.schema import STATUSES, normalise_all
from dperm_cli.results.study_files import MANIFEST, RECORD, RECORDS

_OLD_NAME = re.compile(r"[0-9a-f]{20}")  # newer names have 24 digits, sessions a word in front


class Store:
    """The records of one study, under ``<out>/records``.

    Nothing touches the disk before the first ``write``. A file that fails its checksum, or holds
    the rows of another cell, counts as absent: ``has`` is False, ``read`` is None, and ``state``
    and ``verify`` tell it apart.
    Storage problems raise StorageError with the path; two writers never see half a file.
    """

    def __init__(self, out: str | os.PathLike[str]) -> None:
        self.out = Path(out)
        self.records = self.out / RECORDS

    def path(self, cell: str) -> Path:
        """Where the cell's record lives; ValueError when ``cell`` is no plain name."""
        if not CELL_NAME.fullmatch(cell):
            raise ValueError(f"cell {cell!r} is not a hash")
        return self.records / f"{cell}{RECORD}"

    def state(self, cell: str) -> str:
        """``whole``, ``broken`` or ``absent``."""
        return self._load(cell)[0]

    def has(self, cell: str) -> bool:
        """True when the cell's record is there and whole."""
        return self.state(cell) == "whole"

    def status(self, cell: str) -> str:
        """How the cell ended (``ok``, ``unsupported``, ..), or ``broken`` or ``absent``."""
        state, data = self._load(cell)
        return state if data is None else read_status(self.path(cell), data)

    def write(
        self,
        cell: str,
        rows: Iterable[Mapping[str, Any]],
        sync: bool = True,
        code: CodeIdentity | None = None,
    ) -> None:
        """Write the cell's rows (at least one) in one atomic step, replacing what was there.

        ``code`` is what made them; a record without one counts as made by older code.
        A release that nobody can draw again enters the log of releases first, and so does one
        that is replaced: ``results.ledger.release_log``.
        Without ``sync`` the system is left to bring the bytes to the disk when it likes: that
        survives any end of the process, and what a power cut tears off fails its checksum.
        """
        path = self.path(cell)
        full = normalise_all({"cell": cell, **row} for row in rows)
        _check_rows(cell, full)
        _check_release(cell, full)
        self._log(cell, full)
        data = encode(full, code)
        write_atomically(path, data, sync)
        written_rows.keep(read_checksum(data), full)

    def _log(self, cell: str, rows: Sequence[Mapping[str, Any]]) -> None:
        new = release_log.make_entry(cell, rows) if release_log.has_fresh_noise(rows) else None
        versions = [release_log.read_entry(self, cell), new]
        release_log.append(self.out, [entry for entry in versions if entry is not None])

    def read(self, cell: str) -> list[dict[str, Any]] | None:
        """The cell's rows in trial order, or None when it is absent or broken."""
        _, data = self._load(cell)
        return None if data is None else decode_file(self.path(cell), data)

    def digest(self, cell: str) -> str | None:
        """The content digest that the cell's file carries; None when it is absent or broken."""
        found = self.footer(cell)
        return None if found is None else found.content

    def footer(self, cell: str) -> Footer | None:
        """What the footer of the cell's file says; None when it is absent or broken."""
        _, data = self._load(cell)
        return None if data is None else read_footer(self.path(cell), data)

    def has_true_content(self, cell: str) -> bool:
        """Whether the cell's file is whole, and its values are those of its content digest."""
        _, data = self._load(cell)
        return data is not None and has_true_content(self.path(cell), data)

    def _load(self, cell: str) -> tuple[str, bytes | None]:
        """The state of the cell's file, and its bytes where it is whole."""
        data = read_bytes(self.path(cell))
        if data is None:
            return "absent", None
        path = self.path(cell)
        is_own = intact(data) and is_of_cell(path, data, cell)
        return ("whole", data) if is_own else ("broken", None)

    def holds_another(self, cell: str) -> bool:
        """Whether the cell's file is whole, and has the rows of another cell."""
        path, data = self.path(cell), read_bytes(self.path(cell))
        return data is not None and intact(data) and not is_of_cell(path, data, cell)

    def sync(self, cells: Iterable[str]) -> None:
        """Bring records written without ``sync`` to the disk."""
        for cell in cells:
            path = self.path(cell)
            with storage_errors(path), contextlib.suppress(FileNotFoundError):
                sync_file(path)
        sync_folder(self.records)

    def cells(self) -> list[str]:
        """Names of all record files, sorted."""
        with storage_errors(self.records):
            names = os.listdir(self.records) if self.records.exists() else []
        cells = sorted(name.removesuffix(RECORD) for name in names if name.endswith(RECORD))
        return [cell for cell in cells if CELL_NAME.fullmatch(cell)]

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
        cells = [cell for cell in self.cells() if self.state(cell) != "whole"]
        broken = [str(self.path(cell)) for cell in cells if not self.holds_another(cell)]
        if read_bytes(self.out / MANIFEST) is not None and self.read_manifest() is None:
            broken.append(str(self.out / MANIFEST))
        return broken

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Write ``manifest.json``; ``manifest["cells"]`` lists the study's cells in order."""
        if not all(CELL_NAME.fullmatch(cell) for cell in manifest["cells"]):
            raise ValueError("manifest cells must be hashes")
        text = json.dumps(manifest, indent=2, sort_keys=True, allow_nan=False)
        write_atomically(self.out / MANIFEST, text.encode() + b"\n")

    def read_manifest(self) -> dict[str, Any] | None:
        """The manifest, or None when it is absent or unreadable."""
        data = read_bytes(self.out / MANIFEST)
        try:
            manifest = json.loads(data or b"")
            cells = manifest["cells"]
            good = isinstance(cells, list) and cells and all(map(CELL_NAME.fullmatch, cells))
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        return manifest if good else None


class Snapshot(Store):
    """A store whose records are read once each: for what looks at all of them several times.

    Rows are shared between the calls; they are not to be changed.
    """

    def __init__(self, out: str | os.PathLike[str]) -> None:
        super().__init__(out)
        self._read: dict[str, tuple[str, list[dict[str, Any]] | None]] = {}

    def state(self, cell: str) -> str:
        return self._read_once(cell)[0]

    def read(self, cell: str) -> list[dict[str, Any]] | None:
        return self._read_once(cell)[1]

    def _read_once(self, cell: str) -> tuple[str, list[dict[str, Any]] | None]:
        if cell not in self._read:
            state, data = self._load(cell)
            rows = None if data is None else written_rows.find(read_checksum(data))
            if data is not None and rows is None:
                rows = decode_file(self.path(cell), data)
            self._read[cell] = state, rows
        return self._read[cell]


def list_old(cells: Iterable[str]) -> list[str]:
    """Those of some records' names that are of the old form: made of all code that there was."""
    return [cell for cell in cells if _OLD_NAME.fullmatch(cell)]


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
    names = [row["release"] for row in rows]
    if release_log.has_fresh_noise(rows):
        right = is_name(names[0]) and len(set(names)) == 1
    else:
        right = not any(names)
    if not right:
        raise ValueError(f"cell {cell}: fresh noise, and no other, needs the name of its release")
