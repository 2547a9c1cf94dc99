"""Where the package's own configuration lives, installed or in a source tree."""

from __future__ import annotations

import os

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def find_shipped(folder: str) -> str:
    """The folder ``conf`` or ``experiments``: inside the wheel, else at the repository's top."""
    inside = os.path.join(_PACKAGE, folder)
    return inside if os.path.isdir(inside) else os.path.join(os.path.dirname(_PACKAGE), folder)


def data_dir() -> str | None:
    """The folder the user keeps data sets in (the variable DPERM_DATA_DIR), or None."""
    return os.environ.get("DPERM_DATA_DIR") or None
