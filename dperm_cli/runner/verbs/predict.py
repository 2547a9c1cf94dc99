"""``dperm predict MODEL ROWS``: what a released predictor says of new rows."""

from __future__ import annotations

import json
import sys
from typing import Any

from dperm_cli.core.errors import EXIT_OK, InputError
from dperm_cli.core.files import OutputFile
from dperm_cli.core.operands import Syntax, refuse_operands
from dperm_cli.results.ledger.statement import describe_plugins
from dperm_cli.results.records.row_facts import csv_lines
from dperm_cli.runner.models import model_file, query_rows
from dperm_cli.runner.models.publishable import Publishable
from dperm_cli.runner.models.query_rows import COLUMNS


def predict(arguments: list[str]) -> int:
    """``dperm predict MODEL ROWS [columns=name|position] [format=csv|json] [out=FILE]``."""
    words = Syntax(keys=("columns", "format", "out")).split(arguments)
    operands = words.operands
    if len(operands) != 2:
        allowed = "must be a model and a file of rows"
        raise refuse_operands("predict", operands, allowed)
    form, by = words.choose("format", ("csv", "json")), words.choose("columns", COLUMNS)
    to = OutputFile.of("out", words.settings["out"]) if "out" in words.settings else None
    found = model_file.read(operands[0])
    rows = query_rows.read(operands[1], found.schema, by == "position")
    try:
        columns = _columns_of(found, rows)
    except ValueError as error:
        raise InputError("MODEL", operands[0], f"cannot be used: {error}") from None
    lines = list(zip(*columns.values(), strict=True))
    if form == "json":
        text = "".join(json.dumps(dict(zip(columns, line, strict=True))) + "\n" for line in lines)
    else:
        text = csv_lines(columns, lines)
    if to is not None:
        to.write(text.encode())
    else:
        sys.stdout.write(text)
    print("\n".join(describe_predictions(found, rows.shape[0])), file=sys.stderr)
    return EXIT_OK


def describe_predictions(found: Publishable, count: int) -> list[str]:
    """What the predictions are worth, in lines: what is recomputed, and what the file says."""
    lines = [
        f"{count} predictions by {found.mechanism}: {found.level()}, as the events in the file "
        f"give it ({found.guarantee.source})",
        "that this mechanism ran, and that these are its events, is the file's own word",
    ]
    if found.schema.columns is None:
        lines.append("the model has no column names: columns were taken by position")
    if found.published_inputs is not None:
        lines.append(found.published_inputs)
    outside = describe_plugins(found.plugins)
    if outside is not None:
        lines.append(outside)
    if found.noise == "research":
        lines.append("the file says noise=research: made with seeded noise, not for release")
    else:
        lines.append(f"the file says noise={found.noise}, which nothing in it can prove")
    return lines


def _columns_of(found: Publishable, rows: Any) -> dict[str, list]:
    """``score`` and ``label`` of a classifier; ``value`` of a regression, in its own unit."""
    values = found.values(rows)
    if found.schema.task == "binary":
        names = {sign: found.schema.format_label(sign) for sign in (-1.0, 1.0)}
        labels = [names[1.0 if value >= 0.0 else -1.0] for value in values]
        return {"score": values.tolist(), "label": labels}
    return {"value": found.schema.target_of(values).tolist()}
