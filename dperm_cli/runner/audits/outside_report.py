"""What an audit of a claim prints and keeps, and the script that shows a violation again."""

from __future__ import annotations

import json
import math
from typing import Any

from dperm_cli.audit.error_rates import ERROR
from dperm_cli.audit.outside.bounds import Attack, Shown, judge, to_row
from dperm_cli.audit.outside.neighbours import Pair
from dperm_cli.audit.outside.records import Table
from dperm_cli.audit.outside.statistics import Statistic
from dperm_cli.core.errors import EXIT_FAILED, EXIT_OK
from dperm_cli.runner.audits.outside_audit import Result
from dperm_cli.runner.audits.outside_runs import Runs
from dperm_cli.runner.audits.outside_targets import make_fresh_generator, make_target

SCRIPT, FACTS = "violation.py", "audit.json"
_TEXT = '''"""Shows again that a claim of epsilon does not hold: python violation.py

It runs the mechanism on new noise, and counts how often a test that was chosen beforehand is right.
"""

import json
import sys

from {module} import show_again

sys.exit(show_again(json.loads({facts!r})))
'''


def make_row(result: Result) -> dict[str, Any]:
    """All of a result as JSON has it: plain numbers, None for what is not finite."""
    question = result.question
    row: dict[str, Any] = {
        "target": result.target,
        "verdict": result.verdict,
        "claim_epsilon": question.epsilon,
        "claim_delta": question.delta,
        "relation": question.relation,
        "records": question.kind.words(),
        "bound": result.bound,
        "reasons": result.reasons,
        "attacks": [
            {key: to_finite(value) for key, value in to_row(one, question.epsilon).items()}
            for one in result.shown
        ],
        "runs": result.runs,
        "pairs": result.pairs,
        "seconds": result.seconds,
        "largest_bound": result.largest,
        "refutable_from": result.refutable,
        "control_bound": result.control,
        "has_power": result.has_power,
        "seconds_first": None if result.times is None else result.times[0],
        "seconds_second": None if result.times is None else result.times[1],
        "seed": question.seed,
    }
    return {key: to_finite(value) for key, value in row.items()}


def to_finite(value: Any) -> Any:
    """JSON has no nan and no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def format_result(result: Result) -> str:
    """A result as lines of text."""
    question = result.question
    claim = f"epsilon {question.epsilon:g}, delta {question.delta:g}, {question.relation}"
    lines = [
        f"{result.target}: {result.verdict}",
        *(f"  {reason}" for reason in result.reasons),
        f"  claim        {claim}",
        f"  records      {question.kind.words()}",
        f"  runs         {result.runs} in {result.seconds:.1f} s, {result.pairs} pairs",
    ]
    for one in result.shown:
        lines.append(f"  attack       {_describe(one)}")
    lines += [f"  {'power':<13}{words}" for words in _describe_power(result)]
    if result.times is not None:
        first, second = result.times
        lines.append(f"  time         {first:.3g} and {second:.3g} s a run; no verdict hangs on it")
    return "\n".join(lines)


def _describe(shown: Shown) -> str:
    attack = shown.attack
    sizes = f"{len(attack.pair.first.rows)} and {len(attack.pair.second.rows)} records"
    return (
        f"epsilon >= {shown.bound:.4g} by {attack.statistic.label} on {attack.pair.name} ({sizes}):"
        f" {shown.true} and {shown.false} of {shown.runs} runs"
    )


def _describe_power(result: Result) -> list[str]:
    if not result.shown or result.is_refuted:
        return []
    claim = result.question.epsilon
    if math.isinf(result.refutable):
        found = [f"none: so many runs show {result.largest:.3g} at most; take more runs or minutes"]
    else:
        found = [f"a true epsilon of {result.refutable:.3g} or more could have been refuted"]
    if result.control is not None:
        caught = "refuted" if result.control > claim else "NOT refuted: this audit shows little"
        found.append(f"with twice the epsilon: bound {result.control:.4g}, {caught}")
    return found


def list_files(result: Result) -> dict[str, bytes]:
    """What ``out=`` keeps beside the runs."""
    files = {FACTS: (json.dumps(make_row(result)) + "\n").encode()}
    shown = [one for one in result.shown if one.bound > result.question.epsilon]
    if shown:
        files[SCRIPT] = format_script(__name__, write_facts(result, shown[0]))
    return files


def format_script(module: str, facts: dict[str, Any]) -> bytes:
    """The script that shows a violation again, by ``show_again`` of a module.

    Args:
        module: Its name.
        facts: What it needs to know.
    """
    return _TEXT.format(module=module, facts=json.dumps(facts)).encode()


def write_facts(result: Result, shown: Shown) -> dict[str, Any]:
    """What is needed to show a violation again."""
    attack = shown.attack
    return {
        "target": result.target,
        "epsilon": result.question.epsilon,
        "delta": result.question.delta,
        "pair": attack.pair.name,
        "first": attack.pair.first.to_lists(),
        "second": attack.pair.second.to_lists(),
        "statistic": attack.statistic.to_dict(),
        "threshold": attack.threshold,
        "swap": attack.swap,
        "below": attack.below,
        "width": attack.width,
        "runs": shown.runs,
    }


def show_again(facts: dict[str, Any]) -> int:
    """Run the attack of ``write_facts`` on new runs and print its bound.

    Returns:
        1 where the claim is refuted again, else 0.
    """
    target = make_target(facts["target"], facts["delta"], make_fresh_generator())
    tables = (Table.of_lists(facts["first"]), Table.of_lists(facts["second"]))
    pair = Pair(facts["pair"], *tables)
    attack = Attack(
        pair, Statistic(**facts["statistic"]), facts["threshold"], facts["swap"],
        facts["below"], math.nan, facts["width"],
    )  # fmt: skip
    sides = Runs(target).collect(pair, "again", facts["runs"], facts["epsilon"])
    shown = judge(attack, *sides, facts["delta"], ERROR)
    print(_describe(shown))
    is_refuted = shown.bound > facts["epsilon"]
    print(f"the claim {facts['epsilon']:g} is {'refuted' if is_refuted else 'not refuted'}")
    return EXIT_FAILED if is_refuted else EXIT_OK
