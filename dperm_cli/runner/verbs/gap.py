"""``dperm gap``: how far apart the best proved upper and lower bounds of private ERM are."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

from dperm_cli.bounds.minimax_gap import MinimaxGap, find_gaps
from dperm_cli.core import catalogue, checks, registry
from dperm_cli.core.errors import EXIT_OK, InputError
from dperm_cli.core.fields import keys_of
from dperm_cli.core.number_text import number_in
from dperm_cli.core.operands import FORMATS, Syntax
from dperm_cli.privacy.budget import RELATIONS, Budget
from dperm_cli.problem.problem import bare_spec
from dperm_cli.results.records.schema import json_lines

DEFAULTS = {"n": "1000", "p": "10", "epsilon": "1", "delta": "1e-6", "radius": "1", "L": "1"}
KEYS = (*DEFAULTS, "constraint", "relation", "format")
MOST_ROWS = 1000
# what the table shows; format=json has all of it
SHOWN = ("constraint", "n", "p", "epsilon", "delta", "losses", "lower", "lower_by", "upper",
         "upper_by", "factor", "factor_gaussian")  # fmt: skip


def gap(arguments: list[str]) -> int:
    """``dperm gap [n=1000] [p=10] [epsilon=1] [delta=1e-6] [constraint=l2_ball] ..``."""
    words = Syntax(keys=KEYS, operands=False).split(arguments)
    form = words.choose("format", FORMATS)
    relation = words.choose("relation", RELATIONS)
    names = words.settings.get("constraint", catalogue.defaults()["constraint"]).split(",")
    for name in names:
        checks.choice("constraint", name, registry.list_shipped("constraint"))
    axes = {key: _numbers(key, words.settings.get(key, DEFAULTS[key])) for key in DEFAULTS}
    points = [
        dict(zip(axes, values, strict=True)) | {"constraint": name}
        for name, *values in itertools.product(names, *axes.values())
    ]
    if len(points) > MOST_ROWS:
        raise InputError("gap", f"{len(points)} settings", f"must be at most {MOST_ROWS}")
    rows = [row for point in points for row in find_rows(point, relation)]
    print(json_lines(rows) if form == "json" else _write_table(rows))
    return EXIT_OK


def find_rows(point: Mapping[str, Any], relation: str) -> list[dict[str, Any]]:
    """The rows of one setting: linear losses, and all losses as Lipschitz.

    Args:
        point: n, p, epsilon, delta, radius, L and the constraint's name.
        relation: the neighbouring relation.
    """
    cls = registry.load("constraint", point["constraint"])
    size = {keys_of(cls)["radius"].name: point["radius"]}
    spec = bare_spec(point["n"], point["L"], cls(**size, p=point["p"]))
    budget = Budget(point["epsilon"], point["delta"], relation)
    facts = {key: point[key] for key in ("constraint", "n", "p", "epsilon", "delta")}
    more = {"radius": point["radius"], "L": point["L"], "relation": relation}
    return [{**facts, **more, **describe_gap(one)} for one in find_gaps(spec, budget)]


def describe_gap(found: MinimaxGap) -> dict[str, Any]:
    """The columns of a gap: bounds, what has them, and the factors between them."""
    row = {
        "losses": found.losses,
        "lower": found.lower.value,
        "lower_by": _name_lower(found.lower),
        "upper": found.upper.value,
        "upper_by": found.upper.name,
        "factor": found.factor if math.isfinite(found.factor) else None,
    }
    if found.lower_gaussian is not None:
        row["lower_gaussian"] = found.lower_gaussian.value
        row["lower_gaussian_by"] = _name_lower(found.lower_gaussian)
    if found.upper_gaussian is not None:
        row["upper_gaussian"] = found.upper_gaussian.value
        row["upper_gaussian_by"] = found.upper_gaussian.name
    factor = found.factor_gaussian
    row["factor_gaussian"] = factor if factor is not None and math.isfinite(factor) else None
    return row


def _name_lower(found: Any) -> str:
    return f"{found.name} (b={found.b}, k={found.k})" if found.k else found.name


def _numbers(key: str, text: str) -> list[Any]:
    """The values of an axis: numbers with commas between them."""
    found = []
    for word in text.strip("[]").split(","):
        value = number_in(word.strip())
        given = word if value is None else value
        if key in ("n", "p"):
            whole = int(given) if isinstance(given, float) and given.is_integer() else given
            found.append(checks.integer(key, whole, low=1, high=10**9 if key == "n" else 10**6))
        elif key == "delta":
            found.append(checks.number(key, given, low=0.0, high=0.1))
        elif key == "epsilon":
            found.append(checks.number(key, given, low=1e-6, high=100.0))
        else:
            found.append(checks.positive(key, given))
    return found


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
