"""Turn raw records into Data: the options that all data sets of rows share, and their steps.

Order: columns, constant coordinate, rows. The row rule comes last, so the bound always holds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from scipy import sparse

from dperm_cli.core.candidate_lists import FITTED_SCALINGS, PUBLIC_SCALINGS, SCALING
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.digests import hash_each
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import Auto, Check, Choices, Count, FromRun, Help, Positive, Range, Seed
from dperm_cli.core.memory_limits import current_limit
from dperm_cli.core.preparation_words import RAW_COLUMNS
from dperm_cli.datasets.base import DataSet
from dperm_cli.datasets.shared import column_rules, row_rules
from dperm_cli.datasets.shared.row_blocks import INSTEAD, map_sparse, permute_rows
from dperm_cli.datasets.shared.row_rules import Rows
from dperm_cli.problem.data import Data
from dperm_cli.problem.public_facts import bound_joint_rows, list_blocks
from dperm_cli.problem.record_names import name_records

ROWS = ("unit", "clip", "none")
SCALINGS = (*PUBLIC_SCALINGS, *FITTED_SCALINGS)
NORMS = (1, 2, "inf", math.inf)
_HASHED = 1 << 16  # rows or numbers that are hashed at once


@dataclass(frozen=True)
class Raw:
    """Records as the source gives them.

    x [n, p] finite; y [n] in {-1, +1}, or raw targets with ``target_bounds``. ``bounds`` are the
    public column bounds ([p, 2], or [2] for all columns), ``longest`` a public bound on the norm
    of a raw row; both may be unknown. A published test set comes in x_test, y_test. ``notes``
    open the list of preprocessing steps. With ``classes`` > 2, y holds class numbers from 0.
    ``owned`` says that nobody else holds the rows: they may be prepared where they are, without
    the memory for another copy.
    """

    x: Rows
    y: np.ndarray
    bounds: np.ndarray | None = None
    target_bounds: tuple[float, float] | None = None
    longest: float | None = None
    x_test: Rows | None = None
    y_test: np.ndarray | None = None
    notes: tuple[str, ...] = ()
    classes: int = 2
    owned: bool = False


def check_norm(key: str, value: Any) -> Any:
    """The norm of a row: 1, 2 or inf, as a number or a word."""
    if isinstance(value, (bool, list, dict)) or value not in NORMS:
        raise InputError(key, value, "must be 1, 2 or inf")
    return value


# Fields that several data sets have.
Records = Annotated[Count, Help("number of records")]
Columns = Annotated[Count, Help("number of columns")]
DrawSeed = Annotated[Seed, Help("of the draw")]
Scaling = Annotated[str, Choices(*SCALINGS), Help("of columns; the last two are unsafe")]
Centred = Annotated[bool, Help("scaled columns are in [-1, 1]; false: in [0, 1]")]
Intercept = Annotated[bool, Help("append a constant coordinate, counted in the norm")]
TestFraction = Annotated[float, Range(0, below=1), Help("held out where no test set is given")]


@dataclass(frozen=True)
class Split:
    """Which records are held out, once their number is known.

    Attributes:
        share: of the records.
        seed: of the permutation whose last records they are.
    """

    share: float = 0.0
    seed: int = 0

    def count(self, n: int) -> int:
        """How many of n records are held out."""
        return int(n * self.share)

    def order(self, n: int) -> np.ndarray:
        """The n records [n], those that are held out last."""
        return np.random.default_rng(self.seed).permutation(n)


@dataclass(frozen=True, kw_only=True)
class RowOptions(DataSet):
    """The keys that every data set of rows understands.

    rows : ``unit`` scales every row to norm row_bound, ``clip`` shortens longer rows to it,
        ``none`` scales nothing (a row beyond the bound is still shortened to it).
    norm : 1, 2 or inf: the norm that unit and clip mean. The L2 bound that follows is row_bound
        for 1 and 2, and row_bound * sqrt(p) for inf.
    row_bound : a number, or ``auto``: 1 for unit and clip; with none, what follows from the public
        column bounds or the encoding.
    scaling : of columns: ``none``, ``bounds`` (declared and public), ``minmax`` or ``standardise``
        (both fitted to the data and refused without unsafe_scaling).
    centred : bounds and minmax map to [-1, 1] when true, to [0, 1] when false.
    intercept : append a coordinate of ones before the row rule, counted in the norm.
    test_fraction, split_seed : held out after numpy's ``default_rng(split_seed).permutation``.
    scalings : the candidates of a private choice among scalings, set by a run: rows then hold the
        columns that each of them makes, side by side.
    """

    rows: Annotated[str, Choices(*ROWS), Help("scaled: all, longer ones, none")] = "unit"
    row_bound: Annotated[
        Positive | Auto, Help("auto = 1 (rows=none: by public column bounds, or given)")
    ] = "auto"
    norm: Annotated[
        float | str, Check(check_norm), Help("1, 2 or inf: the norm that rows=unit and clip mean")
    ] = 2
    scaling: Scaling = "none"
    centred: Centred = True
    unsafe_scaling: Annotated[bool, Help("allow scaling that is fitted to the data")] = False
    intercept: Intercept = False
    test_fraction: TestFraction = 0.2
    split_seed: Annotated[Seed, Help("of the split")] = 0
    scalings: Annotated[Sequence[str], FromRun()] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scalings and self.task == "location":
            allowed = "is for predictors: a location is measured against the rows as they are"
            raise InputError(f"tune.{SCALING}", list(self.scalings), allowed)
        for name in self.scalings:  # refuses one that the other keys do not go with
            self.take_scaling(name)
        if self.norm != 2 and self.rows == "none":
            raise InputError("dataset.norm", self.norm, "needs dataset.rows=unit or clip")
        if self.scaling in FITTED_SCALINGS and not self.unsafe_scaling:
            allowed = "is fitted to the data, so no privacy guarantee covers it; use bounds or "
            allowed += "none, or say dataset.unsafe_scaling=true (every row will show it)"
            raise InputError("dataset.scaling", self.scaling, allowed)

    def take_scaling(self, name: str) -> Self:
        """The same with this scaling alone."""
        return replace(self, scaling=name, scalings=())

    @property
    def order(self) -> float:
        """The norm as a number: 1, 2 or inf."""
        return float(self.norm)

    def held_out(self, n: int) -> int:
        """How many of n records are held out where no test set is given."""
        return self.split.count(n)

    @property
    def split(self) -> Split:
        """Which records are held out where no test set is given."""
        return Split(self.test_fraction, self.split_seed)

    def load(self, data_dir: Path | None = None) -> Data:
        """The records of ``raw``, split, scaled and bounded."""
        return prepare(self.name, self.task, self, self.raw(data_dir))

    def prepare_part(self, raw: Raw) -> Data:
        """Some of the records, scaled and bounded as in ``load``, none of them held out."""
        return prepare(self.name, self.task, replace(self, test_fraction=0.0), raw)


def prepare(name: str, task: str, options: RowOptions, raw: Raw) -> Data:
    """Split, scale and bound raw records; the options decide how."""
    if options.scalings:
        raw = replace(raw, owned=False)  # each scaling starts from them
        each = [prepare(name, task, options.take_scaling(s), raw) for s in options.scalings]
        return _join_columns(each, options.scalings)
    bound = _bound(options, raw.x.shape[1], raw.longest)
    x, y, x_test, y_test = _split(options, raw)
    in_place = raw.owned or x is not raw.x  # what was split off is a copy
    names = name_records(x, y)  # here, since from now on values are computed with
    x, x_test, steps = _change_rows(options, raw.bounds, bound, x, x_test, in_place)
    if task == "regression":
        low, high = raw.target_bounds or (-1.0, 1.0)
        y = _map_targets(y, low, high)
        y_test = None if y_test is None else _map_targets(y_test, low, high)
        steps.append(f"targets from [{low:g}, {high:g}] to [-1, 1], clipped")
    if options.intercept:
        steps.append("constant coordinate appended")
    verb = "scaled" if options.rows == "unit" else "clipped"
    kind = "norm" if options.order == 2 else f"L{options.order:g} norm"
    steps.append(f"rows {verb} to {kind} {bound:g}{RAW_COLUMNS * bool(options.is_raw)}")
    y, y_test = y + 0.0, None if y_test is None else y_test + 0.0  # no -0.0, as in the rows
    return _data(
        name, task, x, y, x_test, y_test, names=names,
        row_bound=bound * (math.sqrt(x.shape[1]) if options.order == math.inf else 1.0),
        classes=raw.classes,
        entry_bound=bound if options.order == math.inf else None,
        preprocessing=(*raw.notes, *steps),
        data_dependent=options.scaling in FITTED_SCALINGS,
        split=raw.x_test is None and options.test_fraction > 0.0,
    )  # fmt: skip


def _join_columns(each: Sequence[Data], scalings: Sequence[str]) -> Data:
    """The same records under several scalings as one data set, their columns side by side."""
    first = each[0]
    blocks = list_blocks(scalings, first.p, [one.row_bound for one in each])
    x = _stack_columns([one.x for one in each])
    x_test = None if first.x_test is None else _stack_columns([one.x_test for one in each])
    row_bound, arrays = bound_joint_rows(blocks), (x, first.y, x_test, first.y_test)
    # raw columns are there to be compared with scaled ones: no need to say what scales them
    words = [", ".join(one.preprocessing).removesuffix(RAW_COLUMNS) for one in each]
    steps = [f"{name}: {text}" for name, text in zip(scalings, words, strict=True)]
    return first.with_rows(
        x, x_test=x_test, row_bound=row_bound, blocks=blocks,
        fingerprint=fingerprint(first.task, (row_bound, first.target_bound), arrays),
        preprocessing=("side by side under each dataset.scaling", *steps),
    )  # fmt: skip


def _stack_columns(each: Sequence[Any]) -> Rows:
    if sparse.issparse(each[0]):
        return _narrow(sparse.csr_array(sparse.hstack(each, format="csr")))
    current_limit().check(sum(x.nbytes for x in each), "joining the columns of scalings", INSTEAD)
    return np.ascontiguousarray(np.hstack(each))


def make_data(name, task, x, y, x_test, y_test, *, row_bound: float, **more) -> Data:
    """Data of records that were made as they are; labels and targets lie within 1."""
    names = name_records(x, y)
    return _data(name, task, x, y, x_test, y_test, names=names, row_bound=row_bound, **more)


def _data(name, task, x, y, x_test, y_test, *, row_bound: float, **more) -> Data:
    """Data with its fingerprint."""
    digest = fingerprint(task, (row_bound, 1.0), (x, y, x_test, y_test))
    return Data(
        name=name, task=task, x=x, y=y, x_test=x_test, y_test=y_test,
        row_bound=row_bound, target_bound=1.0, fingerprint=digest, **more,
    )  # fmt: skip


def fingerprint(task: str, bounds: tuple[float, ...], arrays) -> str:
    """blake2b (128 bits, hex) of the task, the bounds and each array's kind, shape and bytes."""
    pieces = (piece for array in arrays for piece in _pieces_of(array))
    return hash_each(itertools.chain([repr((task, bounds))], pieces))


