"""Audit a claim by the method that was asked for, and what every method reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dperm_cli.core.dataclass import dataclass
from dperm_cli.runner.audits import canary_audit, outside_report
from dperm_cli.runner.audits.outside_audit import Question, audit_claim
from dperm_cli.runner.audits.outside_targets import Target


@dataclass(frozen=True)
class ClaimReport:
    """What an audit of a claim found.

    Attributes:
        row: All of it as JSON has it: plain numbers, None for what is not finite.
        text: It as lines of text.
        files: What ``out=`` keeps beside the runs, by name.
        is_refuted: Whether the claim does not hold.
    """

    row: dict[str, Any]
    text: str
    files: dict[str, bytes]
    is_refuted: bool


def audit_by_method(target: Target, question: Question, out: Path | None = None) -> ClaimReport:
    """Try to refute a claim, with pairs of tables or with canaries.

    Args:
        target: The mechanism.
        question: The claim, the method, and how long to look.
        out: A folder that keeps the runs, so that an audit which was ended goes on.

    Raises:
        InputError: The mechanism cannot be started, every run failed, or the folder holds another
            audit's runs.
    """
    if question.method == canary_audit.METHOD:
        found = canary_audit.audit_with_canaries(target, question, out)
        row, text = canary_audit.make_row(found), canary_audit.format_result(found)
        return ClaimReport(row, text, canary_audit.list_files(found), found.is_refuted)
    result = audit_claim(target, question, out)
    row, text = outside_report.make_row(result), outside_report.format_result(result)
    return ClaimReport(row, text, outside_report.list_files(result), result.is_refuted)
