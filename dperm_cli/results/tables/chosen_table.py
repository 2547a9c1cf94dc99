"""A study's table as a reader asks for it: columns, rows, and numbers as far as they are sure.

``choose_columns`` and ``choose_rows`` read what was asked for, ``build_table`` makes the table, and
``latex_table`` and ``text_tables`` write it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.results.charts.study_view import find_value, list_keys
from dperm_cli.results.records.aggregate import aggregate_rows, choose_repetitions, split_words
from dperm_cli.results.records.references import COLUMNS as REFERENCES
from dperm_cli.results.records.references import tell_references
from dperm_cli.results.records.row_facts import (
    Row,
    distinct,
    find_telling_variants,
    format_count,
    format_value,
    group_by,
    name_of,
    number,
)
from dperm_cli.results.records.summary import BAND_WORDS, SUMMARY_NAMES
from dperm_cli.results.tables import summary_table
from dperm_cli.results.tables.rounded_numbers import MOST_DIGITS, round_number

KEYS = ("columns", "rows")
ALL = "all"


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Args:
        name: What ``columns=`` calls it.
        head: Its heading.
        left: Whether it has words, and not numbers.
        needed: Whether rows are told apart by it: it is never left out for width.
    """

    name: str
    head: str
    left: bool = False
    needed: bool = False


