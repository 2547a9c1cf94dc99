"""What events spend, as balls: the counterpart of ``Event.loss``, from the same fields.

Every class of events of the package stands in one table. The formulas are those of the classes
themselves; a test compares the two. An event of another class is known in float64 only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from flint import arb

from dperm_cli.core.dataclass import dataclass
from dperm_cli.privacy.accounting import perturbed_minimisers
from dperm_cli.privacy.accounting.proved_level import NotRigorous
from dperm_cli.privacy.accounting.random_stopping import NegativeBinomial, RunNumberLaw
from dperm_cli.privacy.accounting.rigorous_balls import Ball, find_least, is_zero, make_ball
from dperm_cli.privacy.accounting.rigorous_perturbation import compute_jacobian, find_joint_epsilon
from dperm_cli.privacy.accounting.rigorous_profiles import find_mu_of_pure, take_largest
from dperm_cli.privacy.events import (
    Approx,
    Channel,
    Disclosure,
    DisjointBatches,
    Event,
    Exponential,
    GammaNorm,
    Gaussian,
    GaussianMatrix,
    GaussianMoments,
    Laplace,
    ListChoice,
    NegativeBinomialSelection,
    PerturbedObjective,
    PoissonSelection,
    Pure,
    RegularizedExponential,
    SampledGaussian,
    SamplerError,
    SparseAnswers,
    WishartDifference,
)

PURE, LAPLACE, RANGE = "pure", "laplace", "range"


@dataclass(frozen=True)
class BoundedLaw:
    """The law of ``count`` steps of loss at most ``reach``: ``law`` is pure, laplace or range."""

    law: str
    reach: Ball
    count: int


@dataclass(frozen=True)
class SampledLaw:
    """The law of ``count`` Gaussian releases over random batches, as in ``subsampled_laws``."""

    form: str
    rate: Ball
    shift: Ball
    count: int


@dataclass(frozen=True)
class SelectionLaw:
    """``count`` private selections among runs that are each ``mu``-GDP."""

    mu: Ball
    runs: RunNumberLaw
    count: int


@dataclass(frozen=True)
class BallLoss:
    """What events spend together.

    Attributes
    ----------
    mu2 : squared distance of two unit normals that dominate the Gaussian part.
    bounded, sampled, selections : the laws of the other steps.
    kept : chance that no black-box step shows everything.
    ratio, distance : how far draws are from their laws, as sup |log ratio| and in variation.
    unproved : why the bound is known in float64 only, where delta is above 0; else None.
    """

    mu2: Ball
    bounded: tuple[BoundedLaw, ...] = ()
    sampled: tuple[SampledLaw, ...] = ()
    selections: tuple[SelectionLaw, ...] = ()
    kept: Ball = 1
    ratio: Ball = 0
    distance: Ball = 0
    unproved: str | None = None

    @property
    def pure_sum(self) -> Ball | None:
        """The epsilons of pure steps added up; None where some step has unbounded loss."""
        if not is_zero(self.mu2) or self.sampled or self.selections:
            return None
        return sum((step.count * step.reach for step in self.bounded), arb(0))


def add_losses(losses: Sequence[BallLoss]) -> BallLoss:
    """What several events spend together."""
    total = BallLoss(arb(0), kept=arb(1), ratio=arb(0), distance=arb(0))
    for loss in losses:
        total = BallLoss(
            total.mu2 + loss.mu2,
            total.bounded + loss.bounded,
            total.sampled + loss.sampled,
            total.selections + loss.selections,
            total.kept * loss.kept,
            total.ratio + loss.ratio,
            total.distance + loss.distance,
            total.unproved or loss.unproved,
        )
    return replace(total, bounded=_merge(total.bounded), sampled=_merge(total.sampled))


def list_losses(events: Sequence[Event], relation: str, fold: bool) -> list[BallLoss]:
    """The losses of events one by one.

    Args:
        events: What is done to the records.
        relation: Under which.
        fold: Whether a perturbed objective with Gaussian noise and the Gaussian release that pays
            for its solver become one black box, as in ``perturbed_minimisers.fold_pairs``.

    Returns:
        A loss for each event, or for each such pair.

    Raises:
        NotRigorous: an event is of a class that does not stand in the table.
    """
    found: list[BallLoss] = []
    before: Event | None = None
    for event in events:
        if fold and before is not None and perturbed_minimisers.is_pair(before, event, relation):
            found[-1] = _charge_objective(before, relation, beside=compute_ratio(event, relation))
            before = None
            continue
        found.append(compute_loss(event, relation))
        before = event
    return found


def compute_loss(event: Event, relation: str) -> BallLoss:
    """What an event spends, all its repetitions together.

    Raises:
        NotRigorous: it is of a class that does not stand in the table.
        Unsupported: no proof covers it under the relation.
    """
    formula = _FORMULAS.get(type(event))
    if formula is None:
        name = type(event).__name__
        raise NotRigorous(f"what {name} spends is written in float64 alone")
    event.loss(relation)  # refuses what has no proof under the relation
    return formula(event, relation)


def compute_ratio(event: Any, relation: str) -> Ball:
    """Sensitivity over noise scale of an event with noise."""
    return _find_sensitivity(event, relation) / make_ball(event.scale)


def _find_sensitivity(event: Any, relation: str) -> Ball:
    """How far a neighbour moves what is protected, from the sizes in the event.

    That is the norm of a record, twice it, or the gap: numbers that float64 has exactly. Batches by
    content have a square root of 2.
    """
    by_content = isinstance(event, DisjointBatches) and event.partition == "content"
    if by_content and relation == "replace_one" and event.noise == "gaussian":
        norm, gap = make_ball(event.record_norm), event.gap
        together = 2 * norm if gap is None else make_ball(gap).min(2 * norm)
        return (arb(2).sqrt() * norm).max(together)
    return make_ball(event.sensitivity(relation))


def _charge_gaussian(event: Any, relation: str) -> BallLoss:
    return BallLoss(event.count * compute_ratio(event, relation) ** 2)


def _make_bounded(law: str, reach: Ball, count: int) -> BallLoss:
    kept = () if reach == 0 else (BoundedLaw(law, reach, count),)
    return BallLoss(arb(0), bounded=kept)


def _charge_laplace(event: Any, relation: str) -> BallLoss:
    return _make_bounded(LAPLACE, compute_ratio(event, relation), event.count)


def _charge_batches(event: Any, relation: str) -> BallLoss:
    return (_charge_gaussian if event.noise == "gaussian" else _charge_laplace)(event, relation)


def _charge_sample(event: Any, relation: str) -> BallLoss:
    if event.batch == event.population:
        return _charge_gaussian(event, relation)
    poisson = event.sampling == "poisson"
    size = event.record_norm if poisson else event.sensitivity(relation)
    if not size > 0.0:
        return BallLoss(arb(0))
    rate = make_ball(Fraction(event.batch, event.population))
    shift = make_ball(size) / make_ball(event.scale)
    law = SampledLaw(event.sampling, rate, shift, event.count)
    return BallLoss(arb(0), sampled=(law,))


def _charge_draw(event: Any, relation: str) -> BallLoss:
    """An exponential mechanism, on a set or on a list."""
    flips = isinstance(event, ListChoice) and event.rule != "exponential"
    reach = make_ball(event.exponent) * make_ball(event.sensitivity(relation))
    return _make_bounded(PURE if flips else RANGE, reach, event.count)


def _charge_sparse(event: Any, relation: str) -> BallLoss:
    whole = _charge_laplace(event.full_release(), relation)
    reason = "the Renyi bound of the updates of SparseAnswers is a search in float64"
    return replace(whole, unproved=reason)


def _charge_black_box(event: Any, relation: str) -> BallLoss:
    epsilon, delta = make_ball(event.epsilon), make_ball(event.delta)
    if relation != event.relation:
        epsilon, delta = 2 * epsilon, (1 + epsilon.exp()) * delta
    found = _make_bounded(PURE, epsilon, event.count)
    return replace(found, kept=(1 - delta).nonnegative_part() ** event.count)


def _charge_channel(event: Any, relation: str) -> BallLoss:
    return _make_bounded(PURE, make_ball(event.epsilon), event.messages)


def _charge_sampler_error(event: Any, relation: str) -> BallLoss:
    total = event.count * make_ball(event.amount)
    if event.distance == "inf":
        return BallLoss(arb(0), ratio=total)
    return BallLoss(arb(0), distance=total)


def _charge_objective(event: Any, relation: str, beside: Ball | int = 0) -> BallLoss:
    ratio, jacobian = compute_ratio(event, relation), compute_jacobian(event)
    if event.noise == "gamma_norm":
        return _make_bounded(PURE, jacobian + ratio, event.count)
    level = find_joint_epsilon(event.delta, ratio, arb(beside), relation)
    if level == math.inf:
        raise NotRigorous("no epsilon of the perturbed objective was proved")
    found = _make_bounded(PURE, jacobian + make_ball(level), event.count)
    return replace(found, kept=(1 - make_ball(event.delta)) ** event.count)


def _charge_disclosure(event: Any, relation: str) -> BallLoss:
    return BallLoss(arb(0), kept=arb(0))


def _charge_selection(event: Any, relation: str) -> BallLoss:
    runs = [add_losses([compute_loss(e, relation) for e in run]) for run in event.candidates]
    sums = [run.pure_sum for run in runs]
    pure = [total for total in sums if total is not None]
    if event.kind() == "pure" and len(pure) == len(sums):
        assert isinstance(event.runs, NegativeBinomial)  # the other law was refused before
        return _make_bounded(PURE, (2 + make_ball(event.eta)) * take_largest(pure), event.count)
    square = arb(0)
    for run in runs:
        of_pure = [
            step.count * find_mu_of_pure(step.reach, find_least) ** 2 for step in run.bounded
        ]
        square = square.max(sum(of_pure, run.mu2))
    return BallLoss(arb(0), selections=(SelectionLaw(square.sqrt(), event.runs, event.count),))


def _merge(steps: Sequence[Any]) -> tuple[Any, ...]:
    """Steps with counts, those of the same law as one: balls are the same where all bits are."""
    counts: dict[Any, int] = {}
    first: dict[Any, Any] = {}
    for step in steps:
        words = [
            v.repr() if isinstance(v, arb) else v for k, v in vars(step).items() if k != "count"
        ]
        key = tuple(words)
        counts[key] = counts.get(key, 0) + step.count
        first.setdefault(key, step)
    return tuple(replace(first[key], count=count) for key, count in counts.items())


_FORMULAS: dict[type, Callable[[Any, str], BallLoss]] = {
    Gaussian: _charge_gaussian,
    GaussianMatrix: _charge_gaussian,
    GaussianMoments: _charge_gaussian,
    RegularizedExponential: _charge_gaussian,
    Laplace: _charge_laplace,
    GammaNorm: _charge_laplace,
    WishartDifference: _charge_laplace,
    DisjointBatches: _charge_batches,
    SampledGaussian: _charge_sample,
    Exponential: _charge_draw,
    ListChoice: _charge_draw,
    SparseAnswers: _charge_sparse,
    Pure: _charge_black_box,
    Approx: _charge_black_box,
    Channel: _charge_channel,
    SamplerError: _charge_sampler_error,
    PerturbedObjective: _charge_objective,
    Disclosure: _charge_disclosure,
    NegativeBinomialSelection: _charge_selection,
    PoissonSelection: _charge_selection,
}
