"""Print the tables of a study from its stored records.

It serves ``dperm report``, and the end of ``dperm run``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from dperm_cli.core.errors import EXIT_FAILED, EXIT_OK, EXIT_STORAGE, InputError
from dperm_cli.core.operands import FORMATS, Syntax
from dperm_cli.results.charts.study_view import KEYS, StudyView, read_view
from dperm_cli.results.ledger.remarks import summarise_remarks
from dperm_cli.results.records.store import Store
from dperm_cli.results.report import Report, write_report
from dperm_cli.runner.studies import study_folder

MIN_BAND_TRIALS = 10  # fewest trials for which a 5-95 % band is meaningful


def report(arguments: list[str]) -> int:
    """``dperm report FOLDER [format=table|json] [html=true|false]`` and the keys of a figure."""
    words = Syntax(keys=("format", "html", "out", *KEYS)).split(arguments)
    folder = study_folder.name_one(words, "FOLDER")
    if not os.path.isdir(folder):
        raise InputError("FOLDER", folder, "must be an existing folder (the out= of a run)")
    page = words.choose("html", ("true", "false")) == "true"
    view = read_view(words.settings)
    made = print_study(Path(folder), words.choose("format", FORMATS), page=page, view=view)
    if made.broken:
        print("a record is damaged; the same `dperm run` computes it again", file=sys.stderr)
    return exit_code(made)


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
) -> Report:
    """Write all files of a study; what could not be written is in the report.

    ``view`` is what the figure shows; None is what a study shows unasked.
    ``trust`` is for a run that has just written the records: it replaces the ledger, and keeps
    what only the ledger knows, as it does of the ``others`` that were merged into this folder.
    """
    from dperm_cli.runner.cells.ledger_accountant import Accounting

    return write_report(out, figures=figures, accountant=Accounting(), trust=trust, page=page,
                        others=others, allow_unwritten=True, view=view)  # fmt: skip


def print_study(
    out: Path,
    format_: str,
    trust: bool = False,
    page: bool = True,
    figures: bool = True,
    others: Sequence[Store] = (),
    view: StudyView | None = None,
) -> Report:
    """``make_report``, and all of it printed."""
    made = make_report(out, trust, page, figures, others, view)
    print_report(made, out, format_)
    return made


def print_report(made: Report, out: Path, format_: str) -> None:
    """Print the table (or JSON rows) on stdout, and name the files on stderr.

    Raises StorageError at the end, when all is printed, if a file could not be written.
    """
    from dperm_cli.results.records.schema import json_lines

    if format_ == "json":
        print(json_lines(made.summary))
    else:
        print(made.text.rstrip("\n"))
    names = ", ".join(os.path.basename(path) for path in made.files)
    if names:
        print(f"wrote {out}{os.sep}: {names}", file=sys.stderr)
    for words in summarise_remarks(made.summary):
        print(f"warning: {words}", file=sys.stderr)
    _tell_trials(made)
    _tell_ledger(made)
    if made.unwritten is not None:
        raise made.unwritten


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
