"""Remember which files a figure was drawn to: a report of the same records does not draw it again.

The cache holds one small file for each figure, named by a digest of all that its bytes depend on:
what it shows, this code and matplotlib. It holds the digests of the files that were drawn.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from dperm_cli.core.digests import hash_parts, hash_sha256, hash_sources
from dperm_cli.core.errors import StorageError
from dperm_cli.core.files import read_bytes, write_atomically
from dperm_cli.core.installed_versions import find_version
from dperm_cli.core.package_paths import cache_dir
from dperm_cli.results.charts.chart_model import Figure

FOLDER = "figures"  # of the cache
_ROOM = Path(__file__).parent


def is_drawn(figure: Figure, folder: Path, names: tuple[str, ...]) -> bool:
    """Whether the files in ``folder`` are those to which this figure would be drawn."""
    note = _find_note(figure)
    if note is None:
        return False
    with contextlib.suppress(StorageError, ValueError, TypeError, KeyError):
        kept = json.loads(read_bytes(note) or b"{}")
        return bool(kept) and all(kept[name] == _hash_file(folder / name) for name in names)
    return False


def remember(figure: Figure, drawn: Mapping[str, bytes]) -> None:
    """Keep the digests of the files to which a figure was drawn, where there is a cache.

    Args:
        figure: What was drawn.
        drawn: The bytes of the files by name.
    """
    note = _find_note(figure)
    if note is None:
        return
    text = json.dumps({name: hash_sha256(data) for name, data in drawn.items()})
    with contextlib.suppress(StorageError):  # a cache that cannot be written is none
        write_atomically(note, text.encode())


def _find_note(figure: Figure) -> Path | None:
    folder = cache_dir()
    if folder is None:
        return None
    # every part of a figure is a number, a text or a tuple of such: ``repr`` says all of it
    return folder / FOLDER / f"{hash_parts(repr(figure), _identify_code())}.json"


@cache
def _identify_code() -> str:
    """A digest of what draws: this room's files and the version of matplotlib."""
    files = sorted(path for path in _ROOM.iterdir() if path.is_file())
    return hash_sources(files, _ROOM) + str(find_version("matplotlib"))


def _hash_file(path: Path) -> str | None:
    data = read_bytes(path)
    return None if data is None else hash_sha256(data)
