"""``dperm predict MODEL ROWS``: what a released predictor says of new rows."""

from __future__ import annotations

import sys

import numpy as np

from dperm_cli.core.errors import EXIT_OK, InputError
from dperm_cli.core.files import OutputFile
from dperm_cli.core.operands import Syntax, refuse_operands
from dperm_cli.results.ledger.statement import describe_plugins
from dperm_cli.runner.models import model_file, query_rows
from dperm_cli.runner.models.prediction_files import FORMATS, choose_format, open_predictions
from dperm_cli.runner.models.publishable import Publishable
from dperm_cli.runner.models.query_rows import COLUMNS, QueryBlock


def predict(arguments: list[str]) -> int:
    """``dperm predict MODEL ROWS [columns=name|position] [format=csv|json|parquet] [out=FILE]``."""
    words = Syntax(keys=("columns", "format", "out")).split(arguments)
    operands = words.operands
    if len(operands) != 2:
        allowed = "must be a model and a file of rows"
        raise refuse_operands("predict", operands, allowed)
    by = words.choose("columns", COLUMNS)
    to = OutputFile.of("out", words.settings["out"]) if "out" in words.settings else None
    asked = words.choose("format", FORMATS) if "format" in words.settings else None
    form = choose_format(asked, to)
    found, count = model_file.read(operands[0]), 0
    blocks = query_rows.read_blocks(operands[1], found.schema, by == "position")
    with open_predictions(form, to) as write:
        for block in blocks:
            try:
                columns = predict_block(found, block)
            except ValueError as error:
                raise InputError("MODEL", operands[0], f"cannot be used: {error}") from None
            write(columns)
            count += block.rows.shape[0]
    print("\n".join(describe_predictions(found, count)), file=sys.stderr)
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


def predict_block(found: Publishable, block: QueryBlock) -> dict[str, list]:
    """The columns of predictions for some rows.

    Args:
        found: the model.
        block: the rows.

    Returns:
        The identifiers of the file, and ``score``, ``label`` and ``probability`` of a classifier
        (the last where its loss is a likelihood), or ``value`` of a regression, in its own unit.
        Of several classes, score and probability are columns for each class. None stands where a
        row gets no prediction.

    Raises:
        ValueError: A value is beyond what can be computed.
    """
    values, schema = found.values(block.rows), found.schema
    chances = found.chances(values)
    made: dict[str, list] = {}
    if schema.task == "multiclass":
        names = [schema.format_label(float(k)) for k in range(schema.classes)]
        made["label"] = [names[k] for k in np.argmax(values, axis=1)]
        for word, table in (("score", values), ("probability", chances)):
            if table is not None:
                made |= {f"{word}={name}": table[:, k].tolist() for k, name in enumerate(names)}
    elif schema.task == "binary":
        names = {sign: schema.format_label(sign) for sign in (-1.0, 1.0)}
        made["score"] = values.tolist()
        made["label"] = [names[1.0 if value >= 0.0 else -1.0] for value in values]
        if chances is not None:
            made[f"probability={names[1.0]}"] = chances.tolist()
    else:
        made["value"] = schema.target_of(values).tolist()
    if block.unusable is not None:
        for column in made.values():
            for i in np.flatnonzero(block.unusable):
                column[i] = None
    return {**{name: list(cells) for name, cells in block.identifiers.items()}, **made}
