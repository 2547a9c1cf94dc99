"""List what the cache folder holds, and clear it by kinds.

Nothing else lists the folder's rooms, so whoever adds one adds its kind here. Only files that have
names as dperm gives them are counted and cleared: ``DPERM_CACHE_DIR`` may name a folder that holds
other things as well.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from dperm_cli.core import checks
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError, StorageError
from dperm_cli.core.files import hold_lock
from dperm_cli.core.package_paths import CACHE_DIR, cache_dir

ALL = "all"
_NOTE = r"[0-9a-f]{32}\.json"


@dataclass(frozen=True)
class Kind:
    """A kind of what is kept.

    Attributes:
        name: What ``clear=`` calls it.
        room: Its folder below the cache folder; empty for the cache folder itself.
        entry: A pattern of the names of its files, or of its folders.
        holds: What it holds, in words.
        remake: How it comes back; None where it comes back by itself, and may be cleared here.
        marks: Where its entries are folders: what lies in each, one of these at least.
    """

    name: str
    room: str
    entry: str
    holds: str
    remake: str | None = None
    marks: tuple[str, ...] = ()

    def owns(self, entry: Path) -> bool:
        """Whether an entry of such a name is of this kind: what it may not be is left alone."""
        if self.remake is not None or entry.is_symlink():
            return True
        if not self.marks:
            return entry.is_file()
        return entry.is_dir() and any((entry / mark).exists() for mark in self.marks)


_COMPILED = "compiled again when it is needed; remove its folder"
_INSTALLED = "installed by `dperm peers install`; remove its folder"
_FETCHED = "fetched by `dperm data fetch`; remove the files that you do not need"
_PARSED = r"[A-Za-z0-9_]+-[0-9a-f]{64}\.arrays"
_STORED = ("facts.json", "sums.json", "source.json", "unsplit")
_OPTIMUM = r"(optimum|kernel)-[0-9a-f]{32}\.npz"
KINDS = (
    Kind("stored", "stored", r"[0-9a-f]{20}-[0-9a-f]{20}(\.part)?",
         "records of data_storage=mapped", marks=_STORED),
    # the last of them lay there in earlier versions
    Kind("parsed", "", rf"{_PARSED}|dperm-sources\.json|{_OPTIMUM}",
         "data files as they were parsed, digests of dperm's sources"),
    Kind("optima", "optima", _OPTIMUM, "optima with their certificates"),
    Kind("configurations", "configurations", _NOTE, "configurations that Hydra composed"),
    Kind("figures", "figures", _NOTE, "which files a figure was drawn to"),
    Kind("reports", "reports", _NOTE, "reports of finished studies"),
    Kind("numba", "numba", r".*", "machine code of the loops", _COMPILED),
    Kind("downloads", "downloads", r".*", "data sets from elsewhere", _FETCHED),
    Kind("peers", "peers", r".*", "environments of other programs", _INSTALLED),
)  # fmt: skip
CLEARED = tuple(kind.name for kind in KINDS if kind.remake is None)


@dataclass(frozen=True)
class Contents:
    """What there is of a kind: the number of files, and their bytes."""

    kind: Kind
    files: int
    bytes: int


def find_folder() -> Path:
    """The cache folder.

    Raises:
        StorageError: There is none.
        InputError: The name is that of a file.
    """
    folder = cache_dir()
    if folder is None:
        raise StorageError(f"there is no cache folder: set {CACHE_DIR}=FOLDER")
    checks.folder(CACHE_DIR, str(folder))
    return folder


def list_contents(folder: Path) -> list[Contents]:
    """What a cache folder holds of each kind; nothing is changed."""
    return [_measure(kind, folder) for kind in KINDS]


def read_kinds(words: str) -> list[Kind]:
    """The kinds that ``clear=`` names, with commas between, or all that may be cleared.

    Raises:
        InputError: A name is not one of them.
    """
    if words == ALL:
        return [kind for kind in KINDS if kind.remake is None]
    by_name, found = {kind.name: kind for kind in KINDS}, []
    for name in words.split(","):
        kind = by_name.get(name)
        if kind is None:
            allowed = f"must be {', '.join(CLEARED)} or {ALL}"
            raise InputError("clear", name, allowed, (*CLEARED, ALL))
        if kind.remake is not None:
            raise InputError("clear", name, f"is not cleared here: it is {kind.remake}")
        found.append(kind)
    return found


def clear(folder: Path, kinds: Sequence[Kind]) -> tuple[list[Contents], list[Path]]:
    """Take away what a cache folder holds of some kinds.

    Records that are being stored or read in at this moment stay. A run that has opened some goes
    on with them where the system lets it, as Linux does.

    Returns:
        What went, and the paths that could not be taken away.
    """
    gone, kept = [], []
    for kind in kinds:
        before = _measure(kind, folder)
        for entry in list(_list_entries(kind, folder)):
            kept += [] if _remove(entry) else [entry]
        after = _measure(kind, folder)
        gone.append(Contents(kind, before.files - after.files, before.bytes - after.bytes))
    return gone, kept


def _list_entries(kind: Kind, folder: Path) -> Iterator[Path]:
    room = folder / kind.room
    if kind.room and room.is_symlink():  # what it leads to is not the cache's
        return
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(room)):
            if re.fullmatch(kind.entry, name) and kind.owns(room / name):
                yield room / name


def _measure(kind: Kind, folder: Path) -> Contents:
    files = size = 0
    for entry in _list_entries(kind, folder):
        for path in _list_files(entry):
            with contextlib.suppress(OSError):
                files, size = files + 1, size + path.lstat().st_size
    return Contents(kind, files, size)


def _list_files(entry: Path) -> Iterator[Path]:
    """The files of an entry; a link is a file, wherever it leads."""
    if entry.is_symlink() or not entry.is_dir():
        yield entry
        return
    for place, folders, names in os.walk(entry):
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        yield from (Path(place, name) for name in (*names, *links))


def _remove(entry: Path) -> bool:
    """Whether a file, link or folder is gone."""
    if entry.is_symlink() or not entry.is_dir():
        with contextlib.suppress(OSError):
            entry.unlink()
        return not os.path.lexists(entry)
    # the lock of whoever stores or opens records of these keys
    lock = entry.parent / f".{entry.name.partition('-')[0]}.lock"
    with contextlib.suppress(StorageError), hold_lock(lock) as held:
        if held:
            shutil.rmtree(entry, ignore_errors=True)
    return not entry.exists()
