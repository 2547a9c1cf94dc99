"""Make the report of a study and print it: at the end of ``dperm run``, and for ``dperm report``.

What makes a report is imported when one is made: a report that was kept does not need it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dperm_cli.core import terminal
from dperm_cli.core.environment import collect_seldom
from dperm_cli.core.errors import EXIT_FAILED, EXIT_OK, EXIT_STORAGE
from dperm_cli.results.kept_report import Report, find_report, hash_inputs, keep_report
from dperm_cli.results.ledger.remarks import summarise_remarks
from dperm_cli.results.records.references import warn_of_baselines
from dperm_cli.results.records.schema import json_lines

if TYPE_CHECKING:
    from dperm_cli.results.charts.study_view import StudyView
    from dperm_cli.results.records.store import Store
    from dperm_cli.results.tables.chosen_table import TableRequest

MIN_BAND_TRIALS = 10  # fewest trials for which a 5-95 % band is meaningful


def report_run(out: Path, figures: bool = True) -> Report:
    """The report of a run that has just ended, or the one that was kept if nothing has changed.

    Args:
        out: The study's folder.
        figures: Whether figures are drawn.
    """
    known = find_report(out, figures)
    if known is not None:
        return known
    inputs = hash_inputs(out)
    with collect_seldom():
        made = make_report(out, trust=True, figures=figures)
    keep_report(out, figures, made, inputs)
    return made


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
    from dperm_cli.results.report import write_report
    from dperm_cli.runner.cells.ledger_accountant import Accounting

    return write_report(out, figures=figures, accountant=Accounting(), trust=trust, page=page,
                        others=others, allow_unwritten=True, view=view, table=table,
                        width=width, formats=formats)  # fmt: skip


def print_report(made: Report, out: Path, format_: str) -> Report:
    """Print the table (or JSON rows) on stdout, and name the files on stderr; the same report.

    Raises StorageError at the end, when all is printed, if a file could not be written.
    """
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
    from dperm_cli.results.tables.text_tables import write_terminal

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
