"""The runs of a foreign mechanism: each is made once, and can be kept in a file."""

from __future__ import annotations

import json
import math
import os
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from dperm_cli.audit.outside.neighbours import Pair
from dperm_cli.audit.outside.outputs import Output
from dperm_cli.audit.outside.records import Table
from dperm_cli.core import progress
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.files import append_durably, truncate_file, write_atomically
from dperm_cli.runner.audits.outside_targets import Target

FILE = "runs.jsonl"
_BLOCK_SECONDS = 3.0  # about so long is one table run before the other is
_BLOCKS = 8
_CALLS = 40  # so many calls say what a run costs


@dataclass
class Runs:
    """Outputs by phase and table.

    Runs of one phase are never used in another: what an attack was chosen on does not judge it.

    Attributes:
        target: What is run.
        deadline: When to stop, on the clock of ``time.monotonic``.
        folder: Where the runs are kept; None where they are not.
        looks: How often a verdict was reached on runs that are kept.
        made: Runs made now, without those that were kept.
        seconds: Seconds of a run by table, as they were measured.
        run_seconds, start_seconds: About the seconds of a run, and of a start that makes many.
        failure: The error of a run that failed; None once a run has not.
    """

    target: Target
    deadline: float = math.inf
    folder: Path | None = None
    looks: int = 0
    made: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    run_seconds: float = 0.0
    start_seconds: float = 0.0
    failure: str | None = ""
    _calls: list[tuple[int, float]] = field(default_factory=list)
    _found: dict[tuple[str, str], list[Output]] = field(default_factory=lambda: defaultdict(list))

    @property
    def has_time(self) -> bool:
        """Whether the deadline has not passed."""
        return time.monotonic() < self.deadline

    def open(self, identity: Mapping[str, Any]) -> None:
        """Read what is kept in the folder, or begin its file.

        Args:
            identity: What the runs hang on.

        Raises:
            InputError: The runs in the folder are another audit's.
        """
        if self.folder is None:
            return
        path = self.folder / FILE
        if not os.path.isfile(path):
            write_atomically(path, _line({"audit": dict(identity)}))
            return
        content = path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            truncate_file(path, len(whole))  # a line that a killed run had begun
        lines = [json.loads(line) for line in whole.decode().splitlines()]
        if not lines or lines[0].get("audit") != json.loads(json.dumps(dict(identity))):
            raise InputError("out", str(self.folder), "holds the runs of another audit")
        for line in lines[1:]:
            if "look" in line:
                self.looks += 1
            else:
                kept = [Output.of_dict(one) for one in line["outputs"]]
                self._found[line["phase"], line["table"]] += kept
                self._note_failures(kept)

    def close(self, verdict: str) -> None:
        """Note that a verdict was reached: the next one pays for a further look."""
        self._keep({"look": self.looks + 1, "verdict": verdict})

    def collect(
        self, pair: Pair, phase: str, count: int, epsilon: float
    ) -> tuple[list[Output], list[Output]]:
        """Runs on both tables of a pair, in turns; equally many, fewer than wanted without time.

        Args:
            pair: The tables.
            phase: What the runs are for.
            count: How many are wanted on each side.
            epsilon: What the mechanism is told.
        """
        sides = [(table, self._found[phase, table.digest]) for table in (pair.first, pair.second)]
        while self.has_time and min(len(found) for _, found in sides) < count:
            for table, found in sides:
                size = self._choose_block(count)
                self._extend(table, found, phase, min(size, count - len(found)), epsilon)
            progress.report(f"audit, {phase}", min(len(found) for _, found in sides), count)
        least = min(count, *(len(found) for _, found in sides))
        return sides[0][1][:least], sides[1][1][:least]

    def make_one(self, table: Table, phase: str, epsilon: float) -> Output | None:
        """The run of a phase that has one; None if there is no time for it.

        Args:
            table: What it is run on.
            phase: What the run is for.
            epsilon: What the mechanism is told.
        """
        found = self._found[phase, table.digest]
        self._extend(table, found, phase, 1 - len(found), epsilon)
        return found[0] if found else None

    def _choose_block(self, count: int) -> int:
        """How many runs are made at once: small blocks, or few starts where a start takes long."""
        if not self._calls:
            return max(1, min(4, count))
        if self.run_seconds <= 0.0:
            return count
        most = int(max(_BLOCK_SECONDS, 4.0 * self.start_seconds) / self.run_seconds)
        # in turns: an end of the time must not leave one table without runs
        share = -(-count // (2 if self.target.has_batches else _BLOCKS))
        return max(1, min(most, share))

    def _note_cost(self, count: int, seconds: float) -> None:
        """Fit the seconds of a start and of a run to the calls that there were."""
        self._calls.append((count, seconds))
        calls = self._calls[-_CALLS:]
        if not self.target.has_batches:
            self.run_seconds = sum(time for _, time in calls) / sum(number for number, _ in calls)
            return
        least, most = min(calls), max(calls)
        rise = (most[1] - least[1]) / (most[0] - least[0]) if most[0] > least[0] else 0.0
        self.run_seconds = max(rise, 1e-3 * most[1] / most[0], 1e-9)
        self.start_seconds = max(0.0, least[1] - least[0] * self.run_seconds)

    def _extend(
        self, table: Table, found: list[Output], phase: str, size: int, epsilon: float
    ) -> None:
        if size < 1 or not self.has_time:
            return
        begin = time.monotonic()
        new = self.target.run(table, size, epsilon, self.deadline)
        if new:
            spent = time.monotonic() - begin
            self.seconds[table.digest] = spent / len(new)
            self._note_cost(len(new), spent)
        found += new
        self._note_failures(new)
        self.made += len(new)
        if self.folder is not None:
            outputs = [output.to_dict() for output in new]
            self._keep({"phase": phase, "table": table.digest, "outputs": outputs})

    def _note_failures(self, new: Sequence[Output]) -> None:
        for output in new:
            if self.failure is not None:
                self.failure = output.form if output.is_error else None

    def _keep(self, facts: Mapping[str, Any]) -> None:
        if self.folder is not None:
            append_durably(self.folder / FILE, _line(facts))


def _line(facts: Mapping[str, Any]) -> bytes:
    return (json.dumps(facts) + "\n").encode()
