"""Which default of a mechanism is tuned where a theorem would set it."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

from dperm_cli.core import registry
from dperm_cli.core.memo import MIB, memoise
from dperm_cli.results.records.row_facts import Row

THEORY, AUTO = "theory", "auto"


def find_tuned(row: Row) -> str | None:
    """The first key of a row's mechanism, or of its inner one, that is tuned by default.

    A key is tuned by default where it offers ``theory`` and has ``auto``.

    Args:
        row: an extended row, with the configuration's keys (``mechanism.steps``).

    Returns:
        The key and its value in words, or None where all follow the theorem or are given.
    """
    for prefix in ("mechanism", "mechanism.inner"):
        name = row.get(prefix)
        for key in list_theory_keys(name) if isinstance(name, str) else ():
            if row.get(f"{prefix}.{key}", AUTO) == AUTO:
                return f"{prefix}.{key}={AUTO} of {name}"
    return None


@memoise(MIB)
def list_theory_keys(mechanism: str) -> tuple[str, ...]:
    """The keys of a mechanism that take ``theory``; none of a name that is no mechanism."""
    if mechanism not in registry.names("mechanism"):
        return ()
    hints = get_type_hints(registry.load("mechanism", mechanism))
    return tuple(key for key, hint in hints.items() if THEORY in _words(hint))


def _words(hint: Any) -> set[Any]:
    """The literal words of an annotation, at any depth."""
    parts = get_args(hint)
    found = {part for part in parts if isinstance(part, str)}
    return found.union(*(_words(part) for part in parts if not isinstance(part, str)))
