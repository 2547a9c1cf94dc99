"""From events to what dominates them: products of loss laws, and what lies beside these.

A sequence of events becomes one ``Release``: compositions of known loss laws (one per direction
that counts), the chance that a black-box step fails altogether, and how far its samplers are off.
Proofs: docs/proofs, accounting page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dperm_cli.core import checks
from dperm_cli.core.errors import Unsupported
from dperm_cli.privacy import _bounded
from dperm_cli.privacy._bounded import Bounded
from dperm_cli.privacy._laws import Law, Step
from dperm_cli.privacy._saddle import Composition
from dperm_cli.privacy._updates import Updates
from dperm_cli.privacy.budget import RELATIONS
from dperm_cli.privacy.events import (
    Approx,
    Channel,
    Disclosure,
    Event,
    Exponential,
    GammaNorm,
    Gaussian,
    Laplace,
    PerturbedObjective,
    Pure,
    SampledGaussian,
    SamplerError,
    SparseAnswers,
    alone,
    kind,
)

# Randomised-response steps of one kind above which their atoms are smoothed (e is tiny then).
_MOST_ATOMS = 1_000_000
# Bounded steps beyond the numerical range of the laws: their epsilons are added to the result.
_TINY, _TINY_SUM = 1e-12, 1e-9
_LARGE, _LARGE_SUM = 20.0, 1e5


@dataclass(frozen=True)
class Release:
    """What dominates a sequence of events.

    ``directions``    compositions whose worst delta counts: one, or remove and add.
    ``concentrated``  the same with every bounded-range step replaced by its Renyi bound, as a
                      Gaussian of the same, and sparse answers by that of their updates; only
                      Renyi's conversion may be used on them. Empty without such steps.
    ``pure``          the sum of all epsilons; inf where one of them is.
    ``added``         epsilons of steps out of numerical range, in none of the other numbers.
    ``failure``       chance that some black-box step shows everything.
    ``ratio``, ``distance``   total SamplerError, as ``inf`` and as ``tv``.
    ``name``          who accounts for this.
    """

    directions: tuple[Composition, ...]
    concentrated: tuple[Composition, ...]
    pure: float
    added: float
    failure: float
    ratio: float
    distance: float
    name: str


def release(events: Sequence[Event], relation: str) -> Release:
    """Raises ``Unsupported`` for events without a known dominating pair under the relation."""
    checks.choice("privacy.relation", relation, RELATIONS)
    events = [alone(event) for event in events]
    sparse = _sparse(events, relation)
    local = kind(events) == "local"
    if local and relation != "replace_one":
        raise Unsupported("a local channel protects what a user's record says: use replace_one")
    steps = [step for event in events if (step := _bounded_step(event, relation)).reach > 0.0]
    normal = [event for event in events if isinstance(event, Gaussian | SampledGaussian)]
    mu2, sampled = _normal(normal, relation)
    forms = [None] if relation == "replace_one" or not sampled else ["remove", "add"]
    all_merged = _merged(steps)
    others = all_merged if not sparse else _merged(_without_sparse(events, relation))
    merged = tuple(step for step in all_merged if not _out_of_range(step))
    joint = _smoothed(merged)
    other = _smoothed(tuple(step for step in others if not _out_of_range(step)))
    kept = tuple(step for step in other if step.share > 0.0)
    extra = math.fsum(step.count * step.reach**2 / 4.0 for step in other if step.share == 0.0)
    laws = [_steps(sampled, form) for form in forms]
    ratio, distance = (_errors(events, name) for name in ("inf", "tv"))
    exposed = any(isinstance(event, Disclosure) for event in events)
    unbounded = exposed or mu2 > 0.0 or bool(sampled)
    return Release(
        tuple(Composition((*law, *joint), mu2) for law in laws),
        tuple(
            Composition((*law, *kept), mu2 + extra, sparse) for law in laws if extra > 0.0 or sparse
        ),
        math.inf if unbounded else _total(merged),
        _total([step for step in all_merged if _out_of_range(step)]),
        1.0 if exposed else _failure(events),
        ratio,
        distance,
        "local channels, added up" if local else _name(events, sampled, all_merged),
    )


def _sparse(events: Sequence[Event], relation: str) -> tuple[Updates, ...]:
    """The Renyi bounds of sparse answers; none where one of them is not known."""
    found = [_updates(event, relation) for event in events if isinstance(event, SparseAnswers)]
    found = [step for step in found if step.reach > 0.0]
    return tuple(found) if all(step.largest_tilt > 0.0 for step in found) else ()


def _updates(event: SparseAnswers, relation: str) -> Updates:
    reach = event.sensitivity(relation) / event.scale
    return Updates(reach, event.threshold / event.scale, event.updates, event.count)


def _without_sparse(events: Sequence[Event], relation: str) -> list[Bounded]:
    steps = [_bounded_step(e, relation) for e in events if not isinstance(e, SparseAnswers)]
    return [step for step in steps if step.reach > 0.0]


def _bounded_step(event: Event, relation: str) -> Bounded:
    """The law of an event of bounded loss; reach 0 for every other event."""
    if isinstance(event, SparseAnswers):
        event = event.all_shown()
    if isinstance(event, Laplace | GammaNorm):
        return _bounded.laplace(event.sensitivity(relation) / event.scale, event.count)
    if isinstance(event, Exponential):
        epsilon = event.exponent * event.sensitivity(relation)
        return _bounded.bounded_range(epsilon, event.count)
    if isinstance(event, Pure | Approx):
        return _bounded.pure(event.epsilon, event.count)
    if isinstance(event, PerturbedObjective):
        return _bounded.pure(event.epsilon(relation), event.count)
    if isinstance(event, Channel):
        return _bounded.pure(event.epsilon, event.messages)
    return _bounded.pure(0.0)


def _merged(steps: Sequence[Bounded]) -> tuple[Bounded, ...]:
    """Equal laws counted together."""
    counts: dict[Bounded, int] = {}
    for step in steps:
        key = replace(step, count=1)
        counts[key] = counts.get(key, 0) + step.count
    return tuple(replace(step, count=count) for step, count in counts.items())


def _out_of_range(step: Bounded) -> bool:
    whole = step.count * step.reach
    if step.reach < _TINY and whole < _TINY_SUM:
        return True
    return step.reach > 500.0 or (step.reach > _LARGE and whole > _LARGE_SUM)


def _total(steps: Sequence[Bounded]) -> float:
    return math.fsum(step.count * step.reach for step in steps)


def _smoothed(steps: Sequence[Bounded]) -> tuple[Bounded, ...]:
    """Atoms smoothed where there are very many."""
    many = [s.share == 1.0 and s.reach < 1.0 and s.count > _MOST_ATOMS for s in steps]
    return tuple(
        _bounded.smoothed(step) if smooth else step
        for step, smooth in zip(steps, many, strict=True)
    )


def _normal(
    events: Sequence[Gaussian | SampledGaussian], relation: str
) -> tuple[float, list[tuple[SampledGaussian, float]]]:
    """mu^2 of the plain Gaussian events, and the sampled ones with their distances."""
    mu2, sampled = 0.0, []
    for event in events:
        if isinstance(event, SampledGaussian) and event.rate < 1.0:
            ratio = _distance(event, relation)
            if ratio > 0.0:
                sampled.append((event, ratio))
            continue
        if isinstance(event, SampledGaussian):
            _distance(event, relation)
        mu2 += event.count * (event.sensitivity(relation) / event.scale) ** 2
    return mu2, sampled


def _distance(event: SampledGaussian, relation: str) -> float:
    """Distance in units of the noise: one record's norm under Poisson, else the sensitivity."""
    if event.sampling == "poisson":
        return event.record_norm / event.scale
    if relation == "add_remove":
        raise Unsupported(
            "fixed-size batches have no add_remove guarantee: the batch rate would follow the "
            "private number of records; use sampling=poisson or relation=replace_one"
        )
    return event.sensitivity(relation) / event.scale


