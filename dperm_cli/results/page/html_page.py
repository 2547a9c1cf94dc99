"""Write ``report.html``: one page per study that works offline and contains everything it needs.

The page consists of a template, a style sheet and plain scripts from the folder ``html``, and the
study as JSON. Its content security policy allows only its own style and script, by their hashes. So
the page cannot load anything, and no text in the data can run as a script.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from dperm_cli.core.digests import hash_sha256
from dperm_cli.results.charts.chart_model import HUES
from dperm_cli.results.page.page_data import encode_payload

SCRIPTS = (
    "view.js", "core.js", "grid.js", "chart.js", "picture.js", "curves.js", "sections.js",
    "main.js",
)  # fmt: skip
_FOLDER = Path(__file__).parent / "html"


def page(
    made: dict[str, Any], template: str = "page.html", scripts: Sequence[str] = SCRIPTS
) -> bytes:
    """The bytes of a page; equal payloads give equal bytes."""
    style, script = _write_style(), _script(tuple(scripts))
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    parts = {
        "title": html.escape(made["title"]).encode("ascii", "xmlcharrefreplace").decode(),
        "policy": policy,
        "style": style,
        "script": script,
        "data": encode_payload(made),
    }
    head, *rest = read_asset(template).split("{{")
    pieces = [head]
    for piece in rest:
        name, _, text = piece.partition("}}")
        pieces += [parts[name], text]
    return "".join(pieces).encode()


@cache
def _write_style() -> str:
    """The style sheet, with the colours of figures on light ground as ``chart_model`` has them."""
    hues = "; ".join(f"--h{i}: {hue}" for i, hue in enumerate(HUES))
    return f":root, .paper {{ {hues}; }}\n{read_asset('page.css')}"


@cache
def _script(scripts: tuple[str, ...]) -> str:
    """All scripts as one, with a scope of its own."""
    return '(() => {\n"use strict";\n' + "".join(map(read_asset, scripts)) + "})();"


@cache
def read_asset(name: str) -> str:
    return (_FOLDER / name).read_text("utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(bytes.fromhex(hash_sha256(text))).decode()
