"""Choose what a study's page draws: axes, problems, curves, slopes. Pure functions of summary rows.

A curve is what is left when the axis moves: the cells that agree in every other key of their
configuration. Keys that move with the axis in the whole study (delta = 1/n^2 with n) follow it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dperm_cli.core.dataclass import dataclass
from dperm_cli.results.charts.chart_model import index_mark
from dperm_cli.results.charts.curve_points import Point
from dperm_cli.results.charts.mechanism_looks import choose_looks
from dperm_cli.results.claims import intervals
from dperm_cli.results.records.row_facts import (
    Row,
    find_variants,
    group_by,
    name_of,
    number,
    title_of,
)

# What makes a problem, besides the numbers of a sweep.
_NAMES = ("dataset", "loss", "constraint", "relation", "preprocessing")
_NUMBERS = ("epsilon", "n", "p", "delta", "ridge", "lasso", "constraint_radius")
_FAMILY = ("dataset", "loss", "constraint", "relation", "mechanism", "calibration")
_FIRST = ("epsilon", "n", "p")
_NO_AXES = ("seed",)
# Keys that belong to a mechanism rather than to its problem.
_OWN = ("mechanism.", "sampler.")
# Columns that repeat a configuration key: where both agree, only the column is kept.
_ALIASES = ("n", "p", "constraint_radius")

Keys = dict[str, Any]


@dataclass(frozen=True)
class DrawnRows:
    """The rows of a study that can be drawn, with all that tells them apart.

    ``keys`` has, by row, numbers, names and tags; ``swept`` are the numeric keys that take several
    values.
    """

    rows: tuple[Row, ...]
    places: tuple[int, ...]
    keys: tuple[Keys, ...]
    swept: tuple[str, ...]

    @property
    def fixed_keys(self) -> tuple[str, ...]:
        """Swept keys that set problems apart; those of a mechanism make variants of it."""
        return tuple(key for key in self.swept if not key.startswith(_OWN))


def select_drawn(rows: Sequence[Row]) -> DrawnRows:
    """The drawable rows among summary rows; ``places`` are their indices there."""
    places = [i for i, row in enumerate(rows) if _drawable(row)]
    kept = [rows[i] for i in places]
    keys = [_keys(row, tags) for row, tags in zip(kept, _tags(kept), strict=True)]
    return DrawnRows(tuple(kept), tuple(places), tuple(keys), tuple(_list_swept_keys(keys)))


def tags_of(rows: Sequence[Row]) -> list[str]:
    """What sets each row apart and has no column, as the table's ``variant``."""
    return [
        ", ".join(f"{_short(key)} {value}" for key, value in tags.items()) for tags in _tags(rows)
    ]


def list_axes(found: DrawnRows) -> list[str]:
    """The keys that can be drawn along, in the order offered: swept ones, or epsilon alone.

    Of keys that move together, such as n and delta = 1/n^2, the first is the axis.
    """
    axes: list[str] = []
    follows = {name: _followers(found, name) for name in found.swept}
    for name in found.swept:
        twins = (other for other in axes if name in follows[other] and other in follows[name])
        if _is_axis(found, name) and not any(twins):
            axes.append(name)
    return axes or ["epsilon"]


def name_problems(found: DrawnRows) -> list[str]:
    """The title of each problem."""
    groups = group_by(range(len(found.rows)), lambda i: _problem(found.keys[i]))
    titles = [title_of([found.rows[i] for i in members]) for members in groups.values()]
    return _distinguish_titles(titles, groups)


def curves(found: DrawnRows, axis: str) -> list[dict[str, Any]]:
    """The curves along an axis, JSON-able; ``rows`` are indices into the summary, by ascending x.

    ``held`` names what stays fixed on the curve and differs elsewhere, ``moves`` what follows the
    axis. ``fit`` and ``fit_each`` are slope, half width and count of sums and per record.
    """
    moves = _followers(found, axis)
    usable = [i for i, keys in enumerate(found.keys) if _positive(keys.get(axis))]
    groups = group_by(usable, lambda i: _curve_key(found.keys[i], {axis, *moves}))
    order = _order(found)
    looks = choose_looks(map(name_of, found.rows))
    patterns = _number_patterns(found)
    made = []
    for members in groups.values():
        members = sorted(members, key=lambda i: found.keys[i][axis])
        first = found.keys[members[0]]
        made.append({
            "problem": order[_problem(first)],
            "mechanism": str(first["mechanism"]),
            "calibration": str(first["calibration"] or ""),
            "variant": _variant(first),
            "look": looks[name_of(found.rows[members[0]])],
            "mark": index_mark(looks[name_of(found.rows[members[0]])]),
            "pattern": patterns[_style(first)],
            "held": {key: first.get(key) for key in found.fixed_keys if key not in (axis, *moves)},
            "moves": [key for key in moves
                      if len({found.keys[i].get(key) for i in members}) > 1],
            "rows": [found.places[i] for i in members],
            "x": [found.keys[i][axis] for i in members],
            "fit": _fit(found, members, axis, "excess_risk_median", "floor_excess_risk"),
            "fit_each": _fit(found, members, axis, "excess_risk_per_record_median",
                             "floor_excess_risk_per_record"),
        })  # fmt: skip
    return made


