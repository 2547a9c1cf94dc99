"""Turn summary rows into what a figure draws: panels, curves, floor and bound lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from dperm_cli.core.dataclass import dataclass
from dperm_cli.results.charts.chart_model import (
    AXIS_WORDS,
    LINEAR,
    METRIC_WORDS,
    NO_GUARANTEE,
    Axis,
    Curve,
    Panel,
)
from dperm_cli.results.charts.curve_points import Point
from dperm_cli.results.charts.mechanism_looks import choose_looks, choose_value_looks
from dperm_cli.results.charts.study_lines import list_lines
from dperm_cli.results.charts.study_view import StudyView, find_column, find_value
from dperm_cli.results.records.aggregate import is_repetition
from dperm_cli.results.records.row_facts import (
    Row,
    distinct,
    find_partial_keys,
    find_telling_variants,
    format_constraint,
    format_value,
    group_by,
    is_curve_key,
    kernel_of,
    name_of,
    number,
)

DEFAULT_VIEW = StudyView()
_PROBLEM = ("dataset", "loss", "constraint", "constraint_radius", "relation", "ridge", "lasso")
_PROBLEM = (*_PROBLEM, "preprocessing", "n", "p")
_SWEPT = ("epsilon", "n", "p", "constraint_radius", "ridge", "lasso", "delta")
_FEW = 4.0  # least ratio of the ends of an axis that is a logarithmic one
_LOG_KEYS = ("epsilon", "n", "p", "epsilon_accounted", "noise_scale")
_WORDS = {**AXIS_WORDS, "constraint_radius": "radius of the constraint set",
          "epsilon_accounted": "certified epsilon", "dataset": "data set"}  # fmt: skip


@dataclass(frozen=True)
class _Plan:
    """A view with nothing left open: which keys are the axis, move with it, colour and panel."""

    view: StudyView
    x: str
    follows: frozenset[str]
    hue: str
    scale: str
    places: tuple[str, ...]

    @property
    def spoken_for(self) -> frozenset[str]:
        """Keys that part neither curves nor panels by themselves."""
        return self.follows | {self.x, self.hue, str(self.view.facet)}


def axis_of(rows: Sequence[Row], taken: Sequence[str] = ()) -> str:
    """The horizontal axis: epsilon, unless it has one value while another number has several.

    Of other numbers n and p come first, then the only one of the problem or of a mechanism that was
    swept. ``taken`` are keys that have a colour or panels already: where the axis were one of them,
    it is another number that was swept, or else the mechanism.
    """
    first = _find_swept(rows, ())
    if first not in taken:
        return first
    other = _find_swept(rows, taken)
    if other not in taken and len({_key_text(row, other) for row in rows}) > 1:
        return other
    return first if "mechanism" in taken else "mechanism"


def _find_swept(rows: Sequence[Row], taken: Sequence[str]) -> str:
    """The number that was swept and follows none of those taken; epsilon if none is."""

    def is_free(name: str) -> bool:
        return not any(_follows(rows, name, key) for key in taken)

    for name in _SWEPT[:3]:
        if len(distinct(rows, name)) > 1 and is_free(name):
            return name
    tags = find_telling_variants(rows)
    keys = dict.fromkeys(key for tag in tags for key in tag)
    swept = [name for name in _SWEPT[3:-1] if len(distinct(rows, name)) > 1 and is_free(name)]
    keys = [key for key in keys if is_free(key)]
    swept += [key for key in keys if not is_repetition(key)
              and all(_read_number(find_value(row, key, "")) is not None for row in rows)
              and all(key in tag for tag in tags)]  # fmt: skip
    first = [key for key in swept if all(_follows(rows, other, key) for other in swept)]
    others = [key for key in keys if key not in swept]
    alone = first and all(_follows(rows, key, first[0]) for key in others)
    return first[0] if alone else "epsilon"


def panels(rows: Sequence[Row], view: StudyView = DEFAULT_VIEW) -> list[Panel]:
    """One panel per problem and relation, in the order of the rows; cells that ran only."""
    ran = drawn_rows(rows, view)
    if not ran:
        return []
    some = find_partial_keys(ran)
    tagged = [
        _tag_row(row, tags, some) for row, tags in zip(ran, find_telling_variants(ran), strict=True)
    ]
    plan = _make_plan(tagged, view)
    tagged = [_place_row(row, plan) for row in tagged]
    tagged = [row for row in tagged if row["_x"] is not None]
    groups = group_by(tagged, lambda row: row["_panel"]).values()
    parts = [part for group in groups for part in _by_delta(group, plan)]
    looks = _choose_looks(tagged, plan)
    patterns = _number_patterns(tagged)
    titles = _name_panels(parts, plan)
    return [
        _panel(part, plan, looks, patterns, title)
        for part, title in zip(parts, titles, strict=True)
    ]


def drawn_rows(rows: Sequence[Row], view: StudyView = DEFAULT_VIEW) -> list[Row]:
    """The rows that have something to draw."""
    column = view.quantity.column
    return [row for row in rows if row["status"] == "ok" and row.get(column) is not None]


def _tag_row(row: Row, tags: dict[str, str], some: frozenset[str]) -> Row:
    """A row with its name, and its settings parted into the curve's and the problem's."""
    mine = {key: value for key, value in tags.items() if is_curve_key(key) or key in some}
    rest = {key: value for key, value in tags.items() if key not in mine}
    return {**row, "_name": name_of(row), "_mine": mine, "_rest": rest}


def _make_plan(rows: Sequence[Row], view: StudyView) -> _Plan:
    taken = [find_column(key) for key in (view.hue, view.facet) if key]
    x = find_column(view.x) if view.x else axis_of(rows, taken)
    values = [_read(row, x) for row in rows]
    numbers = [v for v in map(_read_number, values) if v is not None]
    keys = [*_PROBLEM, "epsilon", "delta"]
    keys += [key for row in rows for key in (*row["_mine"], *row["_rest"])]
    follows = {"preprocessing"} if x in ("n", "p") else set()
    if x not in ("epsilon", "mechanism"):
        follows |= {key for key in dict.fromkeys(keys) if _follows(rows, key, x)}
    if view.hue not in (None, "mechanism"):  # what follows from a colour parts no panels
        follows |= {key for key in dict.fromkeys(keys) if _follows(rows, key, view.hue)}
    if x == "n":
        follows |= {"delta"}
    places: list[str] = []
    if not numbers:
        places = [format_value(v) for v in dict.fromkeys(values) if v is not None]
    low, high = (min(numbers), max(numbers)) if numbers else (1.0, 1.0)
    log = low > 0 and (high >= _FEW * low or x in _LOG_KEYS)
    scale = "names" if places or low == high else "log" if log else LINEAR
    return _Plan(view, x, frozenset(follows), view.hue or "mechanism", scale, tuple(places))


def _read(row: Row, key: str) -> Any:
    return row.get(key) if key in _PROBLEM else find_value(row, key, row["_name"])


def _read_number(value: Any) -> float | None:
    try:
        found = float(value)
    except (TypeError, ValueError):
        return None
    return found if math.isfinite(found) else None


def _follows(rows: Sequence[Row], key: str, axis: str) -> bool:
    """Whether a key varies and is a function of the axis, for each mechanism on a data set."""
    if key == axis:
        return True
    varies, apart = False, axis != "dataset"
    for group in group_by(rows, lambda row: (apart and row["dataset"], name_of(row))).values():
        pairs = {(_key_text(row, axis), _key_text(row, key)) for row in group}
        if len(pairs) > len({at for at, _ in pairs}):
            return False
        varies |= len({value for _, value in pairs}) > 1
    return varies


def _key_text(row: Row, key: str) -> str:
    value = row.get(key) if key in _PROBLEM else find_value(row, key, str(row["mechanism"]))
    return str(value)


def _place_row(row: Row, plan: _Plan) -> Row:
    """A row with its place on the axis, its colour's name, its curve and its panel."""
    value = _read(row, plan.x)
    taken = plan.spoken_for
    mine = {key: text for key, text in row["_mine"].items() if key not in taken}
    shown = {_shorten(key): text for key, text in mine.items()}
    if plan.hue != "mechanism" and "mechanism" not in (plan.view.facet, plan.x):
        shown = {"": row["_name"], **shown}
    words = ", ".join(f"{name} {text}".strip() for name, text in shown.items())
    tone = _read(row, plan.hue)
    name = row["_name"] if plan.hue == "mechanism" else f"{_shorten(plan.hue)} {_format(tone)}"
    if isinstance(tone, str) and plan.hue != "mechanism" and _read_number(tone) is None:
        name = tone
    problem = [(key, row[key]) for key in (*_PROBLEM, "epsilon") if key not in taken]
    problem += [(key, text) for key, text in row["_rest"].items() if key not in taken]
    facet = plan.view.facet
    if facet is not None:
        problem.insert(0, (facet, _read(row, facet)))
    x = plan.places.index(format_value(value)) if plan.places else _read_number(value)
    return {**row, "_x": x, "_tone": tone, "_curve": name, "_panel": tuple(problem),
            "_calibration": str(row["calibration"] or ""), "_variant": words,
            "_none": row["guarantee"] == "none"}  # fmt: skip


