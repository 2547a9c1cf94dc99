"""Write a data set to a folder of arrays, a part of its records at a time.

The folder is that of ``problem.data_folder``: a run maps it into memory (``dataset=stored``, or
``data_storage=mapped``). It holds the records as the data set itself would load them: split, scaled
and bounded, with the names and the fingerprint that they have there.

Until the folder is whole, it has another name, FOLDER.part. What an interruption leaves there is
gone on with; an error takes it away.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from dperm_cli import __version__
from dperm_cli.core import progress
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError, StorageError
from dperm_cli.core.files import (
    finish_folder,
    hold_lock,
    open_atomically,
    remove_abandoned,
    storage_errors,
    write_atomically,
)
from dperm_cli.core.growing_files import remove_folder
from dperm_cli.core.memory_limits import format_bytes
from dperm_cli.datasets.shared.block_stage import JOURNAL, Stage
from dperm_cli.datasets.shared.row_pipeline import fingerprint
from dperm_cli.datasets.shared.stored_arrays import write_rows, write_sparse
from dperm_cli.problem.data import Data
from dperm_cli.problem.data_folder import (
    FACTS,
    read_folder,
    seal_folder,
    write_facts,
    write_folder,
)

PRECISIONS = ("float64", "float32")
ROUNDED = "numbers rounded to single precision, towards zero"
SOURCE = "source.json"  # beside the arrays
PART = ".part"  # of the name of a folder that is not whole
_STAGE = "unsplit"
_ENDINGS = (".npy", ".json", ".tmp")  # of the files beside it
_RECORD = 24  # bytes of a record besides its row


@dataclass(frozen=True)
class Target:
    """A folder that records are written to.

    Attributes:
        folder: Its path. Nothing is there yet.
        precision: ``float64``, or ``float32`` for rows of half the size. A row that is rounded
            towards zero is no longer than before, so that its bound holds.
        about: What the records follow from, JSON-able: only blocks of the same are gone on with.
        instead: What to type where the disk is full.
    """

    folder: Path
    precision: str = PRECISIONS[0]
    about: Any = None
    instead: str = "name a folder on a larger disk"

    @property
    def part(self) -> Path:
        """The folder while it is not whole."""
        return self.folder.with_name(self.folder.name + PART)

    @property
    def is_single(self) -> bool:
        """Whether rows are of single precision."""
        return self.precision == "float32"

    def tell_kept(self) -> str:
        """What an interrupted conversion leaves, in words; nothing where there is nothing."""
        if not (self.part / _STAGE / JOURNAL).is_file():
            return ""
        return f"{self.part} keeps the blocks that are finished; the same command goes on with them"

    def holds_own_files(self) -> bool:
        """Whether the folder that is not whole holds nothing but what a conversion writes."""
        names = (path.name for path in self.part.iterdir())
        return all(name == _STAGE or name.endswith(_ENDINGS) for name in names)

    def check_room(self, needed: int) -> None:
        """StorageError where so many bytes are not free on the disk."""
        places = (self.folder.absolute(), *self.folder.absolute().parents)
        free = shutil.disk_usage(next(p for p in places if p.exists())).free
        if needed > free:
            words = f"storing the records needs about {format_bytes(needed)} on the disk, and "
            words += f"{format_bytes(free)} are free; {self.instead}"
            raise StorageError(f"{self.folder}: {words}")


def store(
    dataset: Any,
    target: Target,
    source: Mapping[str, Any] | None = None,
    data_dir: Path | None = None,
) -> Data:
    """Write the data set to a new folder, and return it as it is mapped from there.

    What an interrupted call left is checked and gone on with.

    Args:
        dataset: The data set.
        target: Where to write, and how.
        source: What a run on the data set itself says of it. A run on the folder says the same, and
            so draws the same noise.
        data_dir: The data folder.

    Raises:
        InputError: The folder exists, or a record is refused.
        StorageError: The folder cannot be written. Nothing is left of it.
    """
    folder, part = target.folder, target.part
    if os.path.lexists(folder):
        raise InputError("to", str(folder), "exists; name a new folder")
    if os.path.lexists(part) and not (part / _STAGE / JOURNAL).is_file():
        allowed = f"is written as {part}, which is there and not ours; name another folder"
        raise InputError("to", str(folder), allowed)
    with hold_lock(folder.with_name(f".{folder.name}.lock")) as is_ours:
        if not is_ours:
            raise InputError("to", str(folder), "is written by another process at the moment")
        try:
            split = dataset.split_later
            if split is None:
                _store_whole(dataset.load(data_dir), target)
            else:
                _store_parts(dataset, split, target, data_dir)
            said = {} if target.precision == "float64" else {"precision": target.precision}
            said_of = json.dumps({**(source or {}), **said}).encode()
            write_atomically(part / SOURCE, said_of, private=True)
            seal_folder(part)
            finish_folder(part, folder)
            remove_folder(folder / _STAGE)  # last: it says that the folder is ours
        except Exception:  # an interruption is none: its blocks are gone on with
            remove_folder(part)
            raise
    return read_folder(folder)


def remove_stage(folder: Path) -> None:
    """Take away the blocks that a conversion which was ended in its last step left in a store."""
    if (folder / _STAGE).is_dir():
        remove_folder(folder / _STAGE)


def identify_source(dataset: Any, data_dir: Path | None = None) -> dict[str, Any] | None:
    """What the records of a data set follow from besides its code; None where that is unknown.

    A file is known by its place, size and times, and not by its content, which may be very long.
    """
    files = dataset.list_files(data_dir)
    if files is None:
        return None
    keys = {field.name: repr(getattr(dataset, field.name)) for field in fields(dataset)}
    stats = [(os.path.realpath(path), path.stat()) for path in files]
    facts = [[p, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino, s.st_dev] for p, s in stats]
    return {"name": dataset.name, "keys": keys, "files": facts, "version": __version__}


def round_towards_zero(x: np.ndarray) -> np.ndarray:
    """Numbers of single precision that are no larger in size than those of x.

    >>> round_towards_zero(np.array([0.1, -0.1, 0.5])).astype(float).tolist()
    [0.09999999403953552, -0.09999999403953552, 0.5]
    """
    near = x.astype(np.float32)
    return np.where(np.abs(near) > np.abs(x), np.nextafter(near, np.float32(0.0)), near)


def _store_whole(data: Data, target: Target) -> None:
    """Write records that are in memory, dense or sparse."""
    if target.is_single:
        _refuse_sparse(data, target)
        test = None if data.x_test is None else round_towards_zero(data.x_test)
        x = round_towards_zero(data.x)
        data = data.with_rows(x, x_test=test, **_describe_rounded(data, (x, data.y, test)))
    entries = data.x.nnz if sparse.issparse(data.x) else data.x.size
    target.check_room(8 * entries // (2 if target.is_single else 1))
    remove_folder(target.part)
    _open_stage(target)
    write_folder(target.part, data)


def _refuse_sparse(data: Data, target: Target) -> None:
    if sparse.issparse(data.x):
        raise InputError("precision", target.precision, "is for dense rows; these are sparse")


def _describe_rounded(data: Data, arrays: tuple[Any, ...]) -> dict[str, Any]:
    bounds = (data.row_bound, data.target_bound)
    return {
        "preprocessing": (*data.preprocessing, ROUNDED),
        "fingerprint": fingerprint(data.task, bounds, (*arrays, data.y_test)),
    }


def _store_parts(dataset: Any, split: Any, target: Target, data_dir: Path | None) -> None:
    """Write parts one after the other, then hold records out as ``Split`` says."""
    size = dataset.find_size(data_dir)
    if size.n is not None and size.dense and size.cells is not None:
        number = 4 if target.is_single else 8
        target.check_room(2 * (number * size.cells + _RECORD * size.n))
    folder = target.part
    first = next(iter(dataset.load_parts(data_dir)), None)
    if first is None:
        raise InputError("dataset", "...", "holds no records")
    if target.is_single:
        _refuse_sparse(first, target)
    first = first.take(np.zeros(1, dtype=np.int64))  # only what is said of all parts is needed
    stage = _open_stage(target)
    remove_abandoned(folder)
    _stage_parts(dataset.load_parts(data_dir, stage.records), stage, target)
    n = stage.records
    held = split.count(n)
    order = split.order(n) if held else None
    kind = np.float32 if target.is_single else np.float64
    shapes = _write_rows(folder, stage, first, (order, n - held, n), kind)
    for name, dtype in (("y", np.float64), ("names", np.uint64)):
        raw = stage.map_column(name, dtype)
        write_rows(folder / f"{name}.npy", raw, order, 0, n - held)
        if held and name == "y":
            write_rows(folder / "y_test.npy", raw, order, n - held, n)
    _write_rest(folder, first, split.share > 0, shapes, target.is_single)


def _open_stage(target: Target) -> Stage:
    """The blocks that are finished, in a folder for their owner alone."""
    with storage_errors(target.part):
        target.part.mkdir(parents=True, mode=0o700, exist_ok=True)
    return Stage(target.part / _STAGE, {"precision": target.precision, "source": target.about})


def _stage_parts(parts: Iterable[Data], stage: Stage, target: Target) -> None:
    for part in parts:
        if sparse.issparse(part.x):
            rows = {
                "data": part.x.data.astype(np.float64, copy=False),
                "indices": part.x.indices.astype(np.int32, copy=False),
                "counts": np.diff(part.x.indptr).astype(np.int32),
            }
        else:
            rows = {"x": round_towards_zero(part.x) if target.is_single else part.x}
        columns = {**rows, "y": part.y.astype(np.float64, copy=False), "names": part.names}
        stage.append(columns, part.n)
        progress.report("records stored", stage.records, 0)


def _write_rows(
    folder: Path, stage: Stage, first: Data, cut: tuple[Any, int, int], kind: Any
) -> dict[str, Any]:
    """Write training and held-out rows; what the facts say of sparse ones."""
    order, train, n = cut
    parts = {"x": (0, train)} | ({"x_test": (train, n)} if train < n else {})
    if not sparse.issparse(first.x):
        raw = stage.map_column("x", kind, first.p)
        for name, (begin, end) in parts.items():
            write_rows(folder / f"{name}.npy", raw, order, begin, end)
        return {}
    kinds = {"data": np.float64, "indices": np.int32, "counts": np.int32}
    columns = {name: stage.map_column(name, kind) for name, kind in kinds.items()}
    return {
        name: {
            "sparse": type(first.x).__name__,
            "shape": write_sparse(folder / name, columns, order, begin, end, first.p),
        }
        for name, (begin, end) in parts.items()
    }


def _write_rest(
    folder: Path, first: Data, is_split: bool, shapes: Mapping[str, Any], is_single: bool
) -> None:
    """Write the facts, with the fingerprint of the whole."""
    if first.minimiser is not None:
        with open_atomically(folder / "minimiser.npy", sync=False) as file:
            np.save(file, first.minimiser, allow_pickle=False)
    arrays = {"x", "y", "names", "minimiser", "x_test", "y_test"}
    facts = {f.name: getattr(first, f.name) for f in fields(Data) if f.name not in arrays}
    facts |= {"split": is_split, **shapes}
    facts |= dict.fromkeys(_name_absent(folder, ("minimiser", "x_test", "y_test"), shapes))
    if is_single:
        facts["preprocessing"] = (*first.preprocessing, ROUNDED)
    write_facts(folder, facts)
    whole = read_folder(folder)
    held = (whole.x, whole.y, whole.x_test, whole.y_test)
    found = fingerprint(whole.task, (whole.row_bound, whole.target_bound), held)
    (folder / FACTS).unlink()
    write_facts(folder, {**facts, "fingerprint": found})


def _name_absent(folder: Path, names: Sequence[str], shapes: Mapping[str, Any]) -> list[str]:
    return [n for n in names if n not in shapes and not (folder / f"{n}.npy").exists()]
