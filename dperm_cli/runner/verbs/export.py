"""``dperm export``: a saved model as an ONNX graph, or its coefficients as a table."""

from __future__ import annotations

import json
import sys
from typing import Any

from dperm_cli.core.errors import EXIT_OK, InputError
from dperm_cli.core.files import OutputFile
from dperm_cli.core.operands import Syntax, refuse_operands
from dperm_cli.results.records.row_facts import csv_lines
from dperm_cli.runner.models import model_file
from dperm_cli.runner.models.onnx_model import write_onnx
from dperm_cli.runner.models.publishable import Publishable

FORMATS = ("csv", "json", "onnx")


def export(arguments: list[str]) -> int:
    """``dperm export MODEL [format=csv|json|onnx] [out=FILE]``."""
    words = Syntax(keys=("format", "out")).split(arguments)
    if len(words.operands) != 1:
        raise refuse_operands("export", words.operands, "must be one model")
    form = words.choose("format", FORMATS)
    if form == "onnx" and "out" not in words.settings:
        raise InputError("out", None, "must name a file for format=onnx, as in out=model.onnx")
    to = OutputFile.of("out", words.settings["out"]) if "out" in words.settings else None
    found = model_file.read(words.operands[0])
    if form == "onnx" and to is not None:
        to.write(write_onnx(found))
        return EXIT_OK
    if found.features is not None:
        allowed = "has a kernel, and no coefficients of columns; try format=onnx"
        raise InputError("MODEL", words.operands[0], allowed)
    rows = list_coefficients(found)
    if form == "json":
        text = "".join(json.dumps(row) + "\n" for row in rows)
    else:
        text = csv_lines(rows[0], (row.values() for row in rows))
    if to is None:
        sys.stdout.write(text)
    else:
        to.write(text.encode())
    return EXIT_OK


def list_coefficients(found: Publishable) -> list[dict[str, Any]]:
    """A row for each coordinate: its name, what it is of, its unit and its coefficients.

    Args:
        found: a linear model.
    """
    assert found.theta is not None
    schema, several = found.schema, found.columns_of_theta
    names = list(schema.columns or (f"x{i + 1}" for i in range(schema.count)))
    names += ["constant"] * schema.intercept
    words = ["coefficient"]
    if several > 1:
        words = [f"coefficient={schema.format_label(float(k))}" for k in range(several)]
    units = describe_units(found)
    rule = f"{schema.rows}, {schema.norm}-norm {schema.row_bound:g}"
    return [
        {"coordinate": name, "unit": units.get(name, "as given"), "rows": rule,
         **dict(zip(words, values.tolist(), strict=True))}
        for name, values in zip(names, found.theta.reshape(-1, several), strict=True)
    ]  # fmt: skip


def describe_units(found: Publishable) -> dict[str, str]:
    """What 1 stands for in each coordinate, by its name."""
    schema, told = found.schema, dict[str, str]()
    for i, name in enumerate(schema.columns or ()):
        if schema.bounds is not None:
            pair: Any = schema.bounds if isinstance(schema.bounds[0], float) else schema.bounds[i]
            told[name] = f"[{pair[0]:g}, {pair[1]:g}] scaled to [{-1 if schema.centred else 0}, 1]"
    if schema.table is not None:
        for column, kind in schema.table.features:
            declared = kind.plain()
            for name in kind.names(column):
                told[name] = "1 where it holds" if "=" in name else f"{declared['kind']} in [-1, 1]"
            if "bounds" in declared:
                low, high = declared["bounds"]
                told[column] = f"[{low:g}, {high:g}] scaled to [-1, 1]"
    told["constant"] = "1 in every row"
    return told
