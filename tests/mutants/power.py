"""How many planted faults `dperm audit mechanism=all` finds by itself: ``make audit-power``.

Every fault is a patch (``patches.Patch``) to a copy of the package. The audit of the copy is told
nothing of it; it has ten minutes and two workers. A fault counts as found where the audit ends with
exit code 1 and a line that names a violation. Harmless patches must end with exit code 0.

    python -m tests.mutants.power [--faults MODULE] [--only WORD] [--out FILE.md] [--limit SECONDS]

MODULE (tests.mutants.planted if there is one, else tests.mutants.patches) has BROKEN and HARMLESS.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.patches import Patch

ROOT = Path(__file__).resolve().parents[2]
PLANTED, SHIPPED = "tests.mutants.planted", "tests.mutants.patches"
LIMIT = 600.0
COPIED = ("dperm_cli", "conf", "experiments")
AUDIT = ("audit", "mechanism=all", "workers=2")


@dataclass(frozen=True)
class Outcome:
    """What the audit of one copy said: ``found`` is None where it did not end in time."""

    name: str
    harmless: bool
    found: bool | None
    seconds: float
    said: str

    @property
    def right(self) -> bool:
        """Whether a fault was found, or nothing was found in a harmless copy."""
        return self.found is (not self.harmless)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a line a copy and write the table; 1 where one outcome is wrong."""
    parser = argparse.ArgumentParser(description="planted faults that the audit finds")
    parser.add_argument("--faults", default=None)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", default=None)
    parser.add_argument("--limit", type=float, default=LIMIT)
    asked = parser.parse_args(arguments)
    broken, harmless = patches(asked.faults)
    outcomes = []
    for patch, safe in [(p, False) for p in broken] + [(p, True) for p in harmless]:
        if asked.only and asked.only not in patch.name:
            continue
        outcome = measure(patch, safe, asked.limit)
        outcomes.append(outcome)
        print(_line(outcome), flush=True)
    text = table(outcomes, asked.limit)
    if asked.out is not None:
        Path(asked.out).write_text(text)
    print(text.splitlines()[-1])
    return int(not all(outcome.right for outcome in outcomes))


def patches(module: str | None) -> tuple[tuple[Patch, ...], tuple[Patch, ...]]:
    """The planted faults and the harmless changes of a module."""
    if module is None:
        module = PLANTED if importlib.util.find_spec(PLANTED) else SHIPPED
    found = importlib.import_module(module)
    return tuple(found.BROKEN), tuple(found.HARMLESS)


def measure(patch: Patch, harmless: bool, limit: float = LIMIT) -> Outcome:
    """Audit a copy of the package with one patch; ValueError where it does not apply once."""
    with tempfile.TemporaryDirectory(prefix="dperm-power-") as folder:
        copy = Path(folder)
        plant(patch, copy)
        words = [sys.executable, "-m", "dperm_cli", *AUDIT]
        if not harmless:
            words.append("stop=first")  # one violation is enough
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        environment |= {"PYTHONPATH": folder, "OPENBLAS_NUM_THREADS": "1"}
        started = time.monotonic()
        code, said = _run(words, folder, environment, limit)
        seconds = time.monotonic() - started
    if code is None:
        return Outcome(patch.name, harmless, None, seconds, f"no end after {limit:g} s")
    lines = [line for line in said.splitlines() if line and not line.startswith("cell ")]
    # an audit that cannot even start says so by another exit code, and has found nothing
    return Outcome(patch.name, harmless, code == 1, seconds, lines[0] if lines else f"exit {code}")


def plant(patch: Patch, copy: Path) -> None:
    """A copy of the package, compiled loops with it, and the patch in it."""
    for name in COPIED:
        shutil.copytree(ROOT / name, copy / name)
    path = copy / "dperm_cli" / patch.file
    text = path.read_text()
    if text.count(patch.old) != 1:
        times = text.count(patch.old)
        raise ValueError(f"the text of {patch.name!r} stands {times} times in {patch.file}")
    path.write_text(text.replace(patch.old, patch.new))


def _run(
    words: list[str], folder: str, environment: dict[str, str], limit: float
) -> tuple[int | None, str]:
    """(exit code or None, stderr) of a process, its children ended with it after ``limit``."""
    process = subprocess.Popen(
        words, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True, start_new_session=True,
    )  # fmt: skip
    try:
        _, said = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None, ""
    return process.returncode, said


def table(outcomes: Sequence[Outcome], limit: float) -> str:
    """The page with a line for every copy, and the totals as its last line."""
    head = [
        "# What `dperm audit mechanism=all` finds", "",
        "Made by `make audit-power`: every fault is planted into a copy of the package, alone; the "
        f"audit has {limit:g} seconds and two workers, and is told nothing.", "",
        "| planted | harmless | found | seconds | what the audit says first |",
        "|---|---|---|---|---|",
    ]  # fmt: skip
    words = {True: "yes", False: "no", None: "no end"}
    lines = [
        f"| {_cell(o.name)} | {'yes' if o.harmless else ''} | {words[o.found]} | {o.seconds:.0f} | "
        f"{_cell(o.said)} |"
        for o in outcomes
    ]
    faults = [o for o in outcomes if not o.harmless]
    harmless = [o for o in outcomes if o.harmless]
    found = sum(o.right for o in faults)
    alarms = sum(not o.right for o in harmless)
    total = f"{found} of {len(faults)} faults found, {alarms} false alarms in {len(harmless)}"
    return "\n".join([*head, *lines, "", f"{total} harmless changes."]) + "\n"


def _line(outcome: Outcome) -> str:
    right = "ok   " if outcome.right else "WRONG"
    return f"{right} {outcome.seconds:5.0f} s  {outcome.name}: {outcome.said[:160]}"


def _cell(text: str) -> str:
    """Text for a cell of a table."""
    shorter = text if len(text) <= 160 else text[:157] + "..."
    return shorter.replace("|", "/")


if __name__ == "__main__":
    sys.exit(main())
