"""What all file formats share: finding and opening the file, labels, targets, column bounds."""

from __future__ import annotations

import lzma
import math
import os
import stat
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dperm_cli.core import checks
from dperm_cli.core.errors import InputError
from dperm_cli.problem.data import Data
from dperm_cli.problem.datasets import _archives
from dperm_cli.problem.datasets._prepare import (
    DEFAULT_LOSS,
    Raw,
    RowOptions,
    check_finite,
    prepare,
)

DATA_DIR = "DPERM_DATA_DIR"
PLUS_MINUS = (("1", 1.0), ("-1", -1.0))
ANY_OTHER = "*"
TASKS = ("binary", "regression")


@dataclass(frozen=True, kw_only=True)
class FileOptions(RowOptions):
    """The keys of every data set that the user keeps in a file.

    path : the file, relative to the working directory or else to the data folder; plain, gz, bz2
        or xz (text formats).
    test_path : a file of held-out records; without it test_fraction of the records is held out.
    task : ``binary`` or ``regression``.
    labels : file label -> -1 or +1; ``"*"`` stands for every other label. None: {1: 1, -1: -1}.
    target_bounds : public [low, high] of a regression target, required for that task.
    bounds : public [low, high] of all columns, or one such pair per column (scaling=bounds).
    max_size : GiB that a compressed file may unpack to (a plain file has no limit).
    """

    where: ClassVar[str] = "file"
    size: ClassVar[None] = None
    name: ClassVar[str]

    path: str | None = None
    test_path: str | None = None
    task: str = "binary"
    labels: Any = None
    target_bounds: Any = None
    bounds: Any = None
    max_size: float = _archives.DEFAULT_GIB

    def __post_init__(self) -> None:
        super().__post_init__()
        _path_text("dataset.path", self.path)
        if self.test_path is not None:
            _path_text("dataset.test_path", self.test_path)
        checks.choice("dataset.task", self.task, TASKS)
        checks.positive("dataset.max_size", self.max_size)
        object.__setattr__(self, "labels", label_map(self.labels))
        object.__setattr__(self, "target_bounds", self._target_bounds())
        object.__setattr__(self, "bounds", _column_bounds(self.bounds))
        if self.scaling == "bounds" and self.bounds is None:
            raise InputError("dataset.bounds", None, "must be declared for scaling=bounds")
        if self.rows == "none" and self.row_bound == "auto" and self.scaling != "bounds":
            raise InputError("dataset.row_bound", "auto", "must be declared with rows=none")

    @property
    def limit(self) -> int:
        """Bytes a compressed file may unpack to."""
        return int(self.max_size * _archives.GIB)

    @property
    def default_loss(self) -> str:
        return DEFAULT_LOSS[self.task]

    def locate(self, data_dir: Path | None = None) -> Path:
        """The file itself; InputError when it is missing or is not a file."""
        return locate("dataset.path", str(self.path), data_dir)

    def raw(self, data_dir: Path | None = None) -> Raw:
        """The records as the file gives them, with labels mapped; InputError on a bad file."""
        x, y = self._records("dataset.path", self.locate(data_dir))
        x_test = y_test = None
        if self.test_path is not None:
            path = locate("dataset.test_path", self.test_path, data_dir)
            x_test, y_test = self._records("dataset.test_path", path)
            if x_test.shape[1] != x.shape[1]:
                allowed = f"has {x_test.shape[1]} columns, the training file {x.shape[1]}"
                raise InputError("dataset.test_path", self.test_path, allowed)
        bounds = None if self.bounds is None else np.array(self.bounds)
        if bounds is not None and bounds.ndim == 2 and len(bounds) != x.shape[1]:
            allowed = f"must be one pair [low, high], or one for each of the {x.shape[1]} columns"
            raise InputError("dataset.bounds", f"{len(bounds)} pairs", allowed)
        return Raw(
            x=x, y=y, x_test=x_test, y_test=y_test, bounds=bounds,
            target_bounds=self.target_bounds, notes=self._notes(),
        )  # fmt: skip

    def load(self, data_dir: Path | None = None) -> Data:
        return prepare(self.name, self.task, self, self.raw(data_dir))

    def read(self, key: str, path: Path) -> tuple[Any, np.ndarray]:
        """(x [n, p], labels or targets [n]) of one file: what a format has to write."""
        raise NotImplementedError

    def _notes(self) -> tuple[str, ...]:
        return ()

    def _records(self, key: str, path: Path) -> tuple[Any, np.ndarray]:
        with reading(key, path):
            x, y = self.read(key, path)
        if x.shape[0] == 0:
            raise InputError(key, path.name, "holds no records")
        if x.shape[1] == 0:
            raise InputError(key, path.name, "holds no columns besides the target")
        missing = np.flatnonzero(y == "") if y.dtype.kind == "U" else np.zeros(0)
        if missing.size:
            raise InputError(key, path.name, f"record {int(missing[0]) + 1} has no label")
        y = map_labels(y, self.labels) if self.task == "binary" else _numbers(key, path, y)
        check_finite(key, path.name, x, y)
        return x, y

    def _target_bounds(self) -> tuple[float, float] | None:
        if self.target_bounds is not None:
            return _pair("dataset.target_bounds", self.target_bounds)
        if self.task == "regression":
            allowed = "must be declared for task=regression: public [low, high] of the target"
            raise InputError("dataset.target_bounds", None, allowed)
        return None


