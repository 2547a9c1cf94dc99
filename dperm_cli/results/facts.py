"""What the rows of a study share and where they differ; how numbers are written."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

Row = Mapping[str, Any]
Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")

# Configuration keys that have a column of their own, or that do not change any number.
_SHOWN = frozenset(
    (
        *("dataset", "dataset.name", "loss", "loss.name", "mechanism", "mechanism.name"),
        *("constraint", "constraint.name", "constraint.radius", "ridge", "lasso", "n", "p"),
        *("privacy", "privacy.name", "privacy.relation", "relation", "epsilon", "delta"),
        *("calibration", "trials", "format", "out", "force", "debug", "unsafe_scaling"),
    )
)
_OWNERS = ("dataset", "loss", "constraint", "mechanism")


def number(value: Any, digits: int = 4) -> str:
    """A number with so many significant digits; integers below 10^7 in full; null is a dash."""
    if value is None:
        return "-"
    if isinstance(value, int) and abs(value) < 10**7:
        return str(value)
    text = f"{value:.{digits}g}"
    if 1e-3 <= abs(value) < 1e5:
        return f"{float(text):.12g}"
    mantissa, sign, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}" if sign else text


def distinct(rows: Iterable[Row], name: str) -> list[Any]:
    """The values a column takes, each once, in the order of the rows; null counts as one."""
    return list(dict.fromkeys(row.get(name) for row in rows))


def grouped(rows: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Rows by key, keys in the order they first appear."""
    groups: dict[Key, list[Item]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def constraint(row: Row) -> str:
    """The set with its radius: ``l2_ball radius 10``."""
    name, radius = row.get("constraint"), row.get("constraint_radius")
    return f"{name}" if radius is None else f"{name} radius {number(radius)}"


def variants(rows: Sequence[Row]) -> list[dict[str, str]]:
    """For each row, the configuration values that set it apart and have no column.

    A key such as ``mechanism.average`` is compared among the rows of one mechanism only, so
    that mechanisms with different fields are not told apart by fields the other lacks.
    """
    configurations = [_configuration(row) for row in rows]
    found: list[dict[str, str]] = [{} for _ in rows]
    for key in dict.fromkeys(key for flat in configurations for key in flat):
        for members in _peers(rows, key):
            values = {configurations[i].get(key) for i in members}
            if len(values) > 1:
                for i in members:
                    found[i][key] = configurations[i].get(key, "default")
    return found


def _peers(rows: Sequence[Row], key: str) -> list[list[int]]:
    owner = key.partition(".")[0]
    name = owner if owner in _OWNERS and "." in key else None
    groups: dict[Any, list[int]] = {}
    for i, row in enumerate(rows):
        groups.setdefault(row.get(name) if name else None, []).append(i)
    return list(groups.values())


def _configuration(row: Row) -> dict[str, str]:
    """The row's ``overrides`` as flat ``key -> text``, without the keys shown elsewhere."""
    try:
        found: Any = json.loads(row.get("overrides") or "{}")
    except ValueError:
        return {}
    if isinstance(found, list):
        found = {str(item).partition("=")[0]: str(item).partition("=")[2] for item in found}
    flat = _flat("", found) if isinstance(found, dict) else {}
    return {key.lstrip("+"): text for key, text in flat.items() if key.lstrip("+") not in _SHOWN}


def _flat(prefix: str, tree: Mapping[str, Any]) -> dict[str, str]:
    flat: dict[str, str] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            flat.update(_flat(f"{prefix}{key}.", value))
        else:
            flat[f"{prefix}{key}"] = value if isinstance(value, str) else json.dumps(value)
    return flat
