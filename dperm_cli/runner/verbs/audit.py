"""``dperm audit``: what can be shown about a run's epsilon, or every mechanism's, from outside."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from dperm_cli.audit.case_report import Report
from dperm_cli.audit.mechanism_audit import Verdict
from dperm_cli.core import checks, registry
from dperm_cli.core.errors import EXIT_FAILED, EXIT_OK
from dperm_cli.core.files import write_files
from dperm_cli.privacy.budget import RELATIONS, Budget
from dperm_cli.results.records.row_facts import csv_lines
from dperm_cli.runner.audit_findings import Findings, attack_instance
from dperm_cli.runner.audit_request import Asked, parse, read_number
from dperm_cli.runner.audits import (
    audit_grid,
    audit_tables,
    bad_input,
    fuzz,
    one_run,
    outside_request,
)
from dperm_cli.runner.audits.audit_grid import GridWalk
from dperm_cli.runner.compose import cell_schema
from dperm_cli.runner.job_pool import Job, run_jobs
from dperm_cli.runner.verbs.audit_outside import audit_outside

DELTA = 1e-5
SLOW_MECHANISMS = (
    "noisy_sgd",
    "high_probability",
    "localization",
    "frank_wolfe",
)  # walks that take longest


def audit(arguments: list[str]) -> int:
    """Audit and print; 1 on a violation, and where nothing could be audited."""
    if outside_request.is_asked(arguments):
        return audit_outside(arguments)
    if fuzz.is_asked(arguments):
        return fuzz.fuzz(arguments)
    asked = parse(arguments)
    found = find_all(asked)
    for note in found.notes:
        print(note, file=sys.stderr)
    rows = make_rows(found, asked.seed)
    print(_json(rows) if asked.format == "json" else audit_tables.format_findings(found))
    for line in [*found.faults, *found.unattacked]:
        print(line, file=sys.stderr)
    if asked.out is not None:
        _write(asked.out, rows)
    return EXIT_OK if found.is_passed else EXIT_FAILED


def find_all(asked: Asked) -> Findings:
    """Attack the study that is asked for, or every mechanism."""
    with threadpool_limits(1):
        return one_run.audit_study(asked) if asked.has_configuration else _audit_all(asked)


def make_rows(found: Findings, seed: int) -> list[dict[str, Any]]:
    """A row for each attack: of a mechanism's own adversary, or of a case."""
    rows = [verdict.row() | {"kind": "adversary"} for verdict in found.verdicts]
    rows += [report.row() | {"kind": "case"} for report in found.reports]
    rows += audit_tables.missing_rows(found.walks)
    return [row | {"seed": seed} for row in rows]


def _audit_all(asked: Asked) -> Findings:
    """Every mechanism's own adversary, and the declared grid."""
    names = _names(asked.read_word("mechanism", "all"))
    levels = [_epsilon(word) for word in asked.read_word("epsilon", "1").split(",")]
    delta = read_number(asked.read_word("delta", repr(DELTA)))
    delta = cell_schema.check_delta("delta", delta)
    part, case = asked.settings.get("part", "all"), _case(asked)
    jobs: list[Job] = []
    if part != "grid" and case is None:
        jobs += _adversaries(names, levels, delta, asked)
    if part != "adversary" or case is not None:
        walks = [Job((name,), audit_grid.walk, (name, asked.quick)) for name in names]
        # what takes longest comes first
        walks.sort(key=lambda job: job.arguments[0] not in SLOW_MECHANISMS)
        jobs = [*walks, *jobs]
        if case is None:
            jobs.append(Job((bad_input.NAME,), bad_input.examine_inputs, ()))
    found = Findings([], [], [])

    def more(job: Job, result: Any) -> list[Job]:
        """The cases of a walk follow from its design."""
        if not isinstance(result, GridWalk):
            return []
        chunks = result.chunks() if case is None else [result.only(case)]
        return [
            Job((result.name, f"cases from {stops[0].number}"), audit_grid.examine_stops,
                (result.name, stops, asked.seed))
            for stops in chunks
        ]  # fmt: skip

    results = run_jobs(jobs, more, asked.workers)
    for result in results:
        if isinstance(result, GridWalk):
            found.walks.append(result)
            if not result.stops:
                found.reports.append(_no_case(result))
        elif isinstance(result, Report):
            found.reports.append(result)
        elif isinstance(result, list):
            found.reports += result
        elif result is not None:
            found.verdicts.append(result)
        if asked.settings.get("stop") == "first" and found.faults:
            results.close()
            break
    order = [*names, bad_input.NAME]
    found.reports.sort(key=lambda report: (order.index(report.mechanism), report.case))
    found.walks.sort(key=lambda walk: names.index(walk.name))
    found.verdicts.sort(key=lambda v: (names.index(v.name), levels.index(v.budget.epsilon),
                                       RELATIONS.index(v.budget.relation)))  # fmt: skip
    return found


def _no_case(walk: GridWalk) -> Report:
    """The report on a mechanism of which nothing on the grid can be run.

    A shipped one is on the grid: that is a fault.
    """
    why = walk.missing[0][1] if walk.missing else "it has no settings"
    words = f"no case of the grid can be run: {why}"
    if walk.name in registry.list_shipped("mechanism"):
        return Report(walk.name, "no settings", faults=[words])
    return Report(walk.name, "no settings", reason=words)


def _adversaries(
    names: Sequence[str], levels: Sequence[float], delta: float, asked: Asked
) -> list[Job]:
    return [
        Job((name, f"epsilon={epsilon:g}", relation), attack_as_shipped,
            (name, _make_budget(name, epsilon, delta, relation), asked.seed, asked.quick))
        for name in names
        for epsilon in levels
        for relation in RELATIONS
        if relation in registry.load("mechanism", name).relations
    ]  # fmt: skip


def attack_as_shipped(name: str, budget: Budget, seed: int, quick: bool) -> Verdict | None:
    """A mechanism's own adversary against it; None where it has no plan."""
    return attack_instance(name, registry.load("mechanism", name)(), budget, seed, quick)


def _make_budget(name: str, epsilon: float, delta: float, relation: str) -> Budget:
    """Local channels have no delta."""
    if registry.load("mechanism", name).guarantees == ("local",):
        return Budget(epsilon, 0.0, relation, "local")
    return Budget(epsilon, delta, relation)


def _names(given: str) -> list[str]:
    if given == "all":
        return list(registry.list_protective())
    names = given.split(",")
    one_run.check_protective(names)
    return names


def _epsilon(word: str) -> float:
    return cell_schema.check_key("epsilon", read_number(word))


def _case(asked: Asked) -> int | None:
    word = asked.settings.get("case")
    return None if word is None else checks.integer("case", read_number(word), low=0)


def _write(out: Path, rows: list[dict[str, Any]]) -> None:
    files = {}
    for kind, name in (("adversary", "audit.csv"), ("case", "cases.csv")):
        chosen = [row for row in rows if row["kind"] == kind]
        if chosen:
            files[name] = _csv(chosen).encode()
    write_files(out, files | {"audit.json": (_json(rows) + "\n").encode()})


def _csv(rows: list[dict[str, Any]]) -> str:
    cells = (["; ".join(v) if isinstance(v, list) else v for v in row.values()] for row in rows)
    return csv_lines(rows[0], cells)


def _json(rows: list[dict[str, Any]]) -> str:
    return "\n".join(json.dumps({k: _finite(v) for k, v in row.items()}) for row in rows)


def _finite(value: Any) -> Any:
    """JSON has no nan and no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
