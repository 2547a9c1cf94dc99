"""``releases.log``: every release of a folder that nobody can draw again, also without a record.

Secure noise and the noise of a session are fresh at every run: a cell that is run again is released
a second time, and the first time has not gone with the record that is written over. The log has one
line for each such release, written and brought to the disk before its record can be seen, and no
line is ever changed or taken away. Seeded noise is not in it: the same cell gives the same point.
A line holds the checksum of its entry and the entry: public facts of the record, and no point.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dperm_cli.core.errors import StorageError
from dperm_cli.results.locks import locked
from dperm_cli.results.schema import COLUMNS, normalise
from dperm_cli.results.statement import session
from dperm_cli.results.store import Store, content_digest, read_bytes, storage_errors

LOG = "releases.log"
_KEPT = tuple(c.name for c in COLUMNS if c.role in ("identity", "public"))
_KEPT = (*_KEPT, "data_fingerprint")  # which data set it was
_SHOWN = 12  # digits of a content digest in the name of an earlier release

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Entry:
    """One release: its cell, the digest of what the record holds, how many trials, its facts."""

    cell: str
    content: str
    trials: int
    row: dict[str, Any]

    def rows(self) -> list[dict[str, Any]]:
        """A row per trial without points, under a name that tells it from the cell's record."""
        full = normalise({**self.row, "cell": f"{self.cell}-{self.content[:_SHOWN]}"})
        return [full | {"trial": trial} for trial in range(self.trials)]


def fresh(rows: Sequence[Row]) -> bool:
    """Whether these rows are a release whose noise nobody can draw again."""
    first = rows[0]
    return first["status"] == "ok" and (first["noise"] == "secure" or session(first))


def append(out: Path, entries: Iterable[Entry]) -> None:
    """Add what is not there yet; on the disk when this returns. StorageError names the file."""
    entries = list(entries)
    if not entries:
        return
    path = out / LOG
    with storage_errors(path):
        out.mkdir(parents=True, exist_ok=True)
    with locked(out / f".{LOG}.lock", wait=True):
        before = read_bytes(path) or b""
        known = {(entry.cell, entry.content) for entry in _read(before)[0]}
        new = [entry for entry in entries if (entry.cell, entry.content) not in known]
        if not new:
            return
        # a line that a power cut left unfinished is closed, so that it spoils no other
        start = b"" if not before or before.endswith(b"\n") else b"\n"
        with storage_errors(path):
            _write(path, start + b"".join(map(_line, new)))


def written(cell: str, rows: Sequence[Row]) -> Entry:
    """The entry of full rows that are, or will be, a cell's record."""
    facts = {name: rows[0][name] for name in _KEPT}
    return Entry(cell, content_digest(rows), len(rows), facts)


def entries(out: Path) -> list[Entry]:
    """All whole lines of the folder's log, in order."""
    return _read(read_bytes(out / LOG) or b"")[0]


def damaged(out: Path) -> list[str]:
    """The lines that are not as they were written, one message each."""
    return [f"{out / LOG}: line {at}" for at in _read(read_bytes(out / LOG) or b"")[1]]


def earlier(store: Store) -> list[dict[str, Any]]:
    """Rows of the releases whose record was written over, deleted or damaged since."""
    now: dict[str, str | None] = {}
    found = []
    for entry in entries(store.out):
        if entry.cell not in now:
            now[entry.cell] = store.digest(entry.cell)
        if now[entry.cell] != entry.content:
            found += entry.rows()
    return found


def _line(entry: Entry) -> bytes:
    facts = {"cell": entry.cell, "content": entry.content, "trials": entry.trials, "row": entry.row}
    text = json.dumps(facts, sort_keys=True, separators=(",", ":")).encode()
    return hashlib.sha256(text).hexdigest().encode() + b" " + text + b"\n"


def _read(data: bytes) -> tuple[list[Entry], list[int]]:
    """Whole entries, and the numbers of the lines that are not."""
    found, bad = [], []
    for at, line in enumerate(data.splitlines(), start=1):
        digest, _, text = line.partition(b" ")
        if hashlib.sha256(text).hexdigest().encode() != digest:
            bad.append(at)
            continue
        found.append(Entry(**json.loads(text)))
    return found, bad


def _write(path: Path, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o666)
    try:
        if os.write(descriptor, data) != len(data):
            raise StorageError(f"{path}: could not be written to its end")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
