"""How the cells of one declared column become numbers: number, category, ordinal, date.

Every map here is public. It looks at one cell at a time, and no cell can make it fail: what cannot
be read counts as missing, what lies outside the bounds is moved to the nearest end, and a word that
was not declared is ``other``. So nothing about an encoded table but its values depends on a record.
"""

from __future__ import annotations

import datetime
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from dperm_cli.core import checks
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import NOTHING, InputError
from dperm_cli.core.number_text import number_in
from dperm_cli.datasets.shared.label_names import canonical

OWN, DROP, ZERO = "own", "drop", "zero"
OTHER, MISSING = "other", "missing"  # names of coordinates beside those of declared words
UNKNOWN = "FILL_IN"  # what a draft leaves for the user to fill in
PRIVATE = "private"  # in a schema, what ``dperm prepare`` fills in
MOST_WORDS = 10_000  # declared for one column
_NO_VALUE = ("", "na", "n/a", "nan", "null", "none")
_DAY = "a day such as 2020-12-31"


@dataclass(frozen=True, kw_only=True)
class ColumnKind(ABC):
    """What one column of a table is.

    Attributes:
        missing: ``own``: a coordinate of its own says that the cell is missing. ``drop``: the
            record becomes a row of zeros. Anything else: the value that stands in.
        weight: what the coordinates are multiplied by.
    """

    kind: ClassVar[str] = ""
    keys: ClassVar[tuple[str, ...]] = ()  # beside ``kind``, ``missing`` and ``weight``
    missing: Any = OWN
    weight: float = 1.0

    @abstractmethod
    def own_names(self) -> list[str]:
        """The names of the coordinates without that of a missing cell, "" for the only one."""

    @abstractmethod
    def find_place(self, cell: str) -> Any:
        """The value of a cell in its encoded form, or None where it is missing."""

    @abstractmethod
    def fill(self, values: np.ndarray, places: Sequence[Any], rows: np.ndarray) -> None:
        """Write the encoded values of some rows into ``values`` [m, width] of zeros."""

    def names(self, column: str) -> list[str]:
        """The name of each coordinate: that of the column, and after ``=`` the word it is for."""
        own = [f"{column}={name}" if name else column for name in self.own_names()]
        return own + [f"{column}={MISSING}"] * (self.missing == OWN)

    @property
    def width(self) -> int:
        """How many coordinates it has."""
        return len(self.own_names()) + (self.missing == OWN)

    def encode(self, cells: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of a column's cells.

        Args:
            cells: the texts of the cells, m of them.

        Returns:
            Values [m, width], and whether each record becomes a row of zeros [m].
        """
        seen: dict[str, Any] = {}  # columns repeat their words
        places = []
        for cell in cells:
            if cell not in seen:
                if len(seen) > MOST_WORDS:
                    seen.clear()
                seen[cell] = self.find_place(cell)
            places.append(seen[cell])
        absent = np.array([place is None for place in places], dtype=bool)
        values = np.zeros((len(places), self.width))
        if self.missing == OWN:
            values[absent, -1] = self.weight
        elif self.missing != DROP:
            stand_in = self.find_place(str(self.missing))
            places = [stand_in if place is None else place for place in places]
        present = np.flatnonzero([place is not None for place in places])
        self.fill(values, [places[i] for i in present], present)
        return values, absent & (self.missing == DROP)

    def plain(self) -> dict[str, Any]:
        """The declaration, as a schema file has it."""
        found: dict[str, Any] = {"kind": self.kind}
        for key in (*self.keys, "missing"):
            value = getattr(self, key)
            found[key] = list(value) if isinstance(value, tuple) else value
        if self.weight != 1.0:
            found["weight"] = self.weight
        return found


@dataclass(frozen=True, kw_only=True)
class _Scaled(ColumnKind):
    """A column whose values are scaled from an interval to [-1, 1]."""

    def own_names(self) -> list[str]:
        return [""]

    def fill(self, values: np.ndarray, places: Sequence[Any], rows: np.ndarray) -> None:
        values[rows, 0] = self.weight * np.array(places, dtype=float)


@dataclass(frozen=True, kw_only=True)
class Number(_Scaled):
    """A number, clipped to public bounds and scaled to [-1, 1].

    >>> Number(bounds=(0.0, 100.0)).encode(["25", "high", "900"])[0].tolist()
    [[-0.5, 0.0], [0.0, 1.0], [1.0, 0.0]]
    """

    kind: ClassVar[str] = "number"
    keys: ClassVar[tuple[str, ...]] = ("bounds",)
    bounds: tuple[float, float]

    def find_place(self, cell: str) -> float | None:
        value = number_in(cell)
        if value is None or math.isnan(value):
            return None
        return scale_to_unit(value, self.bounds)


@dataclass(frozen=True, kw_only=True)
class Ordinal(_Scaled):
    """A word of an order from the lowest to the highest, at equal steps in [-1, 1].

    >>> Ordinal(order=("low", "mid", "high")).encode(["high", "low"])[0].tolist()
    [[1.0, 0.0], [-1.0, 0.0]]
    """

    kind: ClassVar[str] = "ordinal"
    keys: ClassVar[tuple[str, ...]] = ("order",)
    order: tuple[str, ...]

    def find_place(self, cell: str) -> float | None:
        word = canonical(cell)
        if word not in self.order:
            return None
        return 2.0 * self.order.index(word) / (len(self.order) - 1) - 1.0


@dataclass(frozen=True, kw_only=True)
class Date(_Scaled):
    """A day, as days from the first to the last public day, scaled to [-1, 1].

    >>> Date(first="2020-01-01", last="2020-01-11").encode(["2020-01-06", "soon"])[0].tolist()
    [[0.0, 0.0], [0.0, 1.0]]
    """

    kind: ClassVar[str] = "date"
    keys: ClassVar[tuple[str, ...]] = ("first", "last")
    first: str
    last: str

    def find_place(self, cell: str) -> float | None:
        day, first, last = (read_day(text) for text in (cell, self.first, self.last))
        if day is None or first is None or last is None:
            return None
        return scale_to_unit(float((day - first).days), (0.0, float((last - first).days)))


@dataclass(frozen=True, kw_only=True)
class Category(ColumnKind):
    """One of some declared words; each has a coordinate that is 1 where the cell holds it.

    ``other``: ``own`` gives words that were not declared a coordinate together, ``zero`` none.

    >>> Category(values=("f", "m"), missing="zero").encode(["m", "x", ""])[0].tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    """

    kind: ClassVar[str] = "category"
    keys: ClassVar[tuple[str, ...]] = ("values", "other")
    values: tuple[str, ...]
    other: str = OWN

    def own_names(self) -> list[str]:
        return [*self.values, *([OTHER] if self.other == OWN else [])]

    def find_place(self, cell: str) -> int | None:
        word = canonical(cell)
        if word in self.values:
            return self.values.index(word)
        if is_empty(word):
            return -1 if self.missing == ZERO else None
        return len(self.values) if self.other == OWN else -1

    def fill(self, values: np.ndarray, places: Sequence[Any], rows: np.ndarray) -> None:
        found = np.array(places, dtype=int)
        held = found >= 0
        values[rows[held], found[held]] = self.weight


@dataclass(frozen=True)
class Unused:
    """A column that is no feature: ``drop`` leaves it out, ``identifier`` is passed through."""

    kind: str

    def plain(self) -> dict[str, Any]:
        """The declaration, as a schema file has it."""
        return {"kind": self.kind}


UNUSED = ("identifier", "drop")
FEATURES: tuple[type[ColumnKind], ...] = (Number, Category, Ordinal, Date)
KINDS = (*(kind.kind for kind in FEATURES), *UNUSED)


def read_column(key: str, given: Any) -> ColumnKind | Unused:
    """A column's declaration from the map of a schema file; InputError names what is wrong."""
    if not isinstance(given, Mapping):
        raise InputError(key, given, "must be a map such as {kind: number, bounds: [0, 120]}")
    kind = checks.choice(f"{key}.kind", given.get("kind", UNKNOWN), KINDS)
    if kind in UNUSED:
        checks.known_keys(given, ("kind",), f"{key}.")
        return Unused(kind)
    cls = next(one for one in FEATURES if one.kind == kind)
    checks.known_keys(given, ("kind", *cls.keys, "missing", "weight"), f"{key}.")
    own = {
        name: _READERS[name](f"{key}.{name}", take_declared(key, given, name))
        for name in cls.keys
        if name in given or name not in ("other",)
    }
    if cls is Date and not own["first"] < own["last"]:  # texts of one form are in order of days
        raise InputError(f"{key}.last", own["last"], "must be a day after `first`")
    weight = checks.number(f"{key}.weight", given.get("weight", 1.0), low=0.0, low_open=True)
    found = cls(**own, weight=weight)
    missing = _read_missing(f"{key}.missing", given.get("missing", OWN), found)
    return cls(**own, weight=weight, missing=missing)


def take_declared(key: str, given: Mapping[str, Any], name: str) -> Any:
    """What the user declared under a name that a kind needs.

    Args:
        key: Of the column, for error lines.
        given: The column's declaration.
        name: What is needed, such as ``bounds``.

    Returns:
        The value, which is yet to be read.

    Raises:
        InputError: It is missing, or still what a draft has in its place.
    """
    if name not in given:
        words = f"is missing: kind: {given.get('kind', 'label')} needs it"
        if name == "bounds":
            words += ", as in [0, 120], or `private` for `dperm prepare` to fill in"
        raise InputError(f"{key}.{name}", NOTHING, words)
    value = given[name]
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    if UNKNOWN in (value if is_list else [value]):
        words = f"{UNKNOWN} is to be replaced by what can be in the column, from public knowledge"
        shown = list(value) if is_list else value
        raise InputError(f"{key}.{name}", shown, words)
    return value


def _read_missing(key: str, value: Any, column: ColumnKind) -> Any:
    """What stands for a missing cell: own, drop, or a value that the column itself can hold."""
    words = (OWN, DROP, ZERO) if isinstance(column, Category) else (OWN, DROP)
    if value in words:
        return value
    allowed = f"must be {', '.join(words)}, or a value of the column that stands in"
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise InputError(key, value, allowed, words)
    known = column.find_place(str(value))
    if known is None or (isinstance(column, Category) and canonical(value) not in column.values):
        raise InputError(key, value, allowed, words)
    return value if isinstance(column, Number) else canonical(value)


def read_bounds(key: str, value: Any) -> tuple[float, float]:
    """Public [low, high] of a column; InputError for anything else."""
    allowed = "must be public [low, high] with low < high, as in [0, 120]: what can be, not what is"
    _refuse_private(key, value)
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 2:
        raise InputError(key, value, allowed)
    low, high = (checks.number(key, end) for end in value)
    if not low < high or not math.isfinite(high - low):
        raise InputError(key, list(value), allowed)
    return low, high


def _refuse_private(key: str, value: Any) -> None:
    if value == PRIVATE:
        allowed = "is filled in by `dperm prepare TABLE SCHEMA epsilon=0.2 out=prepared.yaml`"
        raise InputError(key, value, allowed)


def read_words(key: str, value: Any) -> tuple[str, ...]:
    """Two or more distinct words, in their order; InputError for anything else."""
    allowed = "must list two or more words that can be in the column, as in [low, high]"
    _refuse_private(key, value)
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InputError(key, value, allowed)
    if not all(isinstance(word, (str, int, float)) and word != UNKNOWN for word in value):
        raise InputError(key, list(value), allowed)
    words = tuple(canonical(word) for word in value)
    if len(set(words)) != len(words) or len(words) < 2:
        raise InputError(key, list(value), allowed)
    if len(words) > MOST_WORDS:
        raise InputError(key, f"{len(words)} words", f"must be at most {MOST_WORDS}")
    for word in words:
        if is_empty(word) or not word.isprintable():
            raise InputError(key, word, "stands for a missing cell, or cannot be printed")
    return words


def read_day(text: str) -> datetime.date | None:
    """The day that a text begins with, year-month-day; None where there is none."""
    try:
        return datetime.date.fromisoformat(text.strip()[:10])
    except ValueError:
        return None


def is_empty(word: str) -> bool:
    """Whether a cell stands for no value."""
    return word.strip().lower() in _NO_VALUE


def scale_to_unit(value: float, bounds: tuple[float, float]) -> float:
    """A number clipped to [low, high] and scaled to [-1, 1]."""
    low, high = bounds
    return 2.0 * ((min(max(value, low), high) - low) / (high - low)) - 1.0


def _read_day(key: str, value: Any) -> str:
    text = str(value) if isinstance(value, (str, datetime.date)) else ""
    if len(text) != 10 or read_day(text) is None:
        raise InputError(key, value, f"must be {_DAY}")
    return text


def _read_other(key: str, value: Any) -> str:
    return checks.choice(key, value, (OWN, ZERO))


_READERS: dict[str, Callable[[str, Any], Any]] = {
    "bounds": read_bounds,
    "values": read_words,
    "order": read_words,
    "first": _read_day,
    "last": _read_day,
    "other": _read_other,
}
