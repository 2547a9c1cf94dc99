"""Turn records into the points of curves, for claims and for figures of experiments."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from dperm_cli.core.dataclass import dataclass
from dperm_cli.results.records.references import SMALLER_IS_BETTER
from dperm_cli.results.records.row_facts import Row, as_json, flatten, group_by, number
from dperm_cli.results.records.summary import BAND, is_saturated, quantile

DRAWN = ("ok", "planned")


class NotComparable(ValueError):
    """Several cells lie at one place of one curve, and nothing says which of them counts."""


@dataclass(frozen=True)
class PointSelection:
    """Which rows make points, and how; the fields are those of a claim."""

    quantity: str = "excess_risk"
    statistic: str = "median"
    part: tuple[str, ...] = ()
    where: Mapping[str, Any] = field(default_factory=dict)
    axis: str | None = None
    group: tuple[str, ...] = ()
    worst: tuple[str, ...] = ()
    best: tuple[str, ...] = ()
    pool: tuple[str, ...] = ()
    bound: str | None = None


ROUNDING = 1e-12  # of the data-free floor
METRICS = ("test_metric", "train_metric")
MOST_GAP = 0.01  # of an excess risk that is judged, beyond its optimum's gap
STATISTIC_LEVELS = {"median": 0.5, "q05": BAND[0], "q95": BAND[1], "min": 0.0, "max": 1.0}


@dataclass(frozen=True)
class Point:
    """One place on a curve: the statistic, its standard error, and what goes with it.

    ``low`` and ``high`` are the 5 and 95 % quantiles over trials; ``saturated`` points lie within a
    factor 2 of the data-free floor. Of a family, ``value``, ``floor`` and ``bound`` are the
    family's largest, and ``cells`` those that ``value`` comes from. ``gap`` is that of the optimum
    that excess risk is measured from, the family's largest: what lies below it is not resolved.
    ``families`` holds the trials that ``value`` is the statistic of: by the best, by the worst,
    then in their order.
    """

    x: float | None
    value: float
    low: float
    high: float
    error: float
    trials: int
    floor: float | None = None
    bound: float | None = None
    cells: tuple[str, ...] = ()
    gap: float = 0.0
    epsilon_accounted: float | None = None
    statistic: str = "median"
    families: tuple[tuple[tuple[float, ...], ...], ...] = ()
    is_gain: bool = False  # larger values are better

    @property
    def is_near_floor(self) -> bool:
        return bool(is_saturated(self.value, self.floor))

    @property
    def resolution(self) -> float:
        """Risks up to this value count as 0: rounding errors are as large."""
        return ROUNDING * (self.floor or 0.0)

    @property
    def is_resolved(self) -> bool:
        """Whether the gap of the optimum moves the value by a hundredth at most."""
        return self.gap <= max(MOST_GAP * abs(self.value), self.resolution)

    @property
    def height(self) -> float:
        """Where a logarithmic axis shows the point: never under the gap."""
        return max(self.value, self.gap)

    @property
    def is_hidden(self) -> bool:
        """Whether the gap hides the true value."""
        return 0.0 < self.gap >= self.value

    @property
    def shown_low(self) -> float:
        """The low end of the band where it is resolved; else the gap, which may be 0."""
        return self.low if self.low > max(self.gap, self.resolution) else self.gap


def extend_row(row: Row, parts: Sequence[str] = ()) -> dict[str, Any]:
    """The row with its configuration (``dataset.signal``), its plan's settings (``settings.step``)
    and its parts beside it.

    ``noise_over_nl`` is the noise of one step over n L, the unit of BST14's sums of gradients.
    ``records_told`` is n in the unit that a local channel leaves of it [DJW12, Cor. 1 and 2]: n I*
    / (p ln 2p) for the l_inf channel, n / (p M^2) for the l_1 channel.
    ``records_told_cor2`` is what Corollary 2 has for the l_1 channel instead, n I* / p^2.
    """
    found = as_json(row.get("overrides") or "{}")
    plan = as_json(row.get("settings") or "{}")
    more = {
        **flatten(found if isinstance(found, dict) else {}),
        **flatten(plan if isinstance(plan, dict) else {}, "settings."),
        **row,
        "_parts": tuple(parts),
        "noise_over_nl": None,
    }
    if all(row.get(name) for name in ("noise_scale", "n", "lipschitz")):
        more["noise_over_nl"] = row["noise_scale"] / (row["n"] * row["lipschitz"])
    more["records_told"] = _compute_records_told(row)
    more["records_told_cor2"] = _compute_records_of_cor2(row)
    return more


def _compute_records_told(row: Row) -> float | None:
    told, multiplier = row.get("information_accounted"), row.get("channel_multiplier")
    if not row.get("n"):
        return None
    if row.get("channel") == "l_inf" and told:
        return row["n"] * told / (row["p"] * math.log(2.0 * row["p"]))
    if row.get("channel") == "l_1" and multiplier:
        return row["n"] / (row["p"] * multiplier**2)
    return None


def _compute_records_of_cor2(row: Row) -> float | None:
    told = row.get("information_accounted")
    if row.get("channel") != "l_1" or not row.get("n") or not told:
        return None
    return row["n"] * told / row["p"] ** 2


def points(rows: Sequence[Row], select: PointSelection) -> dict[str, list[Point]]:
    """The curves of extended rows by label, points by ascending x.

    Raises NotComparable where cells at one place differ in nothing that was named.
    """
    curves: dict[str, list[Point]] = {}
    names = (*select.group, *((select.axis,) if select.axis else ()))
    for key, place in group_by(select_rows(rows, select), lambda row: _key(row, names)).items():
        point = _place(place, select)
        if point is not None:
            label = ", ".join(_label_value(word, row_value) for word, row_value in
                              zip(select.group, key[: len(select.group)], strict=True))  # fmt: skip
            x = float(place[0][select.axis]) if select.axis else None
            curves.setdefault(label, []).append(replace(point, x=x))
    return {label: sorted(curve, key=lambda p: p.x or 0.0) for label, curve in curves.items()}


def select_rows(rows: Sequence[Row], select: PointSelection) -> list[Row]:
    """The rows that points are made of."""
    return [row for row in rows if _is_selected(row, select)]


def _is_selected(row: Row, select: PointSelection) -> bool:
    if row["status"] not in DRAWN or row.get(select.quantity) is None:
        return False
    if select.part and not set(select.part) & set(row["_parts"]):
        return False
    if select.axis is not None and row.get(select.axis) is None:
        return False
    return all(_same(row.get(name), value) for name, value in select.where.items())


def _same(found: Any, asked: Any) -> bool:
    if isinstance(asked, list):
        return any(_same(found, one) for one in asked)
    if isinstance(asked, (int, float)) and isinstance(found, (int, float)):
        return math.isclose(found, asked, rel_tol=1e-9)
    return found == asked


def _place(rows: Sequence[Row], select: PointSelection) -> Point | None:
    """The worst of each family, and the best of those: of accuracy and R2 the largest."""
    families = group_by(rows, lambda row: _key(row, select.best)).values()
    worst = []
    for family in families:
        members = group_by(family, lambda row: _key(row, select.worst)).values()
        worst.append(_find_worst([_member(rows, select) for rows in members]))
    if not worst:
        return None
    every = tuple(members for point in worst for members in point.families)
    take = max if worst[0].is_gain else min
    return replace(take(worst, key=lambda point: point.value), families=every)


def _find_worst(found: Sequence[Point]) -> Point:
    take = min if found[0].is_gain else max
    floors = [point.floor for point in found if point.floor is not None]
    bounds = [point.bound for point in found if point.bound is not None]
    return replace(
        take(found, key=lambda point: point.value),
        floor=max(floors, default=None),
        gap=max(point.gap for point in found),
        bound=max(bounds, default=None),
        families=(tuple(values for point in found for (values,) in point.families),),
    )


def _member(rows: Sequence[Row], select: PointSelection) -> Point:
    """One cell, or the cells that differ in a pooled key alone."""
    cells = group_by(rows, lambda row: row["cell"])
    apart = group_by(cells.values(), lambda cell: _key(cell[0], select.pool))
    if any(len(group) > 1 for group in apart.values()):
        names = _find_differing([group[0] for group in cells.values()], select.pool)
        raise NotComparable(
            f"{len(cells)} cells lie at one place; they differ in {', '.join(names) or 'nothing'}: "
            "name it in where, group, worst, best or pool"
        )
    return _point(rows, select)


def _point(rows: Sequence[Row], select: PointSelection) -> Point:
    # in the order of trials, so that the same trials of two points can be compared
    rows = sorted(rows, key=lambda row: (str(_key(row, select.pool)), row.get("trial") or 0))
    values = [_finite(row[select.quantity]) for row in rows]
    first, count = rows[0], len(values)
    mean = math.fsum(values) / count
    spread = math.fsum((v - mean) ** 2 for v in values) if math.isfinite(mean) else 0.0
    error = math.sqrt(spread / (count - 1) / count) if count > 1 else 0.0
    return Point(
        x=None,
        value=_statistic(values, mean, select.statistic),
        low=quantile(values, BAND[0]) or 0.0,
        high=quantile(values, BAND[1]) or 0.0,
        error=error,
        trials=count,
        floor=_floor(first, select.quantity),
        gap=_find_gap(rows, select.quantity),
        bound=None if select.bound is None else _read_bound(first, select),
        cells=tuple(dict.fromkeys(row["cell"] for row in rows)),
        statistic=select.statistic,
        families=((tuple(values),),),
        is_gain=select.quantity in METRICS and first.get("metric") not in SMALLER_IS_BETTER,
    )


def _read_bound(row: Row, select: PointSelection) -> float | None:
    """A bound speaks of sums; it is divided by n beside a quantity per record."""
    value = row.get(str(select.bound))
    return value / row["n"] if value is not None and "per_record" in select.quantity else value


def _find_gap(rows: Sequence[Row], quantity: str) -> float:
    """How far the optimum that an excess risk is measured from may lie below, in its unit."""
    if not quantity.startswith("excess_risk"):
        return 0.0
    gap = max(row.get("optimum_gap") or 0.0 for row in rows)
    return gap / rows[0]["n"] if quantity.endswith("per_record") else gap


def _floor(row: Row, quantity: str) -> float | None:
    floor = row.get("floor_excess_risk")
    if floor is None or not quantity.startswith("excess_risk"):
        return None
    return floor / row["n"] if quantity.endswith("per_record") else floor


def _statistic(values: Sequence[float], mean: float, name: str) -> float:
    if name == "mean":
        return mean
    found = quantile(values, STATISTIC_LEVELS[name])
    return math.inf if found is None else found


def _finite(value: float) -> float:
    return math.inf if math.isnan(value) else float(value)


def _key(row: Row, names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(_hashable(row.get(name)) for name in names)


def _hashable(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, (list, dict)) else value


def _find_differing(rows: Sequence[Row], known: Sequence[str]) -> list[str]:
    names = [name for name in rows[0] if "." in name or name in ("n", "p", "epsilon", "trials")]
    return [
        name
        for name in names
        if name not in known and len({_hashable(row.get(name)) for row in rows}) > 1
    ][:6]


def _label_value(name: str, value: Any) -> str:
    """``noisy_gd``, ``epsilon 0.1``."""
    return value if isinstance(value, str) else f"{name.rpartition('.')[2]} {number(value)}"
