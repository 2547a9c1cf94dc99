"""Where the records of a study are while it runs: in memory, or in files that are mapped into it.

Files are made once, in the cache folder, and found again by what the records follow from: the
places, sizes and times of the files that they are read from, the keys of the data set and the code
that prepares it. A store whose bytes are not those that were written is made again.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dperm_cli.core import progress
from dperm_cli.core.digests import hash_facts
from dperm_cli.core.errors import InputError, StorageError
from dperm_cli.core.files import hold_lock
from dperm_cli.core.foreign_errors import refuse_errors
from dperm_cli.core.growing_files import remove_folder
from dperm_cli.core.memory_limits import current_limit
from dperm_cli.core.package_paths import CACHE_DIR, cache_dir
from dperm_cli.datasets.base import Size
from dperm_cli.datasets.shared.stored_rows import Target, identify_source, remove_stage, store
from dperm_cli.problem.data import Data
from dperm_cli.problem.data_folder import check_folder, read_folder
from dperm_cli.runner.cells.record_digest import code_digest
from dperm_cli.runner.compose.cell_schema import DATA_STORAGE, Cell
from dperm_cli.runner.compose.same_cells import canonical, drop_defaults

KEY = "data_storage"
AUTO, MEMORY, MAPPED = DATA_STORAGE
SHARE = 4  # auto maps records that would take more than this part of the memory allowed
_FOLDER = "stored"  # of the cache folder
_NUMBER, _ENTRY, _RECORD = 8, 12, 24  # bytes: of a number, a sparse entry, the rest of a record
_MOST_EXPANDED = {"": 10, ".gz": 1000, ".bz2": 1000, ".xz": 1000, ".zip": 1000, ".npz": 1000,
                  ".parquet": 1000}  # fmt: skip


def choose_storage(cells: Sequence[Cell], asked: str) -> dict[str, bool]:
    """Whether the records of each data set are mapped, by the hash of its configuration.

    It follows from public facts: the numbers of records and columns, and the sizes of files.

    Args:
        cells: Of a study.
        asked: ``auto``, ``memory`` or ``mapped``.

    Raises:
        InputError: A data set cannot be mapped, and it was asked for.
    """
    found: dict[str, bool] = {}
    for cell in cells:
        name = hash_facts(cell.config["dataset"])
        if name not in found:
            with refuse_errors():
                found[name] = _is_mapped(cell.dataset, asked)
    return found


def _is_mapped(dataset: Any, asked: str) -> bool:
    if asked == MEMORY:
        return False
    if asked == MAPPED:
        if dataset.name != "stored" and dataset.list_files() is None:
            allowed = f"is for data sets that say which files they read, and {dataset.name} does "
            raise InputError(KEY, asked, f"{allowed}not; set data_storage=memory")
        return dataset.name != "stored"  # which is mapped as it is
    if dataset.split_later is None or current_limit().addresses:
        return False  # it has to be loaded first, or mapped files count as memory does
    most = current_limit().bytes // SHARE
    needed = count_bytes(find_size(dataset))
    if needed is None and _may_exceed(dataset.list_files() or (), most):
        needed = count_bytes(find_size(dataset, count=True))
    return needed is not None and needed > most


def _may_exceed(files: Sequence[Path], most: int) -> bool:
    """Whether the records of files may take so many bytes, by the sizes of the files alone."""
    plain = _MOST_EXPANDED[""]
    return sum(_MOST_EXPANDED.get(f.suffix, plain) * f.stat().st_size for f in files) > most


def find_size(dataset: Any, count: bool = False) -> Size:
    """The size of a data set with the columns of all the scalings that its rows are made for."""
    found, times = dataset.find_size(count=count), len(dataset.scalings) or 1

    def widen(value: int | None) -> int | None:
        return None if value is None else times * value

    return replace(found, p=widen(found.p), entries=widen(found.entries))


def count_bytes(size: Size) -> int | None:
    """What the records take in memory; None where their number is unknown."""
    if size.n is None or size.cells is None:
        return None
    return size.cells * (_NUMBER if size.dense else _ENTRY) + _RECORD * size.n


def load_records(dataset: Any, mapped: bool) -> Data:
    """The records of a data set, in memory or mapped from the cache folder.

    Raises:
        InputError: A record is refused.
        StorageError: They cannot be written.
    """
    if not mapped:
        return dataset.load()
    cache = cache_dir()
    if cache is None:
        raise StorageError(f"{KEY}={MAPPED} needs a folder for its files; set {CACHE_DIR}=FOLDER")
    about = identify_records(dataset)
    assert about is not None
    keys, state = hash_facts([dataset.name, about["source"]["keys"], _list_places(about)]), about
    folder = cache / _FOLDER / f"{keys}-{hash_facts(state)}"
    with (
        progress.listen(StoreMeter().step),
        hold_lock(cache / _FOLDER / f".{keys}.lock", wait=True),
    ):
        _clear_place(folder)
        _remove_older(folder, keys)
        found = _read_whole(folder)
        if found is None:
            instead = f"set {CACHE_DIR} to a folder on a larger disk, or {KEY}={MEMORY}"
            found = store_told(dataset, Target(folder, about=about, instead=instead))
            print(f"records kept in {folder}, for you alone to read", file=sys.stderr)
        return found


def store_told(dataset: Any, target: Target, source: Mapping[str, Any] | None = None) -> Data:
    """``store``, with a line on stderr about what an interruption leaves."""
    try:
        return store(dataset, target, source)
    except KeyboardInterrupt:
        if kept := target.tell_kept():
            print(kept, file=sys.stderr)
        raise


def _read_whole(folder: Path) -> Data | None:
    """What a store holds; None where there is none. One that is damaged is taken away."""
    if not folder.is_dir():
        return None
    try:
        check_folder(folder, required=True)
        remove_stage(folder)
        return read_folder(folder)
    except StorageError as error:
        print(f"warning: {error}; its records are stored again", file=sys.stderr)
        remove_folder(folder)
        return None


def _clear_place(folder: Path) -> None:
    """Take away what was begun and keeps no block; StorageError for what is not ours."""
    target = Target(folder)
    begun = target.part.is_dir() and not target.tell_kept()
    for path in (folder, target.part):
        is_other = path.is_symlink() or (path.exists() and not path.is_dir())
        if is_other or (path == target.part and begun and not target.holds_own_files()):
            words = f"is there and no folder of dperm's; remove it, or set {KEY}={MEMORY}"
            raise StorageError(f"{path}: {words}")
    if begun:
        remove_folder(target.part)


def _remove_older(folder: Path, keys: str) -> None:
    """Take away what was stored of the same files and keys before the files or the code changed."""
    for other in folder.parent.glob(f"{keys}-*"):
        if other.name.removesuffix(".part") != folder.name:
            remove_folder(other)


def _list_places(about: dict[str, Any]) -> list[str]:
    return [file[0] for file in about["source"]["files"]]


def identify_records(dataset: Any) -> dict[str, Any] | None:
    """What the records of a data set follow from; None where its files are not known."""
    source = identify_source(dataset)
    return None if source is None else {"source": source, "code": code_digest(dataset, store)}


def describe_source(dataset: Any, config: dict[str, Any]) -> dict[str, Any]:
    """What the identity of a cell holds of a data set with this configuration."""
    kept = canonical(drop_defaults(config, dataset.added_keys))
    return dataset.identity(kept) if dataset.where == "file" else kept


class StoreMeter:
    """How many records are written, on stderr, now and then."""

    def __init__(self) -> None:
        self._next = time.monotonic() + 2.0

    def step(self, label: str, done: float, total: float) -> None:
        """Say how far a step is, unless something was said just before."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + 5.0
        share = f" of {total:,.0f}" if total else ""
        print(f"{label}: {done:,.0f}{share}", file=sys.stderr, flush=True)
