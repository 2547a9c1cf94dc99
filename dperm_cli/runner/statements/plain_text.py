"""A statement as plain text for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from dperm_cli.runner.statements import layers
from dperm_cli.runner.statements.facts import Statement
from dperm_cli.runner.statements.lines import Section

WIDTH = 100
RISK = "What an attacker can learn"
_LABEL = 24


def format_text(found: Statement) -> str:
    """The statement in lines of at most ``WIDTH`` characters."""
    lines = [*_wrap(found.title), "=" * min(WIDTH, len(found.title)), *_wrap(found.lede)]
    if found.warning:
        lines += ["", *_wrap(found.warning)]
    lines += _format_sections(found.before)
    lines += ["", RISK, "-" * len(RISK)]
    for name, text in found.risk.rows():
        lines += _format_line(name, text)
    lines += _wrap(found.risk.explain())
    lines += _format_sections(found.after)
    lines += ["", layers.HEADING, "=" * len(layers.HEADING)]
    lines += _format_sections(found.layers)
    return "\n".join([*lines, "", *_wrap(found.footer)]) + "\n"


def _format_sections(sections: Iterable[Section]) -> list[str]:
    found = []
    for section in sections:
        found += ["", section.title, "-" * len(section.title)]
        for line in section.lines:
            found += _format_line(line.name, line.text)
    return found


def _format_line(name: str, text: str) -> list[str]:
    """Name and text beside each other, or below where the name is long."""
    pad = " " * _LABEL
    if len(name) >= _LABEL:
        return [*_wrap(name), *_wrap(text, pad)]
    return _wrap(text, pad, f"{name:<{_LABEL}}")


def _wrap(text: str, indent: str = "", first: str | None = None) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=indent if first is None else first, subsequent_indent=indent
    )
