"""A declared table: what each column is, the target, and whom one record is about.

A schema is a public fact. The user writes it once (``dperm schema table.csv`` drafts it from the
header). It travels in the model file, so that new rows are encoded as the training rows were.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dperm_cli.core import checks, plain_yaml
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError, make_printable
from dperm_cli.core.number_text import number_in
from dperm_cli.datasets.shared.column_kinds import (
    UNKNOWN,
    ColumnKind,
    Unused,
    read_bounds,
    read_column,
    read_words,
    take_declared,
)
from dperm_cli.datasets.shared.label_names import canonical
from dperm_cli.privacy.budget import RELATIONS

KEY = "schema"
RECORD = "record"
TRANSFORMS = ("none", "log")
_PARTS = ("unit", "target", "columns", "intercept", "prepared")
CONSTANT = "constant"  # the name of the coordinate that is 1 in every record
MOST_PER_PERSON = 1000


@dataclass(frozen=True)
class Target:
    """The column that is predicted.

    Attributes:
        column: its name.
        classes: the words of a label, two or more; of two, the second is the positive one. Empty
            for a number.
        bounds: public [low, high] of a number, in its own unit; None for a label.
        transform: ``log``: the model is about the logarithm, and predictions are taken back.
    """

    column: str
    classes: tuple[str, ...] = ()
    bounds: tuple[float, float] | None = None
    transform: str = "none"

    @property
    def task(self) -> str:
        """``regression``, ``binary`` or ``multiclass``."""
        if not self.classes:
            return "regression"
        return "binary" if len(self.classes) == 2 else "multiclass"

    @property
    def labels(self) -> tuple[tuple[str, float], ...] | None:
        """(word, number) for each class: -1 and 1 of two, else 0, 1, ...; None for a number."""
        if not self.classes:
            return None
        numbers = (-1.0, 1.0) if len(self.classes) == 2 else range(len(self.classes))
        return tuple((word, float(k)) for word, k in zip(self.classes, numbers, strict=True))

    @property
    def model_bounds(self) -> tuple[float, float] | None:
        """The bounds of what the model is about: of the logarithm, where that is taken."""
        if self.bounds is None or self.transform == "none":
            return self.bounds
        return math.log(self.bounds[0]), math.log(self.bounds[1])

    def encode(self, cells: Sequence[str]) -> np.ndarray:
        """Labels as numbers, or targets within ``model_bounds`` [m]; nan for a cell of neither."""
        if self.classes:
            known = dict(self.labels or ())
            return np.array([known.get(canonical(cell), math.nan) for cell in cells])
        low, high = self.bounds or (-1.0, 1.0)
        found = np.array([number_in(cell) for cell in cells], dtype=float)
        found = np.clip(found, low, high)
        # one number at a time: the last bits of a library's vector product may follow others
        return np.array([math.log(v) for v in found]) if self.transform == "log" else found

    def plain(self) -> dict[str, Any]:
        """The declaration, as a schema file has it."""
        if self.classes:
            return {"column": self.column, "kind": "label", "classes": list(self.classes)}
        return {
            "column": self.column, "kind": "number", "bounds": list(self.bounds or ()),
            "transform": self.transform,
        }  # fmt: skip


@dataclass(frozen=True)
class PrivacyUnit:
    """Whom the guarantee protects: one record, or all records of one person.

    Attributes:
        column: the column that names the person; None: every record is somebody else's.
        at_most: how many records of a person count; further ones become rows of zeros.
    """

    column: str | None = None
    at_most: int = 1

    def plain(self) -> Any:
        """The declaration, as a schema file has it."""
        if self.column is None:
            return RECORD
        return {"column": self.column, "at_most": self.at_most}


@dataclass(frozen=True)
class Preparation:
    """What it cost to find bounds and words with privacy, for all records of a person.

    Attributes:
        epsilon, delta, relation: the guarantee of that release.
        columns: those that were filled in.
    """

    epsilon: float
    delta: float
    relation: str
    columns: tuple[str, ...]

    def plain(self) -> dict[str, Any]:
        """As a schema file has it."""
        return {
            "epsilon": self.epsilon, "delta": self.delta, "relation": self.relation,
            "columns": list(self.columns),
        }  # fmt: skip

    def describe(self) -> str:
        """In words, for people who read about a model."""
        level = f"epsilon {self.epsilon:g}" + (f", delta {self.delta:g}" if self.delta else "")
        return f"of {', '.join(self.columns)} by an earlier release of {level}, {self.relation}"


@dataclass(frozen=True)
class TableSchema:
    """The columns of a table, in order, with the target, the unit of privacy and the constant.

    >>> schema = parse_schema({"target": {"column": "sick", "classes": ["no", "yes"]},
    ...                       "columns": {"age": {"kind": "number", "bounds": [0, 100]}}})
    >>> schema.names, schema.task
    (('age', 'age=missing', 'constant'), 'binary')
    >>> schema.encode({"age": ["50", ""]})[0].tolist()
    [[0.0, 0.0, 1.0], [0.0, 1.0, 1.0]]
    """

    columns: tuple[tuple[str, ColumnKind | Unused], ...]
    target: Target
    unit: PrivacyUnit = PrivacyUnit()
    intercept: bool = True
    prepared: Preparation | None = None

    @property
    def task(self) -> str:
        """``regression``, ``binary`` or ``multiclass``."""
        return self.target.task

    @property
    def features(self) -> tuple[tuple[str, ColumnKind], ...]:
        """The columns that a row is made of."""
        return tuple((name, kind) for name, kind in self.columns if isinstance(kind, ColumnKind))

    @property
    def identifiers(self) -> tuple[str, ...]:
        """The columns that are passed through to predictions."""
        return tuple(name for name, kind in self.columns if kind == Unused("identifier"))

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each coordinate of a row."""
        own = [name for column, kind in self.features for name in kind.names(column)]
        return (*own, *([CONSTANT] if self.intercept else []))

    def encode(self, cells: Mapping[str, Sequence[str]]) -> tuple[np.ndarray, np.ndarray]:
        """Rows of a table as numbers.

        Args:
            cells: the texts of the cells of each feature column, m in each.

        Returns:
            Rows [m, width] in the order of ``names``, and which of them are rows of zeros because
            a cell is missing whose column says ``missing: drop`` [m].
        """
        made = [kind.encode(cells[name]) for name, kind in self.features]
        dropped = np.any([row_dropped for _, row_dropped in made], axis=0)
        parts = [values for values, _ in made]
        if self.intercept:
            parts.append(np.ones((len(dropped), 1)))
        x = np.ascontiguousarray(np.hstack(parts))
        x[dropped] = 0.0
        return x, dropped

    def plain(self) -> dict[str, Any]:
        """The whole declaration, as a schema file has it."""
        return {
            "unit": self.unit.plain(),
            "target": self.target.plain(),
            "columns": {name: kind.plain() for name, kind in self.columns},
            "intercept": self.intercept,
            **({} if self.prepared is None else {"prepared": self.prepared.plain()}),
        }

    def check_header(self, key: str, file: str, header: Sequence[str]) -> None:
        """InputError unless the columns of a training table are those of the schema.

        Args:
            key, file: what the user typed, for the error line.
            header: the names of the table's columns.
        """
        twice = next((name for name in header if list(header).count(name) > 1), None)
        if twice is not None:
            raise InputError(key, file, f"has column {make_printable(twice, 60)!r} more than once")
        declared = [name for name, _ in self.columns]
        wanted = [*declared, self.target.column]
        wanted += [self.unit.column] if self.unit.column is not None else []
        for name in wanted:
            if name not in header:
                allowed = f"the table {file} has no such column"
                raise InputError(f"{KEY}.columns", name, allowed, header)
        for name in header:
            if name not in wanted:
                line = f"{make_printable(name, 60)}: {{kind: drop}}"
                allowed = "is in the table and not in the schema; to leave it out, write the line "
                raise InputError(f"{KEY}.columns", name, f"{allowed}`{line}` under columns")


