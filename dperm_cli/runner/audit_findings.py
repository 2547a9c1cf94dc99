"""The results of an audit, and the attack of a mechanism's own adversary."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from dperm_cli.audit import mechanism_audit as audits
from dperm_cli.audit.case_report import Report
from dperm_cli.audit.mechanism_audit import Verdict, examine
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported, describe_error
from dperm_cli.privacy.budget import Budget
from dperm_cli.runner.audits.audit_grid import GridWalk

QUICK_ROUNDS = 40


@dataclass
class Findings:
    """All that an audit found, in the order of the mechanisms; ``notes`` say what was left out."""

    verdicts: list[Verdict]
    reports: list[Report]
    walks: list[GridWalk]
    notes: list[str] = field(default_factory=list)

    @property
    def faults(self) -> list[str]:
        """What is wrong, a line each."""
        found = [
            f"{v.name}, {v.budget.relation}: {fault}" for v in self.verdicts for fault in v.faults
        ]
        for report in self.reports:
            found += [f"{report.head}: {fault}" for fault in report.faults]
        for walk in self.walks:
            found += [
                f"{walk.name}, {what}: a plan is above its budget: {reason}"
                for what, reason in walk.missing
                if reason.startswith("refused to release")
            ]
        return found

    @property
    def unattacked(self) -> list[str]:
        """A line for each mechanism of which nothing was attacked, with the reason."""
        names = dict.fromkeys([*(v.name for v in self.verdicts), *(w.name for w in self.walks)])
        attacked = {v.name for v in self.verdicts if v.is_attacked}
        attacked |= {report.mechanism for report in self.reports if report.is_attacked}
        wrong = {v.name for v in self.verdicts if v.faults}
        wrong |= {report.mechanism for report in self.reports if report.faults}
        reasons: dict[str, str] = {}
        for verdict in self.verdicts:
            reasons.setdefault(verdict.name, "; ".join(verdict.not_attacked))
        for report in self.reports:
            reasons.setdefault(report.mechanism, report.reason or "no check applies")
        return [
            f"{name}: nothing was attacked: {reasons.get(name) or 'it has no plan'}"
            for name in names
            if name not in attacked | wrong
        ]

    @property
    def is_passed(self) -> bool:
        """Whether nothing is wrong, and something of every mechanism was attacked."""
        return not (self.faults or self.is_empty or self.unattacked)

    @property
    def is_empty(self) -> bool:
        """Whether nothing at all was attacked."""
        tried = any(verdict.is_attacked or verdict.faults for verdict in self.verdicts)
        return not tried and not any(report.is_attacked for report in self.reports)


def attack_instance(
    name: str, mechanism: Any, budget: Budget, seed: int, quick: bool
) -> Verdict | None:
    """The adversary of an instance; None where there is no plan to attack."""
    rounds = (QUICK_ROUNDS if quick else audits.ROUNDS) // 2  # the two relations share them
    try:
        return examine(name, mechanism, budget, seed=seed, quick=quick, rounds=rounds)
    except Unsupported:
        return None
    except Exception as error:
        return audits.make_refused_verdict(name, budget, f"raised {describe_error(error)[:200]}")
