"""Bring configurations of one cell into one form, whatever way they were typed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def drop_defaults(config: dict[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration less the keys that came later and are at what they were before."""
    return {k: value for k, value in config.items() if k not in added or value != added[k]}


def canonical(value: Any) -> Any:
    """Numbers in one form, so that 1, 1.0 and 1e0 name one cell (and draw the same noise)."""
    if isinstance(value, dict):
        return {key: canonical(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [canonical(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value
