"""Mean ranks of the leaderboard's methods: overall, on each data set and on each kind of problem.

Ranks are compared where all were asked. So a method takes part in a group where it has a line,
a result or a refusal, on every problem of the group; the group names those that are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

from dperm_cli.core.dataclass import dataclass
from dperm_cli.results.leaderboard.entries import Entry
from dperm_cli.results.leaderboard.peer_table import ABSENT
from dperm_cli.results.records.row_facts import csv_lines, distinct, format_count, group_by
from dperm_cli.results.tables.rankings import LEVEL, Ranking, list_alike, rank_risks

OVERALL, DATASET, PROBLEM = "overall", "data set", "problem"
COLUMNS = (
    "level", "group", "method", "mean_rank", "alike", "problems", "wins", "refusals",
    "critical_difference", "p_value",
)  # fmt: skip
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_KIND = ("dataset", "loss", "constraint", "constraint_radius", "relation", "guarantee")


@dataclass(frozen=True)
class RankGroup:
    """The ranking of one group of problems.

    Attributes:
        level: ``overall``, ``data set`` or ``problem`` (which is one at several values of epsilon).
        title: The group's name.
        ranking: Of the methods that were asked on all of its problems.
        left_out: The methods that have results on some of its problems alone.
    """

    level: str
    title: str
    ranking: Ranking
    left_out: tuple[str, ...] = ()

    @property
    def letters(self) -> dict[str, str]:
        """By method; two that share a letter are not told apart by their mean ranks."""
        found = dict.fromkeys((one.name for one in self.ranking.names), "")
        if self.ranking.critical_difference is None:
            return found
        names = [one.name for one in self.ranking.names]
        rows = list_alike(self.ranking)
        joined = {i for first, last in rows for i in range(first, last + 1)}
        rows += [(i, i) for i in range(len(names)) if i not in joined]
        for letter, (first, last) in zip(_LETTERS, sorted(rows), strict=False):
            for name in names[first : last + 1]:
                found[name] += letter
        return found

    @property
    def words(self) -> str:
        """What the ranks show, in a sentence or two."""
        made = self.ranking
        told = [f"{format_count(made.problems, 'problem')}; 1 is best, and who refuses is last"]
        if made.critical_difference is None or made.p_value is None:
            told.append("Ranks on one problem show no difference that would not be chance")
        else:
            told.append(
                f"Mean ranks that are more than {made.critical_difference:.2f} apart differ at the "
                f"{LEVEL:.0%} level (Nemenyi); all equal: p = {made.p_value:.2g} (Friedman)"
            )
            told.append("Methods that share a letter are not told apart")
            told.append("Problems on the same records are not independent: the level is nominal")
        if self.left_out:
            told.append(f"Left out, as not asked on every problem: {', '.join(self.left_out)}")
        return ". ".join(told) + "."


def rank_entries(entries: Sequence[Entry]) -> list[RankGroup]:
    """All groups that have two methods to compare: the overall one, data sets, problems.

    A problem at one epsilon is no group: the table itself has its order. A group that holds the
    same problems as one before it is left out. Problems at several epsilon on the same records are
    not independent, so that the level of a difference is nominal.
    """
    levels: Sequence[tuple[str, Callable[[Entry], Hashable]]] = (
        (OVERALL, lambda entry: "all problems"),
        (DATASET, lambda entry: entry["dataset"]),
        (PROBLEM, lambda entry: tuple(entry[name] for name in _KIND)),
    )
    found: list[RankGroup] = []
    seen: set[frozenset[str]] = set()
    for level, key in levels:
        for name, members in group_by(entries, key).items():
            problems = frozenset(distinct(members, "problem"))
            made = _rank(level, _say(name), members)
            if made is None or problems in seen or (level == PROBLEM and len(problems) < 2):
                continue
            seen.add(problems)
            found.append(made)
    return found


def write_ranks(groups: Iterable[RankGroup]) -> str:
    """``ranks.csv``: a line for each group and method."""
    lines = []
    for group in groups:
        made, letters = group.ranking, group.letters
        lines += [
            [group.level, group.title, one.name, one.mean_rank, letters[one.name], one.problems,
             one.wins, one.refusals, made.critical_difference, made.p_value]
            for one in made.names
        ]  # fmt: skip
    return csv_lines(COLUMNS, lines)


def pack_ranks(groups: Iterable[RankGroup]) -> list[dict[str, Any]]:
    """The groups as the page shows them."""
    return [
        {
            "level": group.level,
            "title": group.title,
            "words": group.words,
            "width": group.ranking.critical_difference,
            "names": [
                {
                    "name": one.name, "mean_rank": one.mean_rank, "wins": one.wins,
                    "refusals": one.refusals, "alike": group.letters[one.name],
                }
                for one in group.ranking.names
            ],
        }
        for group in groups
    ]  # fmt: skip


def _rank(level: str, title: str, members: Sequence[Entry]) -> RankGroup | None:
    """The ranking of some problems; None where fewer than two methods were asked on all."""
    problems = [
        {one["method"]: _find_risk(one) for one in lines if one["status"] != ABSENT}
        for lines in group_by(members, lambda entry: entry["problem"]).values()
    ]
    able = distinct([one for one in members if one["status"] == "ok"], "method")
    names = [name for name in able if all(name in found for found in problems)]
    if len(names) < 2:
        return None
    kept = [{name: found[name] for name in names} for found in problems]
    left_out = tuple(name for name in able if name not in names)
    return RankGroup(level, title, rank_risks(kept, "method"), left_out)


def _find_risk(entry: Mapping[str, Any]) -> float:
    return entry["excess_risk"] if entry["status"] == "ok" else math.inf


def _say(name: Any) -> str:
    if not isinstance(name, tuple):
        return str(name)
    data, loss, constraint, radius, relation, guarantee = name
    size = "" if radius is None else f" of radius {radius:g}"
    return f"{data}, {loss}, {constraint}{size}, {relation}, {guarantee}"
