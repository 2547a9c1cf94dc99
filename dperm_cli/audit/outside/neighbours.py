"""Neighbouring tables to try on a foreign mechanism: structured ones first, then random ones."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from dperm_cli.audit.outside.records import RecordKind, Table
from dperm_cli.core.dataclass import dataclass

RANDOM = 6  # random pairs beside the structured ones
_TINY = 1e-6  # what a row just beyond its bound exceeds it by, relatively
_HUGE = 1e8


@dataclass(frozen=True)
class Pair:
    """Two tables that differ in one record.

    Attributes:
        name: ``others/change``: the records that both have, and what is changed.
        first, second: The tables.
        is_within: Whether all records are as they were declared.
    """

    name: str
    first: Table
    second: Table
    is_within: bool = True

    @property
    def digest(self) -> str:
        """A name that hangs on the records alone."""
        return f"{self.first.digest}-{self.second.digest}"


Record = tuple[np.ndarray, float | None]


def list_pairs(
    kind: RecordKind, relation: str, rng: np.random.Generator, beyond: bool = False
) -> list[Pair]:
    """The pairs that an audit begins with, each once.

    Args:
        kind: What a record is.
        relation: ``replace_one``: a record is another one in the second table; ``add_remove``: it
            is not there.
        rng: Draws the random pairs.
        beyond: Whether records are tried that the declaration excludes.
    """
    found: dict[str, Pair] = {}
    for pair in _generate(kind, relation, rng, beyond):
        if pair.first.digest != pair.second.digest:
            found.setdefault(pair.digest, pair)
    return list(found.values())


def list_variants(
    pair: Pair, kind: RecordKind, relation: str, rng: np.random.Generator, count: int = 4
) -> list[Pair]:
    """Pairs near a good one: fewer or more of the other records, and another changed record.

    Args:
        pair: The pair; its changed record is the last one.
        kind, relation, rng: As of ``list_pairs``.
        count: How many are made.
    """
    rows, labels = pair.first.rows, pair.first.labels
    others = [_record(rows, labels, i) for i in range(len(rows) - 1)]
    old = _record(rows, labels, len(rows) - 1)
    replaced = len(pair.second.rows) == len(rows)
    new = _record(pair.second.rows, pair.second.labels, len(rows) - 1) if replaced else old
    found: list[Pair] = []
    for number in range(count):
        turned = kind.reach(new[0] + 0.5 * rng.normal(size=kind.p) * np.linalg.norm(new[0] + 1e-9))
        kept = others[: len(others) // 2] if number % 2 else others
        changed = (turned, new[1]) if number >= 2 or not replaced else new
        if not replaced:
            old = changed if number >= 2 else old
        name = f"{pair.name}/variant_{number}"
        made = _join(name, kept, old, changed, relation)
        if made.first.digest != made.second.digest and made.digest != pair.digest:
            found.append(made)
    return found


def _generate(
    kind: RecordKind, relation: str, rng: np.random.Generator, beyond: bool
) -> Iterator[Pair]:
    axis = np.eye(kind.p)[0]
    top, far = kind.reach(axis), kind.reach(-axis)
    side = kind.reach(np.eye(kind.p)[-1]) if kind.p > 1 else far
    every = kind.reach(np.ones(kind.p))
    spread = [kind.reach(rng.normal(size=kind.p)) for _ in range(kind.n)]
    low, high = (kind.answers[0], kind.answers[-1]) if kind.answers else (None, None)
    answers = [low, high]
    others = {
        "zeros": [(kind.origin, answers[i % 2]) for i in range(kind.n - 1)],
        "copies": [(top, answers[i % 2]) for i in range(kind.n - 1)],
        "opposite_rows": [((top, far)[i % 2], answers[i // 2 % 2]) for i in range(kind.n - 1)],
        "halves": [
            (kind.origin + (top - kind.origin) / 2, answers[i % 2]) for i in range(kind.n - 1)
        ],
        "spread": [(spread[i], answers[i % 2]) for i in range(kind.n - 1)],
    }
    changes: dict[str, tuple[Record, Record]] = {
        "opposite": ((top, low), (far, low)),
        "zero": ((top, low), (kind.origin, low)),
        "orthogonal": ((top, low), (side, low)),
        "diagonal": ((every, low), (kind.reach(-np.ones(kind.p)), low)),
        "half": ((top, low), (kind.origin + (top - kind.origin) / 2, low)),
    }
    if kind.answers:
        changes["flip"] = ((top, low), (top, high))
    for (base, rows), (change, (old, new)) in itertools.product(others.items(), changes.items()):
        yield _join(f"{base}/{change}", rows, old, new, relation)
    # one record that is far longer than all others, and points away: who scales by it moves all
    tenth = kind.origin + (top - kind.origin) / 10
    tenths = [(tenth, answers[i % 2]) for i in range(kind.n - 1)]
    yield _join("tenths/long", tenths, (far, low), (tenth, low), relation)
    if kind.answers:
        same = [(kind.origin, high) for _ in range(kind.n - 1)]
        yield _join("one_class/flip", same, (top, low), (top, high), relation)
    else:
        yield _join("alone/opposite", [], (top, low), (far, low), relation)
        yield _join("alone/zero", [], (top, low), (kind.origin, low), relation)
    if relation == "add_remove":
        yield _join("empty/record", [], (top, low), (top, low), relation)
    for number in range(RANDOM):
        old, new = ((kind.reach(rng.normal(size=kind.p)), answers[i]) for i in (0, number % 2))
        yield _join(f"spread/random_{number}", others["spread"], old, new, relation)
    if beyond:
        yield from _go_beyond(kind, others["zeros"], top, low, relation)


def _go_beyond(
    kind: RecordKind, rows: list[Record], top: np.ndarray, label: float | None, relation: str
) -> Iterator[Pair]:
    """Pairs with a record that the declaration excludes."""
    nowhere = np.array([np.nan, *top[1:]])
    endless = np.array([np.inf, *top[1:]])
    wrong = {
        "just_beyond": top * (1.0 + _TINY),
        "far_beyond": top * _HUGE,
        "nan": nowhere,
        "inf": endless,
    }
    for change, row in wrong.items():
        yield _join(f"beyond/{change}", rows, (row, label), (top, label), relation, False)
    if kind.labels:
        unknown = max(kind.labels) + 1.0
        yield _join("beyond/label", rows, (top, unknown), (top, label), relation, False)


def _record(rows: np.ndarray, labels: np.ndarray | None, place: int) -> Record:
    return rows[place], None if labels is None else float(labels[place])


def _join(
    name: str,
    others: list[Record],
    old: Record,
    new: Record,
    relation: str,
    is_within: bool = True,
) -> Pair:
    """The other records with the old one, and with the new one or, under add_remove, without."""
    second = [*others, new] if relation == "replace_one" else others
    p = len(old[0])
    return Pair(name, _table([*others, old], p), _table(second, p, old), is_within)


def _table(records: list[Record], p: int, like: Record | None = None) -> Table:
    rows = np.array([row for row, _ in records], dtype=float).reshape(-1, p)
    labels = [label for _, label in records]
    known = [*labels, *([like[1]] if like else [])]
    return Table(rows, None if None in known else np.array(labels, dtype=float))
