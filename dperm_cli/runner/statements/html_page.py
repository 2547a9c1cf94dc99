"""A statement as one HTML file, which loads nothing and runs no script."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from html import escape
from pathlib import Path

from dperm_cli.runner.statements import layers, page_flow
from dperm_cli.runner.statements.facts import Statement
from dperm_cli.runner.statements.lines import Line, Section
from dperm_cli.runner.statements.plain_text import RISK
from dperm_cli.runner.statements.risk_picture import write_svg

# nothing is loaded and no script runs; styles stand in the page and in elements of the picture
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def write_html(found: Statement) -> bytes:
    """The page; equal statements give equal bytes."""
    _, size = page_flow.lay_out(found)
    # letters as large as those of the PDF, so that it prints on as many pages
    style = _read_style() + f"@media print {{ body {{ font-size: {size:g}pt; }} }}\n"
    parts = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(found.title)}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>",
        f'<h1>{escape(found.title)}</h1>\n<p class="lede">{escape(found.lede)}</p>',
    ]
    if found.warning:
        parts.append(f'<p class="warning" role="note">{escape(found.warning)}</p>')
    parts += _write_sections(found.before, "h2")
    parts += _write_risk(found)
    parts += _write_sections(found.after, "h2")
    parts.append(f"<h2>{layers.HEADING}</h2>")
    parts += _write_sections(found.layers, "h3")
    parts.append(f"</main>\n<footer>{escape(found.footer)}</footer>\n</body>\n</html>\n")
    return "\n".join(parts).encode("ascii", "xmlcharrefreplace")


def _write_risk(found: Statement) -> list[str]:
    rows = [f"<dt>{escape(name)}</dt>\n<dd>{escape(text)}</dd>" for name, text in found.risk.rows()]
    return [
        f'<h2>{RISK}</h2>\n<div class="risk">\n{write_svg(found.risk)}<dl>',
        *rows,
        f"</dl>\n</div>\n<p>{escape(found.risk.explain())}</p>",
    ]


def _write_sections(sections: Iterable[Section], heading: str) -> list[str]:
    parts = []
    for section in sections:
        parts += [f"<{heading}>{escape(section.title)}</{heading}>", "<table>"]
        parts += [_write_line(line) for line in section.lines]
        parts.append("</table>")
    return parts


def _write_line(line: Line) -> str:
    text = escape(line.text)
    kind = ' class="open"' if line.is_open else ""
    return f'<tr><th scope="row">{escape(line.name)}</th><td{kind}>{text}</td></tr>'


@cache
def _read_style() -> str:
    return (Path(__file__).parent / "statement.css").read_text("utf-8")
