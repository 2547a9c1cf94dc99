"""Write a data set to a folder of arrays, a part of its records at a time.

The folder is that of ``problem.data_folder``: a run maps it into memory (``dataset=stored``). It
holds the records as the data set itself would load them: split, scaled and bounded, with the names
and the fingerprint that they have there.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from dperm_cli.core import progress
from dperm_cli.core.errors import InputError
from dperm_cli.core.files import open_atomically, storage_errors, write_atomically
from dperm_cli.datasets.shared.row_pipeline import fingerprint
from dperm_cli.problem.data import Data
from dperm_cli.problem.data_folder import FACTS, read_folder, write_facts, write_folder
from dperm_cli.problem.row_products import slice_rows

PRECISIONS = ("float64", "float32")
ROUNDED = "numbers rounded to single precision, towards zero"
SOURCE = "source.json"  # beside the arrays
_STAGE = "unsplit"
_COLUMNS = ("x", "y", "names")


def store(
    dataset: Any,
    folder: Path,
    precision: str,
    source: Mapping[str, Any] | None = None,
    data_dir: Path | None = None,
) -> Data:
    """Write the data set to a new folder, and return it as it is mapped from there.

    Args:
        dataset: The data set.
        folder: Where to write; it must not exist.
        precision: ``float64``, or ``float32`` for rows of half the size. A row that is rounded
            towards zero is no longer than before, so that its bound holds.
        source: What a run on the data set itself says of it. A run on the folder says the same, and
            so draws the same noise.
        data_dir: The data folder.

    Raises:
        InputError: The folder exists, or a record is refused.
        StorageError: The folder cannot be written. Nothing is left of it.
    """
    if folder.exists():
        raise InputError("to", str(folder), "exists; name a new folder")
    try:
        split = dataset.split_later
        if split is None:
            _store_whole(dataset.load(data_dir), folder, precision)
        else:
            _store_parts(dataset.load_parts(data_dir), split, folder, precision)
        said = dict(source or {}) | ({} if precision == "float64" else {"precision": precision})
        write_atomically(folder / SOURCE, json.dumps(said).encode())
        return read_folder(folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def round_towards_zero(x: np.ndarray) -> np.ndarray:
    """Numbers of single precision that are no larger in size than those of x.

    >>> round_towards_zero(np.array([0.1, -0.1, 0.5])).astype(float).tolist()
    [0.09999999403953552, -0.09999999403953552, 0.5]
    """
    near = x.astype(np.float32)
    return np.where(np.abs(near) > np.abs(x), np.nextafter(near, np.float32(0.0)), near)


def _store_whole(data: Data, folder: Path, precision: str) -> None:
    """Write records that are in memory, dense or sparse."""
    if precision == "float32":
        if sparse.issparse(data.x):
            raise InputError("precision", precision, "is for dense rows; these are sparse")
        test = None if data.x_test is None else round_towards_zero(data.x_test)
        x = round_towards_zero(data.x)
        data = data.with_rows(x, x_test=test, **_describe_rounded(data, (x, data.y, test)))
    write_folder(folder, data)


def _describe_rounded(data: Data, arrays: tuple[Any, ...]) -> dict[str, Any]:
    bounds = (data.row_bound, data.target_bound)
    return {
        "preprocessing": (*data.preprocessing, ROUNDED),
        "fingerprint": fingerprint(data.task, bounds, (*arrays, data.y_test)),
    }


def _store_parts(parts: Iterator[Data], split: Any, folder: Path, precision: str) -> None:
    """Write parts one after the other, then hold records out as ``Split`` says."""
    is_single = precision == "float32"
    stage = folder / _STAGE
    with storage_errors(folder):
        stage.mkdir(parents=True, mode=0o700)
    kinds: dict[str, Any] = {
        "x": np.float32 if is_single else np.float64, "y": np.float64, "names": np.uint64,
    }  # fmt: skip
    first: Data | None = None
    n = 0
    with ExitStack() as stack:
        files = {c: stack.enter_context(open_atomically(stage / c, sync=False)) for c in _COLUMNS}
        for part in parts:
            first = first or part
            x = round_towards_zero(part.x) if is_single else part.x
            with storage_errors(folder):
                for column, values in zip(_COLUMNS, (x, part.y, part.names), strict=True):
                    np.ascontiguousarray(values, dtype=kinds[column]).tofile(files[column])
            n += part.n
            progress.report("records stored", n, 0)
    if first is None:
        raise InputError("dataset", "...", "holds no records")
    p = first.p
    raw = {
        "x": np.memmap(stage / "x", kinds["x"], "r", shape=(n, p)),
        "y": np.memmap(stage / "y", kinds["y"], "r", shape=(n,)),
        "names": np.memmap(stage / "names", kinds["names"], "r", shape=(n,)),
    }
    held = split.count(n)
    order = split.order(n) if held else None
    _copy(folder / "x.npy", raw["x"], order, 0, n - held)
    for column in ("y", "names"):
        _copy(folder / f"{column}.npy", raw[column], order, 0, n - held)
    if held:
        _copy(folder / "x_test.npy", raw["x"], order, n - held, n)
        _copy(folder / "y_test.npy", raw["y"], order, n - held, n)
    _write_rest(folder, first, bool(held), is_single)
    shutil.rmtree(stage, ignore_errors=True)


def _copy(path: Path, raw: np.ndarray, order: Any, begin: int, end: int) -> None:
    """Write the records ``begin .. end - 1`` of an order, or of their own, as one array."""
    head: dict[str, Any] = {
        "descr": np.lib.format.dtype_to_descr(raw.dtype), "fortran_order": False,
        "shape": (end - begin, *raw.shape[1:]),
    }  # fmt: skip
    wide = raw if raw.ndim == 2 else raw[:, None]
    with storage_errors(path), open_atomically(path, sync=False) as file:
        np.lib.format.write_array_header_1_0(file, head)
        for part in slice_rows(wide[begin:end]):
            rows = slice(begin + part.start, min(begin + part.stop, end))
            np.ascontiguousarray(raw[rows if order is None else order[rows]]).tofile(file)
            progress.report(f"writing {path.name}", min(rows.stop, end) - begin, end - begin)


def _write_rest(folder: Path, first: Data, is_split: bool, is_single: bool) -> None:
    """Write the facts, with the fingerprint of the whole."""
    if first.minimiser is not None:
        with open_atomically(folder / "minimiser.npy", sync=False) as file:
            np.save(file, first.minimiser, allow_pickle=False)
    arrays = {"x", "y", "names", "minimiser", "x_test", "y_test"}
    facts = {f.name: getattr(first, f.name) for f in fields(Data) if f.name not in arrays}
    facts["split"] = is_split
    facts |= dict.fromkeys(_name_absent(folder, ("minimiser", "x_test", "y_test")))
    if is_single:
        facts["preprocessing"] = (*first.preprocessing, ROUNDED)
    write_facts(folder, facts)
    whole = read_folder(folder)
    held = (whole.x, whole.y, whole.x_test, whole.y_test)
    found = fingerprint(whole.task, (whole.row_bound, whole.target_bound), held)
    (folder / FACTS).unlink()
    write_facts(folder, {**facts, "fingerprint": found})


def _name_absent(folder: Path, names: Sequence[str]) -> list[str]:
    return [name for name in names if not (folder / f"{name}.npy").exists()]
