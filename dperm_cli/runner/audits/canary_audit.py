"""Audit a claim with few runs, each on a table of many canaries [Steinke, Nasr, Jagielski 2023].

How coins are guessed is chosen on one half of the runs and judged on the other. On a single run
every way is judged, and has its share of the chance of a false alarm.
"""

from __future__ import annotations

import json
import math
import time
from dataclasses import asdict, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from dperm_cli.audit.error_rates import ERROR
from dperm_cli.audit.outside.bounds import NOT_SHOWN, VIOLATED
from dperm_cli.audit.outside.canaries import (
    Canaries,
    Guess,
    count_right,
    draw_canaries,
    find_bound,
    find_refutable,
    list_guesses,
)
from dperm_cli.audit.outside.outputs import Output
from dperm_cli.audit.outside.records import read_kind
from dperm_cli.core import progress
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import EXIT_FAILED, EXIT_OK, InputError
from dperm_cli.core.seeds import generator, seed_sequence
from dperm_cli.runner.audits.outside_audit import Question
from dperm_cli.runner.audits.outside_report import FACTS, SCRIPT, format_script, to_finite
from dperm_cli.runner.audits.outside_runs import Runs
from dperm_cli.runner.audits.outside_targets import (
    KEY,
    Target,
    make_fresh_generator,
    make_target,
)

METHOD = "canaries"
_LOOSE = 0.05  # error of the bounds by which ways to guess are ranked


@dataclass(frozen=True)
class Shown:
    """What one way to guess came to.

    Attributes
    ----------
    guess : the way.
    guesses, right : coins that were guessed, and those of them that were guessed right.
    bound : epsilon is at least this much.
    """

    guess: Guess
    guesses: int
    right: int
    bound: float


@dataclass
class CanaryResult:
    """What an audit with canaries came to.

    Attributes
    ----------
    target : the mechanism in words.
    question : what was asked.
    verdict : ``violated`` or ``not shown``.
    reasons : why, a sentence each.
    shown : the best way to guess; None where no run left numbers.
    runs, failed, seconds : runs that were made, those of them that left no result, and the time.
    ways : how many ways to guess were judged.
    refutable : the least true epsilon with which so many canaries refute the claim.
    is_delta_large : whether there is none because of the claim's delta.
    """

    target: str
    question: Question
    verdict: str = NOT_SHOWN
    reasons: list[str] = field(default_factory=list)
    shown: Shown | None = None
    runs: int = 0
    failed: int = 0
    seconds: float = 0.0
    ways: int = 0
    refutable: float = math.inf
    is_delta_large: bool = False

    @property
    def bound(self) -> float:
        """Epsilon is at least this much."""
        return 0.0 if self.shown is None else self.shown.bound

    @property
    def is_refuted(self) -> bool:
        """Whether the claim does not hold."""
        return self.verdict != NOT_SHOWN

    @property
    def canaries(self) -> int:
        """Records that coins decided, in all runs."""
        return self.runs * self.question.kind.n


def audit_with_canaries(
    target: Target, question: Question, out: Path | None = None
) -> CanaryResult:
    """Try to refute a claim with few runs on many records that coins decide.

    Args:
        target: The mechanism.
        question: The claim, and how many runs and seconds there are at most.
        out: A folder that keeps the runs, so that an audit which was ended goes on.

    Raises:
        InputError: The mechanism cannot be started, every run failed, or the folder holds another
            audit's runs.
    """
    begin = time.monotonic()
    runs = Runs(target, begin + question.seconds, out)
    runs.open(question.identify(target.words) | {"method": METHOD})
    result = CanaryResult(target.words, question)
    made = []
    for number in range(question.runs):
        progress.report("audit, canaries", number, question.runs)
        rng = generator(seed_sequence(question.seed, METHOD, question.kind.words(), number))
        canaries = draw_canaries(question.kind, question.relation, rng)
        output = runs.make_one(canaries.make_table(), f"{METHOD} {number}", question.epsilon)
        if output is None:  # no time is left
            break
        made.append((canaries, output))
    if made and runs.failure:
        raise InputError(KEY, target.words, f"every run failed: {runs.failure}")
    _judge(result, made, ERROR / 2.0 ** (runs.looks + 1))
    result.seconds = time.monotonic() - begin
    runs.close(result.verdict)
    return result


def _judge(result: CanaryResult, made: list[tuple[Canaries, Output]], error: float) -> None:
    """The bound of the way that was best on half of the runs, on the other half.

    One run alone has no halves: all ways are judged on it and share the error.
    """
    question = result.question
    widths = [len(output.numbers) for _, output in made if not output.is_error]
    result.runs, result.failed = len(made), len(made) - len(widths)
    if not widths:
        return
    guesses = list_guesses(question.kind, widths[0])
    result.ways = len(guesses)
    half = len(made) // 2
    if half:
        guesses = [_find_best(question, guesses, made[:half], _LOOSE).guess]
    each = error / len(guesses)
    result.shown = _find_best(question, guesses, made[half:], each)
    canaries = (len(made) - half) * question.kind.n
    result.refutable = find_refutable(question.epsilon, question.delta, canaries, each)
    without = find_refutable(question.epsilon, 0.0, canaries, each)
    result.is_delta_large = math.isinf(result.refutable) and math.isfinite(without)
    if result.bound > question.epsilon:
        result.verdict = VIOLATED
        words = f"epsilon is at least {result.bound:.4g}, above the claim {question.epsilon:.4g}"
        result.reasons.append(f"{words} ({result.shown.guess.words()})")


