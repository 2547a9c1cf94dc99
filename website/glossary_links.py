"""Link the words of the glossary to it, on each page where they first occur."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from website.links import hide_code

PAGE = "glossary.md"
# pages that explain no word: the glossary itself, and lists
LEFT_OUT = (
    PAGE, "changelog.md", "licences.md", "claims.md", "faults.md", "audit_power.md",
    "audit_yours_power.md",
)  # fmt: skip
# words with other meanings, linked only behind these: no "data set" is the set of a constraint
ONLY_AFTER = {"set": ("constraint", "convex", "allowed")}
_TERM = re.compile(r"^- \*\*([^*]+)\*\*(?=:)", re.MULTILINE)
# where no link is put: links, headings, rows of tables, indented lines, formulas, tags
_NO_PLACE = (
    re.compile(r"!?\[(?:[^\[\]]|\[[^\[\]]*\])*\](?:\([^()\s]*\))?"),
    re.compile(r"^(?:#| *\||    |\t).*$", re.MULTILINE),
    re.compile(r"\$\$.*?\$\$|\$[^$\n]+\$", re.DOTALL),
    re.compile(r"<[^<>\n]+>"),
)


def list_terms(glossary: str) -> list[str]:
    """The words that a glossary explains."""
    return _TERM.findall(glossary)


def make_anchor(term: str) -> str:
    """The name of a word's place on the glossary's page.

    >>> make_anchor("Privacy loss")
    'term-privacy-loss'
    """
    return "term-" + term.lower().replace(" ", "-")


def add_anchors(glossary: str) -> str:
    """The glossary with a name for the place of each word."""
    return _TERM.sub(lambda match: f"{match[0]}{{#{make_anchor(match[1])}}}", glossary)


def link_terms(text: str, name: str, terms: Iterable[str]) -> str:
    """A page in which the first occurrence of each word leads to the glossary.

    Args:
        text: The page, with links as they are on the site.
        name: The page's name on the site.
        terms: The words; of two that begin at one place the longer one counts.

    Returns:
        The text. In code, formulas, headings, tables and links nothing is changed.
    """
    if name in LEFT_OUT:
        return text
    blank = hide_code(text)
    for pattern in _NO_PLACE:
        blank = pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), blank)
    to = os.path.relpath(PAGE, os.path.dirname(name) or ".")
    found: list[tuple[int, int, str]] = []
    for term in sorted(terms, key=len, reverse=True):
        before = "|".join(rf"(?<={word} )" for word in ONLY_AFTER.get(term, ()))
        words = rf"(?:{before})(?<![\w`'.=/-]){re.escape(term)}(?:s|es)?(?![\w`=/-]|\.\w)"
        places = (match.span() for match in re.finditer(words, blank, re.IGNORECASE))
        # after a word in brackets, a link's own brackets would be its target
        free = (
            at
            for at in places
            if not text[: at[0]].rstrip().endswith("]")
            and not any(at[0] < end and begin < at[1] for begin, end, _ in found)
        )
        first = next(free, None)
        if first is not None:
            found.append((*first, make_anchor(term)))
    for begin, end, anchor in sorted(found, reverse=True):
        text = f"{text[:begin]}[{text[begin:end]}]({to}#{anchor}){{.term}}{text[end:]}"
    return text
