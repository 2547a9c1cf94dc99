"""What a metric is judged by: the baseline, the non-private optimum and the data-free floor.

The numbers come from the runner; here they are compared and put into words. They are facts about
the records, for their holder.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dperm_cli.results.records.row_facts import Row, distinct, name_of, number

SMALLER_IS_BETTER = ("mean_distance", "residual_norm")
COLUMNS = {
    "optimum_metric": "non-private optimum",
    "baseline_metric": "baseline",
    "floor_metric": "data-free floor",
}


def find_unbeaten_baseline(row: Row) -> str | None:
    """The baseline that the median metric of a summary row is no better than; None where it is
    better, or unknown, or of a release (``noise=secure``), about which nothing more is told.

    >>> find_unbeaten_baseline({"metric": "r2", "test_metric": -0.9, "baseline": "mean",
    ...                         "baseline_metric": -0.01, "noise": "research"})
    'mean'
    """
    if row.get("noise") == "secure" or not _is_no_better(row, find_judged_metric(row)):
        return None
    return row.get("baseline")


def _is_no_better(row: Row, value: float | None) -> bool:
    """Whether a metric is known and no better than that of the baseline."""
    baseline = row.get("baseline_metric")
    if value is None or baseline is None:
        return False
    sign = -1.0 if row["metric"] in SMALLER_IS_BETTER else 1.0
    return sign * value <= sign * baseline


def find_judged_metric(row: Row) -> float | None:
    """The metric that the references are on the same records as: of held-out ones, if any."""
    held = row.get("test_metric")
    return row.get("train_metric") if held is None else held


def name_metric(row: Row) -> str:
    """The metric and its records, as ``test accuracy``.

    >>> name_metric({"metric": "r2", "test_metric": None})
    'training r2'
    """
    return f"{'training' if row.get('test_metric') is None else 'test'} {row['metric']}"


def find_references(rows: Sequence[Row]) -> Row | None:
    """A row with the references that all rows share; None where there are none, or several."""
    known = [row for row in rows if row.get("baseline_metric") is not None]
    if not known or any(len(distinct(known, name)) > 1 for name in ("metric", *COLUMNS)):
        return None
    return known[0]


def tell_references(rows: Sequence[Row]) -> str | None:
    """The references that all rows share, in a line; None where there are none, or several.

    >>> tell_references([{"metric": "accuracy", "test_metric": 0.9, "baseline": "majority",
    ...     "baseline_metric": 0.6, "optimum_metric": 0.95, "floor_metric": 0.4}])
    'test accuracy: non-private optimum 0.95, baseline (majority) 0.6, data-free floor 0.4'
    """
    first = find_references(rows)
    if first is None:
        return None
    words = [
        f"{text} ({first['baseline']}) {_share(first[name])}"
        if name == "baseline_metric"
        else f"{text} {_share(first[name])}"
        for name, text in COLUMNS.items()
    ]
    return f"{name_metric(first)}: {', '.join(words)}"


def _share(value: float | None) -> str:
    return "-" if value is None else number(value, 3)


def warn_of_baselines(rows: Iterable[Row]) -> list[str]:
    """A line on summary rows whose metric is no better than a constant prediction's; those come
    first that look like a success, since their excess risk is below the data-free floor.
    """
    found = [row for row in rows if row.get("no_better_than")]
    if not found:
        return []
    first, more = max(found, key=_looks_good), len(found) - 1
    words = (
        f"{name_of(first)} on {first['dataset']} at epsilon {number(first['epsilon'])}: "
        f"{name_metric(first)} {_share(find_judged_metric(first))} is no better than the "
        f"{first['no_better_than']} ({_share(first['baseline_metric'])})"
    )
    if _looks_good(first):
        words += ", though its excess risk is below the data-free floor"
    if _is_no_better(first, first.get("optimum_metric")):
        best = _share(first["optimum_metric"])
        words += f"; nor is the non-private optimum ({best}): loss or set do not allow more"
    return [f"{words} (and {more} more)" if more else words]


def _looks_good(row: Row) -> bool:
    excess, floor = row["excess_risk_median"], row["floor_excess_risk"]
    return excess is not None and floor is not None and excess < floor