def _steps(sampled: Sequence[tuple[SampledGaussian, float]], form: str | None) -> tuple[Law, ...]:
    """One step law per distinct event, its repetitions counted together."""
    counts: dict[Step, int] = {}
    for event, ratio in sampled:
        step = Step(event.rate, ratio, form or event.sampling)
        counts[step] = counts.get(step, 0) + event.count
    return tuple(replace(step, count=count) for step, count in counts.items())


def _failure(events: Sequence[Event]) -> float:
    """1 - prod (1 - delta) over the black-box steps, rounded up."""
    boxes = (e for e in events if isinstance(e, Approx | PerturbedObjective))
    logs = (e.count * math.log1p(-e.delta) for e in boxes)
    return abs(math.expm1(math.fsum(logs))) * (1.0 + 1e-15)


def _errors(events: Sequence[Event], distance: str) -> float:
    return math.fsum(
        event.count * event.amount
        for event in events
        if isinstance(event, SamplerError) and event.distance == distance
    )


def _name(
    events: Sequence[Event],
    sampled: Sequence[tuple[SampledGaussian, float]],
    joint: Sequence[Bounded],
) -> str:
    if any(isinstance(event, Disclosure) for event in events):
        return "nothing is protected"
    if not sampled and not joint:
        base = "analytic Gaussian"
    else:
        words = {"fixed": "fixed-size batches", "poisson": "Poisson batches"}
        parts = {words[event.sampling] for event, _ in sampled} | {_word(step) for step in joint}
        base = "loss distribution, " + " and ".join(sorted(parts))
    if any(isinstance(event, SparseAnswers) for event in events):
        base += ", or Renyi bound of updates"
    if any(isinstance(e, Approx | PerturbedObjective) and e.delta > 0.0 for e in events):
        base += " + black-box deltas"
    if any(isinstance(event, SamplerError) and event.amount > 0.0 for event in events):
        base += " + sampler error"
    return base


def _word(step: Bounded) -> str:
    if step.share == 1.0:
        return "pure steps" + (" (smoothed)" if _smoothed([step]) != (step,) else "")
    return "bounded-range steps" if step.share == 0.0 else "Laplace steps"
