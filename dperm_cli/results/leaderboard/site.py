"""Write the leaderboard's folder from a study's records: a page that works offline, and a table."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dperm_cli.core.files import write_files
from dperm_cli.core.package_paths import find_shipped
from dperm_cli.results.leaderboard.entries import COLUMNS, Entry, list_entries
from dperm_cli.results.leaderboard.peer_table import ABSENT, FILE, read_peers
from dperm_cli.results.page import html_page, page_data
from dperm_cli.results.records.row_facts import csv_lines, distinct, group_by
from dperm_cli.results.records.store import Snapshot
from dperm_cli.results.records.summary import summarise
from dperm_cli.results.tables.rankings import compute_critical_difference

SITE = "leaderboard"  # the folder inside the study's
AUDITS = "audits.csv"
SCRIPTS = ("view.js", "core.js", "grid.js", "leaderboard.js")
_SHOWN = (
    "method", "dataset", "loss", "constraint", "relation", "guarantee", "epsilon", "status",
    "excess_risk", "low", "high", "floor_share", "test_metric", "optimum_metric",
    "baseline_metric", "epsilon_audited", "seconds",
)  # fmt: skip
_ENTER = (
    "A method of your own that works with dperm's parts is a plug-in: dperm new mechanism mine, "
    "dperm check mine.py, dperm audit --plugin mine.py mechanism=mine.",
    "Any other method is an adapter: a file in dperm_cli/runner/peers/adapters with what it states "
    "and a function fit, a list of versions, and dperm audit on its claim. docs/leaderboard.md "
    "shows one. Send both with the rows that dperm reproduce leaderboard wrote to peers.csv.",
    "To compare results of your own, take table.csv beside this page: a line for each method and "
    "problem.",
)


def write_site(out: Path) -> None:
    """Write ``leaderboard/index.html`` and ``table.csv`` into the study's folder."""
    write_files(out / SITE, make_site(out))


def make_site(out: Path) -> dict[str, bytes]:
    """The site's files by name, from what the study's folder holds."""
    store = Snapshot(out)
    manifest = store.read_manifest() or {}
    about = manifest.get("experiment") or {}
    rows = summarise(store.read_all(manifest.get("cells") or store.cells()))
    audits = read_audits(str(about.get("id") or SITE))
    entries = list_entries(rows, read_peers(out / FILE), audits)
    lines = [[entry.get(name) for name in COLUMNS] for entry in entries]
    made = {
        "title": "Private learning with convex losses",
        "lede": f"{about.get('text', '')} · size={about.get('size', '')}",
        "rows": page_data.pack_rows(entries),
        "columns": COLUMNS,
        "shown": list(_SHOWN),
        "details": [name for name in COLUMNS if name not in _SHOWN],
        "ranks": rank_groups(entries),
        "cards": list_cards(entries, about.get("peers") or {}, audits),
        "enter": list(_ENTER),
    }
    page = html_page.page(made, "leaderboard.html", SCRIPTS)
    return {"index.html": page, "table.csv": csv_lines(list(COLUMNS), lines).encode()}


def read_audits(study: str) -> list[dict[str, str]]:
    """The audits of claims that are kept with the experiment."""
    path = Path(find_shipped("experiments")) / study / AUDITS
    if not path.is_file():
        return []
    return list(csv.DictReader(path.read_text("utf-8").splitlines()))


def rank_groups(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Mean ranks of the methods of each loss and guarantee; who refuses a problem is last there."""
    from scipy.stats import rankdata

    groups = group_by(entries, lambda entry: (entry["loss"], entry["guarantee"]))
    found = []
    for (loss, kind), members in groups.items():
        names = distinct([one for one in members if one["status"] == "ok"], "method")
        risks = [
            {one["method"]: one["excess_risk"] for one in problem if one["status"] == "ok"}
            for problem in group_by(members, lambda entry: entry["problem"]).values()
        ]
        lines = [[risk.get(name, math.inf) for name in names] for risk in risks if risk]
        if len(names) < 2 or not lines:
            continue
        ranks = [list(map(float, rankdata(line))) for line in lines]
        told = [
            {
                "name": name,
                "mean_rank": math.fsum(rank[i] for rank in ranks) / len(ranks),
                "wins": sum(line[i] == min(line) for line in lines),
                "refusals": sum(math.isinf(line[i]) for line in lines),
            }
            for i, name in enumerate(names)
        ]
        words = f"{len(lines)} problems; 1 is best, and who refuses is last"
        if len(lines) > 1:
            width = compute_critical_difference(len(names), len(lines))
            words += f". Ranks further apart than {width:.2f} differ at the 5 % level (Nemenyi)"
        told.sort(key=lambda one: (one["mean_rank"], one["name"]))
        found.append({"title": f"{loss}, {kind}", "words": words, "names": told})
    return found


def list_cards(
    entries: Sequence[Entry],
    peers: Mapping[str, Mapping[str, Any]],
    audits: Sequence[Mapping[str, str]],
) -> list[dict[str, Any]]:
    """What is known of each method: guarantee, trust, proof, how its problem differs, audits."""
    cards = []
    for name, members in group_by(entries, lambda entry: entry["method"]).items():
        ran = [one for one in members if one["status"] == "ok"]
        facts: dict[str, str] = {
            "guarantee": ", ".join(distinct(ran, "guarantee")),
            "relation": ", ".join(distinct(ran, "relation")),
            "versions": ", ".join(str(v) for v in distinct(ran, "versions") if v),
            "not installed": "yes" if any(one["status"] == ABSENT for one in members) else "",
        }
        if name in peers:
            words = {key: value for key, value in peers[name].items() if isinstance(value, str)}
            facts = {"method": words.pop("title", ""), **words, **facts}
            facts["trust"] = "as its authors state; dperm has not proved it"
        else:
            facts["trust"] = "dperm's accountant"
            facts["proof"] = f"docs/proofs/{name.partition('(')[0]}.md"
        mine = [one for one in audits if one["method"] == name]
        facts["audits"] = "; ".join(map(_tell_audit, mine))
        bad = [one for one in mine if one["verdict"] != "not shown"]
        refuted = "; ".join(f"{one['records']}: {one['verdict']}" for one in bad)
        cards.append({"method": name, "facts": facts, "refuted": refuted})
    return cards


def _tell_audit(audit: Mapping[str, str]) -> str:
    """An audit in a line."""
    about = ", ".join(filter(None, (audit["records"], audit.get("relation"))))
    delta = f", delta {audit['delta']}" if audit.get("delta") else ""
    ends = f"bound {audit['bound']} from {audit['runs']} runs"
    return f"claim {audit['claim']}{delta} ({about}): {audit['verdict']}, {ends}"
