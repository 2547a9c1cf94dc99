"""Names that the user gave: ``dataset=hosp`` from a file hosp.yaml, and not ``csv`` inside it.

They stand in the study's manifest and in what is shown, never in a record: its name and its noise
do not depend on them, so that a file that is moved or renamed is the same cell, looked up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

COLUMNS = ("dataset", "loss", "constraint", "mechanism")  # that may have such a name
KEY = "given_names"  # of the manifest
JOINED = " = "  # between the names of one cell that was asked for under several
_FORM = re.compile(rf"[a-z0-9_]+(?:{JOINED}[a-z0-9_]+)*")
_LONGEST = 1000

Names = Mapping[str, str]


def join_names(*names: str) -> str:
    """One name for a cell that has several: each once, in order.

    >>> join_names("quick_gd", "noisy_gd"), join_names("a = b", "b")
    ('quick_gd = noisy_gd', 'a = b')
    """
    return JOINED.join(dict.fromkeys(part for name in names for part in name.split(JOINED)))


def write_names(cells: Mapping[str, Names]) -> dict[str, Any]:
    """What a manifest says of the names of its cells; nothing where none was given."""
    found = {cell: dict(names) for cell, names in cells.items() if names}
    return {KEY: found} if found else {}


def read_names(manifest: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """By cell and column the names that a manifest has; what is no name is passed over."""
    told = manifest.get(KEY)
    found = {}
    for cell, names in told.items() if isinstance(told, dict) else ():
        known = {column: names.get(column) for column in COLUMNS} if isinstance(names, dict) else {}
        found[cell] = {column: name for column, name in known.items() if _is_name(name)}
    return found


def merge_names(manifests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """As ``write_names``, of several studies: of a cell's names the first study's count."""
    found: dict[str, Names] = {}
    for manifest in reversed(manifests):
        found |= read_names(manifest)
    return write_names(found)


def name_rows(rows: Iterable[dict[str, Any]], manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of a study as they are shown: with the names that were given."""
    names = read_names(manifest)
    return [{**row, **names[row["cell"]]} if names.get(row["cell"]) else row for row in rows]


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST and bool(_FORM.fullmatch(value))
