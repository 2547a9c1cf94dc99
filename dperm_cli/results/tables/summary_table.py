"""The complete summary as a table: plain text, CSV and Markdown. Pure functions of rows."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Container, Sequence
from typing import Any

from dperm_cli.core import plugin_words
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.preparation_words import RAW_COLUMNS
from dperm_cli.results.records.references import COLUMNS as REFERENCES
from dperm_cli.results.records.references import tell_references
from dperm_cli.results.records.row_facts import (
    Row,
    csv_lines,
    distinct,
    find_telling_variants,
    format_constraint,
    format_count,
    format_value,
    group_by,
    kernel_of,
    name_of,
    number,
    problem_of,
    read_map,
)
from dperm_cli.results.records.summary import BAND_WORDS, DIAGNOSTIC, SUMMARY_NAMES
from dperm_cli.results.tables.bound_notes import explain_bounds

SIMULATION = (
    "Medians and bands over trials are a simulation on the same data, not a release: "
    "the guarantee covers one trial."
)
SPENT = (
    "Under noise=secure every trial is a release, and all of them are spent: ledger.json has their "
    "total.\nMedians and bands over trials are no release; no guarantee covers them."
)
DISCLOSED = (
    "add_remove holds for the training records with n as a fixed public number, which it is not: n "
    "was\ntaken from the data, so n is disclosed; privacy.population=N declares it instead."
)
CHOICE = (
    "Several rows of one problem: no epsilon covers choosing among them by risk or metric;\n"
    "ledger.json tells what all of them cost together."
)
FLOOR = "no better than the data-free floor, so nothing was learnt: {cells}."
ABOVE_FLOOR = "every median is better than the data-free floor, where that is above 0."
NO_BETTER = "no better than the {baseline}, whatever the excess risk says: {cells}."
BETTER = "every metric is better than that of the {baselines}."
LOCAL = "guarantee local: nobody but its user sees a record; epsilon is that of all answers of one."
INFORMATION = (
    "information= bounds an average and is no differential privacy; epsilon is the local epsilon "
    "that it\nimplies, and that one is the guarantee."
)
RAW = (
    "rows on raw columns: a column with large numbers outweighs all others; dataset.bounds scales "
    "columns by\npublic bounds."
)
RESEARCH = "noise=research: seeded floating-point noise, not for release."


MOST_CERTIFICATES = 4
_OF_SECTION = ("dataset", "loss", "constraint", "constraint_radius", "relation")
_EVERY = frozenset(SUMMARY_NAMES)
_WIDE = 1e-3  # a gap above this share of the data-free floor makes measured risks unreliable


@dataclass(frozen=True)
class Field:
    """One table column: two lines of heading, the text of a row, and its alignment."""

    top: str
    low: str
    text: Callable[[Row], str]
    left: bool = False


@dataclass(frozen=True)
class Section:
    """The cells of one problem: what they share, headings, body."""

    facts: tuple[str, ...]
    fields: tuple[Field, ...]
    body: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Table:
    """What plain text and Markdown show: sections, and the notes below them."""

    sections: tuple[Section, ...]
    notes: tuple[str, ...]


def build(rows: Sequence[Row]) -> Table:
    """The table of a summary, one section per data set, loss, constraint and relation."""
    ran = [row for row in rows if row["status"] == "ok"]
    tagged = [
        {**row, "_variant": tags} for row, tags in zip(ran, find_telling_variants(ran), strict=True)
    ]
    groups = group_by(tagged, section_of)
    sections = tuple(_section(group) for group in groups.values())
    return Table(sections, (*_notes(ran, _EVERY, rows), *_refusals(rows)))


def section_of(row: Row) -> tuple[Any, ...]:
    """Equal for rows of one section."""
    return tuple(row[name] for name in _OF_SECTION)


def list_notes(rows: Sequence[Row], shown: Container[str]) -> list[str]:
    """The notes on a table of summary rows that shows these columns only."""
    ran = [row for row in rows if row["status"] == "ok"]
    return [*_notes(ran, shown, rows), *_refusals(rows)]


def format_tables(csv: str, table: Table) -> dict[str, str]:
    """The complete table as ``csv``, which is given, ``md`` and for the ``terminal``."""
    return {"csv": csv, "md": markdown(table), "terminal": format_terminal(table)}


def format_terminal(table: Table) -> str:
    """Aligned plain text for people; ASCII only, the same with and without a terminal."""
    blocks = [
        text for part in table.sections for text in ("\n".join(part.facts), format_grid(part))
    ]
    return "\n\n".join(block for block in (*blocks, "\n".join(table.notes)) if block) + "\n"


def csv_text(rows: Sequence[Row]) -> str:
    """All summary columns but the diagnostics, exact numbers: equal runs give equal bytes."""
    names = [name for name in SUMMARY_NAMES if name not in DIAGNOSTIC]
    return csv_lines(names, ([format_exact(row.get(name)) for name in names] for row in rows))


def markdown(table: Table) -> str:
    """Markdown tables with the common facts above each and the notes below."""
    lines: list[str] = []
    for section in table.sections:
        part = _move_last(section)
        lines += [f"{escape_markdown(fact)}  " for fact in part.facts]
        lines += ["", _pipe([f"{field.top} {field.low}".strip() for field in part.fields])]
        lines.append(_pipe([":--" if field.left else "--:" for field in part.fields]))
        lines += [_pipe([escape_markdown(text) for text in row]) for row in part.body]
        lines.append("")
    return "\n".join([*lines, *(f"- {escape_markdown(note)}" for note in table.notes)]) + "\n"


# headings of what matters least on a page
_LAST = (("epsilon", "accounted"), ("noise", "scale"), ("steps", ""), ("excess", "per record"))


def _move_last(part: Section) -> Section:
    """The section with the columns that matter first."""
    heads = [(field.top, field.low) for field in part.fields]
    order = sorted(range(len(heads)), key=lambda i: heads[i] in _LAST)
    body = tuple(tuple(line[i] for i in order) for line in part.body)
    return Section(part.facts, tuple(part.fields[i] for i in order), body)


def _section(rows: Sequence[Row]) -> Section:
    """The section of one problem: columns for what varies or matters, the rest as common facts."""
    fields = tuple(_fields(rows))
    body = tuple(tuple(field.text(row) for field in fields) for row in rows)
    return Section(tuple(list_facts(rows)), fields, body)


def _fields(rows: Sequence[Row]) -> list[Field]:
    fields = [field for name, field in _WHEN_VARYING if len(distinct(rows, name)) > 1]
    fields += [Field("mechanism", "", name_of, left=True)]
    for key in dict.fromkeys(key for row in rows for key in row["_variant"]):
        fields.append(_variant_field(key))
    fields.append(make_field("calibration", "calib.", left=True))
    fields += [field for name, field in _LATE_VARYING if len(distinct(rows, name)) > 1]
    fields += _ALWAYS
    if any((row["trials"] or 0) > 1 for row in rows):
        fields.append(Field(BAND_WORDS, "band", _band))
    fields.append(make_field("excess_risk_per_record_median", "excess", "per record"))
    if len(distinct(rows, "floor_excess_risk")) > 1:
        fields.append(make_field("floor_excess_risk", "data-free", "floor", 3))
    fields += [field for name, field in _WHEN_KNOWN if any(row[name] is not None for row in rows)]
    fields += _metric_fields(rows)
    if any(row["unsafe_scaling"] for row in rows):
        fields.append(Field("unsafe", "scaling", lambda row: "YES" * bool(row["unsafe_scaling"])))
    return fields


def make_field(name: str, top: str, low: str = "", digits: int = 4, left: bool = False) -> Field:
    """A column of the rows, with so many digits where it is of numbers."""
    return Field(top, low, lambda row: format_value(row.get(name), digits), left)


def _variant_field(key: str) -> Field:
    top, _, low = key.rpartition(".")
    return Field(top or low, low if top else "", lambda row: row["_variant"].get(key, "-"), True)


_WHEN_VARYING = (
    ("n", make_field("n", "n")),
    ("p", make_field("p", "p")),
    ("ridge", make_field("ridge", "ridge")),
    ("lasso", make_field("lasso", "lasso")),
)
_LATE_VARYING = (
    ("guarantee", make_field("guarantee", "guarantee", left=True)),
    ("trials", make_field("trials", "trials")),
    ("delta", make_field("delta", "delta", digits=3)),
)
_ALWAYS = (
    make_field("epsilon", "epsilon"),
    make_field("epsilon_accounted", "epsilon", "accounted"),
    make_field("noise_scale", "noise", "scale"),
    make_field("steps", "steps", digits=3),
    make_field("excess_risk_median", "excess", "risk"),
)
_WHEN_KNOWN = (
    ("information_accounted", make_field("information_accounted", "information", "nats")),
    ("bound_upper", make_field("bound_upper", "upper", "bound", 3)),
    ("bound_lower", make_field("bound_lower", "lower", "bound", 3)),
    ("bound_factor", make_field("bound_factor", "bound", "factor", 3)),
    ("minimax_factor", make_field("minimax_factor", "gap", digits=3)),
    ("bound_released", make_field("bound_released", "released", "bound", 3)),
)


def _metric_fields(rows: Sequence[Row]) -> list[Field]:
    names = [name for name in distinct(rows, "metric") if name]
    low = names[0] if len(names) == 1 else "metric"
    fields = [make_field("metric", "metric", left=True)] if len(names) > 1 else []
    for name, top in (("train_metric", "train"), ("test_metric", "test")):
        if any(row[name] is not None for row in rows):
            fields.append(Field(top, low, lambda row, name=name: _share(row[name])))
    if tell_references(rows) is None:
        known = [name for name in REFERENCES if any(row.get(name) is not None for row in rows)]
        fields += [Field(name.partition("_")[0], low, lambda row, name=name: _share(row.get(name)))
                   for name in known]  # fmt: skip
    if any(row.get("no_better_than") for row in rows):
        fields.append(make_field("no_better_than", "no better", "than", left=True))
    return fields


def list_facts(rows: Sequence[Row]) -> list[str]:
    """The lines above a section: whatever its rows agree on."""
    first = rows[0]
    words = [str(first["dataset"]), str(first["loss"]), format_constraint(first)]
    words += [f"{name} {number(first[name])}" for name in ("n", "p") if _common(rows, name)]
    words += [f"ridge {number(first['ridge'])}"] * bool(_common(rows, "ridge") and first["ridge"])
    words += [f"lasso {number(first['lasso'])}"] * bool(_common(rows, "lasso") and first["lasso"])
    words += [str(first["relation"])]
    if first.get("population_source") == "declared" and _common(rows, "population"):
        words += [f"population {number(first['population'])} (declared)"]
    words += [f"delta {number(first['delta'], 3)}"] if _common(rows, "delta") else []
    words += [f"{first['guarantee']} guarantee"] if _common(rows, "guarantee") else []
    words += [format_count(first["trials"], "trial")] if _common(rows, "trials") else []
    done = [text for text in distinct(rows, "preprocessing") if text]
    return [" | ".join(words), *_optimum_facts(rows), *(f"data: {text}" for text in done)]


def _optimum_facts(rows: Sequence[Row]) -> list[str]:
    gaps = [row["optimum_gap"] for row in rows if row["optimum_gap"] is not None]
    words = [f"optimum {number(rows[0]['optimum'], 6)}"] if _common(rows, "optimum") else []
    words += [f"optimum gap at most {number(max(gaps), 2)}"] if gaps else []
    if _common(rows, "floor_excess_risk"):
        sum_, each = rows[0]["floor_excess_risk"], rows[0]["floor_excess_risk_per_record"]
        words.append(f"data-free floor: excess risk {number(sum_)}, per record {number(each)}")
    told = tell_references(rows)
    return [" | ".join(words)] * bool(words) + ([told] if told else [])


def _notes(rows: Sequence[Row], shown: Container[str], every: Sequence[Row]) -> list[str]:
    """What is to be said of rows with a release; ``every`` has those without one as well."""
    outside = [use for row in every for use in plugin_words.read_uses(row.get("plugins"))]
    told = [f"from outside: {plugin_words.summarise_uses(outside)}."] if outside else []
    if not rows:
        return told
    notes = ["Excess risks are sums over the records of a data set, above the certified optimum."]
    notes += _tell_choices(rows) + _tell_tuning(rows)
    notes += explain_bounds(rows, shown)
    notes += _warn_uncertified(rows)
    sources = [row["accountant"] for row in rows if row["accountant"]]
    if sources and "epsilon_accounted" in shown:
        notes.append(f"accounted epsilon by: {'; '.join(dict.fromkeys(sources))}.")
    notes += _certificates(rows) if "certificate" in shown else []
    if any(row.get("population_source") == "from the data" for row in rows):
        notes.append(DISCLOSED)
    repeated = [row["noise"] for row in rows if row["trials"] > 1]
    notes += [SIMULATION] * any(noise != "secure" for noise in repeated)
    notes += [SPENT] * ("secure" in repeated)
    if len(rows) > len(set(map(problem_of, rows))):
        notes.append(CHOICE)
    if any(row["floor_excess_risk"] is not None for row in rows):
        # always a line: a risk, which has noise in it, decides on no line of the table
        useless = "; ".join(_list_useless(rows))
        notes.append(FLOOR.format(cells=useless) if useless else ABOVE_FLOOR)
    notes += _compare_with_baselines(rows)
    if any(row["noise"] != "secure" for row in rows):
        notes.append(RESEARCH)
    grids = [str(row["arithmetic"]) for row in rows if row["noise"] == "secure"]
    if grids:
        notes.append(f"noise=secure: the system's generator, on {', '.join(dict.fromkeys(grids))}.")
    if any(RAW_COLUMNS in (row["preprocessing"] or "") for row in rows):
        notes.append(RAW)
    if any(row["unsafe_scaling"] for row in rows):
        notes.append("unsafe scaling: learnt from the data and NOT covered by the guarantee.")
    if any(row["guarantee"] == "local" for row in rows):
        notes.append(LOCAL)
    if any(row.get("information") is not None for row in rows):
        notes.append(INFORMATION)
    notes += told
    if any(row["guarantee"] == "none" for row in rows):
        notes.append("guarantee none: these rows are NOT private.")
    return notes


def _tell_choices(rows: Sequence[Row]) -> list[str]:
    """What a mechanism that chooses another one has chosen, at which epsilons."""
    told = [(row, read_map(row.get("settings"))) for row in rows]
    keyed = group_by(
        [pair for pair in told if "chosen" in pair[1]],
        lambda pair: (name_of(pair[0]), str(pair[1]["chosen"])),
    )
    found: dict[str, list[str]] = {}
    for (name, chosen), group in keyed.items():
        at = ", ".join(dict.fromkeys(number(row["epsilon"]) for row, _ in group))
        runners = (settings.get("runner_up") for _, settings in group)
        others = dict.fromkeys(str(name) if name else "none: no other fits" for name in runners)
        words = f"{chosen} at epsilon {at} (runner-up {', '.join(others)})"
        found.setdefault(name, []).append(words)
    return [
        "\n".join(textwrap.wrap(f"{name} chose, from public facts: {'; '.join(words)}.", 100))
        for name, words in found.items()
    ]


def _tell_tuning(rows: Sequence[Row]) -> list[str]:
    """Why a radius is what it is, and what a private choice cost and, in the first trial, was."""
    told = dict[str, None]()
    for row in rows:
        found = read_map(row.get("settings")).get("tuning") or {}
        if "reason" in found:
            radius = number(row["constraint_radius"])
            told[f"constraint.radius=auto is {radius}: {found['reason']}."] = None
        if "how" in found:
            chosen = dict(found.get("chosen") or {})
            if "reason" in found:
                del chosen["constraint.radius"]
            named = ", ".join(f"{key} {format_value(value)}" for key, value in chosen.items())
            cost = number(found["epsilon"], 3) if found["epsilon"] else "nothing"
            told[
                f"{name_of(row)} at epsilon {number(row['epsilon'])} chose among "
                f"{found['candidates']} candidates by {found['how']}, which cost {cost}"
                f"{' of it' if found['epsilon'] else ''}; in the first trial: {named or 'nothing'}."
            ] = None
    return ["\n".join(textwrap.wrap(text, 100)) for text in told]


def _warn_uncertified(rows: Sequence[Row]) -> list[str]:
    """The problems whose optimum ran out of time, so that excess risks against it are
    unreliable.
    """
    wide = [row for row in rows if _wide_gap(row)]
    problems = dict.fromkeys(
        f"{row['dataset']}, {row['loss']}, {format_constraint(row)} "
        f"(gap {number(row['optimum_gap'], 2)})"
        for row in wide
    )
    if not problems:
        return []
    return [f"NO CERTIFIED OPTIMUM for {'; '.join(problems)}: the search ran out of time, and "
            "excess risks and floors there may be off by the gap, and negative."]  # fmt: skip


def _wide_gap(row: Row) -> bool:
    gap, floor, optimum = row["optimum_gap"], row["floor_excess_risk"], row["optimum"]
    if gap is None or floor is None:
        return False
    return gap > _WIDE * max(floor, 0.0) and gap > _WIDE * 1e-3 * abs(optimum or 0.0)


def _certificates(rows: Sequence[Row]) -> list[str]:
    """What was proved of each mechanism's releases: the first text of each name."""
    named = group_by([row for row in rows if row.get("certificate")], name_of)
    texts = {name: distinct(group, "certificate") for name, group in named.items()}
    shown = list(texts.items())[:MOST_CERTIFICATES]
    lines = [f"certificate of {name}: {' '.join(found[0].split())}" for name, found in shown]
    left = sum(map(len, texts.values())) - len(shown)
    if left:
        lines[-1] += f" (and {left} more: see ledger.json)"
    return ["\n".join(textwrap.wrap(f"{line}.", 100)) for line in lines]