@dataclass(frozen=True)
class Group:
    """Lines of one problem or panel, with what stands above them.

    ``title`` has the words that tell it from other groups.
    """

    title: str
    lines: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class ChosenTable:
    """A table of any style.

    Args:
        caption: What all of it has in common.
        columns: In the order in which they matter.
        groups: The lines.
        remarks: Notes below it, each with the column that it is about, or an empty name.
    """

    caption: str
    columns: tuple[Column, ...]
    groups: tuple[Group, ...]
    remarks: tuple[tuple[str, str], ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes on the table and on those columns that it has."""
        shown = {"", *(column.name for column in self.columns)}
        return tuple(text for text, column in self.remarks if column in shown)

    def keep_columns(self, kept: Sequence[int]) -> ChosenTable:
        """The table with the columns at these places."""
        groups = tuple(
            replace(group, lines=tuple(tuple(line[i] for i in kept) for line in group.lines))
            for group in self.groups
        )
        return replace(self, columns=tuple(self.columns[i] for i in kept), groups=groups)

    def keep_lines(self, most: int) -> ChosenTable:
        """The table with its first lines; a note says how many there are in all."""
        count = len(self.lines)
        if count <= most:
            return self
        groups: list[Group] = []
        for group in self.groups:
            groups.append(replace(group, lines=group.lines[: max(most, 0)]))
            most -= len(group.lines)
        kept = tuple(group for group in groups if group.lines)
        shown = sum(len(group.lines) for group in kept)
        note = (f"the first {shown} of {count} lines", "")
        return replace(self, groups=kept, remarks=(note, *self.remarks))

    @property
    def lines(self) -> list[tuple[str, ...]]:
        return [line for group in self.groups for line in group.lines]


@dataclass(frozen=True)
class TableRequest:
    """What a reader asks of a study's table.

    Args:
        columns: Names of columns, ``("all",)`` for those of the complete table, or None for those
            that matter and have room.
        rows: The values that rows may have, by column.
        aggregate: Keys over which cells are joined, see ``choose_repetitions``.
    """

    columns: tuple[str, ...] | None = None
    rows: Mapping[str, tuple[Any, ...]] | None = None
    aggregate: str | Sequence[str] | None = None

    @property
    def is_default(self) -> bool:
        """Whether nothing was asked for."""
        return self == TableRequest()


def read_request(columns: Any = None, rows: Any = None, aggregate: Any = None) -> TableRequest:
    """The request that words or Python values make.

    Args:
        columns: Names, as a list or with commas between; None or nothing for a choice.
        rows: A map of columns to a value or a list, or ``mechanism:noisy_gd,epsilon:1``.
        aggregate: As in ``choose_repetitions``.

    Raises:
        InputError: Something is not of this form.
    """
    names = split_words("columns", columns)
    chosen = tuple(str(name).strip() for name in names or () if str(name).strip()) or None
    if chosen and ALL in chosen and len(chosen) > 1:
        raise InputError("columns", ",".join(chosen), f"{ALL} stands alone")
    return TableRequest(chosen, _read_rows(rows), aggregate or None)


def _read_rows(rows: Any) -> Mapping[str, tuple[Any, ...]] | None:
    if not rows:
        return None
    if isinstance(rows, Mapping):
        many = (list, tuple, set, frozenset, range)
        return {str(k): tuple(v) if isinstance(v, many) else (v,) for k, v in rows.items()}
    found: dict[str, tuple[Any, ...]] = {}
    for pair in str(rows).split(","):
        key, colon, value = pair.partition(":")
        if not colon or not key or not value:
            raise InputError("rows", pair, "must be COLUMN:VALUE, several with commas between")
        found[key.strip()] = (*found.get(key.strip(), ()), value.strip())
    return found


# ---- which rows, which columns -------------------------------------------------------------------


def choose_rows(
    rows: Sequence[Row], request: TableRequest, join: bool = False
) -> list[dict[str, Any]]:
    """The summary rows that the request keeps, joined over repetitions.

    Args:
        rows: Summary rows.
        request: What was asked for.
        join: Whether repetitions are joined unasked.

    Raises:
        InputError: A column or a value that no row has.
    """
    kept = list(rows)
    for key, values in (request.rows or {}).items():
        known = list_keys(rows)
        if key not in known:
            raise InputError("rows", key, f"must be one of {', '.join(known)}", known)
        found = {i: _spell(find_value(row, key, name_of(row))) for i, row in enumerate(rows)}
        wanted = [_spell(value) for value in values]
        for value in wanted:
            if value not in found.values():
                there = list(dict.fromkeys(found.values()))
                words = f"no row has it; {key} is {' or '.join(there)}"
                raise InputError("rows", f"{key}:{value}", words, there)
        ids = {id(rows[i]) for i, value in found.items() if value in wanted}
        kept = [row for row in kept if id(row) in ids]
    if request.rows and not kept:
        raise InputError("rows", str(dict(request.rows)), "no row has all of these values")
    asked = request.aggregate
    keys = choose_repetitions(asked, kept) if asked is not None or join else []
    return aggregate_rows(kept, keys)


def _spell(value: Any) -> str:
    """A value as text; 1, 1.0 and "1.0" are spelled alike."""
    try:
        return f"{float(value):.12g}"
    except (TypeError, ValueError):
        return str(value)


_ALIASES = {
    "excess_risk": "excess_risk_median",
    "excess_risk_per_record": "excess_risk_per_record_median",
    "floor": "floor_excess_risk",
    "constraint.radius": "constraint_radius",
}
_NAMES = {source: name for name, source in _ALIASES.items()}
BAND = "band"
_HEADS = {
    "excess_risk": "excess risk",
    "excess_risk_per_record": "risk per record",
    BAND: BAND_WORDS,
    "floor": "floor",
    "epsilon_accounted": "certified epsilon",
    "noise_scale": "noise scale",
    "bound_upper": "upper bound",
    "bound_lower": "lower bound",
    "bound_factor": "bound factor",
    "minimax_factor": "gap",
    "bound_released": "released bound",
    "calibration": "calib.",
    "information_accounted": "nats",
}
# Told apart by, where they vary; then what is looked for, in the order in which it matters.
_TELLING = (
    "n", "p", "ridge", "lasso", "constraint_radius", "calibration", "guarantee", "privacy",
    "delta", "information",
)  # fmt: skip
_IN_TITLE = ("n", "p", "ridge", "lasso", "guarantee", "delta")  # where all rows below have one
_MATTERING = (
    "excess_risk", BAND, "test_metric", "baseline_metric", "optimum_metric", "floor_metric",
    "no_better_than", "floor", "bound_upper", "bound_lower", "bound_factor",
    "minimax_factor", "bound_released",
    "train_metric", "epsilon_accounted", "excess_risk_per_record", "noise_scale", "steps",
    "information_accounted", "trials",
)  # fmt: skip
_BANDS = {
    "excess_risk": ("excess_risk_q05", "excess_risk_q95"),
    "test_metric": ("test_metric_q05", "test_metric_q95"),
    "train_metric": ("train_metric_q05", "train_metric_q95"),
}
_ASKED = ("epsilon", "delta", "ridge", "lasso", "n", "p", "constraint_radius", "information")
_CONSTANT_UNASKED = ("floor", "trials", *REFERENCES)  # shown unasked only where they vary


def list_columns(rows: Sequence[Row]) -> list[str]:
    """All names that ``columns=`` takes for these summary rows."""
    known = [*_ALIASES, BAND, *SUMMARY_NAMES]
    return list(dict.fromkeys([*known, *list_keys(rows), ALL]))


def choose_columns(rows: Sequence[Row], request: TableRequest) -> list[Column]:
    """The columns of the request, or all that matter, those first that matter most.

    Columns that were asked for get company where lines are alike without it, see ``_add_telling``.

    Raises:
        InputError: No column has this name.
    """
    ran = [row for row in rows if row["status"] == "ok"]
    needed = _list_needed(ran)
    if request.columns is not None and request.columns != (ALL,):
        known = list_columns(rows)
        for name in request.columns:
            if name not in known:
                some = [*_ALIASES, BAND, "mechanism", "epsilon", "test_metric", "bound_upper"]
                words = f"must be a column, such as {', '.join(some)}, or {ALL}"
                raise InputError("columns", name, words, known)
        names = list(dict.fromkeys(_NAMES.get(name, name) for name in request.columns))
        shown = _add_telling(names, needed, ran)
        return [replace(_describe(name, ran), needed=len(shown) > len(names) and name in needed)
                for name in shown]  # fmt: skip
    found = [replace(_describe(name, ran), needed=True) for name in needed]
    return [*found, *(_describe(n, ran) for n in _MATTERING if _is_worth_a_column(n, ran))]


def _list_needed(ran: Sequence[Row]) -> list[str]:
    """The columns by which the lines of one problem are told apart."""
    variants = dict.fromkeys(key for found in find_telling_variants(ran) for key in found)
    telling = [name for name in _TELLING if _tells_apart(name, ran)]
    needed = dict.fromkeys(["mechanism", *variants, *telling, "epsilon"])
    needed.pop("constraint_radius", None)  # it stands in the title of a group
    if len(distinct(ran, "epsilon")) == 1 and distinct(ran, "epsilon") == [None]:
        needed.pop("epsilon")
    return list(needed)


def _add_telling(names: Sequence[str], needed: Sequence[str], ran: Sequence[Row]) -> list[str]:
    """These columns, and behind the last of them that tells lines apart those that it takes more.

    Lines below one title are alike where all columns of settings are: what was measured may differ
    by chance, and tells nobody what a line is of.
    """
    settings = [name for name in names if name in needed or "." in name or name in _TELLING]
    place = max((names.index(name) + 1 for name in settings), default=0)
    added: list[str] = []
    for name in (name for name in needed if name not in settings):
        alike = group_by(ran, lambda row: (
            summary_table.section_of(row), *(_find(row, known) for known in (*settings, *added))
        )).values()  # fmt: skip
        if any(len({_find(row, name) for row in group}) > 1 for group in alike):
            added.append(name)
    return [*names[:place], *added, *names[place:]]


def _tells_apart(name: str, rows: Sequence[Row]) -> bool:
    """Whether a column varies; what a title says has to vary below one title."""
    groups = group_by(rows, summary_table.section_of).values() if name in _IN_TITLE else [rows]
    return any(len(distinct(group, name)) > 1 for group in groups)


def _is_worth_a_column(name: str, rows: Sequence[Row]) -> bool:
    if name == BAND:
        return any((row["trials"] or 0) > 1 for row in rows)
    values = distinct(rows, _ALIASES.get(name, name))
    return len(values) > 1 if name in _CONSTANT_UNASKED else values not in ([], [None])


def _describe(name: str, rows: Sequence[Row]) -> Column:
    metrics = [metric for metric in distinct(rows, "metric") if metric]
    side, _, of = name.partition("_")
    if of == "metric" and side in ("train", "test"):
        return Column(name, f"{side} {metrics[0] if len(metrics) == 1 else 'metric'}")
    values = [_find(row, name) for row in rows]
    left = any(isinstance(value, str) and not _is_number(value) for value in values)
    words = name.rpartition(".")[2].replace("_", " ") if "." in name else name.replace("_", " ")
    return Column(name, _HEADS.get(name, words), left)


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return text in ("", "-")


def _find(row: Row, name: str) -> Any:
    if name == BAND:
        return None
    source = _ALIASES.get(name, name)
    if name != "mechanism" and source in row and source in SUMMARY_NAMES:
        return row[source]
    return find_value(row, name, name_of(row))


# ---- cells ---------------------------------------------------------------------------------------


def _write_cell(row: Row, column: Column) -> str:
    name = column.name
    if name == BAND:
        return _write_band(row)
    value = _find(row, name)
    if isinstance(value, str) and not column.left and _is_number(value):
        return value or "-"
    if column.left or isinstance(value, str):
        return "-" if value is None else format_value(value)
    if name == "excess_risk":
        return round_number(value, _half_width(row, name), 3)
    if name in _BANDS:
        return "-" if value is None else f"{value:.{_count_places(_half_width(row, name))}f}"
    return write_value(name, value)


def write_value(name: str, value: Any) -> str:
    """A value of a column: what was asked for as it was, and what was found to three digits."""
    if isinstance(value, int | float) and not isinstance(value, bool) and name in _ASKED:
        return number(value, MOST_DIGITS)
    return round_number(value)


def _count_places(half: float | None) -> int:
    """Digits of a metric behind the point: two of its uncertainty, and at most three."""
    return min(max(1 - math.floor(math.log10(half)), 1), 3) if half else 3


def _half_width(row: Row, name: str) -> float | None:
    low, high = (row.get(end) for end in _BANDS[name])
    if low is None or high is None or (row["trials"] or 0) < 2:
        return None
    return (high - low) / 2.0


def _write_band(row: Row) -> str:
    low, high = (row.get(end) for end in _BANDS["excess_risk"])
    half = _half_width(row, "excess_risk")
    if low is None or high is None or half is None:
        return "-"
    return f"{round_number(low, half, 3)} .. {round_number(high, half, 3)}"


# ---- the table -----------------------------------------------------------------------------------


def build_table(rows: Sequence[Row], request: TableRequest) -> ChosenTable:
    """The table of summary rows, a group for each problem.

    Args:
        rows: What ``choose_rows`` gives.
        request: Which columns. Cells that a mechanism refused are lines of dashes where it ran
            with another budget or setting, and the notes say why.

    Raises:
        InputError: No column has this name.
    """
    columns = tuple(choose_columns(rows, request))
    ran = [row for row in rows if row["status"] == "ok"]
    problems = list(group_by(ran, summary_table.section_of).values())
    lines = [_add_refused(rows, group) for group in problems]
    facts = [summary_table.list_facts(group) for group in problems]
    words = [found[0].split(" | ") for found in facts]
    common = [word for word in (words[0] if words else ()) if all(word in w for w in words)]
    groups = tuple(
        Group(
            ", ".join(word for word in own if word not in common),
            tuple(tuple(_write_cell(row, column) for column in columns) for row in shown),
        )
        for own, shown in zip(words, lines, strict=True)
    )
    about = list(dict.fromkeys(line for found in facts for line in found[1:]))
    about = about if len(problems) == 1 else [line for line in about if line.startswith("data: ")]
    told = [line.replace(" | ", "; ") for line in about] + _tell_joined(ran)
    told += _tell_added(columns, request)
    remarks = _collect_remarks(rows, columns, told)
    if len(problems) > 1:  # each has its own: columns, where there is room, and lines at the end
        own = [(tell_references(group), group[0]) for group in problems]
        lines = [f"{row['dataset']}, {row['loss']}: {line}" for line, row in own if line]
        remarks += tuple((line, "") for line in dict.fromkeys(lines))
    return ChosenTable(", ".join(common), columns, groups, remarks)


def _add_refused(rows: Sequence[Row], ran: Sequence[Row]) -> list[Row]:
    """The rows of a problem, and in their places those that a mechanism of it refused."""
    names = ("dataset", "loss", "constraint", "relation", "calibration")

    def curve(row: Row) -> tuple[Any, ...]:
        return (name_of(row), *(row[name] for name in names))

    known, cells = set(map(curve, ran)), {row["cell"] for row in ran}
    return [
        row
        for row in rows
        if row["cell"] in cells or (row["status"] != "ok" and curve(row) in known)
    ]


def _collect_remarks(
    rows: Sequence[Row], columns: Sequence[Column], first: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    general = summary_table.list_notes(rows, ())
    found = [(text, "") for text in (*first, *general)]
    for column in columns:
        lines = summary_table.list_notes(rows, (column.name,))
        found += [(line, column.name) for line in lines if line not in general]
    return tuple(found)


def _tell_added(columns: Sequence[Column], request: TableRequest) -> list[str]:
    """Which columns stand in the table though others were asked for."""
    if request.columns in (None, (ALL,)):
        return []
    asked = [_NAMES.get(name, name) for name in request.columns or ()]
    added = [column.name for column in columns if column.name not in asked]
    return [f"Added to the columns asked for: {', '.join(added)}; lines are alike without."] * bool(
        added
    )


def _tell_joined(rows: Iterable[Row]) -> list[str]:
    counts = sorted({row.get("repetitions") or 1 for row in rows})
    if not counts or counts[-1] == 1:
        return []
    many = format_count(counts[-1], "repetition")
    many = many if len(counts) == 1 else f"{counts[0]} to {many}"
    return [f"Each line joins {many} of a cell (seeds, folds or draws of data): median and band "
            "over the medians of each."]  # fmt: skip
