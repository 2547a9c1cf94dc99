"""Mean ranks of mechanisms over problems, with the critical difference of Friedman and Nemenyi.

See Demsar, Statistical comparisons of classifiers over multiple data sets, JMLR 7 (2006): two mean
ranks over N problems of k names differ by more than chance where they are further apart than
q sqrt(k (k + 1) / (6 N)), q from the law of the Studentised range.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from dperm_cli.core import checks
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.results.charts.study_view import find_value, list_keys
from dperm_cli.results.records.aggregate import (
    aggregate_rows,
    choose_repetitions,
    configuration_of,
    is_repetition,
)
from dperm_cli.results.records.row_facts import (
    Row,
    csv_lines,
    distinct,
    find_variants,
    format_value,
    group_by,
    is_curve_key,
    name_of,
)

LEVEL = 0.05  # chance with which some pair of equal names is told apart
COLUMNS = ("mean_rank", "problems", "wins", "refusals")
_PROBLEM = (
    "dataset", "loss", "constraint", "constraint_radius", "ridge", "lasso", "relation", "epsilon",
    "information",
)  # fmt: skip
_NO_PROBLEM = ("calibration", "trials", "force", "out", "format", "debug")


@dataclass(frozen=True)
class RankedName:
    """A name and its mean rank; ``wins`` counts problems in which nobody was better."""

    name: str
    mean_rank: float
    problems: int
    wins: int
    refusals: int


@dataclass(frozen=True)
class Ranking:
    """Names by their mean rank, the best first.

    Attributes:
        by: What was ranked, such as ``mechanism``.
        names: Those that were asked about in every problem that counts.
        problems: How many problems count, and ``left_out`` how many do not, since some name was
            never asked there.
        critical_difference: Mean ranks that are further apart differ; None for one problem or name.
        p_value: Friedman's: the chance of ranks as different as these where all names are equal.
    """

    by: str
    names: tuple[RankedName, ...]
    problems: int
    left_out: int
    critical_difference: float | None
    p_value: float | None


def rank_rows(rows: Sequence[Row], by: str = "mechanism", level: float = LEVEL) -> Ranking:
    """Rank names by excess risk within each problem: data, loss, set, regulariser and budget.

    Rows without a guarantee do not take part. Seeds, folds and draws of data are joined first.
    Equal risks share the mean of their ranks; a name that refuses comes last, and shares that place
    with others that do.

    Args:
        rows: Summary rows.
        by: What is ranked: a column or a key that differs within problems.
        level: Of the critical difference.

    Raises:
        InputError: No row has ``by``, or no problem was given to all names.
    """
    known = list_keys(rows)
    checks.choice("by", by, ["mechanism", *(key for key in known if key != "mechanism")])
    private = [row for row in rows if row.get("guarantee") != "none"]
    kept = aggregate_rows(private, choose_repetitions(None, private))
    labels = label_rows(kept, by)
    risks: dict[str, dict[str, float]] = {}
    for row, label in zip(kept, labels, strict=True):
        risk = row["excess_risk_median"] if row["status"] == "ok" else None
        found = risks.setdefault(_name_problem(row, by), {})
        # a reader who has several settings of one name has the best of them
        found[label] = min(found.get(label, math.inf), math.inf if risk is None else risk)
    return rank_risks(list(risks.values()), by, level)


def rank_risks(
    problems: Sequence[Mapping[str, float]], by: str = "mechanism", level: float = LEVEL
) -> Ranking:
    """Rank names by their risks within each problem that was given to all of them.

    Args:
        problems: For each problem the risk of each name that was asked there; infinite for one
            that refused.
        by: What is ranked.
        level: Of the critical difference.

    Raises:
        InputError: No problem was given to all names.
    """
    from scipy.stats import rankdata

    names = list(dict.fromkeys(name for found in problems for name in found))
    whole = [found for found in problems if len(found) == len(names)]
    if not whole:
        raise InputError("by", by, "no problem was given to all of them: nothing can be ranked")
    ranks = [list(map(float, rankdata([found[name] for name in names]))) for found in whole]
    ranked = [
        RankedName(
            name,
            math.fsum(line[i] for line in ranks) / len(ranks),
            len(ranks),
            sum(found[name] == min(found.values()) < math.inf for found in whole),
            sum(math.isinf(found[name]) for found in whole),
        )
        for i, name in enumerate(names)
    ]
    ordered = tuple(sorted(ranked, key=lambda one: (one.mean_rank, one.refusals, one.name)))
    several = len(names) > 1 and len(whole) > 1
    return Ranking(
        by,
        ordered,
        len(whole),
        len(problems) - len(whole),
        compute_critical_difference(len(names), len(whole), level) if several else None,
        _test_friedman(ranks) if several else None,
    )


def compute_critical_difference(names: int, problems: int, level: float = LEVEL) -> float:
    """How far apart two mean ranks have to be.

    >>> round(compute_critical_difference(4, 14), 2)
    1.25
    """
    from scipy.stats import studentized_range

    q = float(studentized_range.ppf(1.0 - level, names, math.inf)) / math.sqrt(2.0)
    return q * math.sqrt(names * (names + 1) / (6.0 * problems))


def list_alike(ranking: Ranking) -> list[tuple[int, int]]:
    """First and last place of each longest row of names that the ranks do not tell apart."""
    found: list[tuple[int, int]] = []
    width = ranking.critical_difference
    if width is None:
        return found
    means = [one.mean_rank for one in ranking.names]
    for first, mean in enumerate(means):
        last = max(i for i, other in enumerate(means) if other - mean <= width)
        if last > first and (not found or last > found[-1][1]):
            found.append((first, last))
    return found


def write_csv(ranking: Ranking) -> str:
    """A line for each name, exact numbers."""
    body = [[one.name, *(getattr(one, name) for name in COLUMNS)] for one in ranking.names]
    return csv_lines([ranking.by, *COLUMNS], body)


def tell_ranking(ranking: Ranking) -> str:
    """The ranks in a few words each, for a caption or a terminal."""
    problems = "1 problem" if ranking.problems == 1 else f"{ranking.problems} problems"
    lines = [f"mean rank over {problems} (1 is best; who refuses is last)"]
    width = max(len(one.name) for one in ranking.names)
    for one in ranking.names:
        words = f"  {one.name:<{width}}  {one.mean_rank:.2f}  best in {one.wins}"
        lines.append(words + (f", refuses {one.refusals}" if one.refusals else ""))
    if ranking.critical_difference is not None and ranking.p_value is not None:
        lines.append(
            f"ranks that differ by more than {ranking.critical_difference:.2f} differ at the "
            f"{LEVEL:.0%} level (Nemenyi); all equal: p = {ranking.p_value:.2g} (Friedman)"
        )
    lines.append("a ranking is a simulation: no epsilon covers choosing by it")
    if ranking.left_out:
        lines.append(f"left out: {ranking.left_out} problems that were not given to all")
    return "\n".join(lines)


def label_rows(rows: Sequence[Row], by: str = "mechanism") -> list[str]:
    """The name of each row: of a mechanism with its calibration and settings where these vary."""
    if by != "mechanism":
        return [format_value(find_value(row, by, name_of(row))) for row in rows]
    told = len(distinct(rows, "calibration")) > 1
    labels = []
    for row, variants in zip(rows, find_variants(rows), strict=True):
        words = [str(row["calibration"])] if told else []
        words += [f"{k.rpartition('.')[2]} {v}" for k, v in variants.items() if is_curve_key(k)]
        labels.append(name_of(row) + (f" ({', '.join(words)})" if words else ""))
    return labels


def describe_problem(row: Row) -> dict[str, Any]:
    """What tells the problem of a row from others: columns, and keys that no mechanism owns."""
    keys = {
        key: value
        for key, value in configuration_of(row).items()
        if not (is_curve_key(key) or is_repetition(key) or key in _NO_PROBLEM)
    }
    return keys | {name: row.get(name) for name in _PROBLEM}


def _name_problem(row: Row, by: str) -> str:
    told = describe_problem(row)
    for key in [key for key in told if key in (by, f"{by}.name") or key.startswith(f"{by}.")]:
        del told[key]
    return json.dumps(told, sort_keys=True, default=str)


def _test_friedman(ranks: Sequence[Sequence[float]]) -> float:
    """The chance of mean ranks as different as these among equals, corrected for ties."""
    from scipy.special import chdtrc

    count, many = len(ranks), len(ranks[0])
    middle = (many + 1) / 2.0
    sums = [math.fsum(line[i] for line in ranks) for i in range(many)]
    between = math.fsum((total - count * middle) ** 2 for total in sums)
    within = math.fsum((rank - middle) ** 2 for line in ranks for rank in line)
    if within == 0.0:  # all are equal everywhere
        return 1.0
    return float(chdtrc(many - 1, (many - 1) * between / within))


# ---- slopes --------------------------------------------------------------------------------------

AXES = ("epsilon", "n", "p")
SLOPE_COLUMNS = (
    "mechanism", "dataset", "loss", "constraint", "axis", "slope", "low", "high", "points",
)  # fmt: skip
_OWN = ("dataset", "loss", "constraint", "relation", "guarantee", "privacy")


def fit_slopes(rows: Sequence[Row], axes: Sequence[str] = AXES) -> list[dict[str, Any]]:
    """How excess risk grows with epsilon, n and p: slopes on logarithmic axes.

    A line through the medians of a mechanism on one problem without its saturated points, where
    three values or more of an axis are left.

    Returns:
        A map for each line: SLOPE_COLUMNS, with the 95 % interval from ``low`` to ``high``.
    """
    from dperm_cli.results.claims.intervals import log_log

    kept = aggregate_rows(rows, choose_repetitions(None, rows))
    found = []
    for axis in axes:
        for (label, _), curve in _group_curves(kept, axis).items():
            points = {
                float(row[axis]): row["excess_risk_median"]
                for row in curve
                if not row["saturated"] and row["excess_risk_median"] > 0.0
            }
            line = log_log(list(points), list(points.values()))
            if line is not None:
                told = {name: curve[0][name] for name in ("dataset", "loss", "constraint")}
                low, high = line.slope - line.half, line.slope + line.half
                found.append({"mechanism": label, **told, "axis": axis, "slope": line.slope,
                              "low": low, "high": high, "points": line.count})  # fmt: skip
    return found


def _group_curves(rows: Sequence[Row], axis: str) -> Mapping[tuple[str, str], list[Row]]:
    """The rows of each curve over an axis, by label and problem.

    What follows the axis (``dataset.n``, a delta that falls with n) parts no curves.
    """
    labels = label_rows(rows)
    ran = [
        (label, row, describe_problem(row) | {k: row.get(k) for k in ("delta", *AXES, *_OWN)})
        for label, row in zip(labels, rows, strict=True)
        if row["status"] == "ok" and row["excess_risk_median"] is not None and row.get(axis)
    ]
    curves: dict[tuple[str, str], list[Row]] = {}
    for label, members in group_by(ran, lambda one: one[0]).items():
        keys = dict.fromkeys(key for _, _, told in members for key in told)
        parting = [key for key in keys if key != axis and not _follows(members, key, axis)]
        for _, row, told in members:
            words = json.dumps([told.get(key) for key in parting], default=str)
            curves.setdefault((label, words), []).append(row)
    return curves


def _follows(members: Sequence[tuple[str, Row, Mapping[str, Any]]], key: str, axis: str) -> bool:
    """Whether a key has one value for each value of the axis, and another for another."""
    if key in _OWN or key.endswith(".name"):
        return False
    pairs = {(json.dumps(told.get(key), default=str), row[axis]) for _, row, told in members}
    values, places = ({pair[i] for pair in pairs} for i in (0, 1))
    return len(pairs) == len(places) == len(values) > 1


def write_slopes_csv(slopes: Sequence[Mapping[str, Any]]) -> str:
    """A line for each slope, exact numbers."""
    return csv_lines(SLOPE_COLUMNS, ([one[name] for name in SLOPE_COLUMNS] for one in slopes))


def tell_slopes(slopes: Sequence[Mapping[str, Any]]) -> str:
    """The slopes with their intervals, a line each."""
    if not slopes:
        return "no slopes: no curve has three points that are not saturated"
    lines = ["slope of excess risk on logarithmic axes, with a 95 % interval"]
    for one in slopes:
        where = f"{one['dataset']}, {one['loss']}, {one['constraint']}"
        half = (one["high"] - one["low"]) / 2.0
        words = f"{one['slope']:.2f} +- {half:.2f} on {one['points']} points"
        lines.append(f"  {one['mechanism']} against {one['axis']} ({where}): {words}")
    return "\n".join(lines)
