"""Links between pages of Markdown: find them, check them, point them at the pages of the site."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

_FENCE = re.compile(r"^( *)(```+|~~~+).*?^\1\2[ \t]*$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?)\s*#*$", re.MULTILINE)
_OWN_NAME = re.compile(r'<a (?:id|name)="([^"]+)"')
_OUTSIDE = re.compile(r"[a-z]+:")  # https:, mailto:


def hide_code(text: str) -> str:
    """The text with all code blanked, so that places in it stay what they are."""
    for pattern in (_FENCE, _CODE):
        text = pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    return text


def list_links(text: str) -> Iterator[re.Match[str]]:
    """The links and images of a page that lead to a file or a heading of this repository.

    Yields:
        Matches in the text without code: groups are the mark of an image, the words, the target.
    """
    for match in _LINK.finditer(hide_code(text)):
        target = match[3]
        # words in brackets before a formula in brackets are no link
        if not _OUTSIDE.match(target) and re.search(r"[./#]|^[A-Z]+$", target):
            yield match


def list_anchors(text: str) -> set[str]:
    """The names of a page's headings, as in links: ``# The way`` is ``the-way``."""
    blank = _FENCE.sub("", text)
    anchors: set[str] = set(_OWN_NAME.findall(blank))
    for match in _HEADING.finditer(blank):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match[1])
        anchor = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        number, name = 0, anchor
        while name in anchors:
            number += 1
            name = f"{anchor}-{number}"
        anchors.add(name)
    return anchors


def find_broken(path: Path, text: str | None = None) -> list[str]:
    """The links of a page that lead to no file, or to a heading that is not there.

    Args:
        path: The page.
        text: Its content, if it is not that of the file.
    """
    text = path.read_text() if text is None else text
    broken = []
    for match in list_links(text):
        file, _, anchor = match[3].partition("#")
        target = path.parent / file if file else path
        if file and not target.exists():
            broken.append(match[3])
        elif anchor and target.suffix == ".md":
            page = text if target == path else target.read_text()
            if anchor not in list_anchors(page):
                broken.append(match[3])
    return broken


def move_links(path: Path, text: str, places: Mapping[Path, str]) -> str:
    """The text of a page with links as they are on the site.

    Args:
        path: The page's file in the repository.
        text: Its content.
        places: The name on the site of every page and picture, by its file.

    Returns:
        The text. A link to what is no part of the site becomes its words.
    """
    parts, at = [], 0
    here = os.path.dirname(places[path])
    for match in list_links(text):
        file, mark, anchor = match[3].partition("#")
        if not file:
            continue
        target = (path.parent / file).resolve()
        place = places.get(target) or places.get(target / "README.md")
        words = text[match.start(2) : match.end(2)]
        new = words
        if place is not None:
            new = f"{match[1]}[{words}]({os.path.relpath(place, here or '.')}{mark}{anchor})"
        parts += [text[at : match.start()], new]
        at = match.end()
    return "".join([*parts, text[at:]])


def separate_blocks(text: str) -> str:
    """The text with an empty line before each list and table, which MkDocs needs."""
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        opened = re.match(r" *(```+|~~~+)", line)
        if opened and (not fence or opened[1].startswith(fence)):
            fence = "" if fence else opened[1]
        before = lines[-1] if lines else ""
        kind, last = _find_kind(line), _find_kind(before)
        if not fence and not opened and before.strip() and kind and kind != last:
            inside = before.startswith("  ") or last == "list"
            if not (kind == "list" and inside):
                lines.append("")
        lines.append(line)
    return "\n".join(lines)


def _find_kind(line: str) -> str:
    """Whether a line begins a list's item or is a row of a table."""
    if re.match(r" *([-*]|\d+\.) +\S", line):
        return "list"
    return "table" if line.startswith("|") else ""