def _format(value: Any) -> str:
    as_number = _read_number(value)
    return str(value) if as_number is None else number(int(as_number) if as_number % 1 == 0
                                                       else as_number)  # fmt: skip


def _shorten(key: str) -> str:
    """``sampler`` for ``sampler.name``, ``steps`` for ``mechanism.steps``."""
    short = key.removesuffix(".name")
    return short.removeprefix("mechanism.") if is_curve_key(key) else short


def _by_delta(rows: list[Row], plan: _Plan) -> list[list[Row]]:
    """The rows of one problem by delta, but pure and approximate mechanisms side by side.

    Whoever compares them asked for one delta, which pure ones do not use. Where one mechanism
    has several deltas, they were asked for and have a panel each. n moves delta (1/n^2).
    """
    if "delta" in plan.spoken_for:
        return [rows]
    curves = group_by(rows, curve_key).values()
    several = any(len(distinct(group, "delta")) > 1 for group in curves)
    if several or len({row["delta"] for row in rows if row["delta"]}) > 1:
        return list(group_by(rows, lambda row: row["delta"]).values())
    return [rows]


def curve_key(row: Row) -> tuple[str, str, str, bool]:
    """What the points of one curve share: name, calibration, settings, guarantee or none."""
    return row["_curve"], row["_calibration"], row["_variant"], row["_none"]


