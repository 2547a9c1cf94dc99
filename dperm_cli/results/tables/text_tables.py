"""A chosen table as plain text for a terminal, as Markdown and as HTML."""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Sequence

from dperm_cli.results.tables.chosen_table import ChosenTable, Column, Group
from dperm_cli.results.tables.summary_table import escape_markdown

WIDTH = 100  # letters of a line where no terminal says how many there are
_GAP = "  "


def write_terminal(table: ChosenTable, width: int | None = WIDTH, bold: bool = False) -> str:
    """Aligned plain text, ASCII only.

    Args:
        table: The table; columns that have no room are named below it.
        width: Letters of a line; None for as many as there are columns.
        bold: Whether the codes of a terminal make headings bold.
    """
    shown = table if width is None else fit_columns(table, width)
    left_out = [c.name for c in table.columns if c not in shown.columns]
    blocks = [_wrap([table.caption], width)]
    for group in shown.groups:
        blocks.append(
            "\n".join(filter(None, [_wrap([group.title], width), _grid(shown, group, width, bold)]))
        )
    notes = [*table.notes]
    if left_out:
        notes.insert(0, f"no room for {', '.join(left_out)}: columns=all shows them.")
    blocks.append(_wrap(notes, width))
    return "\n\n".join(filter(None, blocks)) + "\n"


def fit_columns(table: ChosenTable, width: int = WIDTH) -> ChosenTable:
    """The table with the columns that have room in a line of so many letters."""
    widths = [_measure(table, i) for i in range(len(table.columns))]
    order = sorted(range(len(widths)), key=lambda i: not table.columns[i].needed)
    kept: list[int] = []
    for place in order:
        total = sum(widths[i] for i in (*kept, place)) + len(_GAP) * len(kept)
        if kept and total > width:
            break
        kept.append(place)
    return table.keep_columns(sorted(kept))


def _measure(table: ChosenTable, place: int) -> int:
    return max(map(len, [table.columns[place].head, *(line[place] for line in table.lines)]))


def _wrap(lines: Sequence[str], width: int | None) -> str:
    """Lines, those that are longer than the width broken."""
    kept = [line for line in lines if line]
    if width is None:
        return "\n".join(kept)
    return "\n".join(
        part
        for line in kept
        for part in textwrap.wrap(" ".join(line.split()), max(width, 20), subsequent_indent="  ",
                                  break_on_hyphens=False)
    )  # fmt: skip


def _grid(table: ChosenTable, group: Group, width: int | None, bold: bool) -> str:
    """The lines of a group below their headings; all groups have columns of one width."""
    sizes = [_measure(table, i) for i in range(len(table.columns))]

    def lay(texts: Sequence[str]) -> str:
        cells = [
            text.ljust(size) if column.left else text.rjust(size)
            for text, size, column in zip(texts, sizes, table.columns, strict=True)
        ]
        return _GAP.join(cells).rstrip()[:width]

    head = lay([column.head for column in table.columns])
    rule = lay(["-" * size for size in sizes])
    return "\n".join([f"\x1b[1m{head}\x1b[0m" if bold else head, rule, *map(lay, group.lines)])


def write_markdown(table: ChosenTable) -> str:
    """Tables of Markdown, the notes as a list below."""
    lines = [f"{_escape(table.caption)}  ", ""] if table.caption else []
    for group in table.groups:
        lines += [f"**{_escape(group.title)}**", ""] if group.title else []
        lines.append(_pipe([column.head for column in table.columns]))
        lines.append(_pipe([":--" if column.left else "--:" for column in table.columns]))
        lines += [_pipe([_escape(text) for text in line]) for line in group.lines]
        lines.append("")
    return "\n".join([*lines, *(f"- {_escape(note)}" for note in table.notes)]) + "\n"


def _escape(text: str) -> str:
    """As ``escape_markdown``, but an underscore inside a word needs no escape."""
    return re.sub(r"(?<=\w)\\_(?=\w)", "_", escape_markdown(text))


def _pipe(texts: Sequence[str]) -> str:
    return "| " + " | ".join(texts) + " |"


def write_html(table: ChosenTable) -> str:
    """A table of HTML without scripts; groups have a line of their own each."""
    columns = table.columns
    heads = [_cell("th", column, column.head) for column in columns]
    lines = ["<table>", f"<caption>{html.escape(table.caption)}</caption>", "<thead>",
             f"<tr>{''.join(heads)}</tr>", "</thead>", "<tbody>"]  # fmt: skip
    for group in table.groups:
        if group.title:
            title = html.escape(group.title)
            lines.append(f'<tr><th colspan="{len(columns)}">{title}</th></tr>')
        for line in group.lines:
            cells = [_cell("td", *pair) for pair in zip(columns, line, strict=True)]
            lines.append(f"<tr>{''.join(cells)}</tr>")
    lines += ["</tbody>", "</table>"]
    notes = [f"<li>{html.escape(note)}</li>" for note in table.notes]
    lines += ["<ul>", *notes, "</ul>"] if notes else []
    return "\n".join(lines) + "\n"


def _cell(tag: str, column: Column, text: str) -> str:
    side = "left" if column.left else "right"
    return f'<{tag} style="text-align: {side}">{html.escape(text)}</{tag}>'