def rank_mechanisms(found: DrawnRows) -> list[dict[str, Any]]:
    """Who comes first by median excess risk, per problem, setting and epsilon. JSON-able.

    Without a rank: rows that are not private, and rows whose certified epsilon exceeds the
    nominal one, since they are no contenders at that epsilon. Equal risks share a rank.
    """
    held = [key for key in found.fixed_keys if key != "epsilon"]
    order = _order(found)
    groups = group_by(
        range(len(found.rows)),
        lambda i: (_problem(found.keys[i]), tuple(found.keys[i].get(key) for key in held)),
    )
    made = []
    for (problem, values), members in groups.items():
        contenders = group_by(members, lambda i: _contender(found.keys[i]))
        levels = sorted({found.keys[i]["epsilon"] for i in members
                         if found.keys[i]["epsilon"] is not None})  # fmt: skip
        cells = [
            [_find_row(found, mine, level) for level in levels] for mine in contenders.values()
        ]
        columns = [_ranks(found, column) for column in zip(*cells, strict=True)]
        made.append({
            "problem": order[problem],
            "held": dict(zip(held, values, strict=True)),
            "contenders": [dict(zip(("mechanism", "calibration", "variant"), who, strict=True))
                           for who in contenders],
            "epsilons": levels,
            "rows": [[None if i is None else found.places[i] for i in line] for line in cells],
            "ranks": [list(line) for line in zip(*columns, strict=True)],
        })  # fmt: skip
    return made


def _order(found: DrawnRows) -> dict[tuple[Any, ...], int]:
    """The place of each problem in ``problems``."""
    return {key: i for i, key in enumerate(dict.fromkeys(map(_problem, found.keys)))}


def has_rank(row: Row) -> bool:
    """True when the row is private at its nominal epsilon: only then it has a rank there."""
    if row["guarantee"] in (None, "none") or row["epsilon_accounted"] is None:
        return False
    return row["epsilon_accounted"] <= row["epsilon"] * (1.0 + 1e-6)


def _ranks(found: DrawnRows, column: Sequence[int | None]) -> list[int | None]:
    risks = [None if i is None or not has_rank(found.rows[i])
             else found.rows[i]["excess_risk_median"] for i in column]  # fmt: skip
    ranked = sorted(risk for risk in risks if risk is not None)
    return [None if risk is None else ranked.index(risk) + 1 for risk in risks]


def _find_row(found: DrawnRows, members: Sequence[int], level: float) -> int | None:
    """The row at an epsilon; of several the one with most trials."""
    there = [i for i in members if found.keys[i]["epsilon"] == level]
    return max(there, key=lambda i: found.rows[i]["trials"] or 0, default=None)


def _drawable(row: Row) -> bool:
    return row["status"] == "ok" and row["excess_risk_median"] is not None


def _fit(
    found: DrawnRows, members: Sequence[int], axis: str, value: str, floor: str
) -> dict[str, Any] | None:
    """Slope of the medians, as claims fit it; None below three places on the axis."""
    if len({found.keys[i][axis] for i in members}) < 3:
        return None
    rows = [(float(found.keys[i][axis]), found.rows[i]) for i in members]
    points = [Point(x, r[value], 0.0, 0.0, 0.0, r["trials"], r[floor]) for x, r in rows]
    return fit_to_dict(points)


def fit_to_dict(points: Sequence[Point]) -> dict[str, Any]:
    """A fit, JSON-able; ``slope`` is None where too few points are off the floor."""
    is_weighted = any(point.families for point in points)
    line = intervals.fit_points(points) if is_weighted else intervals.fit(points)
    kept = sum(not p.is_near_floor and p.value > 0 for p in points)
    if line is None:
        return {"slope": None, "half": None, "used": kept, "of": len(points)}
    return {"slope": line.slope, "half": line.half, "used": line.count, "of": len(points)}


def _tags(rows: Sequence[Row]) -> list[dict[str, str]]:
    """``row_facts.find_variants`` without tags that say nothing new.

    Those are the tags that a column repeats in every row, and fields of a group (``sampler.steps``)
    that follow from the group's name (``sampler.name``).
    """
    found = find_variants(rows)
    names = list(dict.fromkeys(key for tags in found for key in tags))
    idle = {
        key
        for key in names
        for column in _ALIASES
        if all(
            _number(tags[key]) == row.get(column) is not None
            for tags, row in zip(found, rows, strict=True)
            if key in tags
        )
    }
    for key in names:
        group = f"{key.rpartition('.')[0]}.name"
        pairs = {(tags.get(group), tags[key]) for tags in found if key in tags}
        if group in names and key != group and len(pairs) == len({of for of, _ in pairs}):
            idle.add(key)
    return [{k: v for k, v in tags.items() if k not in idle} for tags in found]


