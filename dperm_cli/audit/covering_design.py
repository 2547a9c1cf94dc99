"""Pairwise covering designs: few rows in which every two values of two factors meet.

A fault mostly shows where one or two settings have a certain value. A design of strength 2 has, for
every two factors and every value of each, a row with both; its size is about the product of the two
largest factors, where a full grid is the product of all. The construction is greedy and
deterministic: nothing is drawn at random.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dperm_cli.core.dataclass import dataclass

# Completions that hit many targets, tried before those near the first values, and how many of
# these are tried for a pair of values; all of them for a single one.
_GREEDY, _NEAR = 3, 6
_ROUNDS = 2  # with the question that finds nearly all reasons

FULL = "the design has as many rows as it may"  # why a target is missing that could be had

Row = dict[str, Any]
Target = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Design:
    """The rows, and the targets (one or two settings) that none of them has, with the reason."""

    rows: tuple[Row, ...]
    missing: tuple[tuple[Target, str], ...]


def cover(
    factors: Mapping[str, Sequence[Any]],
    reason_against: Callable[[Row], str | None],
    strength: int = 2,
    first: Sequence[Mapping[str, Any]] = (),
    most: int | None = None,
    soon: Callable[[Row], str | None] | None = None,
    likely: Callable[[Row], str | None] | None = None,
) -> Design:
    """A covering design.

    Args:
        factors: the values of each factor; the first ones should be the least demanding.
        reason_against: why a row cannot be run, or None where it can.
        strength: 2 for all pairs of values, 1 for every value once.
        first: settings that must stand in a row of their own, completed from the first values.
        soon: a cheaper question that finds most reasons; None stands for ``reason_against``.
        likely: one that finds nearly all of them; ``reason_against`` is then asked of every value
            and of the rows of the design alone; for strength 1 of its rows alone.
        most: rows beyond which no more are added; what they would be for is then missing.

    Returns:
        Design: rows, and what is left out. A value that no row can have is left out alone, not in
        each of its pairs. For strength 1 a factor with nothing left to cover has a value near the
        first one.
    """
    soon = reason_against if soon is None else soon
    sparing = strength == 1  # rows with as little beside their targets as can be
    search = _Search(factors, reason_against, soon, {}, sparing)
    given: list[Row] = []
    missing: list[tuple[Target, str]] = []

    def complete(target: Target) -> Row | None:
        found, reason = search.complete(target, set())
        if found is None:
            missing.append((target, reason))
        return found

    for settings in first:
        found = complete(tuple(settings.items()))
        if found is not None and found not in given:
            given.append(found)
    known = search.known
    if sparing and likely is not None:
        search = _Search(factors, likely, soon, dict(known), sparing)
    alive = {
        name: [value for value in values if complete(((name, value),)) is not None]
        for name, values in factors.items()
    }
    guessed: dict[tuple[Any, ...], str | None] = {}
    for attempt in itertools.count():
        asked = reason_against if likely is None or attempt > _ROUNDS else likely
        search = _Search(alive, asked, soon, (guessed if asked is likely else {}) | known, sparing)
        rows, without = _fill_rows(alive, strength, given, search, most)
        guessed |= search.known
        unsure = [row for row in rows if tuple(row.items()) not in known]
        known |= {tuple(row.items()): reason_against(row) for row in unsure}
        # a row that cannot be run after all is known from now on, and another one is looked for
        if all(known[tuple(row.items())] is None for row in rows):
            return Design(tuple(rows), tuple(dict.fromkeys((*missing, *without))))
    raise AssertionError("reason_against contradicts itself")


def _fill_rows(
    alive: dict[str, list[Any]], strength: int, given: Sequence[Row], search: _Search,
    most: int | None,
) -> tuple[list[Row], list[tuple[Target, str]]]:  # fmt: skip
    """Rows that have every target that some row can have, and those that none has."""
    rows, missing = list(given), []
    targets = _list_targets(alive, strength)
    left = set(targets)
    for row in rows:
        left -= _find_hits(row, left)
    # in the order of the factors, so that a design does not depend on the order of a set
    for target in targets:
        if target not in left:
            continue
        if most is not None and len(rows) >= most:
            missing.append((target, FULL))
            continue
        found, reason = search.complete(target, left)
        if found is None:
            missing.append((target, reason))
            left.discard(target)
            continue
        rows.append(found)
        left -= _find_hits(found, left)
    return rows, missing


def _list_targets(factors: Mapping[str, Sequence[Any]], strength: int) -> list[Target]:
    return [
        tuple(zip(names, values, strict=True))
        for names in itertools.combinations(factors, strength)
        for values in itertools.product(*(factors[name] for name in names))
    ]


def _find_hits(row: Row, left: set[Target]) -> set[Target]:
    """The targets that a row has."""
    return {target for target in left if all(row[name] == value for name, value in target)}


class _Search:
    """Completes targets to rows; what was found about a row is remembered."""

    def __init__(
        self,
        factors: Mapping[str, Sequence[Any]],
        reason_against: Callable[[Row], str | None],
        soon: Callable[[Row], str | None],
        known: dict[tuple[Any, ...], str | None],
        sparing: bool,
    ) -> None:
        self._factors, self._ask, self._soon, self.known = factors, reason_against, soon, known
        self._sparing = sparing

    def complete(self, target: Target, left: set[Target]) -> tuple[Row | None, str]:
        """A row with the target that hits many others, or None and why there is none."""
        reason = ""
        for attempt, row in enumerate(self._attempts(target, left)):
            found = self._reason(row)
            if found is None:
                hit = not left or attempt < _GREEDY
                return (row if hit else self._improve_row(row, target, left)), ""
            reason = reason or found
        return None, reason

    def _improve_row(self, row: Row, target: Target, left: set[Target]) -> Row:
        """A possible row moved towards one that hits many targets, a factor at a time."""
        aim = self._greedy(target, left, 0)
        for ask in (self._soon, self._reason):
            found = row
            for name in reversed(list(self._factors)):
                if aim[name] != found[name]:
                    moved = found | {name: aim[name]}
                    found = moved if ask(moved) is None else found
            if self._reason(found) is None:
                return found
        return row

    def _reason(self, row: Row) -> str | None:
        key = tuple(row.items())
        if key not in self.known:
            self.known[key] = self._ask(row)
        return self.known[key]

    def _attempts(self, target: Target, left: set[Target]) -> Iterator[Row]:
        """Rows that hit many targets first, then the first values, one factor of them moved."""
        if left:
            for turn in range(_GREEDY):
                yield self._greedy(target, left, turn)
        first = {name: values[0] for name, values in self._factors.items() if values}
        yield self._row(first, target)
        # a mechanism's own keys come last, and are what a setting most often asks for
        near = [
            {name: value}
            for name, values in reversed(list(self._factors.items()))
            for value in values[1:]
            if name not in dict(target)
        ]
        for other in near[:_NEAR] if left and len(target) > 1 else near:
            yield self._row(first | other, target)

    def _row(self, values: Row, target: Target) -> Row:
        """The values in the order of the factors, with those of the target."""
        chosen = values | dict(target)
        order = dict.fromkeys((*self._factors, *chosen))
        return {name: chosen[name] for name in order if name in chosen}

    def _greedy(self, target: Target, left: set[Target], turn: int) -> Row:
        chosen = dict(target)
        for place, (name, values) in enumerate(self._factors.items()):
            if name in chosen or not values:
                continue
            gains = [self._gain(chosen, name, value, left) for value in values]
            if self._sparing and not any(gains):
                chosen[name] = values[0]
                continue
            order = sorted(
                range(len(values)), key=lambda i: (-gains[i], (i + place + turn) % len(values))
            )
            # later turns give way at one factor after another
            skip = 1 if turn and (place + turn) % 3 == 0 else 0
            chosen[name] = values[order[skip % len(order)]]
        return self._row({}, tuple(chosen.items()))

    @staticmethod
    def _gain(chosen: Row, name: str, value: Any, left: set[Target]) -> int:
        one = (name, value)
        found = sum(((other, one) in left) or ((one, other) in left) for other in chosen.items())
        return found + ((one,) in left)
