"""What was spent: guarantees recomputed from events, events as plain values, their composition.

A ledger entry is made of plain JSON values, so that a reader who has nothing but the record can
rebuild the events, add them up with the accountant and compare. Nothing here sees data.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from dperm_cli.core.errors import InputError, PrivacyError, Unsupported
from dperm_cli.privacy.accountant import account
from dperm_cli.privacy.budget import Budget, Guarantee
from dperm_cli.privacy.events import (
    Channel,
    Disclosure,
    DisjointBatches,
    Event,
    SparseAnswers,
)

# Strongest first. A local guarantee bounds what the curator's output says at least as well as a
# central one of the same numbers; composed with others it counts as its (epsilon, delta).
_STRENGTH = ("pure", "approx", "none")
_CLOSE = 1e-9  # relative difference of two epsilons that are the same up to last bits
BASIC = "basic composition"


@dataclass(frozen=True)
class Spent:
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


def require(budget: Budget, *claims: Guarantee) -> None:
    """PrivacyError unless every claim fits the budget."""
    for claim in claims:
        if not claim.within(budget):
            told = "" if claim.information is None else f", {claim.information:.6g} nats"
            raise PrivacyError(
                f"refused to release: {claim.source} gives epsilon {claim.epsilon:.6g} at delta "
                f"{claim.delta:.3g}{told} under {claim.relation}; the budget is {budget}"
            )


def plain(event: Event) -> dict[str, Any]:
    """An event as JSON-able values, its class under ``event``."""
    return {"event": type(event).__name__, **dataclasses.asdict(event)}


def rebuilt(entry: Mapping[str, Any]) -> Event:
    """The event that ``plain`` wrote; ValueError for anything that is not one."""
    kinds = {kind.__name__: kind for kind in get_args(Event)}
    values = {key: value for key, value in entry.items() if key != "event"}
    kind = kinds.get(str(entry.get("event")))
    if kind is None:
        raise ValueError(f"{entry.get('event')!r} is no privacy event")
    try:
        return kind(**values)
    except (TypeError, InputError) as error:
        raise ValueError(f"{kind.__name__}: {error}") from None


def compose(spent: Sequence[Spent], delta: float) -> Guarantee:
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
    kind = weakest(item.guarantee.kind for item in spent)
    if kind == "none":
        return Guarantee("none", math.inf, 1.0, relation, "no guarantee")
    level = delta if kind == "approx" else 0.0
    events = [event for item in spent for event in repeated(item.events, item.times)]
    added = _basic(spent, kind, relation)
    try:
        found = recompute(events, kind=kind, delta=level, relation=relation, certificate=None)
        # as many threads as there are change last bits: they must not decide who is named
        if found.epsilon <= (1.0 + _CLOSE) * added.epsilon or not added.delta < 1.0:
            return found
        level = max(level, added.delta)
        found = recompute(events, kind=kind, delta=level, relation=relation, certificate=None)
    except Unsupported:
        return added
    return min(found, added, key=lambda total: total.epsilon)


def weakest(kinds: Iterable[str]) -> str:
    """The kind of a composition: ``local`` only when every part is, else the weakest part's."""
    found = set(kinds)
    if found == {"local"}:
        return "local"
    return max(found - {"local"}, key=_STRENGTH.index)


def repeated(events: Sequence[Event], times: int) -> tuple[Event, ...]:
    """The events of so many independent runs."""
    return tuple(_repeated(event, times) for event in events)


def _repeated(event: Event, times: int) -> Event:
    if isinstance(event, Channel):
        return dataclasses.replace(event, messages=event.messages * times)
    if isinstance(event, Disclosure):
        return event
    return dataclasses.replace(event, count=event.count * times)


def describe(event: Event, relation: str) -> dict[str, Any]:
    """What an event did, in numbers and in words."""
    kind, moves = type(event).__name__, getattr(event, "sensitivity", None)
    facts = {
        "event": kind,
        "scale": getattr(event, "scale", None),
        "sensitivity": None if moves is None else moves(relation),
        "count": draws(event),
    }
    return {**facts, "words": _words(event, facts)}


