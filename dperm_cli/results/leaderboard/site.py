"""Write the leaderboard's folder from a study's records: a page that works offline, and tables."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dperm_cli.core.files import write_files
from dperm_cli.core.package_paths import find_shipped
from dperm_cli.results.leaderboard.entries import COLUMNS, Entry, list_entries
from dperm_cli.results.leaderboard.mean_ranks import pack_ranks, rank_entries, write_ranks
from dperm_cli.results.leaderboard.method_cards import list_cards
from dperm_cli.results.leaderboard.peer_table import FILE, read_peers
from dperm_cli.results.leaderboard.problem_winners import (
    list_winners,
    tell_winners,
    write_winners,
)
from dperm_cli.results.leaderboard.reference import read_reference
from dperm_cli.results.page import html_page, page_data
from dperm_cli.results.records.row_facts import csv_lines
from dperm_cli.results.records.store import Snapshot
from dperm_cli.results.records.summary import summarise

SITE = "leaderboard"  # the folder inside the study's
AUDITS = "audits.csv"
SCRIPTS = ("view.js", "core.js", "grid.js", "leaderboard.js")
# by file of the folder, what it has
TABLES = {
    "table.csv": "every line with all columns; dperm compare STUDY table.csv places yours",
    "winners.csv": "who is first on each problem",
    "ranks.csv": "mean ranks with critical differences",
    AUDITS: "audits of the claims",
}
_SHOWN = (
    "method", "epsilon", "place", "excess_risk", "low", "high", "floor_share", "test_metric",
    "optimum_metric", "baseline_metric", "epsilon_audited", "seconds", "dataset", "loss",
    "constraint", "relation", "guarantee", "status",
)  # fmt: skip
# steps to enter a method: what to do, and commands that may be typed
_ENTER = (
    {
        "title": "It is made of dperm's parts: a plug-in",
        "steps": [
            {"text": "Write it, check it, and audit it.",
             "commands": ["dperm new mechanism mine", "dperm check mine.py",
                          "dperm audit --plugin mine.py mechanism=mine"]},
            {"text": "Add its name to the parts of conf/experiment/leaderboard.yaml.",
             "commands": []},
        ],
    },
    {
        "title": "It is anything else: an adapter",
        "steps": [
            {"text": "Write dperm_cli/runner/peers/adapters/NAME.py, with what the method states "
             "and a function fit, and a list of versions beside it. docs/leaderboard.md shows one.",
             "commands": []},
            {"text": "Install its packages and look at one problem.",
             "commands": ["dperm peers install NAME",
                          "dperm peers run NAME dataset=breast_cancer loss=logistic "
                          "privacy=approx epsilon=1"]},
            {"text": "Audit what it claims.",
             "commands": ["dperm audit exec:PROGRAM claim.epsilon=1 claim.delta=1e-5"]},
        ],
    },
    {
        "title": "Either",
        "steps": [
            {"text": "Run the table, and send the files with the lines that it wrote.",
             "commands": ["dperm reproduce leaderboard size=small"]},
        ],
    },
    {
        "title": "Compare results without sending anything",
        "steps": [
            {"text": "A run on a problem and the records of this table gets its place.",
             "commands": ["dperm run dataset=breast_cancer mechanism=noisy_gd out=mine",
                          "dperm compare mine leaderboard"]},
        ],
    },
)  # fmt: skip


def write_site(out: Path) -> None:
    """Write ``leaderboard/index.html`` and its tables into the study's folder."""
    write_files(out / SITE, make_site(out))


def make_site(out: Path) -> dict[str, bytes]:
    """The site's files by name, from what the study's folder holds."""
    store = Snapshot(out)
    manifest = store.read_manifest() or {}
    about = manifest.get("experiment") or {}
    rows = summarise(store.read_all(manifest.get("cells") or store.cells()))
    audits = read_audits(str(about.get("id") or SITE))
    entries = list_entries(rows, read_peers(out / FILE), audits, manifest.get("versions"))
    return pack_site(entries, audits, about, [str(word) for word in manifest.get("argv") or ()])


def make_published(about: Mapping[str, Any]) -> dict[str, bytes]:
    """The site's files from the results that come with dperm; their records are not beside it.

    Args:
        about: What the manifest of a study says of the experiment.
    """
    entries = [{**entry, "file": None} for entry in read_reference()]
    return pack_site(entries, read_audits(SITE), {**about, "size": None}, [])


def pack_site(
    entries: Sequence[Entry],
    audits: list[dict[str, str]],
    about: Mapping[str, Any],
    argv: list[str],
) -> dict[str, bytes]:
    """The page and the tables of all lines.

    Args:
        entries: The lines.
        audits: Audits of claims that are kept.
        about: The experiment: its text, its size, what the adapters of its peers state.
        argv: The command that made the lines, where it is known.
    """
    groups, winners = rank_entries(entries), list_winners(entries)
    size = about.get("size")
    lines = [[entry.get(name) for name in COLUMNS] for entry in entries]
    made = {
        "title": "Private learning with convex losses",
        "lede": " · ".join(filter(None, [about.get("text"), size and f"size={size}"])),
        "argv": argv,
        "rows": page_data.pack_rows(entries),
        "columns": COLUMNS,
        "shown": list(_SHOWN),
        "details": [name for name in COLUMNS if name not in _SHOWN],
        "winners": winners,
        "winning": tell_winners(winners),
        "ranks": pack_ranks(groups),
        "cards": list_cards(entries, about.get("peers") or {}, audits),
        "enter": list(_ENTER),
        "tables": TABLES,
    }
    texts = {
        "table.csv": csv_lines(list(COLUMNS), lines),
        "winners.csv": write_winners(winners),
        "ranks.csv": write_ranks(groups),
        AUDITS: _write_audits(audits),
    }
    page = html_page.page(made, "leaderboard.html", SCRIPTS)
    return {"index.html": page, **{name: text.encode() for name, text in texts.items()}}


def read_audits(study: str) -> list[dict[str, str]]:
    """The audits of claims that are kept with the experiment."""
    path = Path(find_shipped("experiments")) / study / AUDITS
    if not path.is_file():
        return []
    return list(csv.DictReader(path.read_text("utf-8").splitlines()))


def _write_audits(audits: list[dict[str, str]]) -> str:
    names = list(dict.fromkeys(name for audit in audits for name in audit))
    return csv_lines(names, ([audit[name] for name in names] for audit in audits))