def _compare_with_baselines(rows: Sequence[Row]) -> list[str]:
    """A line for simulated rows with a metric, always; none for releases."""
    judged = [r for r in rows if r.get("baseline_metric") is not None and r["noise"] != "secure"]
    if not judged:
        return []
    useless = group_by([r for r in judged if r["no_better_than"]], lambda r: r["no_better_than"])
    if not useless:
        names = " or the ".join(distinct(judged, "baseline"))
        return [BETTER.format(baselines=names)]
    return [NO_BETTER.format(baseline=name, cells="; ".join(_list_cells(group)))
            for name, group in useless.items()]  # fmt: skip


def _list_useless(rows: Sequence[Row]) -> list[str]:
    """The mechanisms and epsilons that are no better than a point chosen without any data."""
    return _list_cells([row for row in rows if _is_useless(row)])


def _list_cells(rows: Sequence[Row]) -> list[str]:
    """The mechanisms of some rows, each with its epsilons."""
    below = group_by(rows, lambda row: (name_of(row), kernel_of(row), row["calibration"]))
    return [
        f"{mechanism} ({f'kernel {kernel}, ' if kernel else ''}{calibration}) at epsilon "
        f"{', '.join(dict.fromkeys(number(r['epsilon']) for r in group))}"
        for (mechanism, kernel, calibration), group in below.items()
    ]