def _find_best(
    question: Question, guesses: list[Guess], made: list[tuple[Canaries, Output]], error: float
) -> Shown:
    """The way to guess with the largest bound on these runs."""
    counts = np.zeros((len(guesses), 2), dtype=int)
    for canaries, output in made:
        counts += np.array(list(count_right(guesses, question.kind, canaries, output)))
    flipped, delta = len(made) * question.kind.n, question.delta
    shown = [
        Shown(guess, count, right, find_bound(delta, flipped, count, right, error))
        for guess, (count, right) in zip(guesses, counts.tolist(), strict=True)
    ]
    return max(shown, key=_rank)


def _rank(shown: Shown) -> tuple[float, float]:
    """The bound; where no way shows anything, how many standard deviations it is from half."""
    return shown.bound, (2 * shown.right - shown.guesses) / max(1, shown.guesses) ** 0.5


def make_row(result: CanaryResult) -> dict[str, Any]:
    """All of a result as JSON has it."""
    question, shown = result.question, result.shown
    attacks = []
    if shown is not None:
        way = {"way": shown.guess.words(), "guesses": shown.guesses, "right": shown.right}
        attacks.append(way | {"bound": shown.bound, "claim": question.epsilon})
    row = {
        "target": result.target,
        "method": METHOD,
        "verdict": result.verdict,
        "claim_epsilon": question.epsilon,
        "claim_delta": question.delta,
        "relation": question.relation,
        "records": question.kind.words(),
        "bound": result.bound,
        "reasons": result.reasons,
        "attacks": attacks,
        "ways": result.ways,
        "canaries": result.canaries,
        "runs": result.runs,
        "failed": result.failed,
        "seconds": result.seconds,
        "refutable_from": result.refutable,
        "has_power": math.isfinite(result.refutable) and shown is not None,
        "seed": question.seed,
    }
    return {key: to_finite(value) for key, value in row.items()}


def format_result(result: CanaryResult) -> str:
    """A result as lines of text."""
    question = result.question
    claim = f"epsilon {question.epsilon:g}, delta {question.delta:g}, {question.relation}"
    lost = f", {result.failed} without a result" if result.failed else ""
    lines = [
        f"{result.target}: {result.verdict}",
        *(f"  {reason}" for reason in result.reasons),
        f"  claim        {claim}",
        f"  records      {question.kind.words()}",
        f"  runs         {result.runs} in {result.seconds:.1f} s{lost}; {result.canaries} canaries",
    ]
    if result.shown is not None:
        lines.append(f"  attack       {_describe(result.shown)}")
    if not result.is_refuted:
        lines.append(f"  power        {_describe_power(result)}")
    return "\n".join(lines)


def _describe_power(result: CanaryResult) -> str:
    if result.is_delta_large:
        return "none: so large a delta may tell all coins at once; take method=pairs"
    if math.isinf(result.refutable):
        return "none: take more runs or more records"
    able = f"a true epsilon of {result.refutable:.3g} or more could have been refuted"
    return f"{able}, if the result tells each coin as well as randomised response would"


def list_files(result: CanaryResult) -> dict[str, bytes]:
    """What ``out=`` keeps beside the runs."""
    files = {FACTS: (json.dumps(make_row(result)) + "\n").encode()}
    if result.is_refuted and result.shown is not None:
        guess, question = result.shown.guess, result.question
        facts = {
            "target": result.target, "epsilon": question.epsilon, "delta": question.delta,
            "relation": question.relation, "records": question.kind.words(), "runs": result.runs,
            **asdict(guess),
        }  # fmt: skip
        files[SCRIPT] = format_script(__name__, facts)
    return files


def _describe(shown: Shown) -> str:
    return (
        f"epsilon >= {shown.bound:.4g}: {shown.right} of {shown.guesses} coins guessed right, by "
        f"{shown.guess.words()}"
    )


def show_again(facts: dict[str, Any]) -> int:
    """Guess coins that are drawn anew, in the one way that refuted the claim, and print the bound.

    Returns:
        1 where the claim is refuted again, else 0.
    """
    rng = make_fresh_generator()
    target, kind = make_target(facts["target"], facts["delta"], rng), read_kind(facts["records"])
    guess = Guess(**{part.name: facts[part.name] for part in fields(Guess)})
    counts = np.zeros(2, dtype=int)
    for _ in range(facts["runs"]):
        canaries = draw_canaries(kind, facts["relation"], rng)
        [output] = target.run(canaries.make_table(), 1, facts["epsilon"], math.inf)
        counts += np.array(next(count_right([guess], kind, canaries, output)))
    canaries_in_all = facts["runs"] * kind.n
    bound = find_bound(facts["delta"], canaries_in_all, int(counts[0]), int(counts[1]), ERROR)
    print(_describe(Shown(guess, int(counts[0]), int(counts[1]), bound)))
    is_refuted = bound > facts["epsilon"]
    print(f"the claim {facts['epsilon']:g} is {'refuted' if is_refuted else 'not refuted'}")
    return EXIT_FAILED if is_refuted else EXIT_OK
