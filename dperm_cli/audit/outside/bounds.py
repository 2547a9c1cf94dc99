"""From outputs on a pair to a lower bound on epsilon, and what so many runs can show at all."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dperm_cli.audit.error_rates import ERROR, AnyOutputs, lower, upper
from dperm_cli.audit.outside.neighbours import Pair
from dperm_cli.audit.outside.outputs import Output, Sample
from dperm_cli.audit.outside.statistics import SIDE_CHANNELS, Statistic, fit_statistics
from dperm_cli.audit.statistical_attack import choose, rates_of
from dperm_cli.core.dataclass import dataclass

VIOLATED, NOT_A_FUNCTION, NOT_SHOWN = "violated", "not a function of its claim", "not shown"


@dataclass(frozen=True)
class Attack:
    """A test of which table an output comes from, chosen on runs of its own.

    Attributes:
        pair: The tables.
        statistic: What is compared with the threshold.
        threshold, swap, below: As ``statistical_attack.choose`` returns them.
        promise: The bound on epsilon on the runs that it was chosen on.
        width: How many numbers an output has.
        has_gaps: Whether some runs left no result of the usual form, which any score then shows.
    """

    pair: Pair
    statistic: Statistic
    threshold: float
    swap: bool
    below: bool
    promise: float
    width: int
    has_gaps: bool = False

    @property
    def is_side_channel(self) -> bool:
        """Whether it looks at the form of the output or at what is printed."""
        return self.statistic.kind in SIDE_CHANNELS


@dataclass(frozen=True)
class Shown:
    """What an attack showed on runs that it was not chosen on.

    Attributes:
        attack: The attack.
        bound: Epsilon is at least this much.
        false, true: How many runs were taken for positive, of the negative and the positive side.
        runs: Runs on each side.
        error: The chance that the bound is wrong.
    """

    attack: Attack
    bound: float
    false: int
    true: int
    runs: int
    error: float


def find_attacks(
    pair: Pair,
    first: Sequence[Output],
    second: Sequence[Output],
    delta: float,
    without: tuple[str, ...] = (),
    error: float = ERROR,
) -> list[Attack]:
    """Attacks on a pair, the most promising first.

    Statistics are fitted on half of these runs, thresholds chosen on the other half.

    Args:
        pair: The tables.
        first, second: Outputs on either, equally many.
        delta: Of the claim.
        without: Kinds of statistics to leave out.
        error: Of the promises. A larger one ranks rare but telling outputs higher.
    """
    whole = Sample([*first, *second])
    (fit_first, test_first), (fit_second, test_second) = (
        Sample(side, whole.width).split() for side in (first, second)
    )
    how = AnyOutputs(delta)
    runs = min(len(test_first), len(test_second))
    has_gaps = bool(whole.is_missing.any())
    found = []
    for statistic in fit_statistics(fit_first, fit_second, without):
        one, two = (statistic.score(test)[:runs] for test in (test_first, test_second))
        if len(np.unique(np.concatenate([one, two]))) < 2:
            continue  # it is the same for every run
        threshold, swap, below = choose(one, two, how)
        rates = rates_of(one, two, threshold, swap, below, error)
        promise = float(how.promise(np.asarray(rates.false), np.asarray(rates.true)))
        test = (threshold, swap, below)
        found.append(Attack(pair, statistic, *test, promise, whole.width, has_gaps))
    return sorted(found, key=lambda attack: -attack.promise)


def judge(
    attack: Attack, first: Sequence[Output], second: Sequence[Output], delta: float, error: float
) -> Shown:
    """The bound on epsilon that an attack shows on new runs [Clopper-Pearson 1934].

    Args:
        attack: The attack.
        first, second: Outputs on either table, on which nothing of the attack was chosen.
        delta: Of the claim.
        error: The chance that the bound is wrong.
    """
    one, two = (attack.statistic.score(Sample(side, attack.width)) for side in (first, second))
    # the event and its complement, for either side: four bounds that share the error
    how, ways = AnyOutputs(delta), list(itertools.product((False, True), repeat=2))
    bounds = [
        how.epsilon(rates_of(one, two, attack.threshold, swap, below, error / 2.0))
        for swap, below in ways
    ]
    bound = max(bounds)
    if bound > 0.0:
        swap, below = ways[bounds.index(bound)]
        attack = replace(attack, swap=swap, below=below)
    sides = (two, one) if attack.swap else (one, two)
    false, true = (
        int(np.count_nonzero(side <= attack.threshold if attack.below else side > attack.threshold))
        for side in sides
    )
    return Shown(attack, bound, false, true, len(first), error)


def find_largest_bound(runs: int, delta: float, error: float) -> float:
    """The bound of an attack that is never wrong in ``runs`` runs on each side."""
    if runs < 1:
        return 0.0
    true, false = float(lower(runs, runs, error)), float(upper(0, runs, error))
    return max(0.0, math.log(max(true - delta, 1e-300) / false))


def find_refutable(claim: float, runs: int, delta: float, error: float) -> float:
    """The least true epsilon with which a claim would be refuted by this many runs, about.

    It is that of randomised response, whose answer is the most telling one there is. Infinite
    where even an attack that is never wrong would not reach the claim.

    Args:
        claim, delta: What is claimed.
        runs: Runs on each side.
        error: The chance of a false alarm.
    """

    def bound(epsilon: float) -> float:
        rate = 1.0 / (1.0 + math.exp(-epsilon))
        true = float(lower(math.floor(runs * rate), runs, error))
        false = float(upper(math.ceil(runs * (1.0 - rate)), runs, error))
        return math.log(max(true - delta, 1e-300) / max(false, 1e-300))

    levels = claim + np.geomspace(1e-3, 40.0, 400)
    return next((float(level) for level in levels if bound(float(level)) > claim), math.inf)


def to_row(shown: Shown, claim: float) -> dict[str, Any]:
    """An attack and its bound as JSON has them, without the tables."""
    attack = shown.attack
    return {
        "pair": attack.pair.name,
        "statistic": attack.statistic.kind,
        "what": attack.statistic.label,
        "bound": shown.bound,
        "claim": claim,
        "false_positives": shown.false,
        "true_positives": shown.true,
        "runs": shown.runs,
        "error": shown.error,
    }
