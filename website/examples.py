"""Examples of docstrings as blocks of code, which the pages of Python names show as such."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension

_EXAMPLE = re.compile(r"^( *)>>> .*(?:\n(?! *$).*)*", re.MULTILINE)


def fence_examples(text: str) -> str:
    """The text with a fence around each run of lines that begins with ``>>>``.

    >>> fence_examples("Add.\\n\\n>>> 1 + 1\\n2")
    'Add.\\n\\n```pycon\\n>>> 1 + 1\\n2\\n```'
    """
    return _EXAMPLE.sub(lambda match: f"{match[1]}```pycon\n{match[0]}\n{match[1]}```", text)


class Examples(Extension):
    """Fences the examples of everything that has a docstring."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """griffe calls this with every module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = fence_examples(obj.docstring.value)
