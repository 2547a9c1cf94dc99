"""The accountant for ledgers: takes records, returns plain values."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from dperm_cli import __version__
from dperm_cli.core import plugin_words
from dperm_cli.core.errors import DpermError, Unsupported
from dperm_cli.privacy.accounting import generator_range, ledger_totals
from dperm_cli.privacy.budget import KINDS, Budget, Guarantee, weakest_kind
from dperm_cli.privacy.events import Approx, Disclosure, Event, classes, replaced_level
from dperm_cli.privacy.events import kind as kind_of_events

# Relative tolerance between a stored epsilon and the recomputed one (other processors round
# otherwise).
CLOSE = 1e-6
# Where a record does not say how many parameters there are.
_MOST_PARAMETERS = 2**30
_CLAIM = (
    "events", "guarantee", "relation", "epsilon", "delta", "epsilon_accounted", "delta_accounted",
)  # fmt: skip
_NO_CLAIM = ("events", "guarantee", "relation")

Row = Mapping[str, Any]


class Accounting:
    """The ``results.ledger.ledger.Accountant`` that computes with ``ledger_totals``.

    Results are cached.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], Guarantee] = {}

    def events(self, row: Row) -> list[dict[str, Any]]:
        """Each event as recorded, with its sensitivity and in words."""
        relation = row["relation"]
        return [
            {**ledger_totals.to_dict(event), **ledger_totals.describe(event, relation)}
            for event in events_of(row)
        ]

    def restore_events(self, entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """What a record says of events that ``events`` wrote; ValueError for anything else."""
        return [ledger_totals.to_dict(_restore_event(entry)) for entry in entries]

    def total(self, releases: Sequence[tuple[Row, int]], relation: str) -> dict[str, Any]:
        """What the releases cost together, at the largest delta among them.

        ``relation`` is that of every release, or replace_one: ValueError otherwise. There an
        add_remove release enters by its events, each under its own rule, or where that is less by
        its claim, twice.
        """
        delta = max(row["delta_accounted"] or 0.0 for row, _ in releases)
        spent = [
            ledger_totals.SpentRelease(
                _convert_claim(read_claim(row), relation), events_under(row, relation), times
            )
            for row, times in releases
        ]
        found = ledger_totals.compose(spent, delta)
        return {
            "kind": found.kind,
            "epsilon": found.epsilon,
            "delta": found.delta,
            "accountant": found.source,
        }

    def fault(self, row: Row) -> str | None:
        """Why the row's claim does not follow from its events, or None."""
        claim = _NO_CLAIM if row["guarantee"] == "none" else _CLAIM
        missing = [name for name in claim if row[name] is None]
        if missing:
            return f"is incomplete: no {', '.join(missing)}"
        if row["guarantee"] not in KINDS:
            return f"says {str(row['guarantee'])[:20]!r}, which is no kind of guarantee"
        try:
            if row["guarantee"] == "none":
                events_of(row)
                return None  # nothing is claimed, whatever the events say
            again, delivers = self._recompute(row), kind_of_events(events_of(row))
            claimed, budget = read_claim(row), _read_budget(row)
        except (ValueError, TypeError, KeyError, Unsupported, DpermError) as error:
            return f"its events cannot be accounted for: {error}"
        written = row["epsilon_accounted"]
        more, room = written - again.epsilon, CLOSE * again.epsilon
        # an earlier accountant may have found more: what it claimed then holds all the same
        if not (-room <= more and (more <= room or _is_older(row))):
            return f"says epsilon {written:.6g}; its events give {again.epsilon:.6g}"
        if weakest_kind([row["guarantee"], delivers]) != row["guarantee"]:
            return f"says {row['guarantee']}; its events give no more than {delivers}"
        if row["guarantee"] == "local" and not _matches_information(row, again):
            written, told = row["information_accounted"], again.information
            return f"says {written} nats of information; its events give {told}"
        if claimed.within(budget):
            return None
        return f"claims {claimed}, which is not within its budget {budget}"

    def find_missing(self, row: Row) -> str | None:
        """What the row's events cannot be rebuilt without, in words, or None."""
        return plugin_words.list_missing(row.get("plugins"), ("event",))

    def _recompute(self, row: Row) -> Guarantee:
        key = tuple(row[name] for name in ("events", "guarantee", "delta_accounted", "relation"))
        if key not in self._known:
            self._known[key] = ledger_totals.recompute(
                events_of(row),
                kind=row["guarantee"],
                delta=row["delta_accounted"],
                relation=row["relation"],
                certificate=row["certificate"],
            )
        return self._known[key]


def _is_older(row: Row) -> bool:
    """Whether another version of dperm made the row."""
    return row.get("version") not in (None, __version__)


def events_of(row: Row) -> tuple[Event, ...]:
    """The events of a record, at least one, rebuilt; ValueError when they are none."""
    try:
        entries = json.loads(row["events"])
    except RecursionError:
        raise ValueError("its events are nested too deeply") from None
    if not isinstance(entries, list) or not entries:
        raise ValueError("there are none")
    if not all(isinstance(entry, dict) for entry in entries):
        raise ValueError("one of them is no mapping")
    return tuple(ledger_totals.rebuild_event(entry) for entry in entries)


def _restore_event(entry: Mapping[str, Any]) -> Event:
    """The event of a ledger's entry, which says more of it, and as ``count`` how often it drew."""
    kind = classes().get(str(entry.get("event")))
    names = () if kind is None else [field.name for field in fields(kind)]  # type: ignore[arg-type]
    own = {name: entry[name] for name in ("event", *names) if name in entry}
    event = ledger_totals.rebuild_event(own)
    if "count" in own and event.draws != own["count"]:
        # one of its counts is several draws
        event = ledger_totals.rebuild_event(own | {"count": own["count"] ** 2 // event.draws})
    if event.draws != entry.get("count"):
        raise ValueError(f"{own['event']}: its count is another")
    return event


def _convert_claim(claim: Guarantee, relation: str) -> Guarantee:
    """The claim under replace_one, which is to remove a record and to add one."""
    if claim.relation == relation:
        return claim
    if relation != "replace_one":
        raise ValueError(f"a claim under {claim.relation} promises nothing under {relation}")
    epsilon, delta = replaced_level(claim.epsilon, claim.delta)
    return replace(claim, epsilon=epsilon, delta=delta, relation=relation)


def events_under(row: Row, relation: str) -> tuple[Event, ...]:
    """The events of a release as they enter a total under ``relation``.

    What delta holds for the bounded range of seeded noise follows from how far values move, and
    under replace_one they move further than the plan allowed for: that range is an event more.
    """
    events = events_of(row)
    if row["relation"] == relation or row.get("noise") == "secure":
        return events
    dim = row.get("p") or _MOST_PARAMETERS
    try:
        added = math.fsum(event.range_delta(relation, int(dim)) for event in events)
    except Unsupported:  # the total then uses the claim instead of the events
        return events
    if not added > generator_range.NEGLIGIBLE_DELTA_SHARE * (row["delta_accounted"] or 0.0):
        return events
    return (*events, Approx(0.0, added, relation=relation) if added < 1.0 else Disclosure())


def _read_budget(row: Row) -> Budget:
    """The budget of a row, with room for its digits."""
    local, room = row["guarantee"] == "local", 1.0 + CLOSE
    told = row.get("information")
    return Budget(
        row["epsilon"] * room, row["delta"], row["relation"], "local" if local else "central",
        None if told is None else told * room,
    )  # fmt: skip


def _matches_information(row: Row, again: Guarantee) -> bool:
    """Whether the information of a local claim is that of its events."""
    written, told = row.get("information_accounted"), again.information
    if written is None or told is None:
        return False
    return abs(written - told) <= CLOSE * told


def read_claim(row: Row) -> Guarantee:
    """The guarantee that a record claims."""
    nothing, local = row["guarantee"] == "none", row["guarantee"] == "local"
    return Guarantee(
        kind=row["guarantee"],
        epsilon=math.inf if nothing else row["epsilon_accounted"],
        delta=1.0 if nothing else row["delta_accounted"],
        relation=row["relation"],
        source=row["accountant"],
        trust="local" if local else "central",
        certificate=row["certificate"],
        information=row.get("information_accounted") if local else None,
    )