def _choose_looks(rows: Sequence[Row], plan: _Plan) -> dict[str, int]:
    names = distinct(rows, "_curve")
    if plan.hue == "mechanism":
        return choose_looks(names)
    tones = {row["_curve"]: row["_tone"] for row in rows}
    numbers = {name: _read_number(tone) for name, tone in tones.items()}
    names.sort(key=lambda name: (numbers[name] is None, numbers[name] or 0.0))
    return choose_value_looks(names)


def _number_patterns(rows: Sequence[Row]) -> dict[tuple[str, str], int]:
    """The place in DASHES of each calibration and setting; tight and plain ones are solid."""
    known = dict.fromkeys((row["_calibration"], row["_variant"]) for row in rows)
    plain = [pair for pair in known if pair[0] != "paper"]
    settings = list(dict.fromkeys(variant for _, variant in plain))
    found = {pair: settings.index(pair[1]) for pair in plain}
    first = max(found.values(), default=0) + 1
    papers = [pair for pair in known if pair[0] == "paper"]
    if not plain:
        first = 0
    return found | {pair: first + i for i, pair in enumerate(papers)}


def _list_facts(rows: Sequence[Row], plan: _Plan) -> dict[str, str]:
    """What all rows of a panel share, in words, by what it is about."""
    first, kernels = rows[0], {kernel_of(row) for row in rows}
    kernel = kernels.pop() if len(kernels) == 1 else None
    facts = {"dataset": str(first["dataset"]), "loss": str(first["loss"])}
    facts |= {"kernel": f"kernel {kernel}"} if kernel else {}
    radius = _same(rows, "constraint_radius")
    facts["constraint"] = format_constraint(first) if radius else str(first["constraint"])
    for name in ("n", "p"):
        if _same(rows, name):
            facts[name] = f"{name} = {number(first[name])}"
    for name in ("ridge", "lasso"):
        if first[name] and _same(rows, name):
            facts[name] = f"{name} = {number(first[name])}"
    if "epsilon" not in plan.spoken_for:
        facts["epsilon"] = f"epsilon = {number(first['epsilon'])}"
    facts["relation"] = str(first["relation"])
    facts |= _say_local(rows)
    deltas = [delta for delta in distinct(rows, "delta") if delta] or distinct(rows, "delta")
    if len(deltas) == 1 and deltas != [None]:
        facts["delta"] = f"delta = {number(deltas[0], 3)}"
    facts |= {key: f"{key} = {value}" for key, value in first["_rest"].items()
              if key != "kernel.name" and key not in plan.spoken_for}  # fmt: skip
    facet = plan.view.facet
    if facet is not None and facet not in facts:
        value = _read(first, facet)
        named = isinstance(value, str) and _read_number(value) is None
        facts = {facet: value if named else f"{_shorten(facet)} {_format(value)}", **facts}
    return facts


