"""The declared form of a data set's raw rows: names, bounds, labels and row rule.

Everything here is a public fact: a format, a header or a word of the configuration. Nothing is read
off the records.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from scipy import sparse

from dperm_cli.core.dataclass import dataclass
from dperm_cli.datasets.shared import column_rules, label_names, row_rules
from dperm_cli.datasets.shared.table_schema import TableSchema

TASKS = ("binary", "multiclass", "regression")
NORMS = {"1": 1.0, "2": 2.0, "inf": math.inf}
ROWS = ("unit", "clip", "none")
SCALINGS = ("none", "bounds")
_ENTRIES = 1 << 22  # of raw rows that are made dense at once

Pair = tuple[float, float]


@dataclass(frozen=True)
class InputSchema:
    """The columns of raw rows, and the rule that takes them to the rows a model is about.

    Attributes:
        dataset: the registered name of the data set.
        task: ``binary``, ``multiclass`` or ``regression``.
        count: number of columns, the constant coordinate not counted.
        columns: their names, or None where the data set has none and columns go by position. Of a
            table with a schema, the names of the coordinates that its cells are encoded in.
        target: name of the column of labels or targets, where columns have names.
        bounds: declared [low, high] of all columns, or one pair per column; None without scaling.
        labels: pairs (label in the file, its number) as declared: -1 or 1, or the number of a class
            from 0. None: the labels are -1 and 1.
        target_bounds: declared [low, high] of a regression target.
        scaling, centred, intercept, rows, norm, row_bound: the rule, as ``RowOptions`` has it.
        table: how the cells of a table with a schema become raw rows.
    """

    dataset: str
    task: str
    count: int
    columns: tuple[str, ...] | None = None
    target: str | None = None
    bounds: Pair | tuple[Pair, ...] | None = None
    labels: tuple[tuple[str, float], ...] | None = None
    target_bounds: Pair | None = None
    scaling: str = "none"
    centred: bool = True
    intercept: bool = False
    rows: str = "clip"
    norm: str = "2"
    row_bound: float = 1.0
    table: TableSchema | None = None

    @property
    def classes(self) -> int:
        """How many classes are told apart; 1 for a regression."""
        if self.task != "multiclass":
            return 2 if self.task == "binary" else 1
        return 1 + int(max(number for _, number in self.labels or ()))

    @property
    def width(self) -> int:
        """Coordinates of a row after the rule."""
        return self.count + self.intercept

    @property
    def l2_bound(self) -> float:
        """The bound on a row's L2 norm that follows from the rule."""
        return self.row_bound * (math.sqrt(self.width) if self.norm == "inf" else 1.0)

    def apply_row_rule(self, raw: Any) -> np.ndarray:
        """Raw rows [m, count] as the training rows were made, [m, width]; dense."""
        rows = np.asarray(raw.toarray() if sparse.issparse(raw) else raw, dtype=float)
        if self.scaling == "bounds":
            rows = column_rules.by_bounds(rows, np.asarray(self.bounds, dtype=float), self.centred)
        if self.intercept:
            rows = row_rules.with_constant(rows)
        return row_rules.bound_rows(rows, self.rows, self.row_bound, NORMS[self.norm])

    def blocks(self, total: int) -> list[slice]:
        """Rows to be made dense together."""
        step = max(1, _ENTRIES // self.width)
        return [slice(start, start + step) for start in range(0, total, step)]

    def format_label(self, sign: float) -> str | int:
        """What the file calls the class -1 or 1: all its labels that were declared to be it."""
        if self.labels is None:
            return int(sign)
        names = [name for name, number in self.labels if number == sign]
        if not names:
            return int(sign)
        found = "|".join(names)
        return int(found) if found.lstrip("-").isdecimal() and str(int(found)) == found else found

    def target_of(self, value: np.ndarray) -> np.ndarray:
        """Predictions of a regression in the unit of the file."""
        low, high = self.target_bounds or (-1.0, 1.0)
        found = low + 0.5 * (high - low) * (value + 1.0)
        return np.exp(found) if self.takes_logarithm else found

    def target_of_bounds(self) -> Pair:
        """The declared ends of a regression's target, in the unit of the file."""
        low, high = self.target_of(np.array([-1.0, 1.0]))
        return float(low), float(high)

    @property
    def takes_logarithm(self) -> bool:
        """Whether the model is about the logarithm of the target."""
        return self.table is not None and self.table.target.transform == "log"

    def plain(self) -> dict[str, Any]:
        """All of it as JSON-able values."""
        found = dataclasses.asdict(dataclasses.replace(self, table=None))
        return found | {"table": None if self.table is None else self.table.plain()}


def build_schema(dataset: Any, *, width: int, row_bound: float) -> InputSchema:
    """The schema of a configured data set.

    Args:
        dataset: the plug-in object with the keys of the configuration.
        width: coordinates of its rows, the constant one counted.
        row_bound: the declared bound on a row's L2 norm.

    Raises:
        InputError: its file has no readable header.
    """
    intercept, norm = bool(dataset.intercept), float(dataset.norm)
    scaling, named = dataset.scaling or "none", dataset.named_columns
    columns, target = named() if named else (None, None)
    regression = dataset.task == "regression"
    return InputSchema(
        dataset=_name(dataset),
        task=dataset.task,
        count=width - intercept,
        columns=None if columns is None else tuple(columns),
        target=target,
        bounds=_bounds(dataset) if scaling == "bounds" else None,
        labels=None if regression else _label_pairs(dataset),
        target_bounds=_pair(dataset.target_bounds) if regression else None,
        scaling=scaling,
        centred=bool(dataset.centred),
        intercept=intercept,
        rows=dataset.rows,
        norm="inf" if norm == math.inf else f"{norm:g}",
        # the bound is that of the norm which the rule names
        row_bound=row_bound / (math.sqrt(width) if norm == math.inf else 1.0),
        table=dataset.table,
    )


def _name(dataset: Any) -> str:
    return dataset.name or type(dataset).__module__.rpartition(".")[2]


def _label_pairs(dataset: Any) -> tuple[tuple[str, float], ...] | None:
    """(label in the file, sign), of a file's declared map or a published set's own."""
    if dataset.labels is not None:
        return tuple((str(name), float(sign)) for name, sign in dataset.labels)
    if dataset.signs is None:
        return None
    return tuple((label_names.canonical(name), float(sign)) for name, sign in dataset.signs.items())


def _bounds(dataset: Any) -> Pair | tuple[Pair, ...] | None:
    found = dataset.bounds() if callable(dataset.bounds) else dataset.bounds
    pairs = np.asarray(found, dtype=float)
    if pairs.ndim == 1:
        return _pair(pairs)
    return tuple((float(low), float(high)) for low, high in pairs)


def _pair(found: Any) -> Pair | None:
    return None if found is None else (float(found[0]), float(found[1]))
