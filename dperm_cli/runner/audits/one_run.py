"""An audit of the run that a command line describes: its own plan, on made-up neighbours."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from dperm_cli.audit import hard_pairs, pair_file
from dperm_cli.audit.case_report import Report
from dperm_cli.audit.cell_checks import examine
from dperm_cli.audit.opened_cell import OK
from dperm_cli.core import plugin_sources, registry
from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.runner.audit_findings import Findings, attack_instance
from dperm_cli.runner.audit_request import Asked
from dperm_cli.runner.audits import audit_cells
from dperm_cli.runner.cells import prepared_cell
from dperm_cli.runner.cells import run_cell as cells
from dperm_cli.runner.cells.prepared_cell import Prepared
from dperm_cli.runner.compose import cell_schema, study_plan
from dperm_cli.runner.compose.fitting_mechanism import build_shipped
from dperm_cli.runner.job_pool import Job, run_jobs
from dperm_cli.runner.verbs import run

EFFORT, QUICK_EFFORT = 20.0, 2.0  # how many times longer than a case of the grid one may take
_MOST_ENTRIES = 5e7  # of the rows of a made-up data set


def audit_study(asked: Asked) -> Findings:
    """Attack every cell of the study that these words describe."""
    _, study = study_plan.parse_request(["-m", *map(_expand_all, asked.words)])
    _check_study(asked)
    _check_guarantees(study.cells)
    prepared = run.prepare(study.cells, study.keys.data_storage)
    found = Findings([], [], [])
    jobs, file = [], asked.settings.get("pair")
    for number, item in enumerate(prepared):
        given = None if file is None else pair_file.read(file, audit_cells.of_cell(item).shape)
        label = (item.cell.mechanism_name, f"on {item.data.name}")
        jobs.append(Job(label, audit_cell, (item, number, given, asked.seed, asked.quick)))
    for report, verdict in run_jobs(jobs, lambda *_: [], asked.workers if len(jobs) > 1 else 1):
        found.reports.append(report)
        found.verdicts += [] if verdict is None else [verdict]
    found.reports.sort(key=lambda report: report.case)
    if found.is_empty:
        for report, item in zip(found.reports, prepared, strict=True):
            reason = report.reason or "no check applies"
            fitting = " or ".join(list_fitting(item))
            advice = (
                f"set mechanism={fitting}"
                if fitting
                else "no mechanism has a plan for this problem and budget"
            )
            words = f"nothing was audited: {report.mechanism}: {reason}; {advice}"
            found.notes.append(words)
    return found


def _expand_all(word: str) -> str:
    """``mechanism=all`` as a list of names."""
    if word.replace(" ", "") != "mechanism=all":
        return word
    return f"mechanism={','.join(registry.list_protective())}"


def check_protective(names: Iterable[str]) -> None:
    """InputError for the name of a mechanism that promises nothing: there is nothing to attack."""
    for name in names:
        registry.look_up("mechanism", name)
        plugin_sources.choose("mechanism", name, ("all", *registry.list_protective()))


def _check_guarantees(found: Iterable[cell_schema.Cell]) -> None:
    """InputError for a cell of ``guarantee none``, by its mechanism or by how it is set."""
    for cell in found:
        check_protective([cell.mechanism_name])
        if cell.mechanism.is_unprotected:
            allowed = "gives no guarantee as it is set: there is nothing to attack"
            raise InputError("mechanism", cell.mechanism_name, allowed)


def _check_study(asked: Asked) -> None:
    """InputError for keys that are about a study's files."""
    for word in asked.words:
        key, _, value = word.partition("=")
        if key in cell_schema.STUDY_KEYS:
            raise InputError(key, value, "is a key of `dperm run`: an audit keeps no records")


def audit_cell(
    item: Prepared, number: int, given: Any, seed: int, quick: bool
) -> tuple[Report, Any]:
    """The report of one cell, and the verdict on its mechanism's own adversary."""
    subject = audit_cells.of_cell(item)
    entries = float(subject.shape.n) * subject.shape.p
    if entries > _MOST_ENTRIES:
        name, shape = item.cell.mechanism_name, subject.shape
        reason = f"{shape.n} records of {shape.p} columns are too many to make up"
        return Report(name, subject.words, status="unsupported", reason=reason, case=number), None
    kinds = hard_pairs.KINDS[: 2 if quick else len(hard_pairs.KINDS)]
    case = audit_cells.case(subject, kinds, seed, given=given)
    report = examine(replace(case, effort=QUICK_EFFORT if quick else EFFORT), seed)
    report.case = number
    if report.status != OK:
        return report, None
    opened, verdict = case.neighbours[0].first, None
    budget, is_local = opened.budget, opened.guarantee.kind == "local"
    if math.isfinite(budget.epsilon) and (is_local or item.cell.noise == "research"):
        verdict = attack_instance(
            item.cell.mechanism_name, item.cell.mechanism, budget, seed, quick
        )
    return report, verdict


def list_fitting(item: Prepared, most: int = 3) -> list[str]:
    """The first mechanisms, as they are shipped, that have a plan for the problem of a cell."""
    one, found = item.cell, []
    for name, made in build_shipped(registry.list_protective(), one.calibration, one.sampler):
        other = replace(item, cell=replace(one, mechanism=made, mechanism_name=name))
        try:
            cells.plan_of(other, prepared_cell.find_budget(other)[0])
        except (Unsupported, ArithmeticError):
            continue
        found.append(name)
        if len(found) == most:
            break
    return found