def _is_useless(row: Row) -> bool:
    excess, floor = row["excess_risk_median"], row["floor_excess_risk"]
    return excess is not None and floor is not None and excess >= floor > 0


def _refusals(rows: Sequence[Row]) -> list[str]:
    """One line per reason, with the epsilons it concerns."""
    left = [row for row in rows if row["status"] != "ok"]
    names = ("status", "dataset", "loss", "constraint", "calibration", "reason")
    lines = []
    keyed = group_by(left, lambda row: (name_of(row), *(row[name] for name in names)))
    for key, group in keyed.items():
        mechanism, status, dataset, loss, set_, calibration, reason = map(format_value, key)
        at = ", ".join(number(epsilon) for epsilon in distinct(group, "epsilon"))
        where = f"{mechanism} ({calibration}) on {dataset}, {loss}, {set_}, epsilon {at}"
        lines.append(f"{status}: {where}: {' '.join(reason.split())}")
    return lines


def _common(rows: Sequence[Row], name: str) -> bool:
    return rows[0][name] is not None and len(distinct(rows, name)) == 1


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _band(row: Row) -> str:
    low, high = row["excess_risk_q05"], row["excess_risk_q95"]
    return "-" if row["trials"] < 2 else f"{number(low, 3)} .. {number(high, 3)}"


def format_grid(part: Section) -> str:
    two = any(field.low for field in part.fields)
    heads = [(field.top, field.low) if two else (field.top,) for field in part.fields]
    columns = zip(heads, part.fields, zip(*part.body, strict=True), strict=True)
    padded = []
    for head, field, texts in columns:
        width = max(map(len, (*head, *texts)))
        rule = "-" * width
        cells = (text.ljust(width) if field.left else text.rjust(width) for text in head)
        texts = (text.ljust(width) if field.left else text.rjust(width) for text in texts)
        padded.append([*cells, rule, *texts])
    return "\n".join("  ".join(line).rstrip() for line in zip(*padded, strict=True))


def format_exact(value: Any) -> str:
    """A value as it stands in a CSV file: numbers in full, null as nothing."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


def _pipe(texts: Sequence[str]) -> str:
    return "| " + " | ".join(texts) + " |"


def escape_markdown(text: str) -> str:
    """Text that a Markdown table shows as it is."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("_", "\\_").replace("<", "&lt;")
