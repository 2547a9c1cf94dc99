"""Find the least noise that is certified for a privacy level.

Every function returns the private side of its root: the certified epsilon of what is returned does
not exceed the epsilon asked for. Scales are in the unit of the released sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Annotated

from dperm_cli.core import checks, progress
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.fields import Choices, FromRun, Help
from dperm_cli.privacy.accounting import accountant, gaussian_profile, saddle_point
from dperm_cli.privacy.accounting.random_stopping import RunNumberLaw, SelectionLoss
from dperm_cli.privacy.accounting.saddle_point import Composition
from dperm_cli.privacy.accounting.sparse_vector import MOST_REACH, UpdatesLoss
from dperm_cli.privacy.events import Event, Laplace, kind

CALIBRATIONS = ("tight", "paper")
Calibration = Annotated[
    str, Choices(*CALIBRATIONS), FromRun(), Help("how the noise scale follows from the budget")
]

# Relative distance of a calibrated scale from the root, at most.
TOLERANCE = 2e-6
_MOST_TRIALS = 200
# Queries up to which, beside five times the updates, plain composition may allow less noise.
_FEW = 20
_BELOW = 1.0 - 1e-9  # just below an open end, so that rounding does not reach it
_LEAST_LOG_REACH = -40.0


def mu(epsilon: float, delta: float) -> float:
    """The mu at which a mu-GDP mechanism is exactly (epsilon, delta)-DP [Balle-Wang 2018, Thm 8].

    ``Unsupported`` at delta = 0: no Gaussian mechanism is pure.
    """
    epsilon, delta = _level(epsilon, delta)
    return gaussian_profile.mu(epsilon, delta)


def selection_mu(runs: RunNumberLaw, epsilon: float, delta: float) -> float:
    """The mu of one run at which a private selection keeps to a budget, rounded down.

    Args:
        runs: the law of the number of runs.
        epsilon, delta: what the whole may spend.

    Raises:
        Unsupported: at delta = 0, and where the choice alone takes the budget.
    """
    most = mu(epsilon, delta)

    def excess(log_mu: float) -> float:
        step = SelectionLoss(math.exp(log_mu), runs)
        return saddle_point.renyi_epsilon(Composition((), 0.0, (step,)), math.log(delta)) - epsilon

    high, low = math.log(most), math.log(most) - 1.0
    while excess(low) > 0.0:
        low -= 1.0
        if low < _LEAST_LOG_REACH:
            raise Unsupported("no run is private enough for this number of runs")
    found = gaussian_profile.root(excess, low, high, 1e-9) if excess(high) > 0.0 else high
    while excess(found) > 0.0:
        found -= TOLERANCE
    return math.exp(found) * (1.0 - 1e-9)


def gaussian_scale(epsilon: float, delta: float, sensitivity: float) -> float:
    """Standard deviation of Gaussian noise for one release of the given L2 sensitivity."""
    sensitivity = checks.positive("sensitivity", sensitivity)
    return sensitivity / mu(epsilon, delta) * (1.0 + 1e-15)


def pure_scale(epsilon: float, sensitivity: float) -> float:
    """Scale of Laplace (L1 sensitivity) or Gamma-norm (L2) noise for one epsilon-DP release.

    sensitivity / epsilon, rounded so that sensitivity / scale <= epsilon in floating point.
    """
    epsilon = checks.positive("epsilon", epsilon)
    scale = checks.positive("sensitivity", sensitivity) / epsilon
    return scale if sensitivity / scale <= epsilon else math.nextafter(scale, math.inf)


def exponent(epsilon: float, oscillation: float) -> float:
    """Exponent c of one epsilon-DP exponential mechanism: epsilon / oscillation, rounded down."""
    epsilon = checks.positive("epsilon", epsilon)
    c = epsilon / checks.positive("oscillation", oscillation)
    return c if c * oscillation <= epsilon else math.nextafter(c, 0.0)


def bst14_stated_scale(n: int, lipschitz: float, epsilon: float, delta: float) -> float:
    """The sigma that [BST14, Alg. 1] states, for T = n^2 steps of one record each.

    sigma^2 = 32 L^2 n^2 ln(n / delta) ln(1 / delta) / epsilon^2, the noise of one step on the sum
    gradient. ``accountant.account`` gives the epsilon that it really certifies.
    """
    n = checks.integer("n", n, low=1)
    lipschitz = checks.positive("lipschitz", lipschitz)
    epsilon, delta = _level(epsilon, delta)
    logs = math.log(n / delta) * math.log(1.0 / delta)
    return math.sqrt(32.0 * logs) * lipschitz * n / epsilon


def scale_for(
    events_at: Callable[[float], Sequence[Event]], *, epsilon: float, delta: float, relation: str
) -> float:
    """The least scale whose events are certified (epsilon, delta)-DP, to ``TOLERANCE``.

    ``events_at(scale)`` is what the mechanism does at a noise scale (one over the exponent, for
    exponential mechanisms); its epsilon falls as the scale rises. For the scale returned,
    ``account(events_at(scale)).epsilon <= epsilon`` as computed. ``Unsupported`` at delta = 0
    unless every event is pure, and where no scale reaches epsilon.
    """
    epsilon = checks.positive("epsilon", epsilon)
    delta = checks.number("delta", delta, low=0.0, high=1.0, high_open=True)
    if delta == 0.0 and kind(events_at(1.0)) == "approx":
        _level(epsilon, delta)

    def excess(log_scale: float) -> float:
        """log of the certified epsilon over the one asked for."""
        progress.report(f"calibration, noise scale {math.exp(log_scale):.4g}", 0.0, 0.0)
        events = events_at(math.exp(log_scale))
        level = accountant.account(events, delta=delta, relation=relation)
        return math.log(level.epsilon / epsilon) if level.epsilon > 0.0 else -_MOST_TRIALS

    low, high, at_low, at_high = _bracket(excess, _guess(events_at, epsilon, delta, relation))
    return math.exp(_refine(excess, low, high, at_low, at_high))


def sparse_reach(updates: int, queries: int, epsilon: float, delta: float, wide: float) -> float:
    """The largest sensitivity / scale at which ``SparseAnswers`` are (epsilon, delta)-DP.

    The threshold is ``wide`` scales. The Renyi bound of the updates decides, or where the queries
    are not many more than these, the composition of as many Laplace releases if it allows more; at
    delta = 0 that alone. Rounded down.
    """
    best = 0.0 if delta == 0.0 else _updates_reach(updates, epsilon, delta, wide)
    if queries <= _FEW + 5 * updates or not 0.0 < best < 0.99 * min(1.0, wide):
        shown = 1.0 / scale_for(
            lambda scale: (Laplace(scale, 0.5, queries),),
            epsilon=epsilon, delta=delta, relation="replace_one",
        )  # fmt: skip
        best = max(best, shown)
    return best * (1.0 - 1e-12)


def _updates_reach(updates: int, epsilon: float, delta: float, wide: float) -> float:
    """The largest reach that the Renyi bound allows, at most ``MOST_REACH``; 0 where none is."""

    def excess(log_reach: float) -> float:
        step = UpdatesLoss(math.exp(log_reach), wide, updates)
        spent = saddle_point.renyi_epsilon(Composition((), 0.0, (step,)), math.log(delta))
        return math.log(max(spent, 1e-300) / epsilon)

    end = math.log(min(MOST_REACH, wide) * _BELOW)
    if excess(end) <= 0.0:
        return math.exp(end)
    # two updates' worth of Gaussian noise is about the leading order
    low = min(end, math.log(gaussian_profile.mu(epsilon, delta) / math.sqrt(4.0 * updates)))
    high = end
    while excess(low) > 0.0:
        low, high = low - 0.7, low
        if low < _LEAST_LOG_REACH:
            return 0.0
    while low + 0.7 < high and excess(low + 0.7) <= 0.0:
        low += 0.7
    high = min(high, low + 0.7)
    found = gaussian_profile.root(excess, low, high, 1e-7)
    while excess(found) > 0.0:
        found -= TOLERANCE
    return math.exp(found)


def _level(epsilon: float, delta: float) -> tuple[float, float]:
    epsilon = checks.positive("epsilon", epsilon)
    delta = checks.number("delta", delta, low=0.0, high=1.0, high_open=True)
    if delta == 0.0:
        raise Unsupported("Gaussian noise gives no pure guarantee: delta must be above 0")
    return epsilon, delta


def _guess(events_at, epsilon: float, delta: float, relation: str) -> float:
    """Log of the scale that the central-limit mu of the events suggests [Bu et al. 2020].

    A step of rate q and distance s adds q^2 (e^{s^2} - 1) to mu^2, a full release s^2, a bounded
    step its variance. At delta = 0 the epsilons of pure steps add up instead.
    """
    unit = [(event, event.ratio(relation)) for event in events_at(1.0)]
    if delta == 0.0:
        return math.log(math.fsum(e.pure_steps * ratio for e, ratio in unit) / epsilon or 1.0)
    target = gaussian_profile.mu(epsilon, delta) ** 2
    low, high = -200.0, 200.0
    for _ in range(60):
        middle = (low + high) / 2.0
        total = sum(event.central_limit(ratio * math.exp(-middle)) for event, ratio in unit)
        low, high = (middle, high) if total > target else (low, middle)
    return high


def _bracket(excess: Callable[[float], float], guess: float):
    """Log scales on the two sides of the root, and the excesses there."""
    step, here, at_here = 0.05, guess, excess(guess)
    for _ in range(_MOST_TRIALS):
        there = here + math.copysign(step, at_here)
        at_there = excess(there)
        if at_here > 0.0 >= at_there:
            return here, there, at_here, at_there
        if at_here <= 0.0 < at_there:
            return there, here, at_there, at_here
        here, at_here, step = there, at_there, min(1.7 * step, 1.0)
    raise Unsupported("no noise scale reaches this epsilon")


def _refine(excess, low: float, high: float, at_low: float, at_high: float) -> float:
    """Shrink [low, high] (excess > 0 at low, <= 0 at high) and return the private end.

    False position; each guess is moved up by a share of the tolerance, so that the private end
    closes in, and a plain halving follows whenever the bracket did not shrink enough.
    """
    while high - low > TOLERANCE:
        before = high - low
        middle = low + before * at_low / (at_low - at_high) + 0.3 * TOLERANCE
        for point in (middle, middle - 0.8 * TOLERANCE):
            if low < point < high:
                low, high, at_low, at_high = _cut(excess, point, low, high, at_low, at_high)
        if high - low > before / 2.0:
            point = (low + high) / 2.0
            low, high, at_low, at_high = _cut(excess, point, low, high, at_low, at_high)
    return high


def _cut(excess, point: float, low: float, high: float, at_low: float, at_high: float):
    value = excess(point)
    if value > 0.0:
        return point, high, value, at_high
    return low, point, at_low, value
