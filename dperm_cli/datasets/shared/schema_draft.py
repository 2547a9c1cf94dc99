"""Draft the schema of a table from its header alone; what only a person knows is left open."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from dperm_cli.core.errors import InputError, make_printable
from dperm_cli.core.parquet_files import ParquetReader
from dperm_cli.datasets.shared.column_kinds import KINDS, UNKNOWN
from dperm_cli.datasets.shared.delimiter_hint import refuse_delimiter
from dperm_cli.datasets.shared.table_cells import PARQUET, read_header, report_arrow_errors

_IDENTIFIERS = ("id", "identifier", "uuid", "key", "nr", "mrn", "ssn", "name", "email")
_DATES = ("date", "day", "admitted", "discharged", "born", "birthday", "timestamp", "dob")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_ .-]*")
_RESERVED = ("null", "true", "false", "nan", "inf", "infinity")
_HEAD = f"""\
# A schema: what can be in {{file}}, not what is. Only the header was read. Put what you know from
# elsewhere in the place of each {UNKNOWN}; values that you look up in the table are not public.
#   number    bounds: [low, high]; values outside are clipped
#   category  values: [a, b, c]; other: own | zero, for words that are not declared
#   ordinal   order: [lowest, ..., highest]
#   date      first: 2020-01-01, last: 2024-12-31; clipped to these days
#   identifier (passed through to predictions), drop (left out)
# missing: own (a coordinate says so) | drop (the record does not count) | a value that stands in
# weight: what the column's coordinates are multiplied by (1)
# unit: record, or {{{{column: NAME, at_most: K}}}} where a person has several records
"""


def draft_schema(key: str, path: Path, target: str | None, delimiter: str, limit: int) -> str:
    """The text of a schema file for a table.

    Args:
        key: what the user typed, for error lines.
        path: the table.
        target: the column that is to be predicted; None leaves it open.
        delimiter: of a csv file.
        limit: bytes that a compressed table may unpack to.

    Raises:
        InputError: there is no header, no such column, or two of one name.
    """
    header = read_header(key, path, delimiter, limit)
    twice = next((name for name in header if header.count(name) > 1), None)
    if twice is not None:
        allowed = f"has column {make_printable(twice, 60)!r} more than once: rename one of them"
        raise InputError(key, path.name, allowed)
    if target is not None and target not in header:
        refuse_delimiter("target", target, "delimiter", header)
        raise InputError("target", target, "no such column in the header", header)
    types = _read_types(key, path)
    lines = [_HEAD.format(file=make_printable(path.name)) + "unit: record"]
    if target is None:
        lines.append(f"# the target stands here alone, and not under columns\ntarget: {_LABEL}")
    else:
        lines.append(f"target: {_LABEL.replace(UNKNOWN, write_word(target), 1)}")
    lines.append("# or, for a number that is predicted (log: positive and skewed):")
    lines.append("# target: {column: NAME, kind: number, bounds: [0, 100], transform: none}")
    lines.append("columns:")
    lines += [f"  {write_word(name)}: {_guess(name, types)}" for name in header if name != target]
    return "\n".join(lines) + "\n"


_LABEL = f"{{column: {UNKNOWN}, kind: label, classes: [{UNKNOWN}, {UNKNOWN}]}}"
_FORMS = {
    "number": f"{{kind: number, bounds: [{UNKNOWN}, {UNKNOWN}], missing: own}}",
    "category": f"{{kind: category, values: [{UNKNOWN}, {UNKNOWN}], other: own, missing: own}}",
    "flag": '{kind: category, values: ["false", "true"], other: zero, missing: own}',
    "date": f"{{kind: date, first: {UNKNOWN}, last: {UNKNOWN}, missing: own}}",
    "identifier": "{kind: identifier}",
    "drop": "{kind: drop}",
    "open": f"{{kind: {UNKNOWN}}}  # one of {', '.join(KINDS)}",
}


def _guess(name: str, types: Mapping[str, str]) -> str:
    """What a column may be, from its name, and from its type where the format has types."""
    words = re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    if _has(words, _IDENTIFIERS):
        return _FORMS["identifier"]
    if _has(words, _DATES):
        return _FORMS["date"]
    return _FORMS[types.get(name, "open")]


def _has(words: Sequence[str], known: Sequence[str]) -> bool:
    return any(word in known for word in words)


def _read_types(key: str, path: Path) -> dict[str, str]:
    """The form for each column's type, in a format that has types."""
    if path.suffix.lower() != PARQUET:
        return {}
    from pyarrow import types

    with report_arrow_errors(key, path):
        fields = ParquetReader(path).types
    forms = (
        (types.is_boolean, "flag"), (types.is_integer, "number"), (types.is_floating, "number"),
        (types.is_decimal, "number"), (types.is_temporal, "date"), (types.is_string, "category"),
        (types.is_large_string, "category"), (types.is_dictionary, "category"),
    )  # fmt: skip
    return {
        name: next((form for is_kind, form in forms if is_kind(kind)), "drop")
        for name, kind in fields.items()
    }


def write_word(text: str) -> str:
    """A text as a YAML scalar that is read back as that text."""
    plain = _PLAIN.fullmatch(text) and text.lower() not in _RESERVED and not text.endswith(" ")
    return text if plain else json.dumps(text, ensure_ascii=False)
