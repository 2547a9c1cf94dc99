"""How many faults an audit of foreign mechanisms finds, and how often it accuses a sound one.

    python -m tests.audit_faults.power --audits 200 --runs 6000 --out docs/audit_yours_power.md

The mechanisms are those of ``faults.py`` and ``sound.py``. Sound ones are audited in turn, with a
new seed each time. Exit code 1 where one was accused, or fewer than 18 of 20 faults were found.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from pathlib import Path

from dperm_cli.audit.error_rates import ERROR
from tests.audit_faults.faults import FAULTS
from tests.audit_faults.sound import SOUND
from tests.audit_faults.subjects import Subject

NEEDED = 0.9  # of the faults
HEAD = """# What the audit of foreign mechanisms finds

Made by `make audit-power`. The mechanisms are those of `tests/audit_faults`. A bound is wrong with
a chance of {error:g} an audit at most.

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


def write_page(
    lines: list[str], alarms: list[str], audits: int, runs: int, out: Path | None
) -> str:
    """The page of what was audited so far, which is written where ``out`` says."""
    found = sum("| not shown |" not in line for line in lines)
    words = f"{found} of {len(lines)} faults found, {len(alarms)} false alarms"
    words += f" in {audits} audits of {min(audits, len(SOUND))} sound mechanisms, {runs} runs each."
    text = HEAD.format(error=ERROR) + "\n".join([*lines, *alarms]) + f"\n\n{words}\n"
    if out is not None:
        out.write_text(text)
    return text


def main() -> int:
    """Audit all; the page is written again after each audit, so that one that was ended has one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=200, help="of sound mechanisms")
    parser.add_argument("--runs", type=int, default=6000, help="of an audit of a sound mechanism")
    parser.add_argument("--out", type=Path, default=None)
    asked = parser.parse_args()
    lines: list[str] = []
    found = 0
    for subject in FAULTS:
        is_refuted, line = audit_once(subject, 0, None)
        found += is_refuted
        lines.append(line)
        print(line, file=sys.stderr, flush=True)
    alarms: list[str] = []
    text = write_page(lines, alarms, 0, asked.runs, asked.out)
    for number, subject in enumerate(itertools.islice(itertools.cycle(SOUND), asked.audits)):
        is_refuted, line = audit_once(subject, 1000 + number, asked.runs)
        alarms += [line] if is_refuted else []
        print(line, file=sys.stderr, flush=True)
        text = write_page(lines, alarms, number + 1, asked.runs, asked.out)
    print(text)
    return int(bool(alarms) or found < NEEDED * len(FAULTS))


if __name__ == "__main__":
    sys.exit(main())
