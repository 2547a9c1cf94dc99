"""Recompute guarantees from recorded events, and compose them into totals.

A ledger entry is made of plain JSON values, so that a reader who has nothing but the record can
rebuild the events, add them up with the accountant and compare. Nothing here sees data.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from dperm_cli.core import plugin_sources
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError, PrivacyError, Unsupported
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.budget import Budget, Guarantee, weakest_kind
from dperm_cli.privacy.events import Channel, Event, classes
from dperm_cli.privacy.events import kind as kind_of

_CLOSE = 1e-9  # relative difference of two epsilons that are the same up to last bits
BASIC = "basic composition"
_WORTH_A_DELTA = 1.1  # what a delta has to take off epsilon to be spoken of, as a factor


@dataclass(frozen=True)
class SpentRelease:
    """One release as it enters a composition: its guarantee and what it was made of."""

    guarantee: Guarantee
    events: tuple[Event, ...]
    times: int = 1


def recompute(
    events: Sequence[Event], *, kind: str, delta: float, relation: str, certificate: str | None
) -> Guarantee:
    """The guarantee that follows from the events alone, at this delta."""
    accounted = account(events, delta=delta, relation=relation)
    channels = [event for event in events if isinstance(event, Channel)]
    local = kind == "local" and len(channels) == len(events)
    return Guarantee(
        kind=kind,
        epsilon=accounted.epsilon,
        delta=delta,
        relation=relation,
        source=accounted.accountant,
        trust="local" if local else "central",
        certificate=certificate,
        information=math.fsum(event.information for event in channels) if local else None,
    )


def find_guarantee(
    events: Sequence[Event], kind: str, budget: Budget, certificate: str | None
) -> Guarantee:
    """The guarantee of events within a budget: pure where they are, else at its delta.

    Events that are pure by themselves need no delta, even where the budget has some. What they give
    is called pure where that keeps to the budget, unless a delta would take a tenth off epsilon, as
    it does where many steps are added up.

    Args:
        events: what is done to the records.
        kind: of the guarantee that was asked for.
        budget: what may be spent.
        certificate: what a sampler or a solver proved.
    """
    facts: Any = {"relation": budget.relation, "certificate": certificate}
    if kind == "approx" and kind_of(events) == "pure":
        pure = recompute(events, kind="pure", delta=0.0, **facts)
        approx = recompute(events, kind=kind, delta=budget.delta, **facts)
        fits = pure.epsilon <= min(budget.epsilon, _WORTH_A_DELTA * approx.epsilon)
        return pure if fits else approx
    return recompute(events, kind=kind, delta=budget.delta, **facts)


def require_within_budget(budget: Budget, *claims: Guarantee) -> None:
    """PrivacyError unless every claim fits the budget."""
    for claim in claims:
        if not claim.within(budget):
            told = "" if claim.information is None else f", {claim.information:.6g} nats"
            raise PrivacyError(
                f"refused to release: {claim.source} gives epsilon {claim.epsilon:.6g} at delta "
                f"{claim.delta:.3g}{told} under {claim.relation}; the budget is {budget}"
            )


def to_dict(event: Event) -> dict[str, Any]:
    """An event as JSON-able values, its class under ``event``."""
    names = [field.name for field in dataclasses.fields(event)]  # type: ignore[arg-type]
    fields = {name: _to_json(getattr(event, name)) for name in names}
    if fields.get("relation") == "":  # empty means proved under both relations
        del fields["relation"]
    return {"event": type(event).__name__, **fields}


def _to_json(value: Any) -> Any:
    """A field of an event; events inside it, as of the runs of a selection, like events."""
    if isinstance(value, tuple):
        return [_to_json(item) for item in value]
    return to_dict(value) if isinstance(value, Event) else value


def _from_json(value: Any) -> Any:
    """What ``_to_json`` wrote."""
    if isinstance(value, list):
        return tuple(_from_json(item) for item in value)
    return rebuild_event(value) if isinstance(value, Mapping) else value


def rebuild_event(entry: Mapping[str, Any]) -> Event:
    """The event that ``to_dict`` wrote; ValueError for anything that is not one."""
    values = {key: _from_json(value) for key, value in entry.items() if key != "event"}
    name = str(entry.get("event"))
    kind = classes().get(name) or plugin_sources.find("event", name)
    if kind is None:
        raise ValueError(f"{entry.get('event')!r} is no privacy event")
    try:
        return kind(**values)
    except (TypeError, InputError) as error:
        raise ValueError(f"{kind.__name__}: {error}") from None


def compose(spent: Sequence[SpentRelease], delta: float) -> Guarantee:
    """What all of these cost together, under their one relation; the kind is the weakest one.

    The accountant adds all events up: at delta 0 when every guarantee is pure, at ``delta``
    otherwise. Where it knows no joint law, as of local and central releases side by side,
    epsilons and deltas are added instead. Where ``delta`` is too little for as small an
    epsilon as that, because parts of the releases' deltas are spent outright and add up to it or
    more, the total is at the sum of all their deltas.
    """
    if len({item.guarantee.relation for item in spent}) != 1:
        raise ValueError("a composition holds under one relation")
    relation = spent[0].guarantee.relation
    kind = weakest_kind(item.guarantee.kind for item in spent)
    if kind == "none":
        return Guarantee("none", math.inf, 1.0, relation, "no guarantee")
    level = delta if kind == "approx" else 0.0
    events = [event.repeat(item.times) for item in spent for event in item.events]
    added = _basic(spent, kind, relation)
    try:
        found = recompute(events, kind=kind, delta=level, relation=relation, certificate=None)
        # the number of threads changes last bits; they must not decide which method is named
        if found.epsilon <= (1.0 + _CLOSE) * added.epsilon or not added.delta < 1.0:
            return found
        level = max(level, added.delta)
        found = recompute(events, kind=kind, delta=level, relation=relation, certificate=None)
    except Unsupported:
        return added
    return min(found, added, key=lambda total: total.epsilon)


def describe(event: Event, relation: str) -> dict[str, Any]:
    """What an event did, in numbers and in words."""
    return {
        "event": type(event).__name__,
        "scale": event.noise_scale,
        "sensitivity": event.sensitivity(relation),
        "count": event.draws,
        "words": event.words(relation),
    }


def _basic(spent: Sequence[SpentRelease], kind: str, relation: str) -> Guarantee:
    return Guarantee(
        kind=kind,
        epsilon=math.fsum(item.times * item.guarantee.epsilon for item in spent),
        delta=math.fsum(item.times * item.guarantee.delta for item in spent),
        relation=relation,
        source=BASIC,
    )
