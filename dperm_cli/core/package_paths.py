"""Find the shipped folders of the package, and the folder for caches."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CACHE_DIR = "DPERM_CACHE_DIR"
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def find_shipped(folder: str) -> str:
    """The folder ``conf`` or ``experiments``: inside the wheel, else at the repository's top."""
    inside = os.path.join(_PACKAGE, folder)
    return inside if os.path.isdir(inside) else os.path.join(os.path.dirname(_PACKAGE), folder)


def cache_dir() -> Path | None:
    """$DPERM_CACHE_DIR, or ~/.cache/dperm; None when there is no home."""
    found = os.environ.get(CACHE_DIR)
    try:
        return Path(found).expanduser() if found else Path.home() / ".cache" / "dperm"
    except RuntimeError:
        return None


@contextmanager
def use_cache(folder: str | Path | None) -> Iterator[None]:
    """Use another cache folder while the block runs. None changes nothing."""
    before = os.environ.get(CACHE_DIR)
    if folder is not None:
        os.environ[CACHE_DIR] = str(folder)
    try:
        yield
    finally:
        os.environ.pop(CACHE_DIR, None)
        if before is not None:
            os.environ[CACHE_DIR] = before
