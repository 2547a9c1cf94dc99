"""How many planted faults `dperm audit` finds by itself: ``make audit-power``.

Every fault is a patch to a copy of the package (``planted.FAULTS``). The audit of the copy is told
nothing of it but which mechanisms to look at, those of the run that goes through the patched lines:
their parts of ``dperm audit mechanism=all`` do not depend on the others, so that what they find,
the whole audit finds. ``--whole`` runs that. A fault counts as found where the audit ends with exit
code 1 and a line that names a violation. Harmless patches must end with exit code 0, and so must a
correct mechanism that the package does not ship (``tree_aggregation``).

    python -m tests.mutants.power [--only WORD] [--out FILE.md] [--limit SECONDS] [--whole]
                                  [--at-once N]
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.edits import apply_edit
from tests.mutants.planted import FAULTS, HARMLESS, Planted

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 600.0
COPIED = ("dperm_cli", "conf", "experiments")
TREE = "tree_aggregation"


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
    parser.add_argument("--only", default="")
    parser.add_argument("--out", default=None)
    parser.add_argument("--limit", type=float, default=LIMIT)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--at-once", type=int, default=2)
    asked = parser.parse_args(arguments)
    copies: list[tuple[Planted | None, bool]] = [
        *((fault, False) for fault in FAULTS), *((edit, True) for edit in HARMLESS), (None, True),
    ]  # fmt: skip
    copies = [(edit, safe) for edit, safe in copies if asked.only in (edit.name if edit else TREE)]

    def one(copy: tuple[Planted | None, bool]) -> Outcome:
        outcome = measure(*copy, asked.limit, whole=asked.whole)
        print(_line(outcome), flush=True)
        return outcome

    with ThreadPoolExecutor(asked.at_once) as pool:
        outcomes = list(pool.map(one, copies))
    text = table(outcomes, asked.limit)
    if asked.out is not None:
        Path(asked.out).write_text(text)
    print(text.splitlines()[-1])
    return int(not all(outcome.right for outcome in outcomes))


def measure(
    edit: Planted | None, harmless: bool, limit: float = LIMIT, whole: bool = False
) -> Outcome:
    """Audit a copy of the package with one edit, or with the mechanism that it does not ship.

    ValueError where an edit does not apply once.
    """
    name = TREE if edit is None else edit.name
    with tempfile.TemporaryDirectory(prefix="dperm-power-") as folder:
        plant(edit, Path(folder))
        looked_at = "all" if whole else ",".join(mechanisms(edit))
        words = [sys.executable, "-m", "dperm_cli", "audit", f"mechanism={looked_at}"]
        words.append("workers=2" if whole else "workers=1")
        if not harmless:
            words.append("stop=first")  # one violation is enough
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        environment |= {"PYTHONPATH": folder, "OPENBLAS_NUM_THREADS": "1"}
        started = time.monotonic()
        code, said = _run(words, folder, environment, limit)
        seconds = time.monotonic() - started
    if code is None:
        return Outcome(name, harmless, None, seconds, f"no end after {limit:g} s")
    lines = [line for line in said.splitlines() if line and not line.startswith("cell ")]
    # an audit that cannot even start says so by another exit code, and has found nothing
    found = {0: False, 1: True}.get(code)
    return Outcome(name, harmless, found, seconds, lines[0] if lines else f"exit {code}")


def mechanisms(edit: Planted | None) -> list[str]:
    """The mechanisms, inner ones too, of the run that goes through an edit's lines."""
    if edit is None:
        return [TREE]
    return sorted(set(re.findall(r"mechanism(?:\.inner)?=(\w+)", " ".join(edit.run))))


def plant(edit: Planted | None, copy: Path) -> None:
    """A copy of the package, compiled loops with it, and the edit in it."""
    for name in COPIED:
        shutil.copytree(ROOT / name, copy / name)
    if edit is None:
        plant_mechanism(copy)
        return
    file, source = apply_edit(ROOT / "dperm_cli", edit.symbol, edit.old, edit.new)
    (copy / "dperm_cli" / file).write_text(source)


def plant_mechanism(copy: Path) -> None:
    """The mechanism ``TREE`` with its configuration in a copy of the package."""
    source = Path(__file__).with_name(f"{TREE}.py")
    shutil.copy(source, copy / "dperm_cli" / "mechanisms" / "gradient" / source.name)
    words = f"# DP-FTRL, for tests\nname: {TREE}\nlevels: 2\nstep_size: 0.05\n"
    (copy / "conf" / "mechanism" / f"{TREE}.yaml").write_text(words)


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
        "# What `dperm audit` finds", "",
        "Made by `make audit-power`. Every fault is planted alone into a copy of the package. The "
        "audit is told nothing of it: it looks at the mechanisms of the run that goes through the "
        f"patched lines, with one worker and {limit:g} seconds. These parts of "
        "`dperm audit mechanism=all` do not depend on the other mechanisms.", "",
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