def _keys(row: Row, tags: Mapping[str, str]) -> Keys:
    more = {key: text if _number(text) is None else _number(text) for key, text in tags.items()}
    columns = (*_NAMES, *_NUMBERS, "mechanism", "calibration")
    return {**{name: row.get(name) for name in columns}, **more}


def _list_swept_keys(keys: Sequence[Keys]) -> list[str]:
    """Keys with several values, numbers among them."""
    names = [*_FIRST, *_NUMBERS, *(name for row in keys for name in row)]
    found = []
    for name in dict.fromkeys(names):
        values = {row.get(name) for row in keys}
        if len(values) > 1 and any(isinstance(value, (int, float)) for value in values):
            found.append(name)
    return found


def _is_axis(found: DrawnRows, name: str) -> bool:
    """True when some curve along the key has two places at least."""
    if name.rpartition(".")[2] in _NO_AXES:
        return False
    without = {name, *_followers(found, name)}
    usable = [keys for keys in found.keys if _positive(keys.get(name))]
    groups = group_by(usable, lambda keys: _curve_key(keys, without)).values()
    return any(len({keys[name] for keys in group}) > 1 for group in groups)


def _followers(found: DrawnRows, axis: str) -> list[str]:
    """Keys that, within each family, are a function of the axis, and vary."""
    families = group_by(found.keys, lambda keys: tuple(keys.get(name) for name in _FAMILY))
    names = dict.fromkeys(name for keys in found.keys for name in keys)
    return [
        name
        for name in names
        if name != axis
        and (name == "preprocessing" or name in found.swept)
        and any(len({keys.get(name) for keys in rows}) > 1 for rows in families.values())
        and all(_function(rows, axis, name) for rows in families.values())
    ]


def _function(rows: Sequence[Keys], axis: str, name: str) -> bool:
    pairs = {(keys.get(axis), keys.get(name)) for keys in rows}
    return len(pairs) == len({at for at, _ in pairs})


def _curve_key(keys: Keys, without: set[str]) -> tuple[Any, ...]:
    return tuple((name, value) for name, value in keys.items() if name not in without)


def _problem(keys: Keys) -> tuple[Any, ...]:
    """Names, and the tags of data and problem that are no numbers."""
    known = (*_NAMES, *_NUMBERS, "mechanism", "calibration")
    tags = [(k, v) for k, v in keys.items() if k not in known and isinstance(v, str)
            and not k.startswith(_OWN)]  # fmt: skip
    return (*(keys.get(name) for name in _NAMES if name != "preprocessing"), *tags)


def _contender(keys: Keys) -> tuple[str, str, str]:
    return str(keys["mechanism"]), str(keys["calibration"] or ""), _variant(keys)


def _style(keys: Keys) -> tuple[str, str, str]:
    """What shares a line style among the curves of one colour."""
    return str(keys["mechanism"]), str(keys["calibration"] or ""), _variant(keys)


def _number_patterns(found: DrawnRows) -> dict[tuple[str, str, str], int]:
    """The place in DASHES of each calibration and setting of a mechanism, the paper's last."""
    styles = sorted(dict.fromkeys(map(_style, found.keys)), key=lambda style: style[1] == "paper")
    counts: dict[str, int] = {}
    made = {}
    for style in styles:
        made[style] = counts[style[0]] = counts.get(style[0], -1) + 1
        if style[1] == "paper" and made[style] == 0:
            made[style] = counts[style[0]] = 1  # dashed, also without tight ones
    return made


def _variant(keys: Keys) -> str:
    """The settings that set a curve of this mechanism apart: its own, and words elsewhere."""
    mine = [(k, v) for k, v in keys.items() if k.startswith(_OWN)]
    return ", ".join(f"{_short(k)} {v if isinstance(v, str) else number(v)}" for k, v in mine)


def _short(key: str) -> str:
    """``sampler`` for ``sampler.name``, ``average`` for ``mechanism.average``."""
    return key.removesuffix(".name").removeprefix("mechanism.")


def _distinguish_titles(titles: Sequence[str], groups: Mapping[Any, Any]) -> list[str]:
    """Titles; those that coincide get what differs: the relation and the tags."""
    found = []
    for title, key in zip(titles, groups, strict=True):
        if titles.count(title) > 1:
            tags = (f"{name} {value}" for name, value in key[len(_NAMES) - 1 :])
            title = ", ".join((title, str(key[_NAMES.index("relation")]), *tags))
        found.append(title)
    return found


def _positive(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < math.inf


def _number(text: Any) -> float | None:
    try:
        value = float(text)
    except (TypeError, ValueError):
        return None
    return value if math.isfinite(value) else None