def locate(key: str, name: str, data_dir: Path | None) -> Path:
    """A regular file, looked for from the working directory and then in the data folder."""
    folder = data_folder(data_dir)
    places = [Path.cwd()] + ([] if folder is None else [folder])
    for place in places:
        path = place / os.path.expanduser(name)
        try:
            mode = path.stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise InputError(key, name, f"cannot be read ({error.strerror})") from None
        if stat.S_ISDIR(mode):
            raise InputError(key, name, "is a folder, not a file")
        if not stat.S_ISREG(mode):
            raise InputError(key, name, "is not a regular file")
        return path
    looked = " and ".join(str(place) for place in places)
    raise InputError(key, name, f"no such file (looked in {looked})")


def data_folder(data_dir: Path | None) -> Path | None:
    """The data folder: the argument, or the environment's."""
    if data_dir is not None:
        return Path(data_dir)
    found = os.environ.get(DATA_DIR)
    return Path(found).expanduser() if found else None


@contextmanager
def reading(key: str, path: Path) -> Iterator[None]:
    """Turn what goes wrong while reading a file into one line about it."""
    try:
        yield
    except UnicodeDecodeError:
        raise InputError(key, path.name, "is not UTF-8 text") from None
    except MemoryError:
        raise InputError(key, path.name, "does not fit into memory") from None
    except _archives.TooLarge as error:
        raise InputError(key, path.name, str(error)) from None
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        words = getattr(error, "strerror", None) or str(error) or "damaged file"
        raise InputError(key, path.name, f"cannot be read ({words})") from None


def label_map(labels: object) -> tuple[tuple[str, float], ...]:
    """The declared map as pairs (label as text, -1.0 or +1.0); InputError names what is wrong."""
    key = "dataset.labels"
    allowed = "must map file labels to 1 or -1, as in {1: 1, 2: -1}"
    if labels is None:
        return PLUS_MINUS
    if isinstance(labels, Mapping):
        pairs = list(labels.items())
    elif isinstance(labels, tuple):
        pairs = list(labels)
    else:
        raise InputError(key, labels, allowed)
    result: dict[str, float] = {}
    for name, sign in pairs:
        if isinstance(sign, bool) or sign not in (1, -1):
            raise InputError(key, f"{{{name}: {sign}}}", allowed)
        text = canonical(name)
        if result.setdefault(text, float(sign)) != sign:
            raise InputError(key, name, "is mapped to both 1 and -1")
    if not result:
        raise InputError(key, labels, allowed)
    return tuple(result.items())


def map_labels(labels: np.ndarray, pairs: tuple[tuple[str, float], ...]) -> np.ndarray:
    """Labels [n] as -1.0 and +1.0; InputError names the first one outside the map."""
    known = dict(pairs)
    if labels.dtype.kind == "O":
        labels = labels.astype(str)
    distinct, code = np.unique(labels, return_inverse=True)
    signs = np.array([_sign(canonical(label), known) for label in distinct])
    y = signs[code.reshape(-1)]
    if not np.all(y):
        record = int(np.flatnonzero(y == 0)[0])
        shown = ", ".join(f"{name}: {sign:+g}" for name, sign in pairs[:8])
        more = ", ..." if len(pairs) > 8 else ""
        allowed = f"the label of record {record + 1} is outside the declared map {{{shown}{more}}}"
        raise InputError("dataset.labels", canonical(labels[record]), allowed)
    return y


def _sign(label: str, known: dict[str, float]) -> float:
    """The declared sign, or 0 for a label outside the map; a missing label is no other label."""
    missing = label.lower() in ("", "nan", "none")
    return known.get(label, 0.0 if missing else known.get(ANY_OTHER, 0.0))


def canonical(label: object) -> str:
    """One spelling per label: 1, 1.0, "1" and "+1" are the same."""
    text = (label.decode("utf-8", "replace") if isinstance(label, bytes) else str(label)).strip()
    try:
        value = float(text)
    except ValueError:
        return text
    return str(int(value)) if math.isfinite(value) and value == int(value) else repr(value)


def _numbers(key: str, path: Path, y: np.ndarray) -> np.ndarray:
    try:
        return y.astype(np.float64)
    except (ValueError, TypeError):
        raise InputError(key, path.name, "the target column holds text") from None


def _path_text(key: str, value: object) -> None:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise InputError(key, value, "must be given: the file to read")


def _pair(key: str, value: object) -> tuple[float, float]:
    allowed = "must be [low, high] with low < high"
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 2:
        raise InputError(key, value, allowed)
    low, high = (checks.number(key, v) for v in value)
    if not low < high or not math.isfinite(high - low):
        raise InputError(key, list(value), allowed)
    return low, high


def _column_bounds(value: object) -> tuple | None:
    if value is None:
        return None
    key = "dataset.bounds"
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value):
        if all(isinstance(v, Sequence) and not isinstance(v, str) for v in value):
            return tuple(_pair(key, v) for v in value)
        return _pair(key, value)
    raise InputError(key, value, "must be [low, high], or one such pair for each column")
