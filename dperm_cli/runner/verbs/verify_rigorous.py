"""What ``dperm verify rigorous=true`` says of epsilons: which of them are proved, and how close."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from dperm_cli.core.errors import Unsupported
from dperm_cli.privacy.accounting.proved_level import ProvedLevel
from dperm_cli.privacy.accounting.rigorous_level import prove_level
from dperm_cli.privacy.events import Event
from dperm_cli.results.records.row_facts import format_count
from dperm_cli.results.records.store import Snapshot
from dperm_cli.results.tables.account_table import format_up
from dperm_cli.runner.cells.ledger_accountant import events_of


def prove_events(events: Sequence[Event], delta: float, relation: str) -> ProvedLevel:
    """The proved epsilon of some events; where they have no guarantee, the reason."""
    try:
        return prove_level(events, delta=delta, relation=relation)
    except Unsupported as error:
        return ProvedLevel(None, reason=str(error))


def list_proved(store: Snapshot) -> Iterator[str]:
    """The proved epsilons of whole records: a line for each record, and one for all.

    Args:
        store: Of a study whose records were found whole, and their events readable.
    """
    known: dict[tuple[Any, ...], ProvedLevel] = {}
    records, gaps = 0, []
    for cell in store.cells():
        row = (store.read(cell) or [{}])[0]
        if row.get("status") != "ok" or row.get("guarantee") == "none":
            continue
        key = (row["events"], row["delta_accounted"], row["relation"])
        if key not in known:
            known[key] = prove_events(events_of(row), row["delta_accounted"], row["relation"])
        found, claimed = known[key], row["epsilon_accounted"]
        records += 1
        if found.epsilon is None:
            yield f"{cell}: epsilon {claimed:.7g}, {found.words}"
            continue
        yield f"{cell}: epsilon {claimed:.7g}, proved {format_up(found.epsilon)} ({found.method})"
        if 0.0 < claimed < math.inf:
            gaps.append(found.epsilon / claimed - 1.0)
    widest = f"; at most {max(0.0, *gaps):.2g} of epsilon above the record" if gaps else ""
    proved = sum(level.epsilon is not None for level in known.values())
    whole = f"{format_count(len(known), 'set')} of events in {format_count(records, 'record')}"
    yield f"rigorous: {proved} proved of {whole}{widest}"
