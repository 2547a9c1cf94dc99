"""Check that the readers of `dperm run` refuse bad input: one case of the audit."""

from __future__ import annotations

from pathlib import Path

from dperm_cli.audit.case_report import Report
from dperm_cli.core.errors import InputError
from dperm_cli.runner.compose import study_plan
from dperm_cli.runner.verbs import run

NAME = "bad input"
# Command lines of which each must be refused before anything is planned.
LINES = Path(__file__).with_suffix(".txt").read_text("utf-8").splitlines()


def examine_inputs() -> Report:
    """A report with a fault for everything that passes."""
    report = Report(NAME, "what `dperm run` must refuse", relation="-")
    for line in LINES:
        report.trials += 1
        try:
            _, study = study_plan.parse_request(line.split())
            run.prepare(study.cells)
        except InputError:
            continue
        except Exception as error:
            report.faults.append(f"{line} ends with {type(error).__name__}")
            continue
        report.faults.append(f"{line} is not refused")
    return report
