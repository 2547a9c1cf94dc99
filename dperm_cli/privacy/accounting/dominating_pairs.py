"""Translate events into dominating pairs of laws, and terms added to epsilon or delta.

A sequence of events becomes one ``DominatingLaws``: compositions of known loss laws (one per
direction that counts), the probability that a black-box step fails altogether, and the errors of
its samplers. Proofs: docs/proofs, accounting page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from dperm_cli.core import checks
from dperm_cli.core.dataclass import dataclass
from dperm_cli.privacy.accounting import bounded_laws
from dperm_cli.privacy.accounting.bounded_laws import BoundedStep
from dperm_cli.privacy.accounting.random_stopping import RenyiBound
from dperm_cli.privacy.accounting.saddle_point import Composition
from dperm_cli.privacy.accounting.sparse_vector import UpdatesLoss
from dperm_cli.privacy.accounting.subsampled_laws import SampledStep
from dperm_cli.privacy.events import RELATIONS, Event, PrivacyLoss, kind

# Randomised-response steps of one kind above which their atoms are smoothed (e is tiny then).
_MOST_ATOMS = 1_000_000
# Bounded steps that are too large or small to compute with: their epsilons are added instead.
_TINY, _TINY_SUM = 1e-12, 1e-9
_LARGE, _LARGE_SUM = 20.0, 1e5
_ERRORS = ("ratio", "distance")  # the two measures of a sampler's error
_Step = TypeVar("_Step", BoundedStep, SampledStep)


@dataclass(frozen=True)
class DominatingLaws:
    """What dominates a sequence of events.

    ``directions``    compositions whose worst delta counts: one, or remove and add.
    ``concentrated``  the same with every bounded-range step replaced by its Renyi bound, as a
                      Gaussian of the same, and sparse answers by that of their updates; only
                      Renyi's conversion may be used on them. Empty without such steps.
    ``moments_only``  whether ``directions`` lack a step: private selections have no other bound.
    ``pure``          the sum of all epsilons; inf where one of them is.
    ``added``         epsilons of steps out of numerical range, in none of the other numbers.
    ``failure``       chance that some black-box step shows everything.
    ``ratio``, ``distance``   total SamplerError, as ``inf`` and as ``tv``.
    ``name``          the accounting method, in words.
    """

    directions: tuple[Composition, ...]
    concentrated: tuple[Composition, ...]
    pure: float
    added: float
    failure: float
    ratio: float
    distance: float
    name: str
    moments_only: bool = False


def find_dominating_laws(events: Sequence[Event], relation: str) -> DominatingLaws:
    """Raises ``Unsupported`` for events without a known dominating pair under the relation."""
    checks.choice("privacy.relation", relation, RELATIONS)
    local = kind(events) == "local"
    losses = [event.loss(relation) for event in events]
    sparse = _sparse(losses)
    selections = tuple(loss.selection for loss in losses if loss.selection is not None)
    moments: tuple[RenyiBound, ...] = (*sparse, *selections)
    steps = _bounded_steps(losses)
    mu2 = sum((loss.mu2 for loss in losses), 0.0)
    sampled = [loss.sampled for loss in losses if loss.sampled is not None]
    forms = [None] if relation == "replace_one" or not sampled else ["remove", "add"]
    all_merged = _merge_equal_steps(steps)
    others = _merge_equal_steps(_bounded_steps(losses, without_updates=bool(sparse)))
    merged = tuple(step for step in all_merged if not _out_of_range(step))
    joint = _smooth_steps(merged)
    other = _smooth_steps(tuple(step for step in others if not _out_of_range(step)))
    kept = tuple(step for step in other if step.share > 0.0)
    extra = math.fsum(step.count * step.reach**2 / 4.0 for step in other if step.share == 0.0)
    laws = [
        _merge_equal_steps([replace(s, form=form or s.form) for s in sampled]) for form in forms
    ]
    ratio, distance = (math.fsum(getattr(x, name) for x in losses) for name in _ERRORS)
    exposed = any(loss.exposed for loss in losses)
    unbounded = exposed or mu2 > 0.0 or bool(sampled) or bool(selections)
    return DominatingLaws(
        tuple(Composition((*law, *joint), mu2) for law in laws),
        tuple(
            Composition((*law, *kept), mu2 + extra, moments)
            for law in laws
            if extra > 0.0 or moments
        ),
        math.inf if unbounded else _total(merged),
        _total([step for step in all_merged if _out_of_range(step)]),
        1.0 if exposed else _failure(losses),
        ratio,
        distance,
        "local channels, added up" if local else _name(losses, sampled, all_merged),
        bool(selections),
    )


def _sparse(losses: Sequence[PrivacyLoss]) -> tuple[UpdatesLoss, ...]:
    """The Renyi bounds of sparse answers; none where one of them is not known."""
    found = [loss.updates for loss in losses if loss.updates is not None]
    found = [step for step in found if step.reach > 0.0]
    return tuple(found) if all(step.largest_tilt > 0.0 for step in found) else ()


def _bounded_steps(
    losses: Sequence[PrivacyLoss], without_updates: bool = False
) -> list[BoundedStep]:
    """The laws of bounded loss whose bound is not 0."""
    chosen = [x for x in losses if not (without_updates and x.updates is not None)]
    return [x.bounded for x in chosen if x.bounded is not None and x.bounded.reach > 0.0]


def _merge_equal_steps(steps: Sequence[_Step]) -> tuple[_Step, ...]:
    """Merge equal laws and add their counts."""
    counts: dict[_Step, int] = {}
    for step in steps:
        key = replace(step, count=1)
        counts[key] = counts.get(key, 0) + step.count
    return tuple(replace(step, count=count) for step, count in counts.items())


def _out_of_range(step: BoundedStep) -> bool:
    whole = step.count * step.reach
    if step.reach < _TINY and whole < _TINY_SUM:
        return True
    return step.reach > 500.0 or (step.reach > _LARGE and whole > _LARGE_SUM)


def _total(steps: Sequence[BoundedStep]) -> float:
    return math.fsum(step.count * step.reach for step in steps)


def _smooth_steps(steps: Sequence[BoundedStep]) -> tuple[BoundedStep, ...]:
    """Replace randomised response by a Laplace law where it is repeated very often."""
    many = [s.share == 1.0 and s.reach < 1.0 and s.count > _MOST_ATOMS for s in steps]
    return tuple(
        bounded_laws.smooth_atoms(step) if smooth else step
        for step, smooth in zip(steps, many, strict=True)
    )


def _failure(losses: Sequence[PrivacyLoss]) -> float:
    """1 - prod (1 - delta) over the black-box steps, rounded up."""
    logs = (loss.log_failure for loss in losses if loss.log_failure)
    return abs(math.expm1(math.fsum(logs))) * (1.0 + 1e-15)


def _name(
    losses: Sequence[PrivacyLoss],
    sampled: Sequence[SampledStep],
    joint: Sequence[BoundedStep],
) -> str:
    if any(loss.exposed for loss in losses):
        return "nothing is protected"
    if not sampled and not joint:
        base = "analytic Gaussian"
    else:
        words = {"fixed": "fixed-size batches", "poisson": "Poisson batches"}
        parts = {words[law.form] for law in sampled} | {_word(step) for step in joint}
        base = "loss distribution, " + " and ".join(sorted(parts))
    if any(loss.selection is not None for loss in losses):
        base = "Renyi bound of private selection"
    if any(loss.updates is not None for loss in losses):
        base += ", or Renyi bound of updates"
    if any(loss.log_failure < 0.0 for loss in losses):
        base += " + black-box deltas"
    if any(loss.ratio > 0.0 or loss.distance > 0.0 for loss in losses):
        base += " + sampler error"
    return base


def _word(step: BoundedStep) -> str:
    """The name of a step's law in the accounting method."""
    if step.share == 1.0:
        return "pure steps" + (" (smoothed)" if _smooth_steps([step]) != (step,) else "")
    return "bounded-range steps" if step.share == 0.0 else "Laplace steps"
