"""``dperm gap``: how far apart the best proved upper and lower bounds of private ERM are."""

from __future__ import annotations

import itertools
from typing import Any

from dperm_cli.core.errors import EXIT_OK, InputError
from dperm_cli.core.number_text import number_in
from dperm_cli.core.operands import FORMATS, Syntax
from dperm_cli.privacy.budget import RELATIONS
from dperm_cli.results.records.schema import json_lines
from dperm_cli.runner.cells.gap_rows import DEFAULTS, find_bounds

KEYS = (*DEFAULTS, "format")
LISTED = ("n", "p", "epsilon", "delta", "radius", "L", "constraint")  # axes of the table
MOST_ROWS = 1000
# what the table shows; format=json has all of it
SHOWN = ("constraint", "n", "p", "epsilon", "delta", "losses", "lower", "lower_by", "upper",
         "upper_by", "factor", "factor_gaussian")  # fmt: skip


def gap(arguments: list[str]) -> int:
    """``dperm gap [n=1000] [p=10] [epsilon=1] [delta=1e-6] [constraint=l2_ball] ..``."""
    words = Syntax(keys=KEYS, operands=False).split(arguments)
    form = words.choose("format", FORMATS)
    relation = words.choose("relation", RELATIONS)
    given = {key: words.settings.get(key, str(DEFAULTS[key])) for key in LISTED}
    axes = {key: _read_values(text) for key, text in given.items()}
    points = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    if len(points) > MOST_ROWS:
        raise InputError("gap", f"{len(points)} settings", f"must be at most {MOST_ROWS}")
    rows = [row for point in points for row in find_bounds({**point, "relation": relation})]
    print(json_lines(rows) if form == "json" else _write_table(rows))
    return EXIT_OK


def _read_values(text: str) -> list[Any]:
    """The values of an axis, with commas between them; what is no number is left as it is."""
    words = [word.strip() for word in text.strip("[]").split(",")]
    numbers = [number_in(word) for word in words]
    return [word if n is None else n for word, n in zip(words, numbers, strict=True)]


def _write_table(rows: list[dict[str, Any]]) -> str:
    cells = [[_write_cell(row.get(name)) for name in SHOWN] for row in rows]
    widths = [max(len(name), *(len(line[k]) for line in cells)) for k, name in enumerate(SHOWN)]
    lines = [SHOWN, *cells]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _write_cell(value: Any) -> str:
    return "-" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
