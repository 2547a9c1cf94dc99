"""The least proved epsilon of events, by whichever way gives the smallest one.

The float64 accountant says where to look: it gives the first guess of epsilon, and tilts. What
comes back never rests on it: it is an epsilon at which an inequality between balls was found true.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from flint import acb, arb

from dperm_cli.core.brent import find_minimum
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.privacy.accounting import perturbed_minimisers, saddle_point
from dperm_cli.privacy.accounting.dominating_pairs import DominatingLaws, find_dominating_laws
from dperm_cli.privacy.accounting.proved_level import NotRigorous, ProvedLevel
from dperm_cli.privacy.accounting.random_stopping import NegativeBinomial
from dperm_cli.privacy.accounting.rigorous_balls import (
    CLOSED_BITS,
    CONTOUR_BITS,
    Ball,
    find_least,
    is_zero,
    make_ball,
    read_least,
    round_up,
    work_with,
)
from dperm_cli.privacy.accounting.rigorous_contour import Step, decays_slowly, make_contour
from dperm_cli.privacy.accounting.rigorous_grid import (
    GaussianTails,
    LossTails,
    SampledTails,
    is_short,
    make_grid,
)
from dperm_cli.privacy.accounting.rigorous_losses import (
    LAPLACE,
    PURE,
    RANGE,
    BallLoss,
    SelectionLaw,
    add_losses,
    compute_ratio,
    list_losses,
)
from dperm_cli.privacy.accounting.rigorous_perturbation import NoiseBound, compute_jacobian
from dperm_cli.privacy.accounting.rigorous_profiles import (
    MOST_LISTED,
    DeltaBound,
    EqualPureStepsBound,
    GaussianBound,
    MomentBound,
    PureSumBound,
    SingleSampledBound,
    SingleStepBound,
    WorstBound,
    compute_gaussian_delta,
)
from dperm_cli.privacy.accounting.rigorous_transforms import BoundedTransform, SampledTransform
from dperm_cli.privacy.events import Event, kind

# How close the search comes to the least epsilon of a contour, and of moments.
_SHARE = 2.0**-42
# Steps whose epsilon is larger, or smaller all together, are not composed but added.
_LARGE, _TINY_SUM = 500.0, 1e-9


@dataclass(frozen=True)
class Conversion:
    """What black boxes and samplers add to the delta of the rest, and to epsilon.

    With t = ``ratio`` and v = ``distance`` the whole is (epsilon + 2 t + ``added``)-private at
    e^t (failure + (1 - failure) rest(epsilon) + (1 + e^epsilon) v).
    """

    failure: Ball
    ratio: Ball
    distance: Ball
    added: Ball

    def find_epsilon(self, bound: DeltaBound, delta: Ball, guess: float, share: float) -> Ball:
        """The least epsilon of the whole that is proved; not finite where there is none."""
        growth = self.ratio.exp()

        def enough(epsilon: Ball) -> bool:
            found = self.failure + (1 - self.failure) * bound.delta(epsilon)
            found = found + (1 + epsilon.exp()) * self.distance
            return bool(growth * found <= delta)

        epsilon = find_least(enough, guess, share)
        if epsilon == math.inf:
            return arb.pos_inf()
        return read_least(epsilon) + 2 * self.ratio + self.added


def prove(events: Sequence[Event], delta: float, relation: str, guess: float) -> ProvedLevel:
    """The least proved epsilon of events at delta.

    Args:
        events: What is done to the records.
        delta: Of the guarantee.
        relation: Between neighbours.
        guess: The epsilon that float64 has.

    Raises:
        NotRigorous: some event has no bound in ball arithmetic.
    """
    if guess == math.inf:
        return ProvedLevel(math.inf, "sum")
    found: list[tuple[float, str]] = []
    refusal: NotRigorous | None = None
    for way in (_prove_together, _prove_pairs, _prove_alone):
        try:
            found += way(events, delta, relation, guess)
        except NotRigorous as error:
            refusal = error
    found = [level for level in found if level[0] < math.inf]
    if not found:
        raise refusal or NotRigorous("no inequality between balls was found true")
    return ProvedLevel(*min(found))


def _prove_together(
    events: Sequence[Event], delta: float, relation: str, guess: float
) -> Iterator[tuple[float, str]]:
    """One perturbed objective and Gaussian releases, by their joint bound."""
    together = perturbed_minimisers.find_joint_bound(events, relation)
    if together is None or delta == 0.0:
        return
    with work_with(CLOSED_BITS):
        rest = [event for event in events if event is not together.first]
        whole = add_losses(list_losses(rest, relation, fold=False))
        first = together.first
        ratio, jacobian = compute_ratio(first, relation), compute_jacobian(first)
        bound = NoiseBound(ratio, whole.mu2.sqrt(), relation, jacobian)
        conversion = Conversion(1 - whole.kept, whole.ratio, whole.distance, arb(0))
        found = conversion.find_epsilon(bound, read_least(delta), guess, 0.0)
        yield round_up(found), bound.method


def _prove_pairs(
    events: Sequence[Event], delta: float, relation: str, guess: float
) -> Iterator[tuple[float, str]]:
    """Every perturbed objective and the noise that pays for its solver as one black box."""
    folded = perturbed_minimisers.fold_pairs(events, relation)
    if list(folded) != list(events):
        yield from _prove_one_by_one(events, folded, delta, relation, guess)


def _prove_alone(
    events: Sequence[Event], delta: float, relation: str, guess: float
) -> Iterator[tuple[float, str]]:
    """Every event by itself."""
    yield from _prove_one_by_one(events, events, delta, relation, guess)


def _prove_one_by_one(
    events: Sequence[Event],
    folded: Sequence[Event],
    delta: float,
    relation: str,
    guess: float,
) -> Iterator[tuple[float, str]]:
    """The levels of events that are composed one by one, those of ``folded`` in float64."""
    with work_with(CLOSED_BITS):
        whole = add_losses(list_losses(events, relation, fold=folded is not events))
        total = whole.pure_sum
        if kind(events) == "local":
            yield round_up(total + 2 * whole.ratio), "sum"
            return
        if whole.unproved is not None and delta > 0.0:
            raise NotRigorous(whole.unproved)
        aim, failure = read_least(delta), 1 - whole.kept
        if total is not None:
            conversion = Conversion(failure, whole.ratio, whole.distance, arb(0))
            if delta == 0.0 and failure == 0 and whole.distance == 0:
                yield round_up(total + 2 * whole.ratio), "sum"
                return
            start = round_up(total)
            found = conversion.find_epsilon(PureSumBound(total), aim, start, 0.0)
            yield round_up(found), "sum"
        if delta == 0.0:
            return
        whole, added = _set_aside(whole)
        conversion = Conversion(failure, whole.ratio, whole.distance, added)
        laws = find_dominating_laws(folded, relation)
        start = max(guess - 2.0 * laws.ratio - float(added.mid()), 0.0)
        closed = _find_closed_form(whole, relation)
        if closed is not None:
            found = conversion.find_epsilon(closed, aim, start, 0.0)
            yield round_up(found), closed.method
        else:
            for make in (_make_inversions, _make_moments):
                yield from _solve(make, whole, laws, conversion, delta, start, relation)


def _solve(
    make: Callable[..., DeltaBound | None],
    whole: BallLoss,
    laws: DominatingLaws,
    conversion: Conversion,
    delta: float,
    start: float,
    relation: str,
) -> Iterator[tuple[float, str]]:
    """The level that a bound gives which is made for one delta."""
    left = float(((read_least(delta) / conversion.ratio.exp()) - conversion.failure).mid())
    left -= (1.0 + math.exp(min(start, 700.0))) * float(conversion.distance.mid())
    if not left > 0.0:
        return
    with work_with(CONTOUR_BITS):
        bound = make(whole, laws, math.log(left), relation)
        if bound is not None:
            found = conversion.find_epsilon(bound, read_least(delta), start, _SHARE)
            yield round_up(found), bound.method


def _set_aside(whole: BallLoss) -> tuple[BallLoss, Ball]:
    """Take out steps that are too large or too small to compose, and add up their epsilons."""
    kept, added = [], arb(0)
    for step in whole.bounded:
        if step.reach > _LARGE or step.count * step.reach < _TINY_SUM:
            added = added + step.count * step.reach
        else:
            kept.append(step)
    return replace(whole, bounded=tuple(kept)), added


def _find_closed_form(whole: BallLoss, relation: str) -> DeltaBound | None:
    """The profile in closed form, where there is one."""
    if whole.selections:
        return None
    if not whole.bounded and not whole.sampled:
        return GaussianBound(whole.mu2.sqrt())
    if not is_zero(whole.mu2) or len(whole.bounded) + len(whole.sampled) > 1:
        return None
    for law in whole.sampled:
        if law.count > 1:
            return None
        bounds = [SingleSampledBound(form, law.rate, law.shift) for form in _forms(law, relation)]
        return WorstBound(tuple(bounds))
    [step] = whole.bounded
    if step.count == 1:
        share = {PURE: arb(1), RANGE: arb(0)}
        share[LAPLACE] = (1 + (-step.reach).exp()) / 2
        return SingleStepBound(step.reach, share[step.law])
    if step.law == PURE and step.count <= MOST_LISTED:
        return EqualPureStepsBound(step.reach, step.count)
    return None


def _forms(law: Any, relation: str) -> tuple[str, ...]:
    return (law.form,) if relation == "replace_one" else ("remove", "add")


def _make_inversions(
    whole: BallLoss, laws: DominatingLaws, log_delta: float, relation: str
) -> DeltaBound | None:
    """The grid or the contour of every direction; None where a step has no transform."""
    if whole.selections:
        return None
    bounds: list[DeltaBound] = []
    short = not whole.bounded and is_short([law.count for law in whole.sampled])
    for direction, composition in enumerate(laws.directions):
        saddle = saddle_point.find_saddle_at_delta(composition, log_delta)
        steps = _make_steps(whole, relation, direction)
        if short and decays_slowly(steps, whole.mu2, saddle):
            bounds.append(make_grid(_list_tails(whole, relation, direction), saddle))
        else:
            bounds.append(make_contour(steps, whole.mu2, saddle))
    return WorstBound(tuple(bounds))


def _make_moments(
    whole: BallLoss, laws: DominatingLaws, log_delta: float, relation: str
) -> DeltaBound | None:
    """Renyi's bound with every bounded-range step as a Gaussian, and of private selections."""
    if not laws.concentrated:
        return None
    ranges = [step for step in whole.bounded if step.law == RANGE]
    others = replace(whole, bounded=tuple(s for s in whole.bounded if s.law != RANGE))
    mu2 = sum((step.count * step.reach**2 / 4 for step in ranges), whole.mu2)
    bounds = []
    for direction, composition in enumerate(laws.concentrated):
        steps = _make_steps(others, relation, direction)

        def log_m(tilt: Ball, steps: Sequence[Step] = steps) -> Ball:
            found = mu2 / 2 * tilt * (1 + tilt)
            for step in steps:
                found = found + step.count * step.transform.compute(acb(tilt)).real.log()
            return sum((_log_m_of(law, tilt) for law in whole.selections), found)

        tilt = _find_tilt(composition, log_delta)
        bounds.append(MomentBound(make_ball(tilt), log_m(make_ball(tilt))))
    return WorstBound(tuple(bounds))