def _name_panels(parts: Sequence[Sequence[Row]], plan: _Plan) -> list[tuple[str, str]]:
    """The title of each panel, and what else is to be said of it.

    The title of one panel is its problem; that of several is as much as tells them apart.
    """
    facts = [_list_facts(part, plan) for part in parts]
    names = dict.fromkeys(name for found in facts for name in found)
    shared = {name for name in names if len({found.get(name) for found in facts}) == 1}
    if len(parts) == 1:
        own = [name for name in names if name in ("dataset", "loss", "kernel", "constraint")]
    else:
        own = [name for name in names if name not in shared]
        for count in range(1, len(own)):
            if len({tuple(found.get(name) for name in own[:count]) for found in facts}) == len(
                parts
            ):
                own = own[:count]
                break
    told = own if len(parts) > 1 else []
    return [
        (
            ", ".join(found[name] for name in own if name in found),
            ", ".join(found[name] for name in names if name in found and name not in told),
        )
        for found in facts
    ]


def _panel(
    rows: Sequence[Row],
    plan: _Plan,
    looks: dict[str, int],
    patterns: dict[tuple[str, str], int],
    title: tuple[str, str],
) -> Panel:
    first, quantity = rows[0], plan.view.quantity
    label = _WORDS.get(plan.x, _shorten(plan.x).replace("_", " "))
    if plan.scale == "names" and not plan.places:
        label += f" = {_format(_read(first, plan.x))}"
    scale = LINEAR if quantity.linear else "log"
    return Panel(
        title=title[0],
        x=Axis(label, plan.scale, plan.places),
        y=Axis(_name_quantity(rows, plan), scale),
        curves=tuple(
            _curve(group, plan, _note(group, rows), looks, patterns)
            for group in group_by(rows, curve_key).values()
        ),
        lines=tuple(
            line if line.mechanism is None else replace(line, look=looks.get(line.mechanism))
            for line in list_lines(rows, quantity)
        ),
        details=tuple(detail for detail in (title[1],) if detail),
        n=first["n"] if _same(rows, "n") and plan.view.y == "excess_risk" else None,
    )


def _name_quantity(rows: Sequence[Row], plan: _Plan) -> str:
    label = plan.view.quantity.label
    metrics = {str(row["metric"]) for row in rows if row.get("metric")}
    name = metrics.pop() if len(metrics) == 1 else "metric"
    return label.replace("metric", METRIC_WORDS.get(name, name))


def _say_local(rows: Sequence[Row]) -> dict[str, str]:
    """What a panel of local guarantees says; mixed with others, its curves say it."""
    if not _are_all_local(rows):
        return {}
    asked = distinct(rows, "information")
    value = f" = {number(asked[0])}" if len(asked) == 1 else ""
    implied = {"information": f"epsilon implied by information{value}"}
    return {"local": "local privacy"} | ({} if None in asked else implied)


def _note(mine: Sequence[Row], rows: Sequence[Row]) -> str:
    """How the guarantee of one curve's rows differs from that of others in the panel."""
    if _are_all_local(mine):
        return "" if _are_all_local(rows) else "local"
    several = len(distinct(rows, "delta")) > 1
    return "delta 0" if several and not any(row["delta"] for row in mine) else ""


def _are_all_local(rows: Sequence[Row]) -> bool:
    return all(row["guarantee"] == "local" for row in rows)


def _same(rows: Sequence[Row], name: str) -> bool:
    return rows[0][name] is not None and len(distinct(rows, name)) == 1


def _curve(
    rows: Sequence[Row],
    plan: _Plan,
    note: str,
    looks: dict[str, int],
    patterns: dict[tuple[str, str], int],
) -> Curve:
    name, calibration, variant, none = curve_key(rows[0])
    make = _make_pointer(plan)
    return Curve(
        name,
        tuple(sorted((make(row) for row in rows), key=lambda point: point.x or 0.0)),
        looks[name],
        calibration,
        variant,
        NO_GUARANTEE if none else note,
        pattern=patterns[calibration, variant],
        joined=plan.scale != "names",
    )


def _make_pointer(plan: _Plan) -> Callable[[Row], Point]:
    quantity = plan.view.quantity

    def make(row: Row) -> Point:
        share = row["n"] if quantity.is_per_record else 1
        value = row[quantity.column]
        ends = [row.get(name) for name in quantity.band or ()] or [None, None]
        low, high = (value if end is None else end for end in ends)
        floor = row["floor_excess_risk"] if quantity.is_risk else None
        return Point(
            x=float(row["_x"]),
            value=value / share,
            low=low / share,
            high=high / share,
            error=0.0,
            trials=row["trials"] if quantity.band else 1,
            floor=None if floor is None else floor / share,
            cells=(row["cell"],),
            gap=(row["optimum_gap"] or 0.0) / share if quantity.is_risk else 0.0,
            epsilon_accounted=row["epsilon_accounted"],
        )

    return make
