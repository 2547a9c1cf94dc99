"""What the terminal behind a stream can show."""

from __future__ import annotations

import os
import shutil
from typing import TextIO

_LEAST_WIDTH = 40


def is_terminal(stream: TextIO) -> bool:
    """Whether somebody looks at what the stream gets, and lines can be written anew there.

    ``TERM=dumb`` says that they cannot.
    """
    return stream.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown")


def takes_codes(stream: TextIO) -> bool:
    """Whether words may be bold or coloured: ``NO_COLOR`` says that they shall not be."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR")


def find_width() -> int:
    """Letters of a line: ``COLUMNS``, or what the terminal of stdout says."""
    return max(shutil.get_terminal_size().columns, _LEAST_WIDTH)
