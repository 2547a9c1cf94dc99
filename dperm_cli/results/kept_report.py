"""Keep what a report found, and find it again while nothing that it was made of has changed.

Whoever runs a finished study again wants to see its tables, and making them takes longer than
planning the study: every record is read, and every epsilon is computed from its events. A report
follows from the files of the folder, from this code and from the libraries that draw. So the cache
holds the report under a digest of all of these, and what the report wrote is part of that digest: a
file that was changed or taken away has the report made anew.

Only a file of this user's that nobody else can write to is believed, since a report says that a
ledger holds. A folder with a log of releases has its report made anew each time.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.digests import hash_each, hash_parts
from dperm_cli.core.errors import StorageError
from dperm_cli.core.files import read_bytes, write_atomically
from dperm_cli.core.installed_versions import find_version
from dperm_cli.core.package_paths import cache_dir
from dperm_cli.core.private_folders import read_own
from dperm_cli.results import study_files
from dperm_cli.results.records.store import Store

if TYPE_CHECKING:
    from dperm_cli.results.tables.chosen_table import ChosenTable

FOLDER = "reports"  # of the cache
MOST_BYTES = 1 << 25  # of a report that is kept
_PACKAGE = Path(__file__).parents[1]
_LIBRARIES = ("numpy", "pandas", "pyarrow", "matplotlib", "pillow")


@dataclass(frozen=True)
class Report:
    """What a report found and wrote.

    Attributes:
        summary: one JSON-able dict per cell.
        text: what is printed where nobody's terminal limits its width.
        files: the paths written.
        broken: the manifest's cells with a damaged record.
        faults: where records or ledger contradict their own events, one line each.
        releases: how many releases the ledger counts.
        gaps: what is lost of ``releases.log``, so that totals are lower bounds.
        notes: what left the ledger, and how many records have names of the old form.
        totals: what several releases with fresh noise cost together, as sentences.
        unwritten: which files could not be written, and why.
        short: the table that a terminal shows, None where it shows ``text`` as it is.
        after: the lines that stand in ``text`` below the table.
    """

    summary: list[dict[str, Any]]
    text: str
    files: tuple[str, ...]
    broken: tuple[str, ...]
    faults: tuple[str, ...]
    releases: int
    gaps: tuple[str, ...]
    notes: tuple[str, ...]
    totals: tuple[str, ...]
    unwritten: StorageError | None
    short: ChosenTable | None = None
    after: tuple[str, ...] = ()


def find_report(out: Path, figures: bool) -> Report | None:
    """The report that was kept of a folder, None where there is none or something has changed.

    Args:
        out: The study's folder.
        figures: Whether the report has figures.
    """
    place = _find_place(out, figures)
    if place is None:
        return None
    with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError, StorageError):
        kept = json.loads(read_own(place) or b"{}")
        # the name is in the digest: a file may have been given another's name
        if kept["digest"] == _sign(place, kept["report"], _hash_folder(out)):
            return _read(json.loads(kept["report"]))
    return None


def hash_inputs(out: Path) -> str:
    """A digest of what a report of a folder reads, to be taken before one is made."""
    return hash_each(_list_contents(out, study_files.INPUTS))


def keep_report(out: Path, figures: bool, made: Report, inputs: str) -> None:
    """Keep a report that has just been made, if it is whole and has nothing to complain of.

    Args:
        out: The study's folder.
        figures: Whether the report has figures.
        made: The report.
        inputs: ``hash_inputs`` from before it was made. Another run may have stored a record since,
            which the report lacks: then it is not kept.
    """
    if hash_inputs(out) != inputs:
        return
    # notes tell what changed with this report, and would be told again
    if made.broken or made.faults or made.gaps or made.notes or made.unwritten is not None:
        return
    if os.path.lexists(out / study_files.LOG):
        return
    place = _find_place(out, figures)
    if place is None:
        return
    with contextlib.suppress(StorageError, ValueError, TypeError):  # a cache may be read-only
        plain = {field.name: getattr(made, field.name) for field in fields(made)}
        text = json.dumps(plain | {"short": None if made.short is None else asdict(made.short)})
        if len(text) > MOST_BYTES or not _is_same(_read(json.loads(text)), made):
            return
        found = {"digest": _sign(place, text, _hash_folder(out)), "report": text}
        write_atomically(place, json.dumps(found).encode(), sync=False, private=True)


def _find_place(out: Path, figures: bool) -> Path | None:
    """One file for each folder as it is named: paths stand in the report."""
    folder = cache_dir()
    if folder is None:
        return None
    name = hash_parts("\0".join((os.path.abspath(out), str(out), str(figures))))
    return folder / FOLDER / f"{name}.json"


def _sign(place: Path, text: str, folder: str) -> str:
    """A digest of a report with all that it was made of."""
    return hash_parts("\0".join((place.name, folder, _identify_code())), "\0", text)


def _read(kept: dict[str, Any]) -> Report:
    """A report of its fields as JSON has them."""
    kept = {
        name: tuple(value) if isinstance(value, list) and name != "summary" else value
        for name, value in kept.items()
    }
    short = kept.pop("short")
    return Report(**kept, short=None if short is None else _read_table(short))


def _read_table(kept: dict[str, Any]) -> ChosenTable:
    from dperm_cli.results.tables.chosen_table import ChosenTable, Column, Group

    groups = (
        Group(group["title"], tuple(tuple(line) for line in group["lines"]))
        for group in kept["groups"]
    )
    columns = tuple(Column(**column) for column in kept["columns"])
    remarks = tuple((text, column) for text, column in kept["remarks"])
    return ChosenTable(kept["caption"], columns, tuple(groups), remarks)


def _is_same(one: Report, other: Report) -> bool:
    """Whether two reports say the same; numbers that are none equal themselves."""
    return all(repr(getattr(one, f.name)) == repr(getattr(other, f.name)) for f in fields(one))


def _hash_folder(out: Path) -> str:
    """A digest of all files of a folder that a report reads or writes."""
    return hash_each(_list_contents(out, study_files.EVERY))


def _list_contents(out: Path, files: Sequence[str]) -> Iterator[bytes]:
    """The names and bytes of some files of a folder and of all records."""
    for name in files:
        data = read_bytes(out / name)
        yield f"{name}:{-1 if data is None else len(data)}:".encode()
        yield data or b""
    store = Store(out)
    for cell in store.cells():
        data = read_bytes(store.path(cell))
        yield f"{cell}:{-1 if data is None else len(data)}:".encode()
        yield data or b""


@cache
def _identify_code() -> str:
    """A digest of this code and of the libraries that draw and write.

    A source file counts as changed when its size or time has changed, as it does for Python.
    """
    found = [sys.version, *(f"{name} {find_version(name)}" for name in _LIBRARIES)]
    for folder, folders, names in os.walk(_PACKAGE):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            about = os.stat(os.path.join(folder, name))
            found.append(f"{folder}/{name}:{about.st_size}:{about.st_mtime_ns}")
    return hash_parts("\0".join(found))