def _find_tilt(composition: saddle_point.Composition, log_delta: float) -> float:
    """The tilt that is best in float64."""

    def epsilon(log_tilt: float) -> float:
        tilt = math.exp(log_tilt)
        saddle = saddle_point.Saddle(tilt, composition.log_m(tilt), 0.0, 0.0, 0.0)
        return min((saddle.log_bound(0.0) - log_delta) / tilt, 1e9)

    middle = math.log(saddle_point.find_saddle_at_delta(composition, log_delta).tilt)
    limits = (middle - 0.7, min(middle + 0.7, math.log(composition.largest_tilt)))
    try:
        found = find_minimum(epsilon, *limits, xtol=1e-6)
    except Unsupported:
        return math.exp(middle)
    return math.exp(found.x if found.value <= epsilon(middle) else middle)


def _make_steps(whole: BallLoss, relation: str, direction: int) -> list[Step]:
    """The transforms of all steps but the Gaussian, in one direction."""
    steps = [Step(BoundedTransform(law), law.count) for law in whole.bounded]
    for law in whole.sampled:
        one_way = replace(law, form=_forms(law, relation)[direction])
        steps.append(Step(SampledTransform(one_way), law.count))
    return steps


def _list_tails(whole: BallLoss, relation: str, direction: int) -> list[tuple[LossTails, int]]:
    """The tails of all steps in one direction, where they are Gaussian or over random batches."""
    found: list[tuple[LossTails, int]] = [
        (SampledTails(replace(law, form=_forms(law, relation)[direction])), law.count)
        for law in whole.sampled
    ]
    if not is_zero(whole.mu2):
        found.append((GaussianTails(whole.mu2.sqrt()), 1))
    return found


def _log_m_of(law: SelectionLaw, tilt: Ball) -> Ball:
    """A bound on log E e^(tilt loss) of private selections [PS22, Thms 2, 6]."""
    if law.mu == 0:
        return arb(0)
    one = law.mu**2 / 2 * tilt * (1 + tilt)
    if not isinstance(law.runs, NegativeBinomial):
        mean = make_ball(law.runs.expected_runs)
        level = (1 / tilt).log1p()
        added = tilt * mean * compute_gaussian_delta(level, law.mu) + mean.log()
        return law.count * (one + added)
    eta, gamma = make_ball(law.runs.eta), make_ball(law.runs.gamma)
    log = -gamma.log()
    other = make_ball(max(1.0, float(((2 * log).sqrt() / law.mu).mid())))
    total = log if eta == 0 else -(-eta * log).expm1() / eta
    runs = (1 - gamma) / (gamma * total)
    added = (1 + eta) * tilt * ((other - 1) * law.mu**2 / 2 + log / other) + runs.log()
    return law.count * (one + added)
