"""Certified (epsilon, delta) of a sequence of events.

Gaussian events compose exactly as mu^2 = sum count (sensitivity / scale)^2. Every other step has a
one-dimensional dominating pair (``subsampled_laws``, ``bounded_laws``; proofs in docs/proofs), so
that a sequence of events is dominated by a product of such pairs and its delta is an expectation
over a sum of independent losses. Long compositions take it by a contour integral
(``fourier_inversion``), short ones on a grid (``loss_grid``). Both return upper bounds: every
numerical error is either pessimistic by construction or bounded and added, as their docstrings
list. What is certified is therefore delta_of >= the true delta, and account's epsilon >= the true
epsilon, for the events as stated.

At delta = 0 the epsilons of pure steps add up. Black-box (epsilon, delta) steps and approximate
samplers are added to the rest by inequalities, which ``Accounted.accountant`` says.

Units: ``scale`` and ``record_norm`` in the unit of the released sums; epsilon in nats.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from dperm_cli.core import checks
from dperm_cli.core.dataclass import dataclass
from dperm_cli.privacy.accounting import (
    fourier_inversion,
    gaussian_profile,
    loss_grid,
    perturbed_minimisers,
    saddle_point,
)
from dperm_cli.privacy.accounting.bounded_laws import BoundedStep
from dperm_cli.privacy.accounting.dominating_pairs import DominatingLaws, find_dominating_laws
from dperm_cli.privacy.accounting.saddle_point import Composition
from dperm_cli.privacy.events import Event, kind

# Terms of the contour integral up to which it is preferred to a grid, and to a coarse grid.
_CHEAP, _DEAR = 3e7, 2e8
# Refinements of the tilt before the answer stands; each is certified, later ones are sharper.
_ROUNDS = 4
# Logarithm of E e^{lambda (S - epsilon)} below which this bound is the answer.
_LOG_TINY = -715.0
# Fixed-point steps for a delta that itself depends on epsilon.
_MOST_STEPS = 60
_FIXED_POINT_MARGIN = 1e-9
# Relative rounding of closed forms, moved to the safe side.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Accounted:
    """A certified level: (epsilon, delta)-DP under ``relation``, and who computed it."""

    epsilon: float
    delta: float
    relation: str
    accountant: str


def account(events: Sequence[Event], *, delta: float, relation: str) -> Accounted:
    """The smallest certified epsilon at delta (inf where none is).

    At delta = 0 that is the sum of the pure steps' epsilons, inf beside any other step.
    Raises ``Unsupported`` for events without a known dominating pair under the relation, and for
    channels beside other events.
    """
    delta = checks.number("delta", delta, low=0.0, high=1.0, high_open=True)
    found = [
        _account(way, delta, relation) for way in perturbed_minimisers.groupings(events, relation)
    ]
    together = perturbed_minimisers.find_joint_bound(events, relation)
    if together is not None:
        level = Accounted(together.epsilon(delta), delta, relation, perturbed_minimisers.NAME)
        found.insert(0, level)
    return min(found, key=lambda level: level.epsilon)


def _account(events: Sequence[Event], delta: float, relation: str) -> Accounted:
    """The level of events that are composed one by one."""
    whole = find_dominating_laws(events, relation)
    if kind(events) == "local":
        return Accounted(whole.pure + whole.added, delta, relation, whole.name)
    left = delta * math.exp(-whole.ratio)
    core = (
        _epsilon_with_distance(whole, left) if whole.distance > 0.0 else _joint_epsilon(whole, left)
    )
    return Accounted(core + 2.0 * whole.ratio + whole.added, delta, relation, whole.name)


def delta_of(events: Sequence[Event], *, epsilon: float, relation: str) -> float:
    """The smallest certified delta at epsilon >= 0 (at most 1); raises as ``account`` does."""
    epsilon = checks.nonnegative("epsilon", epsilon)
    found = [
        _delta_of(way, epsilon, relation)
        for way in perturbed_minimisers.groupings(events, relation)
    ]
    together = perturbed_minimisers.find_joint_bound(events, relation)
    return min(found if together is None else [together.delta(epsilon), *found])


def _delta_of(events: Sequence[Event], epsilon: float, relation: str) -> float:
    """The delta of events that are composed one by one."""
    whole = find_dominating_laws(events, relation)
    if kind(events) == "local":
        return 0.0 if epsilon >= whole.pure + whole.added else 1.0
    core = epsilon - 2.0 * whole.ratio - whole.added
    if core < 0.0:
        return 1.0
    if whole.distance == 0.0:
        return min(1.0, math.exp(whole.ratio) * _joint_delta(whole, core))
    # (e, d)-DP is (e', d)-DP for every e' above e: the best point at or below epsilon
    points = [core * k / 16.0 for k in range(17)]
    best = min(
        _joint_delta(whole, point) + (1.0 + math.exp(min(point, 700.0))) * whole.distance
        for point in points
    )
    return min(1.0, math.exp(whole.ratio) * best)


def _epsilon_with_distance(whole: DominatingLaws, delta: float) -> float:
    """The smallest epsilon with delta_core(epsilon) + (1 + e^epsilon) tv <= delta, or inf.

    That is the least fixed point of an increasing map. The iteration approaches it from below
    and returns a slightly larger epsilon, at which the inequality was checked.
    """

    def next_epsilon(epsilon: float) -> float:
        left = delta - (1.0 + math.exp(min(epsilon, 700.0))) * whole.distance
        return _joint_epsilon(whole, left) if left >= 0.0 else math.inf

    epsilon = 0.0
    for _ in range(_MOST_STEPS):
        epsilon = next_epsilon(epsilon)
        if epsilon == math.inf:
            return epsilon
        candidate = epsilon * (1.0 + _FIXED_POINT_MARGIN)
        if next_epsilon(candidate) <= candidate:
            return candidate
    return math.inf


def _joint_epsilon(whole: DominatingLaws, delta: float) -> float:
    """The epsilon of exact samplers, black-box failures taken off delta."""
    left = (delta - whole.failure) / (1.0 - whole.failure) if whole.failure < 1.0 else -1.0
    if left < 0.0:
        return math.inf
    if left == 0.0 or whole.pure == 0.0:
        return whole.pure
    if whole.moments_only:
        found = (saddle_point.renyi_epsilon(c, math.log(left)) for c in whole.concentrated)
        return max(found) * (1.0 + _ROUNDING)
    if all(not c.steps for c in whole.directions):
        return gaussian_profile.epsilon(left, math.sqrt(whole.directions[0].mu2))
    epsilon = 0.0
    for direction, composition in enumerate(whole.directions):
        if _is_covered(composition, epsilon, left):
            continue
        level = min(_epsilon(composition, left), whole.pure)
        if whole.concentrated:
            other = saddle_point.renyi_epsilon(whole.concentrated[direction], math.log(left))
            level = min(level, other * (1.0 + _ROUNDING))
        epsilon = max(epsilon, level)
    return epsilon


def _joint_delta(whole: DominatingLaws, epsilon: float) -> float:
    if epsilon >= whole.pure:
        return whole.failure
    if whole.moments_only:
        log_rest = max(saddle_point.renyi_log_delta(c, epsilon) for c in whole.concentrated)
        rest = math.exp(min(log_rest, 0.0)) * (1.0 + _ROUNDING)
        return whole.failure + (1.0 - whole.failure) * min(rest, 1.0)
    rest = 0.0
    for direction, composition in enumerate(whole.directions):
        delta = _delta(composition, epsilon)
        if whole.concentrated:
            log_other = saddle_point.renyi_log_delta(whole.concentrated[direction], epsilon)
            delta = min(delta, math.exp(min(log_other, 0.0)) * (1.0 + _ROUNDING))
        rest = max(rest, delta)
    return whole.failure + (1.0 - whole.failure) * rest


def _is_covered(composition: Composition, epsilon: float, delta: float) -> bool:
    """Whether a cheap bound already shows (epsilon, delta)."""
    if epsilon >= composition.most:
        return True
    return (
        epsilon > 0.0
        and saddle_point.renyi_log_delta(composition, epsilon) < math.log(delta) - 1e-6
    )


def _epsilon(composition: Composition, delta: float) -> float:
    if composition.distance <= delta:
        return 0.0
    single = _single(composition)
    if single is not None:
        if single.delta(0.0) <= delta:
            return 0.0
        level = gaussian_profile.root(lambda e: single.delta(e) - delta, 0.0, single.reach)
        return min(level * (1.0 + _ROUNDING), single.reach)
    log_delta = math.log(delta)
    saddle = saddle_point.find_saddle_at_delta(composition, log_delta)
    best = math.inf
    for _ in range(_ROUNDS):
        best = min(best, solve_epsilon(_profile(composition, saddle), log_delta, saddle))
        aim = saddle.epsilon
        if best == 0.0 or (abs(best - aim) * saddle.tilt < 4.0 and best > 0.3 * aim):
            break
        saddle = saddle_point.find_saddle_at_epsilon(composition, best, log_delta)
    return best


def _single(composition: Composition) -> BoundedStep | None:
    """The one bounded step that this is, if so: its profile is known in closed form."""
    if len(composition.steps) != 1 or composition.mu2 > 0.0:
        return None
    step = composition.steps[0]
    return step if isinstance(step, BoundedStep) and step.count == 1 else None


def solve_epsilon(
    profile: Callable[[float], float], log_delta: float, saddle: saddle_point.Saddle
) -> float:
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
    epsilon = gaussian_profile.root(lambda e: profile(e) - log_delta, low, high, 1e-12)
    while profile(epsilon) > log_delta:
        epsilon *= 1.0 + 2e-12
    return epsilon


def _delta(composition: Composition, epsilon: float) -> float:
    if not composition.steps:
        return gaussian_profile.delta(epsilon, math.sqrt(composition.mu2))
    if epsilon >= composition.most:
        return 0.0
    single = _single(composition)
    if single is not None:
        return single.delta(epsilon * (1.0 - _ROUNDING)) * (1.0 + _ROUNDING)
    saddle = saddle_point.find_saddle_at_epsilon(composition, epsilon)
    chernoff = saddle.log_m - saddle.tilt * epsilon
    if chernoff < _LOG_TINY:
        return math.exp(chernoff)
    log_delta = min(0.0, _profile(composition, saddle)(epsilon))
    if saddle.log_delta - log_delta > 4.0:
        saddle = saddle_point.find_saddle_at_epsilon(composition, epsilon, log_delta)
        log_delta = min(log_delta, _profile(composition, saddle)(epsilon))
    return math.exp(log_delta)


def _profile(composition: Composition, saddle: saddle_point.Saddle) -> Callable[[float], float]:
    """Upper bound on log delta as a function of epsilon, by the route that suits the saddle."""
    contour = fourier_inversion.contour(composition, saddle, _CHEAP)
    if contour is not None:
        return contour.log_delta
    if not saddle.period < math.inf:
        return saddle.log_bound
    layout = loss_grid.layout(composition, saddle)
    if not layout.fine:
        contour = fourier_inversion.contour(composition, saddle, _DEAR)
    if contour is not None:
        return contour.log_delta
    return loss_grid.grid(layout).log_delta if saddle.tilt * layout.h < 1.0 else saddle.log_bound
