"""Lines of the leaderboard: rows of dperm's mechanisms and of peers with the same columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dperm_cli.results.leaderboard.peer_table import FILE
from dperm_cli.results.leaderboard.rerun_commands import write_peer_run, write_run
from dperm_cli.results.records.row_facts import group_by, name_of

Entry = dict[str, Any]

# Columns as the page shows them: kind, unit and what they mean.
_KINDS = {
    "method": ("text", "", "A mechanism of dperm, or a method of others."),
    "origin": ("text", "", "dperm; run: a peer that ran here; kept: a row that came with dperm."),
    "dataset": ("text", "", "The data set."),
    "loss": ("text", "", "The loss."),
    "constraint": ("text", "", "The set of points."),
    "constraint_radius": ("float", "", "Its radius."),
    "relation": ("text", "", "What neighbours are."),
    "guarantee": ("text", "", "pure, approx or local, as asked for."),
    "epsilon": ("float", "", "What was asked for."),
    "delta": ("float", "", "What was asked for."),
    "status": ("text", "", "ok, unsupported (a refusal), failed, absent (not installed)."),
    "reason": ("text", "", "Why there is no result."),
    "tuned": (
        "text",
        "",
        "default: nothing was tuned; tuned: what was chosen was paid for from the same budget. No "
        "row is tuned for free.",
    ),
    "place": ("int", "", "Among the results on the problem; 1 is the least excess risk."),
    "trials": ("int", "", "Repetitions."),
    "excess_risk": ("float", "per record", "Median over the certified optimum."),
    "low": ("float", "per record", "5 % quantile of the excess risk."),
    "high": ("float", "per record", "95 % quantile of the excess risk."),
    "floor": ("float", "per record", "Excess risk of a point that uses no data."),
    "floor_share": ("float", "", "1 at the optimum, 0 at the floor, below 0 worse than no data."),
    "metric": ("text", "", "What is measured on held-out records."),
    "test_metric": ("float", "", "The metric of the method."),
    "optimum_metric": ("float", "", "The metric of the non-private optimum."),
    "baseline_metric": ("float", "", "The metric of the majority's label, or of the mean."),
    "epsilon_accounted": ("float", "", "By dperm's accountant; of a peer nothing is accounted."),
    "epsilon_audited": (
        "float",
        "",
        "Largest bound of an audit of the method at this epsilon and "
        "relation, by its own pair and at the delta of audits.csv; empty: none.",
    ),
    "optimum_shift": (
        "float",
        "per record",
        "Of a peer that solves another problem: the excess risk of its point without noise.",
    ),
    "seconds": ("float", "s", "Of a trial; of peers processor time, of dperm wall time."),
    "memory": ("float", "MiB", "Peak of a peer's process."),
    "versions": (
        "text",
        "",
        "Of what ran. Of dperm: its own from the record, packages from the study's manifest.",
    ),
    "command": ("text", "", "Makes the line again; empty where no row of dperm has the problem."),
    "record": ("text", "", "The record's name, or the row's key in peers.csv."),
    "file": ("text", "", "Of the record, in the study's folder."),
    "problem": ("text", "", "What the rows of one problem share."),
    "n": ("int", "", "Training records."),
    "data_fingerprint": ("text", "", "Of the records."),
}
COLUMNS = {
    name: {"kind": kind, "unit": unit, "doc": doc} for name, (kind, unit, doc) in _KINDS.items()
}
_PROBLEM = (
    "dataset", "loss", "constraint", "constraint_radius", "relation", "guarantee", "epsilon",
)  # fmt: skip
_SAME = (
    *_PROBLEM, "n", "data_fingerprint", "delta", "status", "reason", "trials", "metric",
    "test_metric", "optimum_metric", "baseline_metric", "optimum_shift", "seconds",
)  # fmt: skip


def list_entries(
    rows: Iterable[Mapping[str, Any]],
    peers: Iterable[Mapping[str, Any]],
    audits: Sequence[Mapping[str, str]] = (),
    packages: Mapping[str, Any] | None = None,
) -> list[Entry]:
    """All lines: those of a problem together, the best first, refusals last.

    Args:
        rows: Summary rows of the study.
        peers: Rows of ``peers.csv``.
        audits: Audits that are kept, by method and claim.
        packages: Versions in the study's manifest.
    """
    told = [f"{name} {v}" for name, v in (packages or {}).items() if v and name != "dperm"]
    entries: list[Entry] = []
    sources: dict[tuple[Any, ...], Mapping[str, Any]] = {}  # of a problem, a row of dperm
    for row in rows:
        # what was asked for names the problem: a pure release may answer for an approximate one
        asked = {"guarantee": _name_guarantee(row)}
        facts = {"origin": "dperm", "versions": ", ".join([f"dperm {row['version']}", *told])}
        facts |= {"record": row["cell"], "file": f"records/{row['cell']}.parquet"}
        entries.append(_make_entry({**row, **asked}, audits) | facts | {"command": write_run(row)})
        sources.setdefault(_identify(entries[-1]), row)
    for row in peers:
        facts = {name: row[name] for name in ("origin", "versions", "memory")}
        facts |= {"record": row["key"], "file": FILE}
        entries.append(_make_entry(row, audits) | facts)
        source = sources.get(_identify(entries[-1]))
        if source is not None:
            entries[-1]["command"] = write_peer_run(row["mechanism"], source)
    _add_places(entries)
    order: dict[str, int] = {}
    for entry in entries:
        order.setdefault(entry["problem"], len(order))
    return sorted(
        ({name: entry.get(name) for name in COLUMNS} for entry in entries),
        key=lambda one: (order[one["problem"]], one["status"] != "ok", one["excess_risk"] or 0.0),
    )


def _identify(entry: Entry) -> tuple[Any, ...]:
    """What lines of one problem on the same records share."""
    return tuple(entry[name] for name in ("problem", "n", "data_fingerprint"))


def _add_places(entries: Iterable[Entry]) -> None:
    """Say of each result how many on its problem are better."""
    ran = [entry for entry in entries if entry["status"] == "ok"]
    for members in group_by(ran, lambda entry: entry["problem"]).values():
        for entry in members:
            ahead = sum(one["excess_risk"] < entry["excess_risk"] for one in members)
            entry["place"] = 1 + ahead


def _name_guarantee(row: Mapping[str, Any]) -> str:
    """What was asked for; privacy=auto asks for what delta allows."""
    return ("approx" if row["delta"] else "pure") if row["privacy"] == "auto" else row["privacy"]


def _make_entry(row: Mapping[str, Any], audits: Sequence[Mapping[str, str]]) -> Entry:
    risk, floor = row["excess_risk_per_record_median"], row["floor_excess_risk_per_record"]
    entry = {name: row.get(name) for name in _SAME}
    name = name_of(row) if "overrides" in row else row["mechanism"]
    bounds = [float(one["bound"]) for one in audits if one["method"] == name
              and _is_of_claim(one, entry)]  # fmt: skip
    n = row["n"]
    return entry | {
        "method": name,
        "tuned": "tuned" if _is_tuned(row) else "default",
        "excess_risk": risk,
        "low": None if risk is None else row["excess_risk_q05"] / n,
        "high": None if risk is None else row["excess_risk_q95"] / n,
        "floor": floor,
        "floor_share": None if risk is None or not floor else 1.0 - risk / floor,
        "epsilon_accounted": row.get("epsilon_accounted"),
        "epsilon_audited": max(bounds, default=None),
        "problem": " ".join(_format(entry[key]) for key in _PROBLEM),
    }


def _is_tuned(row: Mapping[str, Any]) -> bool:
    """Whether the method chose among candidates by a part of its budget."""
    settings = row.get("settings") or "{}"
    tuning = json.loads(settings).get("tuning") if isinstance(settings, str) else None
    return isinstance(tuning, dict) and "candidates" in tuning


def _is_of_claim(audit: Mapping[str, str], entry: Mapping[str, Any]) -> bool:
    """Whether an audit was of the epsilon, the relation and the kind of delta of a line.

    One that names no relation or delta is of any.
    """
    relation, delta = audit.get("relation"), audit.get("delta")
    return (
        float(audit["claim"]) == entry["epsilon"]
        and relation in (None, "", entry["relation"])
        and (not delta or (float(delta) > 0.0) == bool(entry["delta"]))
    )


def _format(value: Any) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) else str(value)
