"""What a notebook shows of an object."""

from __future__ import annotations

import html
from typing import Any

_MOST_ROWS = 60


def as_html(title: str, shown: Any) -> str:
    """A title over a frame of pandas, or over text as it is."""
    if isinstance(shown, str):
        body = f"<pre>{html.escape(shown)}</pre>"
    else:
        body = shown.to_html(max_rows=_MOST_ROWS, float_format="{:.4g}".format, border=0)
    return f"<div><p><b>{html.escape(title)}</b></p>{body}</div>"
