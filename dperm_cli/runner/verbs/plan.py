"""``dperm plan``: the risk of mechanisms before any private record is read."""

from __future__ import annotations

import sys

from dperm_cli.core.errors import EXIT_FAILED, EXIT_OK
from dperm_cli.core.files import write_files
from dperm_cli.results.charts import plan_figure
from dperm_cli.results.records.schema import json_lines
from dperm_cli.results.tables import plan_table
from dperm_cli.runner.forecasts import choice_forecast
from dperm_cli.runner.forecasts.forecast import trace_risks
from dperm_cli.runner.verbs.plan_request import parse_request


def plan(arguments: list[str]) -> int:
    """Print the forecast (``format=json``: one object a row) and draw its figure.

    Exit code 1 where no mechanism has an answer; the reasons are told.
    """
    asked = parse_request(arguments)
    found = choice_forecast.answer(asked.question)
    if asked.format == "json":
        print(json_lines(found.rows), flush=True)
        if found.verdict:
            print(found.verdict, file=sys.stderr)
    else:
        told = found.rows, found.refusals, asked.question.target, found.verdict
        print(plan_table.format_table(*told))
    if asked.figure and found.rows:
        write_files(asked.out, plan_figure.draw_files(trace_risks(asked.question, found.rows)))
    if found.rows:
        return EXIT_OK
    if asked.format == "json":
        print(plan_table.format_refusals(found.refusals), file=sys.stderr)
    return EXIT_FAILED
