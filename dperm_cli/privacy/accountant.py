"""Certified (epsilon, delta) of a sequence of events.

Gaussian events compose exactly as mu^2 = sum count (sensitivity / scale)^2. A subsampled Gaussian
step has a one-dimensional dominating pair (``_laws``; proofs in docs/proofs), so that a sequence of
events is dominated by a product of such pairs and its delta is an expectation over a sum of
independent losses. Long compositions take it by a contour integral (``_fourier``), short ones
on a grid (``_grid``). Both return upper bounds: every numerical error is either pessimistic by
construction or bounded and added, as their docstrings list. What is certified is therefore
delta_of >= the true delta, and account's epsilon >= the true epsilon, for the events as stated.

Units: ``scale`` and ``record_norm`` in the unit of the released sums; epsilon in nats.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dperm_cli.core import checks
from dperm_cli.core.errors import Unsupported
from dperm_cli.privacy import _fourier, _gdp, _grid, _saddle
from dperm_cli.privacy._laws import Step
from dperm_cli.privacy._saddle import Composition
from dperm_cli.privacy.budget import RELATIONS
from dperm_cli.privacy.events import SAMPLINGS, Event, Gaussian, SampledGaussian

# Terms of the contour integral up to which it is preferred to a grid, and to a coarse grid.
_CHEAP, _DEAR = 3e7, 2e8
# Refinements of the tilt before the answer stands; each is certified, later ones are sharper.
_ROUNDS = 4
# Below this, E e^{lambda (S - epsilon)} is answer enough.
_LOG_TINY = -715.0


@dataclass(frozen=True)
class Accounted:
    """A certified level: (epsilon, delta)-DP under ``relation``, and who computed it."""

    epsilon: float
    delta: float
    relation: str
    accountant: str


def account(events: Sequence[Event], *, delta: float, relation: str) -> Accounted:
    """The smallest certified epsilon at delta (inf where none is, as at delta = 0).

    Raises ``Unsupported`` for events without a known dominating pair under the relation.
    """
    delta = checks.number("delta", delta, low=0.0, high=1.0, high_open=True)
    directions = _directions(events, relation)
    name = _name(directions)
    if all(not c.steps for c in directions):
        epsilon = _gdp.epsilon(delta, math.sqrt(directions[0].mu2))
    elif delta == 0.0:
        epsilon = math.inf
    else:
        epsilon = 0.0
        for composition in directions:
            if not _covered(composition, epsilon, delta):
                epsilon = max(epsilon, _epsilon(composition, delta))
    return Accounted(epsilon, delta, relation, name)


def delta_of(events: Sequence[Event], *, epsilon: float, relation: str) -> float:
    """The smallest certified delta at epsilon >= 0; raises as ``account`` does."""
    epsilon = checks.nonnegative("epsilon", epsilon)
    return max(_delta(composition, epsilon) for composition in _directions(events, relation))


def _covered(composition: Composition, epsilon: float, delta: float) -> bool:
    """Whether a cheap bound already shows (epsilon, delta)."""
    if epsilon >= composition.most:
        return True
    return epsilon > 0.0 and _saddle.renyi(composition, epsilon) < math.log(delta) - 1e-6


def _epsilon(composition: Composition, delta: float) -> float:
    if composition.distance <= delta:
        return 0.0
    log_delta = math.log(delta)
    saddle = _saddle.for_delta(composition, log_delta)
    best = math.inf
    for _ in range(_ROUNDS):
        best = min(best, _solve(_profile(composition, saddle), log_delta, saddle))
        aim = saddle.epsilon
        if best == 0.0 or (abs(best - aim) * saddle.tilt < 4.0 and best > 0.3 * aim):
            break
        saddle = _saddle.for_epsilon(composition, best, log_delta)
    return best


def _solve(profile: Callable[[float], float], log_delta: float, saddle: _saddle.Saddle) -> float:
    """The epsilon >= 0 at which a falling log profile reaches log_delta, on its upper side."""
    step = 1.0 / saddle.tilt
    low = high = max(saddle.epsilon, 0.0)
    while low > 0.0 and profile(low) <= log_delta:
        low, step = max(low - step, 0.0), 2.0 * step
    if low == 0.0 and profile(0.0) <= log_delta:
        return 0.0
    step = 1.0 / saddle.tilt
    while profile(high) > log_delta:
        high, step = high + step, 2.0 * step
    epsilon = _gdp.root(lambda e: profile(e) - log_delta, low, high, 1e-12)
    while profile(epsilon) > log_delta:
        epsilon *= 1.0 + 2e-12
    return epsilon


def _delta(composition: Composition, epsilon: float) -> float:
    if not composition.steps:
        return _gdp.delta(epsilon, math.sqrt(composition.mu2))
    if epsilon >= composition.most:
        return 0.0
    saddle = _saddle.for_epsilon(composition, epsilon)
    chernoff = saddle.log_m - saddle.tilt * epsilon
    if chernoff < _LOG_TINY:
        return math.exp(chernoff)
    log_delta = min(0.0, _profile(composition, saddle)(epsilon))
    if saddle.log_delta - log_delta > 4.0:
        saddle = _saddle.for_epsilon(composition, epsilon, log_delta)
        log_delta = min(log_delta, _profile(composition, saddle)(epsilon))
    return math.exp(log_delta)


def _profile(composition: Composition, saddle: _saddle.Saddle) -> Callable[[float], float]:
    """Upper bound on log delta as a function of epsilon, by the route that suits the saddle."""
    contour = _fourier.contour(composition, saddle, _CHEAP)
    if contour is not None:
        return contour.log_delta
    if not saddle.period < math.inf:
        return saddle.log_bound
    layout = _grid.layout(composition, saddle)
    if not layout.fine:
        contour = _fourier.contour(composition, saddle, _DEAR)
    if contour is not None:
        return contour.log_delta
    return _grid.grid(layout).log_delta if saddle.tilt * layout.h < 1.0 else saddle.log_bound


def _directions(events: Sequence[Event], relation: str) -> list[Composition]:
    """The compositions whose worst delta counts: one, or remove and add."""
    checks.choice("privacy.relation", relation, RELATIONS)
    mu2, sampled = 0.0, []
    for event in events:
        ratio = _ratio(event, relation)
        if isinstance(event, Gaussian):
            mu2 += event.count * ratio**2
        elif _checked(event, relation).rate == 1.0:
            mu2 += event.count * (event.sensitivity(relation) / event.scale) ** 2
        elif ratio > 0.0:
            sampled.append((event, ratio))
    forms = [None] if relation == "replace_one" or not sampled else ["remove", "add"]
    return [Composition(_steps(sampled, form), mu2) for form in forms]


def _steps(sampled: Sequence[tuple[SampledGaussian, float]], form: str | None) -> tuple[Step, ...]:
    """One step law per distinct event, its repetitions counted together."""
    counts: dict[Step, int] = {}
    for event, ratio in sampled:
        step = Step(event.rate, ratio, form or event.sampling)
        counts[step] = counts.get(step, 0) + event.count
    return tuple(replace(step, count=count) for step, count in counts.items())


def _ratio(event: Event, relation: str) -> float:
    """Distance in units of the noise: the sensitivity, or one record's norm under Poisson."""
    checks.positive("scale", event.scale)
    checks.nonnegative("record_norm", event.record_norm)
    checks.integer("count", event.count, low=1)
    if isinstance(event, SampledGaussian) and event.sampling == "poisson":
        return event.record_norm / event.scale
    return event.sensitivity(relation) / event.scale


def _checked(event: SampledGaussian, relation: str) -> SampledGaussian:
    checks.choice("sampling", event.sampling, SAMPLINGS)
    checks.integer("batch", event.batch, low=1, high=event.population)
    if event.sampling == "fixed" and relation == "add_remove":
        raise Unsupported(
            "fixed-size batches have no add_remove guarantee: the batch rate would follow the "
            "private number of records; use sampling=poisson or relation=replace_one"
        )
    return event


def _name(directions: Sequence[Composition]) -> str:
    if all(not c.steps for c in directions):
        return "analytic Gaussian"
    forms = {step.form for c in directions for step in c.steps}
    words = {"fixed": "fixed-size batches", "poisson": "Poisson batches"}
    return "loss distribution, " + " and ".join(
        sorted({words.get(form, "Poisson batches") for form in forms})
    )