def _pieces_of(array: Any) -> Iterator[Any]:
    """What an array's part in a fingerprint is made of, one at a time: copies may be large."""
    if array is None:
        yield "absent;"
        return
    kind = "csr" if sparse.issparse(array) else "dense"
    yield f"{kind}{array.shape};"
    parts = [(array, "<f8")]
    if kind == "csr":
        parts = [(array.data, "<f8"), (array.indices, "<i8"), (array.indptr, "<i8")]
    for part, dtype in parts:
        for start in range(0, len(part), _HASHED):
            yield np.ascontiguousarray(part[start : start + _HASHED], dtype=dtype)


def check_finite(key: str, value: object, x: Rows, y: np.ndarray, before: int = 0) -> None:
    """InputError naming the first entry that is nan or infinite; ``before`` records come first."""
    bad = ~np.isfinite(_entries(x))
    if bad.any():
        where = np.argwhere(bad)[0]
        if sparse.issparse(x):
            row = int(np.searchsorted(x.indptr, where[0], side="right")) - 1
            column = int(x.indices[where[0]])
        else:
            row, column = int(where[0]), int(where[1])
        allowed = f"record {before + row + 1}, column {column + 1} is missing, nan or infinite"
        raise InputError(key, value, allowed)
    if not np.isfinite(y).all():
        row = before + int(np.flatnonzero(~np.isfinite(y))[0])
        raise InputError(key, value, f"the target of record {row + 1} is missing, nan or infinite")


