"""``dperm report``: print the tables of a study from its stored records."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from dperm_cli.core.errors import InputError
from dperm_cli.core.files import write_files
from dperm_cli.core.operands import FORMATS, Syntax
from dperm_cli.results.charts import rank_diagram
from dperm_cli.results.charts.figure_drawing import read_formats
from dperm_cli.results.charts.study_view import KEYS, read_view
from dperm_cli.results.records.row_facts import Row
from dperm_cli.results.tables import rankings
from dperm_cli.results.tables.chosen_table import KEYS as TABLE_KEYS
from dperm_cli.results.tables.chosen_table import read_request
from dperm_cli.runner.studies import study_folder
from dperm_cli.runner.studies.study_report import exit_code, make_report, print_report

EXTRA = ("ranks", "slopes")  # what is written beside the tables if asked for


def report(arguments: list[str]) -> int:
    """``dperm report FOLDER [format=table|json] [html=true|false]``, keys of figure and table."""
    keys = ("format", "formats", "html", "out", *EXTRA, *KEYS, *TABLE_KEYS)
    words = Syntax(keys=keys).split(arguments)
    folder = study_folder.name_one(words, "FOLDER")
    if not os.path.isdir(folder):
        raise InputError("FOLDER", folder, "must be an existing folder (the out= of a run)")
    page = words.choose("html", ("true", "false")) == "true"
    view = read_view(words.settings)
    asked = words.settings
    table = read_request(asked.get("columns"), asked.get("rows"), asked.get("aggregate"))
    # a page's column is what tables fit unless both columns are asked for
    width = "double" if asked.get("theme") == "double" else "single"
    format_ = words.choose("format", FORMATS)
    extra = [name for name in EXTRA if words.choose(name, ("false", "true")) == "true"]
    formats = read_formats(asked.get("formats"))
    made = make_report(
        Path(folder), page=page, view=view, table=table, width=width, formats=formats
    )
    print_report(made, Path(folder), format_)
    _write_extra(Path(folder), made.summary, extra, width, format_ == "json")
    if made.broken:
        print("a record is damaged; the same `dperm run` computes it again", file=sys.stderr)
    return exit_code(made)


def _write_extra(
    out: Path, rows: Sequence[Row], extra: Sequence[str], theme: str, silent: bool
) -> None:
    """Write ranks with their diagram and slopes, and print them."""
    files: dict[str, bytes] = {}
    told = []
    if "ranks" in extra:
        try:
            found = rankings.rank_rows(rows)
        except InputError as reason:  # all else is written: it is said, and no error
            told.append(f"no ranks: {reason}")
        else:
            drawn = rank_diagram.draw_ranking(found, theme)
            pictures = rank_diagram.draw_files(drawn, theme)
            files = {f"ranks.{ending}": data for ending, data in pictures.items()}
            files["ranks.csv"] = rankings.write_csv(found).encode()
            told.append(rankings.tell_ranking(found))
    if "slopes" in extra:
        slopes = rankings.fit_slopes(rows)
        files["slopes.csv"] = rankings.write_slopes_csv(slopes).encode()
        told.append(rankings.tell_slopes(slopes))
    if files:
        write_files(out, files)
    for text in () if silent else told:
        print(f"\n{text}")
