"""Place the cells of a study among the results of the leaderboard that come with dperm."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dperm_cli.core.errors import InputError
from dperm_cli.core.files import read_bytes
from dperm_cli.core.number_text import number_in
from dperm_cli.core.package_paths import find_shipped
from dperm_cli.core.read_errors import report_read_errors
from dperm_cli.results.leaderboard.entries import COLUMNS, Entry, list_entries
from dperm_cli.results.leaderboard.peer_table import LATER

NAME = "leaderboard"  # the word for these results in the place of a study
FILE = "results.csv"  # the table.csv of the leaderboard's page, beside its experiment's claims
_NUMBERS = {name for name, column in COLUMNS.items() if column["kind"] in ("float", "int")}
Place = dict[str, Any]


def read_reference(path: Path | None = None) -> list[Entry]:
    """The leaderboard's lines.

    Args:
        path: A table.csv of a leaderboard; the one that comes with dperm where it is None.

    Returns:
        A line for each method and problem.

    Raises:
        InputError: The file is not there, or no such table.
    """
    path = path or Path(find_shipped("experiments")) / NAME / FILE
    data = read_bytes(path)
    if data is None:
        raise InputError(NAME, str(path), "is not there")
    with report_read_errors(NAME, path):
        lines = list(csv.DictReader(data.decode().splitlines()))
        return [
            {
                name: number_in(line[name]) if name in _NUMBERS else line[name] or None
                for name in COLUMNS
            }
            for line in (LATER | found for found in lines)
        ]


def place_rows(rows: Iterable[Mapping[str, Any]], reference: Sequence[Entry]) -> list[Place]:
    """Where results stand among those of the leaderboard on the same problem and records.

    Args:
        rows: Summary rows of a study.
        reference: Lines of the leaderboard.

    Returns:
        For each result on a problem of the leaderboard its ``place`` among ``methods`` (1 is
        best), the best method there, and ``ratio``, the excess risk over that one's.
    """
    placed = []
    for entry in list_entries(rows, []):
        others = [one for one in reference if _is_same_problem(one, entry)]
        if entry["status"] != "ok" or not others:
            continue
        best = min(others, key=lambda one: one["excess_risk"])
        ahead = sum(one["excess_risk"] < entry["excess_risk"] for one in others)
        kept = ("method", "problem", "excess_risk", "floor_share", "trials", "record")
        placed.append(
            {name: entry[name] for name in kept}
            | {"place": 1 + ahead, "methods": 1 + len(others)}
            | {"best": best["method"], "best_excess_risk": best["excess_risk"]}
            | {"ratio": entry["excess_risk"] / best["excess_risk"]}
        )
    return placed


def describe_problems(reference: Sequence[Entry], datasets: Collection[str]) -> str:
    """The problems of the leaderboard on some data sets, each once, with its values of epsilon.

    Args:
        reference: Lines of the leaderboard.
        datasets: Names of data sets; where the leaderboard has none of them, it names its own.
    """
    near = [one for one in reference if one["dataset"] in datasets]
    if not near:
        names = dict.fromkeys(one["dataset"] for one in reference)
        return f"its data sets are {', '.join(names)}"
    levels: dict[str, list[str]] = {}
    for problem in dict.fromkeys(one["problem"] for one in near):
        rest, epsilon = problem.rsplit(" ", 1)
        levels.setdefault(rest, []).append(epsilon)
    return "; ".join(f"{rest} at epsilon {', '.join(all_)}" for rest, all_ in levels.items())


def format_places(places: Sequence[Place]) -> str:
    """The places as lines for a terminal, those of one problem together."""
    lines, before = [], None
    for one in sorted(places, key=lambda one: (one["problem"], one["excess_risk"])):
        if one["problem"] != before:
            before = one["problem"]
            lines.append(f"{before}: best is {one['best']} with {one['best_excess_risk']:.4g}")
        share = "" if one["floor_share"] is None else f", floor share {one['floor_share']:.3g}"
        lines.append(
            f"  {one['method']}: {one['excess_risk']:.4g} per record, "
            f"{one['ratio']:.3g} times the best, place {one['place']} of {one['methods']}"
            f"{share}; median of {one['trials']} trials"
        )
    return "\n".join(lines)


def _is_same_problem(one: Entry, entry: Entry) -> bool:
    same = ("problem", "data_fingerprint", "n")
    return one["status"] == "ok" and all(one[name] == entry[name] for name in same)
