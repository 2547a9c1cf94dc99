"""Audit a claim about a mechanism that dperm did not write.

Half of the runs search: all pairs with few runs each, then the better ones with more, and variants
of the best. The other half judges what was chosen on the first. Of the chance of a false alarm each
attack that is judged has its share, and each look at runs that are kept half of the one before.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np

from dperm_cli.audit.error_rates import ERROR
from dperm_cli.audit.outside.bounds import (
    NOT_A_FUNCTION,
    NOT_SHOWN,
    VIOLATED,
    Attack,
    Shown,
    find_attacks,
    find_largest_bound,
    find_refutable,
    judge,
)
from dperm_cli.audit.outside.neighbours import Pair, list_pairs, list_variants
from dperm_cli.audit.outside.records import RecordKind
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.seeds import generator, seed_sequence
from dperm_cli.runner.audits.outside_runs import Runs
from dperm_cli.runner.audits.outside_targets import KEY, Target

LEAST = 32  # runs on each side of a pair that is tried
_MOST_FIRST = 2000  # and the most that are spent on a pair before some are left out
MOST_PAIRS = 60
_KEPT = (12, 6, 2)  # pairs of the rounds after the first
_SHARES = (0.3, 0.25, 0.2, 0.25)  # of the search's runs, by round
# pairs that stay to the last round: what tells them apart may be too rare for the rounds before
_SEATS = ("zeros/opposite", "zeros/zero")
_LOOSE = 0.05  # error of the bounds by which pairs are ranked, but for the last round
_START_SHARE = 0.25  # of the time may go into the starts of the first round
_NAN_RUNS = 10
_LOUDER = 2.0  # the control tells the mechanism so many times the claim


@dataclass(frozen=True)
class Question:
    """What is claimed, and how long to look.

    Attributes:
        epsilon, delta, relation: The claim; epsilon may be nan.
        kind: What a record is.
        runs: The most runs.
        seconds: The most seconds.
        seed: Of pairs.
        beyond: Whether records are tried that the declaration excludes.
        without: Names of pairs, of parts of them, and of statistics to leave out.
        pairs: Names of pairs or of parts of them, of which one is to be tried; empty for all.
        method: ``pairs``, or ``canaries`` for few runs on many records that coins decide.
    """

    epsilon: float
    delta: float = 0.0
    relation: str = "replace_one"
    kind: RecordKind = field(default_factory=RecordKind)
    runs: int = 40_000
    seconds: float = 600.0
    seed: int = 0
    beyond: bool = False
    without: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()
    method: str = "pairs"

    def identify(self, words: str) -> dict[str, Any]:
        """What kept runs hang on."""
        return {
            "target": words, "epsilon": repr(self.epsilon), "delta": self.delta,
            "relation": self.relation, "records": self.kind.words(), "seed": self.seed,
            "beyond": self.beyond, "without": list(self.without),
            "pairs": list(self.pairs),
        }  # fmt: skip

    def excludes(self, pair: Pair) -> bool:
        """Whether a pair is to be left out."""
        names = {pair.name, *pair.name.split("/")}
        return bool(names & set(self.without)) or not (not self.pairs or names & set(self.pairs))


@dataclass
class Result:
    """What an audit of a claim came to.

    Attributes:
        target: The mechanism in words.
        question: What was asked.
        verdict: One of the three.
        reasons: Why, a sentence each; empty where nothing was shown.
        shown: Every attack that was judged, the violations first.
        runs, seconds: What it took.
        pairs: How many pairs were tried.
        largest: The largest bound that so many runs can show.
        refutable: The least true epsilon with which so many runs refute the claim.
        control: The bound with less noise; None where it was not run.
        times: Seconds of a run on either table of the first attack's pair; no verdict hangs on it.
    """

    target: str
    question: Question
    verdict: str = NOT_SHOWN
    reasons: list[str] = field(default_factory=list)
    shown: list[Shown] = field(default_factory=list)
    runs: int = 0
    seconds: float = 0.0
    pairs: int = 0
    largest: float = 0.0
    refutable: float = math.inf
    control: float | None = None
    times: tuple[float, float] | None = None

    @property
    def bound(self) -> float:
        """Epsilon is at least this much."""
        return max((one.bound for one in self.shown), default=0.0)

    @property
    def is_refuted(self) -> bool:
        """Whether the claim does not hold."""
        return self.verdict != NOT_SHOWN

    @property
    def has_power(self) -> bool:
        """Whether these runs could have refuted the claim, and noticed the control."""
        is_caught = self.control is None or self.control > self.question.epsilon
        return math.isfinite(self.refutable) and is_caught


def audit_claim(target: Target, question: Question, out: Path | None = None) -> Result:
    """Try to refute a claim.

    Args:
        target: The mechanism.
        question: The claim, and how long to look.
        out: A folder that keeps the runs, so that an audit which was ended goes on.

    Raises:
        InputError: The mechanism cannot be started, or the folder holds another audit's runs.
    """
    begin = time.monotonic()
    runs = Runs(target, begin + question.seconds, out)
    runs.open(question.identify(target.words))
    result = Result(target.words, question)
    rng = generator(seed_sequence(question.seed, "outside", question.kind.words()))
    pairs = [
        pair
        for pair in list_pairs(question.kind, question.relation, rng, question.beyond)
        if not question.excludes(pair)
    ]
    _try_nan(runs, pairs[:1], result)
    if not math.isnan(question.epsilon) and pairs:
        error = ERROR / 2.0 ** (runs.looks + 1)
        plan = _plan_search(runs, pairs, question)
        attacks = plan.search(pairs, rng)
        if runs.failure:
            raise InputError(KEY, target.words, f"every run failed: {runs.failure}")
        result.pairs = plan.tried
        _confirm(runs, question, attacks, plan.total, error, result)
    result.runs, result.seconds = runs.made, time.monotonic() - begin
    runs.close(result.verdict)
    return result


@dataclass
class _Search:
    """The search for a pair and a statistic, with a part of the runs.

    Attributes:
        runs, question: The mechanism's runs, and the claim.
        total: How many runs the whole audit has.
        most_pairs: How many pairs the first round has at most.
        tried: Pairs that were tried.
        reached: Runs on each side of a pair of the last round.
    """

    runs: Runs
    question: Question
    total: int
    most_pairs: int
    tried: int = 0
    reached: int = 0

    def search(self, pairs: Sequence[Pair], rng: np.random.Generator) -> list[Attack]:
        """Attacks on all pairs that were tried, the most promising first."""
        question = self.question
        most = self.total / 2.0 * _SHARES[0] / 2.0
        chosen = list(pairs)[: max(1, min(int(most / LEAST), self.most_pairs))]
        best = self._attack(chosen, min(_MOST_FIRST, int(most / len(chosen))), _LOOSE)
        self.tried = len(chosen)
        for place, kept in enumerate(_KEPT, 1):
            seats = [pair for pair in chosen if pair.name in _SEATS]
            known = list(
                {pair.digest: pair for pair in (*_list_best_pairs(best, kept), *seats)}.values()
            )
            is_last = place == len(_KEPT)
            if place == 2 and known:
                near = list_variants(known[0], question.kind, question.relation, rng)
                known, self.tried = [*known, *near], self.tried + len(near)
            self.total = self._foresee()
            count = self.reached + max(
                LEAST, int(self.total / 2.0 * _SHARES[place] / 2.0 / max(1, len(known)))
            )
            again = self._attack(known, count, ERROR if is_last else _LOOSE)
            looked = {attack.pair.digest for attack in again}
            rest = [one for one in best if one.pair.digest not in looked]
            rest = [one for one in rest if one.is_side_channel] if is_last and again else rest
            best = sorted([*again, *rest], key=lambda attack: -attack.promise)
        return best

    def _foresee(self) -> int:
        """How many runs there are in all, by the speed that was seen so far."""
        left = 0.9 * max(0.0, self.runs.deadline - time.monotonic())
        more = left / self.runs.run_seconds if self.runs.run_seconds > 0.0 else 0.0
        return max(self.total, int(min(self.question.runs, self.runs.made + more)))

    def _attack(self, pairs: Sequence[Pair], count: int, error: float) -> list[Attack]:
        self.reached, found = count, []
        for pair in pairs:
            sides = self.runs.collect(pair, "search", max(count, LEAST), self.question.epsilon)
            if len(sides[0]) >= 4:
                without = self.question.without
                found += find_attacks(pair, *sides, self.question.delta, without, error)
        return sorted(found, key=lambda attack: -attack.promise)


def _plan_search(runs: Runs, pairs: Sequence[Pair], question: Question) -> _Search:
    """How many runs and pairs there is time for, from the first runs."""
    left = question.seconds
    for count in (4, 2 * LEAST, 8 * LEAST):
        runs.collect(pairs[0], "speed", count, question.epsilon)
        left = max(0.0, runs.deadline - time.monotonic())
        if 2 * count * runs.run_seconds > left / 100.0:
            break
    start, speed = runs.start_seconds, runs.run_seconds
    most = int(_START_SHARE * left / (2.0 * start)) if start > 0.0 else MOST_PAIRS
    # few pairs need few starts: what is not reserved for them goes into runs
    starts = min(most, MOST_PAIRS, len(pairs)) + sum(min(kept, len(pairs) + 4) for kept in _KEPT)
    in_runs = 0.9 * left - 2.0 * start * starts
    total = int(max(in_runs, 0.2 * left) / speed) if speed > 0.0 else question.runs
    return _Search(runs, question, max(0, min(question.runs, total)), max(1, most))


def _list_best_pairs(attacks: Sequence[Attack], count: int) -> list[Pair]:
    found: dict[str, Pair] = {}
    for attack in attacks:
        found.setdefault(attack.pair.digest, attack.pair)
    return list(found.values())[:count]


def choose_attacks(attacks: Sequence[Attack]) -> list[Attack]:
    """What is judged: the best attack, another one on its pair, and the best on a side channel."""
    plain = [one for one in attacks if not one.is_side_channel]
    side = [one for one in attacks if one.is_side_channel]
    if not plain:
        return side[:1]
    best = plain[0]
    more = (one for one in plain[1:] if one.pair.digest == best.pair.digest)
    found = [best, *[one for one in more if one.statistic.kind != best.statistic.kind][:1]]
    beside = [one for one in side if one.pair.digest == best.pair.digest]
    return found + (beside if best.has_gaps and beside else side)[:1]


def _confirm(
    runs: Runs,
    question: Question,
    attacks: Sequence[Attack],
    total: int,
    error: float,
    result: Result,
) -> None:
    """Judge the chosen attacks on runs of their own, and run the control where nothing is shown."""
    chosen = choose_attacks(attacks)
    digests = list(dict.fromkeys(one.pair.digest for one in chosen))
    has_control = runs.target.takes_epsilon
    # the search's speed was a guess: time that it left over is spent on the verdict
    left = 0.9 * max(0.0, runs.deadline - time.monotonic())
    affordable = left / runs.run_seconds if runs.run_seconds > 0.0 else math.inf
    half = min(question.runs / 2.0, max(total / 2.0, affordable))
    count = int(half * (0.7 if has_control else 1.0) / 2.0)
    each = error / max(1, len(chosen))
    least = count
    for attack in chosen:
        is_first = attack.pair.digest == digests[0]
        share = 1.0 if len(digests) == 1 else 0.75 if is_first else 0.25
        sides = runs.collect(attack.pair, "judge", int(count * share), question.epsilon)
        result.shown.append(judge(attack, *sides, question.delta, each))
        least = min(least, len(sides[0])) if is_first else least
    told = each / 2.0  # as `judge` has it
    result.largest = find_largest_bound(least, question.delta, told)
    result.refutable = find_refutable(question.epsilon, least, question.delta, told)
    result.shown.sort(key=lambda one: -one.bound)
    above = [one for one in result.shown if one.bound > question.epsilon]
    forms = {one.attack.pair.digest for one in above if one.attack.is_side_channel}
    for one in above:
        by_form = one.attack.has_gaps and one.attack.pair.digest in forms
        if one.attack.is_side_channel or not by_form:
            _add_reason(result, one)
    if chosen:
        tables = (chosen[0].pair.first, chosen[0].pair.second)
        found = [runs.seconds.get(table.digest, math.nan) for table in tables]
        result.times = (found[0], found[1])
    if has_control and chosen and not result.is_refuted:
        result.control = _run_control(runs, question, chosen[0].pair, max(count // 2, LEAST), error)


def _add_reason(result: Result, shown: Shown) -> None:
    attack, claim = shown.attack, result.question.epsilon
    if attack.is_side_channel:
        what = "what is printed" if attack.statistic.kind == "printed" else "form or error"
        words = f"{what} of the result follows a record: epsilon is at least {shown.bound:.4g}"
        verdict = NOT_A_FUNCTION
    else:
        words = f"epsilon is at least {shown.bound:.4g}, above the claim {claim:.4g}"
        verdict = VIOLATED
    result.reasons.append(f"{words} (pair {attack.pair.name}, {attack.statistic.label})")
    if result.verdict != VIOLATED:
        result.verdict = verdict


def _run_control(
    runs: Runs, question: Question, pair: Pair, count: int, error: float
) -> float | None:
    """The bound where the mechanism is told a multiple of the claim; None without time."""
    sides = runs.collect(pair, "control", 2 * count, _LOUDER * question.epsilon)
    half = len(sides[0]) // 2
    if half < LEAST:
        return None
    attacks = find_attacks(pair, sides[0][:half], sides[1][:half], question.delta, question.without)
    if not attacks:
        return None
    return judge(attacks[0], sides[0][half:], sides[1][half:], question.delta, error).bound


def _try_nan(runs: Runs, pairs: Sequence[Pair], result: Result) -> None:
    """Whether the mechanism releases something when epsilon is nan."""
    claimed = math.isnan(result.question.epsilon)
    if not pairs or not (claimed or runs.target.takes_epsilon):
        return
    first, second = runs.collect(pairs[0], "nan", _NAN_RUNS, math.nan)
    released = [one for one in (*first, *second) if any(map(math.isfinite, one.numbers))]
    if released:
        why = "the claim is nan" if claimed else "epsilon=nan is not refused"
        result.reasons.append(f"{why}: a result was released all the same")
        result.verdict = NOT_A_FUNCTION
