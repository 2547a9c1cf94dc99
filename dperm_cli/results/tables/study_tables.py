"""The tables of a study, of any style: what ``dperm report`` writes and ``Study.table`` gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dperm_cli.core import checks
from dperm_cli.core.dataclass import dataclass
from dperm_cli.results.claims import experiment_tables
from dperm_cli.results.records.row_facts import Row
from dperm_cli.results.tables import summary_table
from dperm_cli.results.tables.chosen_table import (
    ALL,
    ChosenTable,
    TableRequest,
    build_table,
    choose_rows,
)
from dperm_cli.results.tables.latex_table import write_latex
from dperm_cli.results.tables.text_tables import write_html, write_markdown, write_terminal

STYLES = ("terminal", "md", "latex", "html")


@dataclass(frozen=True)
class StudyTables:
    """The tables of a study.

    Attributes:
        csv: All cells with exact numbers, whatever was asked for.
        markdown: The table of a page.
        plain: What a pipe or a file gets of a command.
        latex: Floats that fit a column.
        short: What a terminal shows; None where it shows the plain table.
    """

    csv: str
    markdown: str
    plain: str
    latex: str
    short: ChosenTable | None


def make_tables(
    records: Sequence[Row],
    rows: Sequence[Row],
    about: Mapping[str, Any] | None,
    request: TableRequest,
    width: str = "single",
) -> StudyTables:
    """All tables of a study.

    Args:
        records: Its records.
        rows: The summary rows of these.
        about: What its manifest says of an experiment, or None.
        request: What a reader asked for; by default the plain tables are complete.
        width: Of LaTeX, see ``write_latex``.

    Raises:
        InputError: The study lacks what was asked for.
    """
    if about is None:
        csv = summary_table.csv_text(rows)
    else:
        whole = experiment_tables.format_tables(records, about)
        csv = whole["csv"]
    short = choose_table(records, rows, about, request)
    latex = write_latex(short, width)
    if request.columns not in (None, (ALL,)):
        plain, markdown = write_terminal(short, None), write_markdown(short)
    elif about is not None and request.is_default:
        return StudyTables(csv, whole["md"], whole["terminal"], latex, None)
    else:
        table = summary_table.build(choose_rows(rows, request))
        plain, markdown = summary_table.format_terminal(table), summary_table.markdown(table)
    return StudyTables(csv, markdown, plain, latex, None if request.columns == (ALL,) else short)


def choose_table(
    records: Sequence[Row],
    rows: Sequence[Row],
    about: Mapping[str, Any] | None,
    request: TableRequest,
) -> ChosenTable:
    """The table with the columns that matter, or with those that were asked for.

    An experiment has a table of its own, unless something is asked for.
    """
    if about is not None and request.is_default:
        return experiment_tables.choose_table(records, about)
    return build_table(choose_rows(rows, request, join=True), request)


def format_table(table: ChosenTable, style: str, width: str = "single") -> str:
    """A chosen table in one of ``STYLES``.

    Raises:
        InputError: The style or the width is another one.
    """
    checks.choice("style", style, STYLES)
    if style == "latex":
        return write_latex(table, width)
    written = {"terminal": write_terminal, "md": write_markdown, "html": write_html}
    return written[style](table)
