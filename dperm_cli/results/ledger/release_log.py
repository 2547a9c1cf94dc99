"""``releases.log``: the log of all releases of a folder whose noise cannot be drawn again.

Secure noise and the noise of a session are fresh in every run. If such a cell is run again, a
second release is made and its record replaces the first one's. But the first release still counts.
So the log has one line for each such release. A line is written, and synced to the disk, before its
record can be seen. No line is ever changed or removed. Releases with seeded noise are not logged:
the same cell gives the same point again.

A release is identified by the name that was drawn with it (column ``release``), never by its
output: two releases may have equal outputs. Releases of an earlier dperm have no name, and are
identified by cell and content. A line holds the checksum of its entry, and the entry: public facts
of the record without the released point, and the checksum of the line before. So a line that is
changed, or removed from the middle, is noticed (``results.ledger.release_log_lines``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from dperm_cli.core.files import append_durably, hold_lock, read_bytes, storage_errors
from dperm_cli.results.ledger import statement
from dperm_cli.results.ledger.ledger import LedgerRelease
from dperm_cli.results.ledger.release_log_lines import Entry, Gap, Lines, line_of, read_lines
from dperm_cli.results.record_format import content_digest
from dperm_cli.results.records.row_facts import Row
from dperm_cli.results.records.schema import COLUMNS, normalise
from dperm_cli.results.study_files import LOG

_LOGGED_COLUMNS = tuple(c.name for c in COLUMNS if c.role in ("identity", "public"))
_LOGGED_COLUMNS = (*_LOGGED_COLUMNS, "data_fingerprint")  # which data set it was


class Records(Protocol):
    """What the log needs of the store that it belongs to."""

    out: Path

    def cells(self) -> list[str]: ...

    def read(self, cell: str) -> list[dict[str, Any]] | None: ...

    def digest(self, cell: str) -> str | None: ...


def has_fresh_noise(rows: Sequence[Row]) -> bool:
    """Whether these rows are a release whose noise nobody can draw again."""
    return rows[0]["status"] == "ok" and statement.has_fresh_noise(rows[0])


def append(out: Path, entries: Iterable[Entry | Gap]) -> None:
    """Add the entries that are not in the log yet; they are on the disk when this returns.

    Raises:
        StorageError: the log cannot be written; the message names the file.
    """
    entries = list(entries)
    if not entries:
        return
    path = out / LOG
    with storage_errors(path):
        out.mkdir(parents=True, exist_ok=True)
    with hold_lock(out / f".{LOG}.lock", wait=True):
        before = read_bytes(path) or b""
        found = read_lines(before)
        known = {entry.identity for entry in (*found.entries, *found.gaps)}
        new = {entry.identity: entry for entry in entries if entry.identity not in known}
        if not new:
            return
        # a line that a power cut left unfinished is closed, so that it spoils no other
        start = b"" if not before or before.endswith(b"\n") else b"\n"
        lines = []
        for entry in new.values():
            lines.append(line_of(entry, lines[-1] if lines else before))
        append_durably(path, start + b"".join(lines))


def make_entry(cell: str, rows: Sequence[Row]) -> Entry:
    """The entry of full rows that are, or will be, a cell's record."""
    facts = {name: rows[0][name] for name in _LOGGED_COLUMNS}
    if facts["plugins"] is None:
        del facts["plugins"]
    return Entry(cell, content_digest(rows), len(rows), facts)


def read_entries(out: Path) -> list[Entry]:
    """The releases of all whole lines of the folder's log, in order."""
    return list(_read(out).entries)


def list_damage(out: Path) -> list[str]:
    """What is damaged in the log, one message each: ``releases.log: line 3 ..``."""
    return [f"{LOG}: {fault}" for fault in _read(out).faults]


def read_entry(store: Records, cell: str) -> Entry | None:
    """The entry of the release whose record there is; None without one, or with seeded noise."""
    rows = store.read(cell)
    if not rows or not has_fresh_noise(rows):
        return None
    # a record of an earlier dperm, which had other columns, keeps the digest that it carries
    return replace(make_entry(cell, rows), content=store.digest(cell) or "")


def find_unlogged(store: Records) -> list[str]:
    """The records of named releases that have no line in the log, one message each.

    A line is written before its record, so such a line was lost or cut off.
    """
    known = {entry.identity for entry in read_entries(store.out)}
    found = [read_entry(store, cell) for cell in store.cells()]
    return [
        f"{LOG}: has no line of the release of record {entry.cell}"
        for entry in found
        if entry is not None and entry.release is not None and entry.identity not in known
    ]


def list_unrecorded(store: Records) -> list[LedgerRelease]:
    """The releases whose record was written over, deleted or damaged since."""
    now: dict[str, Any] = {}
    names: Counter[str] = Counter()
    found = []
    for entry in read_entries(store.out):
        if entry.cell not in now:
            record = read_entry(store, entry.cell)
            now[entry.cell] = None if record is None else record.identity
        if now[entry.cell] != entry.identity:
            names[entry.name] += 1
            again = "" if names[entry.name] == 1 else f"-{names[entry.name]}"
            row = normalise({**entry.row, "cell": f"{entry.name}{again}", "trial": 0})
            found.append(LedgerRelease(row, entry.trials, recorded=False))
    return found


def _read(out: Path) -> Lines:
    return read_lines(read_bytes(out / LOG) or b"")
