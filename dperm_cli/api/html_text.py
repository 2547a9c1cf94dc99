"""What a notebook shows of an object."""

from __future__ import annotations

import html
from typing import Any

from dperm_cli.results.tables.chosen_table import ChosenTable
from dperm_cli.results.tables.text_tables import write_html

MOST_ROWS = 60


def as_html(title: str, shown: Any) -> str:
    """A title over a table of a study, a frame of pandas, or text as it is."""
    if isinstance(shown, ChosenTable):
        body = write_html(shown)
    elif isinstance(shown, str):
        body = f"<pre>{html.escape(shown)}</pre>"
    else:
        body = shown.to_html(max_rows=MOST_ROWS, float_format="{:.4g}".format, border=0)
    return f"<div><p><b>{html.escape(title)}</b></p>{body}</div>"
