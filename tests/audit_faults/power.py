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
from collections.abc import Iterator
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


def list_alarms(audits: int, runs: int) -> Iterator[str]:
    """The lines of the sound mechanisms that were accused."""
    for number, subject in enumerate(itertools.islice(itertools.cycle(SOUND), audits)):
        is_refuted, line = audit_once(subject, 1000 + number, runs)
        print(line, file=sys.stderr, flush=True)
        if is_refuted:
            yield line


def main() -> int:
    """Audit all, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=200, help="of sound mechanisms")
    parser.add_argument("--runs", type=int, default=6000, help="of an audit of a sound mechanism")
    parser.add_argument("--out", type=Path, default=None)
    asked = parser.parse_args()
    faults = []
    for subject in FAULTS:
        faults.append(audit_once(subject, 0, None))
        print(faults[-1][1], file=sys.stderr, flush=True)
    found = sum(is_refuted for is_refuted, _ in faults)
    alarms = list(list_alarms(asked.audits, asked.runs))
    words = f"{found} of {len(FAULTS)} faults found, {len(alarms)} false alarms"
    text = HEAD.format(error=ERROR) + "\n".join([*(line for _, line in faults), *alarms])
    words += f" in {asked.audits} audits of {len(SOUND)} sound mechanisms"
    text += f"\n\n{words}, {asked.runs} runs each.\n"
    if asked.out is not None:
        asked.out.write_text(text)
    print(text)
    return int(bool(alarms) or found < NEEDED * len(FAULTS))


if __name__ == "__main__":
    sys.exit(main())
