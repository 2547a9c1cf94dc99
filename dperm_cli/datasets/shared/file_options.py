"""The options that all file formats share: path, task, labels, targets and column bounds."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

import numpy as np

from dperm_cli.core import checks
from dperm_cli.core.candidate_lists import FITTED_SCALINGS
from dperm_cli.core.data_files import locate
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import Allowed, Auto, Check, Choices, Help, Positive, Unit, fields_of
from dperm_cli.core.read_errors import report_read_errors
from dperm_cli.datasets.base import Size
from dperm_cli.datasets.shared import archives
from dperm_cli.datasets.shared.invalid_records import (
    INVALID,
    describe_rule,
    read_numbers,
    zero_invalid,
    zero_target,
)
from dperm_cli.datasets.shared.label_names import (
    SIGNS,
    class_map,
    known_numbers,
    label_map,
    map_labels,
)
from dperm_cli.datasets.shared.row_blocks import stack_blocks
from dperm_cli.datasets.shared.row_pipeline import (
    SCALINGS,
    Raw,
    RowOptions,
    Split,
    check_finite,
)
from dperm_cli.problem.data import Data

TASKS = ("binary", "regression", "multiclass", "location")
BOUNDS_NEEDED = (
    "must be declared for scaling=bounds: public [low, high] of all columns, or one such pair for "
    "each, as in dataset.bounds='[[0, 120], [0, 300]]'"
)
RAW_WARNING = (
    "rows are {verb} on raw columns, so that one with large numbers outweighs all others; to "
    "scale columns, say {bounds}, a public pair for each{named} (or "
    "one for all)"
)
MOST_NAMES = 8  # of columns, in a line


def _path_text(key: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise InputError(key, value, "must be given: the file to read")
    return value


def _pair(key: str, value: object) -> tuple[float, float]:
    allowed = "must be [low, high] with low < high"
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 2:
        raise InputError(key, value, allowed)
    low, high = (checks.number(key, v) for v in value)
    if not low < high or not math.isfinite(high - low):
        raise InputError(key, list(value), allowed)
    return low, high


def _column_bounds(key: str, value: Any) -> tuple:
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value):
        if all(isinstance(v, Sequence) and not isinstance(v, str) for v in value):
            return tuple(_pair(key, v) for v in value)
        return _pair(key, value)
    raise InputError(key, value, "must be [low, high], or one such pair for each column")


@dataclass(frozen=True, kw_only=True)
class FileOptions(RowOptions, ABC):
    """The keys of every data set that the user keeps in a file.

    path : the file, relative to the working directory or else to the data folder; plain, gz, bz2
        or xz (text formats).
    test_path : a file of held-out records; without it test_fraction of the records is held out.
    task : ``binary``, ``regression``, ``multiclass`` or ``location`` (rows alone: labels, where
        the format has them, are not looked at).
    labels : file label -> -1 or +1; ``"*"`` stands for every other label. None: {1: 1, -1: -1}.
        With task=multiclass the labels in class order, or label -> class number; required.
    target_bounds : public [low, high] of a regression target, required for that task.
    bounds : public [low, high] of all columns, or one such pair per column (scaling=bounds).
    invalid : what becomes of a record with a cell (feature, label or target) that is missing, not
        finite or unreadable: ``refuse`` stops the run, ``zero`` makes it the zero record before
        anything else is done: all features 0, and the label +1 (-1 where it alone is declared),
        class 0, or the target 0.
    max_size : GiB that a compressed file may unpack to (a plain file has no limit).
    """

    where: ClassVar[str] = "file"
    bounds_words: ClassVar[str] = "dataset.bounds='[[low, high], ...]'"
    added_keys: ClassVar[Mapping[str, Any]] = MappingProxyType({"invalid": "refuse"})

    path: Annotated[Any, Check(_path_text), Help("here or in the data folder; required")] = None
    test_path: Annotated[
        str | None, Check(_path_text), Help("of held-out records, in place of test_fraction")
    ] = None
    task: Annotated[str, Choices(*TASKS), Help("location: rows alone")] = "binary"
    labels: Annotated[
        Mapping[Any, Any] | Sequence[Any] | None,
        Allowed(SIGNS),
        Help('{yes: 1, "*": -1}; multiclass: [a, b]'),
    ] = None
    target_bounds: Annotated[
        tuple[float, float] | None, Check(_pair), Help("public [low, high]; regression needs them")
    ] = None
    bounds: Annotated[
        Sequence[Any] | None, Check(_column_bounds), Help("public [low, high], or one each")
    ] = None
    invalid: Annotated[
        str, Choices(*INVALID), Help("records with a missing, non-finite or unreadable cell")
    ] = "refuse"
    max_size: Annotated[Positive, Help("that a compressed file may unpack to"), Unit("GiB")] = (
        archives.DEFAULT_GIB
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._fill_auto()
        declared = class_map if self.task == "multiclass" else label_map
        self._keep("labels", declared(self.labels))
        if self.task == "regression" and self.target_bounds is None:
            allowed = "must be declared for task=regression: public [low, high] of the target"
            raise InputError("dataset.target_bounds", None, allowed)
        if self.scaling == "bounds" and self.bounds is None:
            raise InputError("dataset.bounds", None, BOUNDS_NEEDED)
        if self.rows == "none" and self.row_bound == "auto" and self.scaling != "bounds":
            raise InputError("dataset.row_bound", "auto", "must be declared with rows=none")
        if self.intercept and self.task == "location":
            allowed = "is for predictors: a constant is no coordinate of a location"
            raise InputError("dataset.intercept", True, allowed)

    def _fill_auto(self) -> None:
        """Put values in the place of ``auto``, from other keys."""

    @property
    def limit(self) -> int:
        """How many bytes a compressed file may unpack to."""
        return int(self.max_size * archives.GIB)

    @property
    def classes(self) -> int:
        """Number of classes: declared for task=multiclass, otherwise 2."""
        if self.task != "multiclass":
            return 2
        pairs: Any = self.labels
        return 1 + int(max(number for _, number in pairs))

    def locate(self, data_dir: Path | None = None) -> Path:
        """The path of the file; InputError where it is missing or not a file."""
        return self._locate("dataset.path", str(self.path), data_dir)

    def _locate(self, key: str, name: str, data_dir: Path | None) -> Path:
        return locate(key, name, data_dir)

    def find_size(self, data_dir: Path | None = None, count: bool = False) -> Size:
        """The number of columns, and with ``count`` those of records and bytes."""
        p = self.count_columns(data_dir)
        if not count:
            return Size(p=p)
        n, unpacked = self._count(self.locate(data_dir), "dataset.path")
        if self.test_path is None:
            return self.size_of(n, p, self.held_out(n), unpacked)
        path = self._locate("dataset.test_path", self.test_path, data_dir)
        held, more = self._count(path, "dataset.test_path")
        return self.size_of(n + held, p, held, unpacked + more)

    def size_of(self, n: int, p: int | None, held_out: int, unpacked: int) -> Size:
        """The size of so many records in files of so many bytes."""
        return Size(n, p, held_out, unpacked=unpacked)

    def count_columns(self, data_dir: Path | None = None) -> int | None:
        """How many columns a row has, where that is declared or in the file's header."""
        return None

    def _count(self, path: Path, key: str) -> tuple[int, int]:
        with report_read_errors(key, path):
            return self.count_records(key, path)

    def count_records(self, key: str, path: Path) -> tuple[int, int]:
        """Records and unpacked bytes of a file; of text, its lines, which may be a few more."""
        lines = size = 0
        last = b"\n"
        with archives.open_bytes(path, self.limit) as file:
            while block := file.read(1 << 20):
                lines, size, last = lines + block.count(b"\n"), size + len(block), block[-1:]
        return lines + int(last != b"\n"), size

    def raw(self, data_dir: Path | None = None) -> Raw:
        """The records as the file gives them, with labels mapped; InputError on a bad file."""
        x, y = self._records("dataset.path", self.locate(data_dir))
        x_test = y_test = None
        if self.test_path is not None:
            path = self._locate("dataset.test_path", self.test_path, data_dir)
            x_test, y_test = self._records("dataset.test_path", path)
            if x_test.shape[1] != x.shape[1]:
                allowed = f"has {x_test.shape[1]} columns, the training file {x.shape[1]}"
                raise InputError("dataset.test_path", self.test_path, allowed)
        return self._make_raw(x, y, x_test, y_test)

    def _make_raw(self, x: Any, y: np.ndarray, x_test: Any = None, y_test: Any = None) -> Raw:
        """Records that were read, with what is declared of them."""
        notes = (describe_rule(self.task, self._zero_target),) if self.invalid == "zero" else ()
        bounds = None if self.bounds is None else np.array(self.bounds)
        if bounds is not None and bounds.ndim == 2 and len(bounds) != x.shape[1]:
            allowed = f"must be one pair [low, high], or one for each of the {x.shape[1]} columns"
            raise InputError("dataset.bounds", f"{len(bounds)} pairs", allowed)
        return Raw(
            x=x, y=y, x_test=x_test, y_test=y_test, bounds=bounds,
            target_bounds=self.target_bounds, classes=self.classes, notes=notes, owned=True,
        )  # fmt: skip

    @property
    def split_later(self) -> Split | None:
        """There are parts where every record is prepared by itself."""
        fitted = {self.scaling, *self.scalings} & set(FITTED_SCALINGS)
        return self.split if self.test_path is None and not fitted else None

    def load_parts(self, data_dir: Path | None = None, done: int = 0) -> Iterator[Data]:
        """The records of the file, a block at a time."""
        path = self.locate(data_dir)
        with report_read_errors("dataset.path", path):
            for x, y in self._checked_blocks("dataset.path", path, done):
                yield self.prepare_part(self._make_raw(x, y))

    def list_files(self, data_dir: Path | None = None) -> Sequence[Path] | None:
        """The file, and that of held-out records."""
        first = self.locate(data_dir)
        if self.test_path is None:
            return (first,)
        return first, self._locate("dataset.test_path", self.test_path, data_dir)

    @abstractmethod
    def read_blocks(self, key: str, path: Path) -> Iterator[tuple[Any, np.ndarray]]:
        """Blocks (x [b, p], labels or targets [b]) of one file, in its order.

        Arrays of its own, in C order. With ``invalid=zero`` no record stops it: a cell that cannot
        be read is nan or an empty label, and so is every cell of a line that cannot be.
        """

    def read_after(self, key: str, path: Path, done: int) -> Iterator[tuple[Any, np.ndarray]]:
        """The blocks of a file after those of its first ``done`` records."""
        for x, y in self.read_blocks(key, path):
            if done <= 0:
                yield x, y
            done -= x.shape[0]

    def identity(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The keys that say what is done to the values, not where and how they are written."""
        kept = {*fields_of(RowOptions), "task"}
        return {key: value for key, value in config.items() if key in kept}

    def _records(self, key: str, path: Path) -> tuple[Any, np.ndarray]:
        with report_read_errors(key, path):
            found = stack_blocks(self._checked_blocks(key, path), path.name)
        if found is None:
            raise InputError(key, path.name, "holds no records")
        return found

    def _checked_blocks(
        self, key: str, path: Path, done: int = 0
    ) -> Iterator[tuple[Any, np.ndarray]]:
        """Blocks of records; nothing is read beyond the first one that is refused."""
        before = done
        for x, y in self.read_after(key, path, done):
            if x.shape[0] == 0:
                continue
            if x.shape[1] == 0:
                raise InputError(key, path.name, "holds no columns besides the target")
            if self.invalid == "zero":
                yield zero_invalid(x, self._usable_targets(y), self._zero_target)
                continue
            targets = self._targets(key, path, y, before)
            check_finite(key, path.name, x, targets, before)
            yield x, targets
            before += len(targets)

    @property
    def _zero_target(self) -> float:
        pairs: Any = self.labels
        return zero_target(self.task, pairs)

    def _usable_targets(self, y: np.ndarray) -> np.ndarray:
        """The same as ``_targets``, with nan in place of a refusal."""
        if self.task == "location":
            return np.zeros(len(y))
        pairs: Any = self.labels
        return read_numbers(y) if self.task == "regression" else known_numbers(y, pairs)

    def _targets(self, key: str, path: Path, y: np.ndarray, before: int) -> np.ndarray:
        """Labels or targets of the file, converted for the task; ``before`` records were read."""
        if self.task == "location":
            return np.zeros(len(y))
        missing = np.flatnonzero(y == "") if y.dtype.kind == "U" else np.zeros(0)
        if missing.size:
            raise InputError(key, path.name, f"record {before + int(missing[0]) + 1} has no label")
        if self.task == "regression":
            return _numbers(key, path, y)
        pairs: Any = self.labels
        return map_labels(y, pairs, before)


@dataclass(frozen=True, kw_only=True)
class OwnTable(FileOptions):
    """The keys of tables of numbers whose columns may have any units.

    scaling : ``auto`` is ``bounds`` where ``bounds`` are declared, else ``none``.
    intercept : ``auto`` is true for predictors, false for task=location.
    """

    scaling: Annotated[
        str, Choices("auto", *SCALINGS), Help("of columns (auto = bounds, if declared)")
    ] = "auto"
    intercept: Annotated[
        bool | Auto, Help("append a constant coordinate, counted in the norm (auto = if it fits)")
    ] = "auto"

    def _fill_auto(self) -> None:
        if self.scaling == "auto":
            self._keep("scaling", "none" if self.bounds is None else "bounds")
        if self.intercept == "auto":
            self._keep("intercept", self.has_predictors)

    @property
    def has_predictors(self) -> bool:
        """Whether a constant coordinate means something."""
        return self.task != "location"

    @property
    def is_raw(self) -> bool:
        """Whether rows are scaled or shortened whose columns may have any units. It follows from
        what is declared: the bounds of columns, and how rows are bounded."""
        if self.scaling != "none" or self.rows == "none" or self.scalings:
            return False
        if self.rows == "clip" and self.row_bound != "auto":
            return False
        return self.bounds is None or bool(np.abs(np.array(self.bounds)).max() > 1.0)

    def warn_of_columns(self) -> str | None:
        """What to declare where rows are scaled on raw columns; None where all is well."""
        if not self.is_raw:
            return None
        verb = "scaled to one norm" if self.rows == "unit" else "shortened to one norm"
        named = self._name_features()
        return RAW_WARNING.format(verb=verb, bounds=self.bounds_words, named=named)

    def _name_features(self) -> str:
        """The names of the features in brackets, as far as the header of a file tells them."""
        names = None if self.named_columns is None else self.named_columns()[0]
        if not names:
            return ""
        more = ", ..." if len(names) > MOST_NAMES else ""
        return f" of {', '.join(names[:MOST_NAMES])}{more}"


def _numbers(key: str, path: Path, y: np.ndarray) -> np.ndarray:
    try:
        return y.astype(np.float64)
    except (ValueError, TypeError, OverflowError):
        raise InputError(key, path.name, "the target column holds what is no number") from None
