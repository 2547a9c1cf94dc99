"""Columns of a schema whose bounds or words are ``private``: counted in a table, and filled in.

Counting looks at one cell at a time, and no cell can make it fail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.number_text import number_in
from dperm_cli.datasets.shared.column_kinds import (
    MISSING,
    MOST_WORDS,
    OTHER,
    PRIVATE,
    UNKNOWN,
    is_empty,
)
from dperm_cli.datasets.shared.label_names import canonical
from dperm_cli.datasets.shared.table_schema import KEY, TableSchema, parse_schema
from dperm_cli.privacy import preparation

_STAND_INS: dict[str, Any] = {"bounds": [0.5, 1.0], "values": ["<first word>", "<second word>"]}
LONGEST_WORD = 200  # letters; longer cells count for no word
# words that a schema cannot hold beside the coordinates of these names: they count as other ones
_TAKEN = (OTHER, MISSING, UNKNOWN)
NOTHING_FOUND = (-1.0, 1.0)


@dataclass(frozen=True)
class PrivateColumns:
    """Which bounds and words a schema leaves to a preparation.

    Attributes:
        given: the schema file's content.
        schema: it, with something else in the places of what is private.
        numbers: columns whose bounds are sought, the target perhaps among them.
        words: columns whose words are sought.
    """

    given: Mapping[str, Any]
    schema: TableSchema
    numbers: tuple[str, ...]
    words: tuple[str, ...]

    @property
    def is_target_positive(self) -> bool:
        """Whether the target's logarithm is taken."""
        return self.schema.target.transform == "log"


@dataclass
class ColumnCounts:
    """Counts of bins [columns, 2, BINS], and of each column's words."""

    bins: np.ndarray
    words: list[Counter[str]] = field(default_factory=list)


def read_private(given: Any, word: str) -> PrivateColumns:
    """The private columns of a schema file's content.

    Args:
        given: what the file holds.
        word: its name, for the error line.

    Raises:
        InputError: it is no schema, nothing is private, or it was prepared before.
    """
    if not isinstance(given, Mapping) or not isinstance(given.get("columns"), Mapping):
        parse_schema(given, word)  # says what is wrong
        raise InputError(f"{KEY}.columns", word, "must map each column to what it is")
    if "prepared" in given:
        raise InputError(f"{KEY}.prepared", word, "was prepared before: each column once")
    target, columns = given.get("target"), given["columns"]
    marked = {key: _list_marked(columns, key) for key in _STAND_INS}
    numbers = marked["bounds"]
    stood_in: dict[str, Any] = {
        **given, "columns": {name: _stand_in(told) for name, told in columns.items()}
    }  # fmt: skip
    if isinstance(target, Mapping) and target.get("bounds") == PRIVATE:
        stood_in["target"] = {**target, "bounds": _STAND_INS["bounds"]}
    schema = parse_schema(stood_in, word)
    if isinstance(target, Mapping) and target.get("bounds") == PRIVATE:
        numbers = (*numbers, schema.target.column)
    if not numbers and not marked["values"]:
        allowed = "has nothing to prepare: write `bounds: private` or `values: private`"
        raise InputError(f"{KEY}.columns", word, allowed)
    return PrivateColumns(given, schema, numbers, marked["values"])


def _list_marked(columns: Mapping[str, Any], key: str) -> tuple[str, ...]:
    return tuple(
        name
        for name, told in columns.items()
        if isinstance(told, Mapping) and told.get(key) == PRIVATE
    )


def _stand_in(told: Any) -> Any:
    if not isinstance(told, Mapping):
        return told
    return {key: _STAND_INS.get(key, value) if value == PRIVATE else value
            for key, value in told.items()}  # fmt: skip


def count_columns(
    asked: PrivateColumns, blocks: Iterable[tuple[Mapping[str, Sequence[str]], np.ndarray]]
) -> ColumnCounts:
    """Count the cells of the private columns.

    Args:
        asked: which they are.
        blocks: cells by column, with which records count [m].
    """
    found = ColumnCounts(
        np.zeros((len(asked.numbers), 2, preparation.BINS), dtype=np.int64),
        [Counter() for _ in asked.words],
    )
    for cells, used in blocks:
        for k, name in enumerate(asked.numbers):
            for cell, count in Counter(_choose(cells[name], used)).items():
                value = number_in(cell)
                place = None if value is None else preparation.find_bin(float(value))
                if place is not None:
                    found.bins[k][place] += count
        for counts, name in zip(found.words, asked.words, strict=True):
            for cell, count in Counter(_choose(cells[name], used)).items():
                word = canonical(cell)
                if _is_word(word):
                    counts[word] += count
    return found


def _is_word(word: str) -> bool:
    """Whether a cell counts for a word, which a schema can hold whatever it says beside it."""
    short = word.isprintable() and len(word) <= LONGEST_WORD
    return short and not is_empty(word) and word not in _TAKEN


def _choose(cells: Sequence[str], used: np.ndarray) -> list[str]:
    return [cell for cell, is_used in zip(cells, used, strict=True) if is_used]


def fill_schema(
    asked: PrivateColumns,
    plan: preparation.PreparationPlan,
    noisy: np.ndarray,
    words: Sequence[Mapping[str, float]],
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The schema file's content with what was released in the places of what is private.

    A column of words of which fewer than two passed is dropped; a number without a bin has the
    bounds [-1, 1], or [1, 2] where they have to be positive.

    Args:
        asked: the private columns.
        plan: of the preparation.
        noisy: bins with noise [columns, 2, BINS].
        words: of each column, the noisy counts of the words that passed.

    Returns:
        The content, and the columns for which nothing was found.
    """
    columns = {name: told for name, told in asked.given["columns"].items()}
    target, nothing = dict(asked.given["target"]), list[str]()
    for name, bins in zip(asked.numbers, noisy, strict=True):
        is_target = name == asked.schema.target.column
        positive = is_target and asked.is_target_positive
        bounds = preparation.read_bounds(bins, plan.bin_threshold, positive)
        if bounds is None:
            nothing.append(name)
            bounds = (1.0, 2.0) if positive else NOTHING_FOUND
        if is_target:
            target["bounds"] = list(bounds)
        else:
            columns[name] = {**columns[name], "bounds": list(bounds)}
    for name, passed in zip(asked.words, words, strict=True):
        common = sorted(passed, key=lambda word: (-passed[word], word))[:MOST_WORDS]
        if len(common) < 2:
            nothing.append(name)
            columns[name] = {"kind": "drop"}
        else:
            columns[name] = {**columns[name], "values": sorted(common)}
    spent = {
        "epsilon": plan.epsilon, "delta": plan.delta, "relation": plan.relation,
        "columns": [*asked.numbers, *asked.words],
    }  # fmt: skip
    return {**asked.given, "target": target, "columns": columns, "prepared": spent}, tuple(nothing)
