"""What the records of a foreign mechanism look like, and tables of such records.

``numeric:p=3,norm=1,labels=-1|1,n=8`` declares rows of three numbers with l2 norm at most 1 and a
label each. The same keys may stand in a YAML file.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dperm_cli.core import checks
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.digests import hash_parts
from dperm_cli.core.errors import InputError
from dperm_cli.core.number_text import number_in
from dperm_cli.core.plain_yaml import read_mapping

KEY = "records"
FORM = "must be numeric:p=3,norm=1,labels=-1|1 or a YAML file with such keys"
KEYS = ("p", "norm", "low", "high", "labels", "targets", "n")
_MOST_COLUMNS, _MOST_RECORDS = 1000, 10_000


@dataclass(frozen=True)
class Table:
    """A data set: rows [n, p], and labels or targets [n] or None."""

    rows: np.ndarray
    labels: np.ndarray | None = None

    @cached_property
    def digest(self) -> str:
        """A name that hangs on the records alone."""
        labels = b"" if self.labels is None else np.ascontiguousarray(self.labels, float).tobytes()
        rows = np.ascontiguousarray(self.rows, float)
        return hash_parts(repr(rows.shape), rows.tobytes(), labels, size=8)

    def to_lists(self) -> dict[str, Any]:
        """Rows and labels as lists, for JSON."""
        labels = None if self.labels is None else self.labels.tolist()
        return {"rows": self.rows.tolist(), "labels": labels, "p": self.rows.shape[1]}

    @classmethod
    def of_lists(cls, found: Mapping[str, Any]) -> Table:
        """The table that ``to_lists`` describes."""
        rows = np.array(found["rows"], dtype=float).reshape(-1, int(found["p"]))
        labels = found["labels"]
        return cls(rows, None if labels is None else np.array(labels, dtype=float))

    def format_lines(self) -> str:
        """A line of numbers for each record, the label last, without a line of names."""
        columns = self.rows if self.labels is None else np.column_stack([self.rows, self.labels])
        return "".join(",".join(repr(float(v)) for v in row) + "\n" for row in columns)


@dataclass(frozen=True)
class RecordKind:
    """What a record is.

    Attributes:
        p: Numbers of a row.
        norm: The largest l2 norm of a row; None where its entries are bounded instead.
        low, high: The least and the largest entry.
        labels: The labels that there are; empty without labels.
        targets: The least and the largest target; None without targets.
        n: Records of a data set.
    """

    p: int = 1
    norm: float | None = 1.0
    low: float = -math.inf
    high: float = math.inf
    labels: tuple[float, ...] = ()
    targets: tuple[float, float] | None = None
    n: int = 8

    @property
    def answers(self) -> tuple[float, ...]:
        """The labels, or the ends of the targets; empty where a record is its row alone."""
        return self.labels or (self.targets or ())

    @property
    def origin(self) -> np.ndarray:
        """The row of zeros, or the one nearest to it that is allowed, [p]."""
        return np.clip(np.zeros(self.p), self.low, self.high)

    def reach(self, direction: np.ndarray) -> np.ndarray:
        """The row that is as far as a record may be in a direction, [p]."""
        if self.norm is not None:
            length = float(np.linalg.norm(direction))
            return direction * (self.norm / length) if length > 0.0 else self.origin
        far = np.where(direction < 0, self.low, np.where(direction > 0, self.high, self.origin))
        return np.asarray(far, dtype=float)

    def words(self) -> str:
        """The declaration as it is typed."""
        parts = [f"p={self.p}"]
        if self.norm is not None:
            parts.append(f"norm={self.norm:g}")
        else:
            parts += [f"low={self.low:g}", f"high={self.high:g}"]
        for key, values in (("labels", self.labels), ("targets", self.targets or ())):
            parts += [f"{key}={'|'.join(f'{v:g}' for v in values)}"] if values else []
        return f"numeric:{','.join([*parts, f'n={self.n}'])}"


def read_kind(word: str) -> RecordKind:
    """The kind of records that a declaration describes.

    Args:
        word: ``numeric:KEY=VALUE,...`` or the name of a YAML file with these keys.

    Raises:
        InputError: It makes no sense.
    """
    head, _, rest = word.partition(":")
    if head == "numeric":
        parts = [part.partition("=") for part in rest.split(",") if part]
        return make_kind({key.strip(): value.strip() for key, _, value in parts})
    if not os.path.isfile(word):
        raise InputError(KEY, word, FORM)
    return make_kind(read_mapping(Path(word), lambda words: InputError(KEY, word, words)))


def make_kind(given: Mapping[str, Any]) -> RecordKind:
    """The kind of records with these keys.

    Args:
        given: Values by key: numbers, or texts of them; lists, or texts with ``|`` between.

    Raises:
        InputError: A key or a value makes no sense.
    """
    checks.known_keys(given, KEYS, prefix=f"{KEY}.")
    found: dict[str, Any] = {}
    for key, high in (("p", _MOST_COLUMNS), ("n", _MOST_RECORDS)):
        if key in given:
            found[key] = checks.integer(f"{KEY}.{key}", _read(given[key]), low=1, high=high)
    ends = [key for key in ("low", "high") if key in given]
    if "norm" in given and ends:
        raise InputError(f"{KEY}.norm", given["norm"], "cannot stand beside low= and high=")
    if "norm" in given:
        found["norm"] = checks.positive(f"{KEY}.norm", _read(given["norm"]))
    if ends:
        if len(ends) < 2:
            raise InputError(f"{KEY}.{ends[0]}", given[ends[0]], "low= and high= stand together")
        low, high = (checks.number(f"{KEY}.{key}", _read(given[key])) for key in ends)
        if not low < high:
            raise InputError(f"{KEY}.low", given["low"], "must be below high")
        found |= {"norm": None, "low": low, "high": high}
    return RecordKind(**found, **_read_answers(given))


def _read_answers(given: Mapping[str, Any]) -> dict[str, Any]:
    if "labels" in given and "targets" in given:
        raise InputError(f"{KEY}.targets", given["targets"], "cannot stand beside labels=")
    found: dict[str, Any] = {}
    for key in ("labels", "targets"):
        if key in given:
            values = given[key].split("|") if isinstance(given[key], str) else list(given[key])
            numbers = tuple(checks.number(f"{KEY}.{key}", _read(value)) for value in values)
            few = len(set(numbers)) < 2 or (key == "targets" and len(numbers) != 2)
            if few or len(set(numbers)) < len(numbers):
                allowed = "must be two numbers" if key == "targets" else "must be two or more"
                raise InputError(f"{KEY}.{key}", given[key], f"{allowed}, as in -1|1")
            found[key] = numbers
    return found


def _read(value: Any) -> Any:
    """The number that a text stands for; what is none is left to the check that refuses it."""
    found = number_in(value) if isinstance(value, str) else value
    return value if found is None else found
