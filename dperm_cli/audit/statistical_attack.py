"""Statistical audit: a lower bound on the epsilon of a mechanism, from its outputs alone.

A mechanism is run many times on two neighbouring data sets. The attacker says "second data set"
where the adversary's statistic is beyond a threshold. The threshold is chosen on one half of the
runs. Its false and true positive rates are bounded on the other half [Clopper-Pearson 1934], each
with error probability ``error_rates.ERROR`` / 2.

No attacker on an (epsilon, delta)-DP mechanism reaches rates beyond what epsilon and delta allow.
So the rates give a lower bound on epsilon. A bound above the claim is a violation.

Where the law of the outputs is known except for the amount of noise, the bound is sharper
(``error_rates``): it is the epsilon of the noise that explains the rates. If it is above the claim,
the mechanism does not do what the events of its plan say.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.special import ndtr

from dperm_cli.audit.error_rates import (
    ERROR,
    AnyOutputs,
    Argument,
    GaussianOutputs,
    Rates,
    lower,
    make_argument,
    scale_noise,
    upper,
)
from dperm_cli.core import progress
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.kernels.shared.kernel_problem import KernelProblem
from dperm_cli.mechanisms.adversary import Adversary
from dperm_cli.mechanisms.base import Plan
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Event
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.problem import Problem
from dperm_cli.views.choose import open_view

# The control halves the noise. From these values of epsilon on, the attack must notice it.
CONTROL, QUICK_CONTROL = 0.5, 1.0
FLOOR = (1.0, 30.0)  # range of epsilon where a least tightness is required; else too few runs
RUNS = {  # releases on each of the two data sets, by kind of adversary
    "gaussian": 300_000, "profile": 60_000, "threshold": 100_000, "interval": 40_000,
    "sign": 1_000_000,
}  # fmt: skip
QUICK = 4  # --quick divides the number of runs by this
CHUNK = 10_000  # releases that are computed at once
_THRESHOLDS = 400  # thresholds that are tried


@dataclass(frozen=True)
class Finding:
    """What the attack found.

    Attributes:
        claim, delta: epsilon (in nats) and delta that the plan claims.
        bound: a lower bound on epsilon; wrong with probability ``ERROR`` at most.
        control: the same bound for the mechanism with half its noise.
        floor: the least tightness that is required, or None.
        control_from: the least claim at which the control must exceed the claim.
        runs: releases on each of the two data sets; 0 where nothing was attacked.
    """

    claim: float
    delta: float
    bound: float
    control: float
    floor: float | None
    control_from: float = CONTROL
    runs: int = 0

    @property
    def tightness(self) -> float:
        """The bound over the claim: 1 where the attack finds all that is claimed."""
        return self.bound / self.claim

    @property
    def is_control_caught(self) -> bool:
        """Whether the attack noticed that the control had half the noise."""
        return self.control > self.claim

    @property
    def is_control_required(self) -> bool:
        """Whether the claim is large enough for these runs to notice half the noise."""
        return self.claim >= 0.999 * self.control_from

    @property
    def faults(self) -> tuple[str, ...]:
        """What is wrong, as sentences. The comparisons are written so that nan is a fault."""
        if not self.bound <= self.claim * (1.0 + 1e-9):
            return (f"epsilon is at least {self.bound:.4g}, above the claim {self.claim:.4g}",)
        return ()

    @property
    def weaknesses(self) -> tuple[str, ...]:
        """Why the attack says little, as sentences."""
        found = []
        if self.is_control_required and not self.is_control_caught:
            found.append("half the noise was not noticed")
        if self.floor is not None and not self.tightness >= self.floor:
            found.append(f"tightness {self.tightness:.3g} is under the floor {self.floor:g}")
        return tuple(found)


class ManyTrialsGate(Gate):
    """A gate for very many trials. Their keys are consecutive words of one seed sequence.

    A seed sequence for each of 10^5 trials would take longer than their releases.
    """

    def __init__(
        self,
        seed: np.random.SeedSequence,
        trials: int,
        plan: tuple[Sequence[Event], str] | None = None,
    ) -> None:
        super().__init__([seed], plan=plan)
        self.trials = trials

    def keys(self) -> np.ndarray:
        number, self._streams = self._streams, self._streams + 1
        leaf = self._seeds[0]
        return _child(leaf, number).generate_state(2 * self.trials, np.uint64).reshape(-1, 2)

    def _make_run(self, keys: np.ndarray, run: int, events: Sequence[Event]) -> Gate:
        """One gate of this kind for all the trials, whatever else runs; its seed is of the first's
        key, which no other run has."""
        allowed = (tuple(events), self.relation)
        leaf = np.random.SeedSequence([int(word) for word in keys[0]], spawn_key=(run,))
        return ManyTrialsGate(leaf, len(keys), allowed)


def attack(adversary: Adversary, budget: Budget, *, seed: int = 0, quick: bool = False) -> Finding:
    """Attack a mechanism, and as a control the same mechanism with half the noise.

    The control's gate does not check its noise against a plan: it would refuse it.

    Args:
        adversary: the pair of neighbouring data sets, with the mechanism and the statistic.
        budget: what the mechanism may spend.
        seed: the root of all random numbers.
        quick: use fewer runs and require no tightness.

    Returns:
        The bounds of both attacks with the claim.
    """
    plan = adversary.mechanism.plan(adversary.first.spec(), budget)
    claim = plan.guarantee.epsilon
    how = make_argument(adversary.kind, plan.events, claim, budget.delta, budget.relation)
    runs = RUNS[adversary.kind] // (QUICK if quick else 1)
    name = (type(adversary.mechanism).__name__, budget.relation, budget.epsilon)
    leaf = seed_sequence(seed, "audit", "as planned", *name)
    bound = lower_bound(adversary, plan, how, runs, leaf)
    leaf = seed_sequence(seed, "audit", "half noise", *name)
    control = lower_bound(adversary, halve_noise(plan), how, runs // 2, leaf, checked=False)
    # nothing is asked for where so many runs, half of them for the control, cannot show the claim
    shown = claim < find_reach(how, runs // 2)
    asked = shown and not quick and FLOOR[0] <= budget.epsilon <= FLOOR[1]
    floor = adversary.floor if asked else None
    least = QUICK_CONTROL if quick else CONTROL
    if not adversary.must_catch or (adversary.kind == "sign" and adversary.floor is None):
        # the adversary that mechanisms have by default need not notice half the noise, and the
        # runs are too few to count a sign that nearly never turns
        shown = False
    least = least if shown else math.inf
    return Finding(claim, budget.delta, bound, control, floor, least, runs)


def find_reach(how: Argument, runs: int) -> float:
    """The epsilon that runs show where half of one side's are beyond the threshold, and none else.

    Args:
        how: how rates are turned into an epsilon; one that knows the law reaches any (inf).
        runs: the number of releases on each data set.
    """
    if not isinstance(how, AnyOutputs):
        return math.inf
    judged = runs if how.attack is not None else runs - runs // 2
    return how.epsilon(Rates(float(upper(0, judged)), float(lower(judged // 2, judged))))


def halve_noise(plan: Plan) -> Plan:
    """The plan with every noise scale halved and its claim unchanged."""
    events = tuple(scale_noise(event, 0.5) for event in plan.events)
    return replace(plan, events=events, noise_scale=plan.noise_scale / 2.0)


def lower_bound(
    adversary: Adversary,
    plan: Plan,
    how: Argument,
    runs: int,
    leaf: np.random.SeedSequence,
    checked: bool = True,
) -> float:
    """A lower bound on epsilon from many releases on both data sets.

    Args:
        adversary: the pair of data sets and the statistic.
        plan: the plan that every release follows.
        how: how rates are turned into an epsilon (``error_rates``).
        runs: the number of releases on each data set.
        leaf: the seed sequence of these runs.
        checked: whether the gate checks the noise against the plan.

    Returns:
        The bound in nats; inf where an output is not finite.
    """
    sides = (adversary.first, adversary.second)
    scores = [
        _scores(adversary, problem, plan, runs, _child(leaf, side), checked)
        for side, problem in enumerate(sides)
    ]
    if not all(np.all(np.isfinite(score)) for score in scores):
        return math.inf
    if how.attack is not None:
        return how.epsilon(rates_of(scores[0], scores[1], *how.attack))
    half = runs // 2
    chosen = choose(scores[0][:half], scores[1][:half], how)
    return how.epsilon(rates_of(scores[0][half:], scores[1][half:], *chosen))


def _scores(
    adversary: Adversary,
    problem: Problem | KernelProblem,
    plan: Plan,
    runs: int,
    leaf: np.random.SeedSequence,
    checked: bool,
) -> np.ndarray:
    """The statistic of ``runs`` independent releases on one data set."""
    allowed = (plan.events, plan.guarantee.relation) if checked else None
    parts = []
    for start in range(0, runs, CHUNK):
        count = min(CHUNK, runs - start)
        view = open_view(adversary.mechanism, problem)  # a local view serves one release
        gate = ManyTrialsGate(_child(leaf, start), count, allowed)
        theta = np.asarray(adversary.mechanism.release(view, plan, gate).theta)
        if len(theta) != count:
            raise ValueError(f"{len(theta)} releases where {count} were asked for")
        parts.append(np.asarray(adversary.statistic(theta), dtype=float))
        progress.report("audit", start + count, runs)
    return np.concatenate(parts)


def _child(leaf: np.random.SeedSequence, number: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(leaf.entropy, spawn_key=(*leaf.spawn_key, number))


def choose(first: np.ndarray, second: np.ndarray, how: Argument) -> tuple[float, bool, bool]:
    """The threshold test that gives the largest bound on these runs.

    Args:
        first, second: the statistic of the releases on either data set, [runs].
        how: how rates are turned into an epsilon.

    Returns:
        (threshold, swap, below). ``swap`` takes ``first`` for the positive side; ``below`` calls
        scores up to the threshold positive, instead of those above it.
    """
    pooled, runs = np.concatenate([first, second]), len(first)
    levels = np.unique(np.quantile(pooled, np.linspace(0.0, 1.0, _THRESHOLDS)))
    above = [
        runs - np.searchsorted(np.sort(side), levels, side="right") for side in (first, second)
    ]
    best, chosen = -math.inf, (float(levels[0]), False, False)
    for swap, below in itertools.product((False, True), repeat=2):
        false, true = above[::-1] if swap else above
        if below:
            false, true = runs - false, runs - true
        value = how.promise(upper(false, runs), lower(true, runs))
        at = int(np.argmax(value))
        if value[at] > best:
            best, chosen = float(value[at]), (float(levels[at]), swap, below)
    return chosen


def rates_of(
    first: np.ndarray,
    second: np.ndarray,
    threshold: float,
    swap: bool,
    below: bool,
    error: float = ERROR,
) -> Rates:
    """Confidence bounds on the error rates of a threshold that was chosen on other runs."""
    negative, positive = (second, first) if swap else (first, second)
    false, true = (
        int(np.count_nonzero(scores <= threshold if below else scores > threshold))
        for scores in (negative, positive)
    )
    most, least = upper(false, len(negative), error), lower(true, len(positive), error)
    return Rates(float(most), float(least))


def ideal_tightness(epsilon: float, delta: float, runs: int) -> float:
    """About the tightness that the attack reaches on a Gaussian mechanism with these runs."""
    mu, half = calibrate.mu(epsilon, delta), runs // 2
    rate = float(ndtr(-mu / 2.0))
    rates = Rates(float(upper(half * rate, half)), float(lower(half * (1.0 - rate), half)))
    return GaussianOutputs(delta).epsilon(rates) / epsilon