def _bound(options: RowOptions, columns: int, longest: float | None) -> float:
    """The bound on the norm of a row, from the keys and the public ``longest`` raw row."""
    if options.row_bound != "auto":
        return float(options.row_bound)
    if options.rows != "none":
        return 1.0
    if options.scaling == "bounds":
        square = float(columns)
    elif options.scaling == "none" and longest is not None:
        square = longest**2
    else:
        allowed = "rows=none needs a declared bound on the row norm (or scaling=bounds)"
        raise InputError("dataset.row_bound", "auto", allowed)
    return math.sqrt(square + options.intercept)


def _split(options: RowOptions, raw: Raw):
    """Training rows first; a published test set is never reshuffled."""
    if raw.x_test is not None:
        return raw.x, raw.y, raw.x_test, raw.y_test
    n = raw.x.shape[0]
    held_out = options.held_out(n)
    if held_out == 0:
        return raw.x, raw.y, None, None
    order = options.split.order(n)
    train, test = order[: n - held_out], order[n - held_out :]
    if raw.owned and not sparse.issparse(raw.x):
        permute_rows(raw.x, order)
        return raw.x[: n - held_out], raw.y[train], raw.x[n - held_out :], raw.y[test]
    return raw.x[train], raw.y[train], raw.x[test], raw.y[test]