def read_schema_file(key: str, word: str, path: Path) -> TableSchema:
    """The schema in a YAML file; ``key`` and ``word`` are what the user typed for it.

    Raises:
        InputError: it is no schema; the line says which key is wrong and what to write.
    """
    return parse_schema(
        plain_yaml.read_mapping(path, lambda words: InputError(key, word, words)), word
    )


def parse_schema(given: Any, word: str = "...") -> TableSchema:
    """The schema in a map; InputError for anything that is none.

    Args:
        given: as ``TableSchema.plain`` gives it.
        word: the name of its file, for the error line.
    """
    if not isinstance(given, Mapping):
        raise InputError(KEY, word, f"must be a map with the keys {', '.join(_PARTS)}")
    checks.known_keys(given, _PARTS, f"{KEY}.")
    target = _read_target(given.get("target"))
    columns = given.get("columns")
    if not isinstance(columns, Mapping) or not columns:
        raise InputError(f"{KEY}.columns", columns, "must map each column to what it is")
    for name in columns:
        if not name.isprintable() or not name.strip():
            raise InputError(f"{KEY}.columns", name, "must be a name that can be printed")
    made = tuple(
        (name, read_column(f"{KEY}.columns.{name}", told))
        for name, told in columns.items()
        if name != target.column or _refuse_target(name)
    )
    if not any(isinstance(kind, ColumnKind) for _, kind in made):
        raise InputError(f"{KEY}.columns", word, "must hold a column to predict from")
    intercept = checks.boolean(f"{KEY}.intercept", given.get("intercept", True))
    unit, prepared = _read_unit(given.get("unit", RECORD)), _read_prepared(given.get("prepared"))
    found = TableSchema(made, target, unit, intercept, prepared)
    twice = {name for name in found.names if found.names.count(name) > 1}
    if twice:
        allowed = "is the name of two coordinates: call the columns otherwise"
        raise InputError(f"{KEY}.columns", min(twice), allowed)
    return found


