"""Print an audit: the adversaries' table, the table of cases, and what was not attacked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dperm_cli.audit.case_report import Report
from dperm_cli.audit.mechanism_audit import Verdict
from dperm_cli.runner.audits.audit_grid import GridWalk

HEAD = (
    "mechanism", "relation", "epsilon", "delta", "bound", "tightness", "floor", "control",
    "replay", "worst", "exact", "verdict",
)  # fmt: skip
CASES = (
    "mechanism", "cases", "pairs", "replay", "worst", "exact", "law", "bound/claim", "paths",
    "verdict",
)  # fmt: skip
_LONGEST = 110
_WORST = "worst: the largest move of a replayed call, over its sensitivity: at most 1"
HEAD_KEY = (
    "bound: an epsilon that the attack proves; tightness: bound over claimed epsilon, at most 1",
    "floor: what the tightness must reach, where so many runs can show it; - where none is asked",
    "control: whether the attack notices half the noise; no room: not asked for",
    _WORST,
    "exact: the loss of the noise law by quadrature, over what is claimed for it: at most 1",
)
CASES_KEY = (
    _WORST,
    "exact: the largest loss of the noise by quadrature, over its claim: at most 1",
    "law: the least p-value of a comparison of two paths' laws",
    "bound/claim: the largest epsilon that an attack proves, over the claim: at most 1",
)


def format_findings(found: Any) -> str:
    """All tables of the findings of an audit."""
    parts = []
    if found.verdicts:
        table = _columns([HEAD, *(_cells(verdict.row()) for verdict in found.verdicts)])
        parts.append("\n".join((table, *HEAD_KEY)))
    if found.reports:
        names = dict.fromkeys(report.mechanism for report in found.reports)
        table = _columns([CASES, *(_summary(name, found.reports) for name in names)])
        parts.append("\n".join((table, *CASES_KEY)))
    left = list_unattacked(found.reports, found.walks, found.verdicts)
    if left:
        parts.append("\n".join(["not attacked:", *(f"  {line}" for line in left)]))
    return "\n\n".join(parts) if parts else "nothing was audited"


def missing_rows(walks: Sequence[GridWalk]) -> list[dict[str, Any]]:
    """The values and pairs that the grid could not include, as JSON-able rows."""
    return [
        {"kind": "not attacked", "mechanism": walk.name, "settings": what, "reason": reason}
        for walk in walks
        for what, reason in walk.missing
    ]


def list_unattacked(
    reports: Sequence[Report], walks: Sequence[GridWalk], verdicts: Sequence[Verdict] = ()
) -> list[str]:
    """A line for everything that was not attacked, with the reason; equal reasons share one."""
    left = [(walk.name, reason, what) for walk in walks for what, reason in walk.missing]
    for verdict in verdicts:
        for words in verdict.not_attacked:
            what, _, reason = words.partition(": ")
            left.append((verdict.name, reason, what))
    for report in reports:
        name, case = report.mechanism, f"case {report.case}"
        if not report.is_attacked:
            left.append((name, report.reason or "no check applies", case))
        for words in report.not_attacked:
            what, _, reason = words.partition(": ")
            left.append((name, reason or what, f"{what} in {case}"))
    found: dict[tuple[str, str], list[str]] = {}
    for name, reason, what in left:
        found.setdefault((name, reason), []).append(what)
    return [
        f"{name}: {_join_names(whats)} ({_short(reason)})"
        for (name, reason), whats in found.items()
    ]


def _join_names(words: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(words))
    more = f" and {len(distinct) - 3} more" if len(distinct) > 3 else ""
    return ", ".join(distinct[:3]) + more


def _short(reason: str) -> str:
    return reason if len(reason) <= _LONGEST else reason[: _LONGEST - 3] + "..."


def _summary(name: str, every: Sequence[Report]) -> tuple[str, ...]:
    """The line of a mechanism."""
    reports = [report for report in every if report.mechanism == name]
    attacked = [report for report in reports if report.is_attacked]
    exact = [report.exact for report in attacked if report.exact is not None]
    laws = [report.law for report in attacked if report.law is not None]
    shares = [r.bound / r.claim for r in attacked if r.trials and r.claim > 0.0]
    paths = list(dict.fromkeys(path for report in attacked for path in report.paths))
    wrong = sum(bool(report.faults) for report in reports)
    verdict = f"violation in {wrong}" if wrong else ("ok" if attacked else "not attacked")
    return (
        name,
        f"{len(attacked)} of {len(reports)}",
        str(sum(len(report.pairs) for report in attacked)),
        f"{sum(report.replay_calls for report in attacked)} calls",
        f"{max((r.replay_worst for r in attacked), default=0.0):.4f}",
        f"{max(exact):.6f}" if exact else "-",
        f"{min(laws):.2g}" if laws else "-",
        f"{max(shares):.3f}" if shares else "-",
        ", ".join(paths) or "-",
        verdict,
    )


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    caught = "missed" if row["control_asked"] else "no room"
    caught = "caught" if row["control_caught"] else caught
    return (
        row["mechanism"],
        row["relation"],
        f"{row['claim']:.4g}",
        f"{row['delta']:.3g}",
        f"{row['bound']:.4g}",
        f"{row['tightness']:.3f}",
        "-" if row["floor"] is None else f"{row['floor']:.2f}",
        caught,
        f"{row['replay_calls']} calls",
        f"{row['replay_worst']:.4f}",
        "-" if row["exact"] is None else f"{row['exact']:.6f}",
        row["verdict"],
    )


def _columns(lines: Sequence[tuple[str, ...]]) -> str:
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join(
        "  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
