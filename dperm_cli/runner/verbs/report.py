"""Print the tables of a study from its stored records.

It serves ``dperm report``, and the end of ``dperm run``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from dperm_cli.core import terminal
from dperm_cli.core.errors import EXIT_FAILED, EXIT_OK, EXIT_STORAGE, InputError
from dperm_cli.core.files import write_files
from dperm_cli.core.operands import FORMATS, Syntax
from dperm_cli.results.charts import rank_diagram
from dperm_cli.results.charts.figure_drawing import read_formats
from dperm_cli.results.charts.study_view import KEYS, StudyView, read_view
from dperm_cli.results.ledger.remarks import summarise_remarks
from dperm_cli.results.records.references import warn_of_baselines
from dperm_cli.results.records.row_facts import Row
from dperm_cli.results.records.store import Store
from dperm_cli.results.report import Report, write_report
from dperm_cli.results.tables import rankings
from dperm_cli.results.tables.chosen_table import KEYS as TABLE_KEYS
from dperm_cli.results.tables.chosen_table import TableRequest, read_request
from dperm_cli.results.tables.text_tables import write_terminal
from dperm_cli.runner.studies import study_folder

EXTRA = ("ranks", "slopes")  # what is written beside the tables if asked for
MIN_BAND_TRIALS = 10  # fewest trials for which a 5-95 % band is meaningful


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


def exit_code(made: Report) -> int:
    """The exit code of a report: damaged files first, then faults of the ledger."""
    if made.broken or made.gaps:
        return EXIT_STORAGE
    return EXIT_FAILED if made.faults else EXIT_OK


def make_report(
    out: Path,
    trust: bool = False,
    page: bool = True,
    figures: bool = True,
    others: Sequence[Store] = (),
    view: StudyView | None = None,
    table: TableRequest | None = None,
    width: str = "single",
    formats: Sequence[str] | None = None,
) -> Report:
    """Write all files of a study; what could not be written is in the report.

    ``view`` is what the figure shows, ``table`` what the tables do and ``formats`` those of the
    figure; None is what a study shows unasked. ``width`` is that of ``table.tex``.
    ``trust`` is for a run that has just written the records: it replaces the ledger, and keeps
    what only the ledger knows, as it does of the ``others`` that were merged into this folder.
    """
    from dperm_cli.runner.cells.ledger_accountant import Accounting

    return write_report(out, figures=figures, accountant=Accounting(), trust=trust, page=page,
                        others=others, allow_unwritten=True, view=view, table=table,
                        width=width, formats=formats)  # fmt: skip


def print_report(made: Report, out: Path, format_: str) -> Report:
    """Print the table (or JSON rows) on stdout, and name the files on stderr; the same report.

    Raises StorageError at the end, when all is printed, if a file could not be written.
    """
    from dperm_cli.results.records.schema import json_lines

    if format_ == "json":
        print(json_lines(made.summary))
    else:
        print(_format_text(made).rstrip("\n"))
    names = ", ".join(os.path.basename(path) for path in made.files)
    if names:
        print(f"wrote {out}{os.sep}: {names}", file=sys.stderr)
    for words in summarise_remarks(made.summary):
        print(f"warning: {words}", file=sys.stderr)
    for words in warn_of_baselines(made.summary):
        print(f"warning: {words}", file=sys.stderr)
    _tell_trials(made)
    _tell_ledger(made)
    if made.unwritten is not None:
        raise made.unwritten
    return made


def _format_text(made: Report) -> str:
    """The table: on a terminal the columns that matter and have room, else all of it."""
    if made.short is None or not sys.stdout.isatty():
        return made.text
    table = write_terminal(made.short, terminal.find_width(), bold=terminal.takes_codes(sys.stdout))
    return "\n".join([table, *made.after])


def _tell_trials(made: Report) -> None:
    # do not suggest more trials where noise is fresh: every trial spends budget
    seeded = [r for r in made.summary if r["status"] == "ok" and r["noise"] != "secure"]
    counts = [row["trials"] for row in seeded if row["trials"] > 1]
    if counts and min(counts) < MIN_BAND_TRIALS:
        words = f"5-95 % bands of {min(counts)} trials are hardly more than their range"
        print(f"note: {words}; trials={MIN_BAND_TRIALS} or more say something", file=sys.stderr)


def _tell_ledger(made: Report) -> None:
    for note in made.notes:
        print(f"note: {note}", file=sys.stderr)
    if made.gaps:
        first, *others = made.gaps
        more = f" (and {len(others)} more)" if others else ""
        words = f"the privacy ledger is a lower bound, releases may be missing: {first}{more}"
        print(f"dperm: {words}", file=sys.stderr)
    if made.faults:
        first, *others = made.faults
        more = f" (and {len(others)} more)" if others else ""
        print(f"dperm: the privacy ledger does not hold: {first}{more}", file=sys.stderr)
    elif made.releases:
        words = "1 release, its" if made.releases == 1 else f"{made.releases} releases, every"
        print(f"privacy ledger: {words} epsilon recomputed from its events", file=sys.stderr)
        for total in made.totals:
            print(f"privacy ledger: {total}", file=sys.stderr)
        if any(row["guarantee"] == "none" for row in made.summary):
            whose = "it is" if made.releases == 1 else "some of them are"
            print(f"guarantee none: {whose} NOT private", file=sys.stderr)