def _refuse_target(name: str) -> bool:
    raise InputError(f"{KEY}.columns", name, "is the target: it stands under target alone")


def _read_target(given: Any) -> Target:
    key = f"{KEY}.target"
    example = "such as {column: sick, kind: label, classes: [no, yes]}"
    if not isinstance(given, Mapping):
        raise InputError(key, given, f"must be a map {example}")
    checks.known_keys(given, ("column", "kind", "classes", "bounds", "transform"), f"{key}.")
    column = given.get("column", UNKNOWN)
    if not isinstance(column, str) or column == UNKNOWN or not column.isprintable():
        raise InputError(f"{key}.column", column, "must name the column that is predicted")
    kind = given.get("kind", "label" if "classes" in given else UNKNOWN)
    checks.choice(f"{key}.kind", kind, ("label", "number"))
    if kind == "label":
        for other in ("bounds", "transform"):
            if other in given:
                raise InputError(f"{key}.{other}", given[other], "is for kind: number")
        return Target(column, read_words(f"{key}.classes", take_declared(key, given, "classes")))
    if "classes" in given:
        raise InputError(f"{key}.classes", given["classes"], "is for kind: label")
    bounds = read_bounds(f"{key}.bounds", take_declared(key, given, "bounds"))
    transform = checks.choice(f"{key}.transform", given.get("transform", "none"), TRANSFORMS)
    if transform == "log" and bounds[0] <= 0.0:
        raise InputError(f"{key}.bounds", list(bounds), "must be above 0 for transform: log")
    return Target(column, (), bounds, transform)


def _read_unit(given: Any) -> PrivacyUnit:
    key = f"{KEY}.unit"
    if given == RECORD:
        return PrivacyUnit()
    allowed = f"must be {RECORD}, or {{column: NAME, at_most: K}} where a person has several"
    if not isinstance(given, Mapping) or not isinstance(given.get("column"), str):
        raise InputError(key, given, allowed, (RECORD,))
    checks.known_keys(given, ("column", "at_most"), f"{key}.")
    most = given.get("at_most", UNKNOWN)
    return PrivacyUnit(
        given["column"], checks.integer(f"{key}.at_most", most, low=1, high=MOST_PER_PERSON)
    )


def _read_prepared(given: Any) -> Preparation | None:
    if given is None:
        return None
    key = f"{KEY}.prepared"
    if not isinstance(given, Mapping) or not isinstance(given.get("columns"), Sequence):
        raise InputError(key, given, "must be as `dperm prepare` wrote it")
    checks.known_keys(given, ("epsilon", "delta", "relation", "columns"), f"{key}.")
    return Preparation(
        checks.positive(f"{key}.epsilon", given.get("epsilon")),
        checks.number(f"{key}.delta", given.get("delta"), low=0.0, high=1.0),
        checks.choice(f"{key}.relation", given.get("relation"), RELATIONS),
        tuple(str(name) for name in given["columns"]),
    )