def draws(event: Event) -> int:
    """How often the event touches the data."""
    if isinstance(event, Channel):
        return event.messages
    if isinstance(event, DisjointBatches):
        return event.batches * event.count
    if isinstance(event, SparseAnswers):
        return event.queries * event.count
    return 1 if isinstance(event, Disclosure) else event.count


def _words(event: Event, facts: Mapping[str, Any]) -> str:
    known = _WORDS[facts["event"]]
    values = {**dataclasses.asdict(event), **facts, "told": ""}
    if isinstance(event, Channel) and event.shape:
        each = event.information / event.messages
        told = f" ({event.shape} channel in {event.dim} dimensions, at most {each:.6g} nats)"
        values["told"] = told
    values = {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in values.items()}
    text = f"{facts['count']} x {known}" if facts["count"] != 1 else known
    return text.format(**values)


_MOVES = "; a neighbouring data set moves it by at most {sensitivity}"
_WORDS = {
    "Gaussian": "a sum over all records plus Gaussian noise of standard deviation {scale} in every "
    f"coordinate{_MOVES} (L2 norm)",
    "GaussianMatrix": "a sum over all records of symmetric matrices plus Gaussian noise of "
    "standard deviation {scale} in every entry of the upper triangle (off it: over sqrt 2)"
    f"{_MOVES} (Frobenius norm)",
    "SampledGaussian": "a sum over a random batch of {batch} out of {population} records "
    "({sampling} sampling) plus Gaussian noise of standard deviation {scale} in every "
    f"coordinate{_MOVES} (L2 norm) when the batch holds its record",
    "Laplace": "a sum over all records plus Laplace noise of scale {scale} in every "
    f"coordinate{_MOVES} (L1 norm)",
    "GammaNorm": "a sum over all records plus noise of a uniform direction whose norm is Gamma "
    f"with scale {{scale}}{_MOVES} (L2 norm)",
    "DisjointBatches": "the sum over one of {batches} disjoint batches plus {noise} noise of scale "
    "{scale}; a record is in one batch at most, and a neighbouring data set moves all sums of a "
    "pass by at most {sensitivity} together (L2 norm)",
    "Exponential": "a draw from the density proportional to exp(-{exponent} objective) over the "
    "set; a neighbouring data set changes the objective by a function of oscillation at most "
    "{sensitivity}",
    "RegularizedExponential": "a draw from a density whose negative logarithm is strongly convex, "
    "at strength {scale} (root of its convexity over its exponent); a neighbouring data set "
    "changes the objective's gradient by at most {sensitivity} (L2 norm): it tells no more than "
    "one Gaussian release of that scale and sensitivity",
    "SparseAnswers": "an answer, shown with Laplace noise of scale {scale} where it is more than "
    "{threshold} from the answer known before, and at most {updates} times"
    f"{_MOVES}",
    "Pure": "a step of epsilon {epsilon}",
    "Approx": "a step of epsilon {epsilon} and delta {delta}",
    "PerturbedObjective": "a minimiser of the objective with a {noise} linear term of scale "
    f"{{scale}} under a regulariser of strength {{strength}}{_MOVES} (L2 norm, gradient at the "
    "released point)",
    "Channel": "a message from each user's own device, of local epsilon {epsilon}{told}",
    "SamplerError": "a draw from an approximate sampler, within {amount} ({distance}) of its law",
    "Disclosure": "something computed from the data is shown without protection",
}


def _basic(spent: Sequence[Spent], kind: str, relation: str) -> Guarantee:
    return Guarantee(
        kind=kind,
        epsilon=math.fsum(item.times * item.guarantee.epsilon for item in spent),
        delta=math.fsum(item.times * item.guarantee.delta for item in spent),
        relation=relation,
        source=BASIC,
    )
