"""What every privacy event promises, as far as it can be tried: its cost and its noise.

The accountant believes what an event says it costs. That its proof is right no check can tell.
"""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

from dperm_cli.audit import noise_laws
from dperm_cli.audit.contracts.promises import Broken, NotTried, promise, require
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.core.fields import Choices, fields_of
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.budget import KINDS, RELATIONS
from dperm_cli.privacy.events import Gaussian

_SCALES = (2.0, 8.0)
_DELTAS = (1e-6, 0.9)  # the second for events with a delta of their own


@dataclass(frozen=True)
class Subject:
    """An event at two noise scales, the smaller one first; one of them where it has no scale."""

    events: tuple[Any, ...]


def make_subject(cls: type[Any], others: Any = None) -> Subject:
    """The event to be checked, from its class: sizes of 1, and noise of two scales."""
    fields = fields_of(cls)
    given: dict[str, Any] = {}
    for field in (one for one in fields.values() if one.default is dataclasses.MISSING):
        given[field.name] = _fill_in(field)
    try:
        if "scale" not in fields:
            return Subject((cls(**given),))
        return Subject(tuple(cls(**{**given, "scale": scale}) for scale in _SCALES))
    except InputError as error:
        raise Broken(f"with {given} it is refused: {error}") from None


def _fill_in(field: Any) -> Any:
    if Choices in field.metadata:
        return field.metadata[Choices][0]
    if float in field.types:
        return 1.0 if field.range.below is None else 0.5 * float(field.range.below)
    if tuple in field.types:  # the events of one run, for each candidate
        return [[Gaussian(_SCALES[0], 1.0)]]
    return 4 if int in field.types else ""


@promise(
    "it says its kind, and words for the ledger",
    mend="kind() is pure, approx, local or "
    "none; phrase names fields in braces; fields hold numbers and texts",
)
def check_words(subject: Subject) -> str:
    event = subject.events[0]
    require(event.kind() in KINDS, f"kind() is {event.kind()!r}")
    json.dumps(dataclasses.asdict(event))
    for relation in RELATIONS:
        try:
            words = event.words(relation)
        except Unsupported:
            continue
        require(words.strip(), f"words({relation}) are empty")
    return f"kind {event.kind()}"


@promise(
    "it costs a finite epsilon, more for less noise and for more repetitions",
    mend="loss(relation) gives the PrivacyLoss of all count repetitions; a smaller scale and "
    "a larger count cost more; raise Unsupported under a relation without a proof",
)
def check_cost(subject: Subject) -> str:
    told = []
    if subject.events[0].kind() == "none":
        raise NotTried("it gives no guarantee")
    for relation in RELATIONS:
        try:
            costs = [_cost((event,), relation) for event in subject.events]
            twice = _cost((subject.events[0].repeat(2),), relation)
        except Unsupported as refusal:
            told.append(f"{relation}: {refusal}")
            continue
        require(
            all(math.isfinite(one) and one >= 0 for one in costs),
            f"{relation}: it costs epsilon {costs}",
        )
        require(
            costs == sorted(costs, reverse=True),
            f"{relation}: at scales {_SCALES} it costs epsilon {costs}: less noise costs less",
        )
        require(
            twice >= costs[0] * (1 - 1e-9),
            f"{relation}: done twice it costs {twice:.4g}, done once {costs[0]:.4g}",
        )
        told.append(f"{relation}: epsilon {', '.join(f'{one:.3g}' for one in costs)}")
    return "; ".join(told)


def _cost(events: tuple[Any, ...], relation: str) -> float:
    deltas = (0.0,) if events[0].kind() == "pure" else _DELTAS
    return min(account(events, delta=delta, relation=relation).epsilon for delta in deltas)


@promise(
    "its stream adds the noise that it declares",
    mend="noise_law and noise_scale describe what stream adds: their cost is computed from them",
)
def check_noise(subject: Subject) -> str:
    event = subject.events[0]
    if not event.noise_law or not event.stream:
        raise NotTried("it adds no noise of a known law")
    faults = noise_laws.find_faults(event, 3, RELATIONS[0])
    require(not faults, "; ".join(faults[:2]))
    return f"{event.noise_law} noise of scale {event.noise_scale:g} in 3 coordinates"
