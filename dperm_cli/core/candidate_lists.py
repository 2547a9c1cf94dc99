"""Lists of public candidates that a choice is made among, by the key that they are values of."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dperm_cli.core import checks
from dperm_cli.core.errors import InputError

RADIUS, RIDGE = "constraint.radius", "ridge"
KEYS = (RADIUS, RIDGE)
ROWS = "dataset.scaling"
MOST = 100  # candidates in all
_LARGEST = 1e50


def check_candidates(key: str, value: Any) -> dict[str, list[float]]:
    """Lists of numbers by key; InputError for anything else.

    Args:
        key: What the user typed, such as ``tune``.
        value: A map of lists, such as {constraint.radius: [1, 10], ridge: [0, 0.01]}.
    """
    if not isinstance(value, Mapping):
        raise InputError(key, value, "must be a map of lists, as in {constraint.radius: [1, 10]}")
    if ROWS in value:
        raise InputError(
            f"{key}.{ROWS}", value[ROWS],
            f"cannot be chosen privately: rows are made before a mechanism runs; take {RADIUS}",
        )  # fmt: skip
    checks.known_keys(value, KEYS, f"{key}.")
    found = {name: _check_list(f"{key}.{name}", name, value[name]) for name in value}
    count = math.prod(map(len, found.values()))
    if count > MOST:
        raise InputError(key, f"{count} candidates", f"must be at most {MOST} in all")
    return found


def _check_list(key: str, name: str, value: Any) -> list[float]:
    sign = "> 0" if name == RADIUS else ">= 0"
    allowed = f"must be a list of different numbers {sign}, as in [1, 10]"
    if not isinstance(value, (list, tuple)) or not value:
        raise InputError(key, value, allowed)
    found = [
        checks.number(key, item, low=0.0, high=_LARGEST, low_open=name == RADIUS, allowed=allowed)
        for item in value
    ]
    if len(set(found)) < len(found):
        raise InputError(key, value, allowed)
    return found
