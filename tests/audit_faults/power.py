"""How many faults an audit of foreign mechanisms finds, and how often it accuses a sound one.

    python -m tests.audit_faults.power --audits 200 --runs 6000 --out docs/audit_yours_power.md

The mechanisms are those of ``faults.py`` and ``sound.py``. Sound ones are audited in turn, with a
new seed each time. With ``--kept FILE`` every audit is kept there, and one that is there is not
made again: a run that was ended goes on. Whoever changes the audit begins with no such file. Exit
code 1 where one was accused, or fewer than 18 of 20 faults were found.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from pathlib import Path

from dperm_cli.audit.error_rates import ERROR
from dperm_cli.audit.outside import bounds, canaries
from tests.audit_faults.faults import FAULTS
from tests.audit_faults.sound import SOUND
from tests.audit_faults.subjects import Subject

NEEDED = 0.9  # of the faults
CLAIMS = (0.1, 0.5, 1.0, 2.0, 3.0)
PAIR_RUNS = (400, 1000, 4000, 10_000, 40_000, 150_000)
CANARY_RUNS = (4, 16, 64)
CANARIES = 200  # of a run
MOST = 20.0  # a true epsilon beyond which nothing is shown
_SIDES = 4  # a quarter of the runs is judged on each table: half of them search
_ATTACKS = 3  # at most so many are judged, and share the chance of a false alarm
REACH_HEAD = """## What so many runs can show

The least true epsilon with which a claim at delta 0 would be refuted, if the result tells the two
tables, or each coin, as well as randomised response does. A dash: none below {most:g}. Computed
from the bounds that the audit uses, and the same for any mechanism.

"""
HEAD = """# What the audit of foreign mechanisms finds

Made by `make audit-power`, which goes on where it was ended. The mechanisms are those of
`tests/audit_faults`: small ones with faults that were found in published code, each with its source
or marked as constructed, and sound ones. The audit ([audit_yours.md](audit_yours.md)) is told the
claim and what a record is. A bound is wrong with a chance of {error:g} an audit at most.

## Faults

| mechanism | fault found in | verdict | bound | claim | runs | seconds |
|---|---|---|---|---|---|---|
"""


def audit_once(subject: Subject, seed: int, runs: int | None) -> tuple[bool, str]:
    """Whether a claim was refuted, and the line of the table."""
    begin = time.monotonic()
    result = subject.audit(seed, runs)
    cells = (
        subject.name, subject.source, result.verdict, f"{result.bound:.3g}",
        f"{subject.epsilon:g}", str(result.runs), f"{time.monotonic() - begin:.0f}",
    )  # fmt: skip
    return result.is_refuted, f"| {' | '.join(cells)} |"


class Kept:
    """Audits that were made before, by mechanism, seed and number of runs.

    Args:
        path: A file with a line of JSON for each; None keeps nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        lines = path.read_text().splitlines() if path is not None and path.exists() else []
        self._made = {
            (one["name"], one["seed"], one["runs"]): (one["is_refuted"], one["line"])
            for one in map(json.loads, lines)
        }

    def audit(self, subject: Subject, seed: int, runs: int | None) -> tuple[bool, str]:
        """As ``audit_once``, which is asked where the audit is not there yet."""
        key = (subject.name, seed, runs)
        if key not in self._made:
            is_refuted, line = self._made[key] = audit_once(subject, seed, runs)
            if self._path is not None:
                told = {"name": subject.name, "seed": seed, "runs": runs,
                        "is_refuted": is_refuted, "line": line}  # fmt: skip
                with self._path.open("a") as file:
                    file.write(json.dumps(told) + "\n")
        return self._made[key]


def write_reach() -> str:
    """The table of what numbers of runs can show, for pairs and for canaries."""
    lines = [f"| runs | {' | '.join(f'claim {claim:g}' for claim in CLAIMS)} |",
             "|---|" + "--:|" * len(CLAIMS)]  # fmt: skip
    for runs in PAIR_RUNS:
        # each of an attack's two rates has half of its share
        share = ERROR / _ATTACKS / 2.0
        found = [bounds.find_refutable(claim, runs // _SIDES, 0.0, share) for claim in CLAIMS]
        lines.append(f"| {runs:,} on pairs | {' | '.join(map(_spell, found))} |")
    for runs in CANARY_RUNS:
        guessed = runs // 2 * CANARIES
        found = [canaries.find_refutable(claim, 0.0, guessed, ERROR) for claim in CLAIMS]
        name = f"{runs} with {CANARIES} canaries each"
        lines.append(f"| {name} | {' | '.join(map(_spell, found))} |")
    return REACH_HEAD.format(most=MOST) + "\n".join(lines) + "\n"


def _spell(epsilon: float) -> str:
    return f"{epsilon:.3g}" if epsilon < MOST else "-"


def write_page(
    lines: list[str], alarms: list[str], audits: int, runs: int, out: Path | None
) -> str:
    """The page of what was audited so far, which is written where ``out`` says."""
    found = sum("| not shown |" not in line for line in lines)
    words = f"{found} of {len(lines)} faults found.\n\n## Sound mechanisms\n\n"
    words += f"{len(alarms)} false alarms in {audits} audits of {min(audits, len(SOUND))} sound "
    words += f"mechanisms with a new seed each time, about {runs} runs an audit"
    words += ":\n\n" + "\n".join(alarms) if alarms else "."
    text = HEAD.format(error=ERROR) + "\n".join(lines) + f"\n\n{words}\n\n{write_reach()}"
    if out is not None:
        out.write_text(text)
    return text


def main() -> int:
    """Audit all; the page is written again after each audit, so that one that was ended has one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=200, help="of sound mechanisms")
    parser.add_argument("--runs", type=int, default=6000, help="of an audit of a sound mechanism")
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--kept", type=Path, default=None, help="a file of audits, made or read")
    asked = parser.parse_args()
    kept = Kept(asked.kept)
    lines: list[str] = []
    found = 0
    for subject in FAULTS:
        is_refuted, line = kept.audit(subject, 0, None)
        found += is_refuted
        lines.append(line)
        print(line, file=sys.stderr, flush=True)
    alarms: list[str] = []
    text = write_page(lines, alarms, 0, asked.runs, asked.out)
    for number, subject in enumerate(itertools.islice(itertools.cycle(SOUND), asked.audits)):
        is_refuted, line = kept.audit(subject, 1000 + number, asked.runs)
        alarms += [line] if is_refuted else []
        print(line, file=sys.stderr, flush=True)
        text = write_page(lines, alarms, number + 1, asked.runs, asked.out)
    print(text)
    return int(bool(alarms) or found < NEEDED * len(FAULTS))


if __name__ == "__main__":
    sys.exit(main())