def _change_rows(
    options: RowOptions,
    bounds: np.ndarray | None,
    bound: float,
    x: Rows,
    x_test: Rows | None,
    in_place: bool,
) -> tuple[Rows, Rows | None, list[str]]:
    """Scale and bound rows, and say how; sparse ones block by block, since steps make new ones."""
    if sparse.issparse(x) and options.scaling not in FITTED_SCALINGS:
        steps = _scale_columns(options, bounds, x[:0], None, True)[2]

        def change(rows: Rows) -> Rows:
            scaled = _scale_columns(options, bounds, rows, None, True)[0]
            return _finish_rows(options, bound, scaled, True)

        return (
            map_sparse(x, change),
            x_test if x_test is None else map_sparse(x_test, change),
            steps,
        )
    scaled, x_test, steps = _scale_columns(options, bounds, x, x_test, in_place)
    in_place = in_place or scaled is not x
    x = _finish_rows(options, bound, scaled, in_place)
    return x, None if x_test is None else _finish_rows(options, bound, x_test, in_place), steps


def _scale_columns(
    options: RowOptions,
    bounds: np.ndarray | None,
    x: Rows,
    x_test: Rows | None,
    in_place: bool,
):
    if options.scaling == "none":
        return x, x_test, []
    target = "[-1, 1]" if options.centred else "[0, 1]"
    if options.scaling == "bounds":
        if bounds is None:
            allowed = "needs public column bounds (dataset.bounds); this data set has none"
            raise InputError("dataset.scaling", "bounds", allowed)
        scale = partial(column_rules.by_bounds, centred=options.centred, in_place=in_place)
        x = scale(x, bounds)
        x_test = None if x_test is None else scale(x_test, bounds)
        return x, x_test, [f"columns to {target} by public bounds, clipped"]
    with np.errstate(over="ignore", invalid="ignore"):
        fit = column_rules.fitted_map(x, options.scaling, options.centred)
        x = column_rules.apply_map(x, *fit)
        x_test = None if x_test is None else column_rules.apply_map(x_test, *fit)
    for part in (*fit, x, x_test):
        if part is not None and not np.isfinite(_entries(part)).all():
            raise InputError("dataset.scaling", options.scaling, "overflows on these columns")
    return x, x_test, [f"UNSAFE: columns {options.scaling} fitted to the data"]


def _entries(x: Rows) -> np.ndarray:
    return x.data if sparse.issparse(x) else x


def _drop_negative_zeros(x: Rows) -> None:
    """Make each -0.0 of rows of our own 0.0: fingerprint and noise follow values, not bits."""
    values = _entries(x)
    values += 0.0


def _finish_rows(options: RowOptions, bound: float, x: Rows, in_place: bool) -> Rows:
    if options.intercept:
        x = row_rules.with_constant(x)
        in_place = True
    x = row_rules.bound_rows(x, options.rows, bound, options.order, in_place=in_place)
    _drop_negative_zeros(x)
    return _narrow(x) if sparse.issparse(x) else np.ascontiguousarray(x, dtype=np.float64)


def _narrow(x: Rows) -> Rows:
    """CSR with 32-bit indices where they suffice: one kind for the compiled loops to meet."""
    if max(x.nnz, *x.shape) >= 2**31:
        return x
    parts = (x.data, x.indices.astype(np.int32), x.indptr.astype(np.int32))
    return sparse.csr_array(parts, shape=x.shape)


def _map_targets(y: np.ndarray, low: float, high: float) -> np.ndarray:
    return 2.0 * (np.clip(y, low, high) - low) / (high - low) - 1.0
