"""What MkDocs calls while it builds: formulas become MathML, which browsers draw by themselves."""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

_INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
_BLOCK = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)


def draw_formulas(text: str) -> str:
    """The page with each formula of LaTeX as MathML."""
    text = _INLINE.sub(lambda match: convert(html.unescape(match[1])), text)
    return _BLOCK.sub(lambda match: convert(html.unescape(match[1]), display="block"), text)


def on_page_content(text: str, **_: Any) -> str:
    """MkDocs calls this with the HTML of a page."""
    return draw_formulas(text)
