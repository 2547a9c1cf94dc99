"""Lists of public candidates that a choice is made among, by the key that they are values of."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dperm_cli.core import checks
from dperm_cli.core.errors import InputError

RADIUS, RIDGE, SCALING = "constraint.radius", "ridge", "dataset.scaling"
KEYS = (RADIUS, RIDGE, SCALING)
PUBLIC_SCALINGS = ("none", "bounds")  # that make a row of one record and of public facts alone
FITTED_SCALINGS = ("minmax", "standardise")
MOST = 100  # candidates in all
_LARGEST = 1e50


def check_candidates(key: str, value: Any) -> dict[str, list[Any]]:
    """Lists of numbers by key, and of words for scalings; InputError for anything else.

    Args:
        key: What the user typed, such as ``tune``.
        value: A map of lists, such as {constraint.radius: [1, 10], ridge: [0, 0.01]}.
    """
    if not isinstance(value, Mapping):
        raise InputError(key, value, "must be a map of lists, as in {constraint.radius: [1, 10]}")
    checks.known_keys(value, KEYS, f"{key}.")
    found = {name: _check_list(f"{key}.{name}", name, value[name]) for name in value}
    count = math.prod(map(len, found.values()))
    if count > MOST:
        raise InputError(key, f"{count} candidates", f"must be at most {MOST} in all")
    return found


def _check_list(key: str, name: str, value: Any) -> list[Any]:
    return _check_words(key, value) if name == SCALING else _check_numbers(key, name, value)


def _check_words(key: str, value: Any) -> list[str]:
    words = value if isinstance(value, (list, tuple)) else [value]
    fitted = next((word for word in words if word in FITTED_SCALINGS), None)
    if fitted is not None:
        raise InputError(
            key, value, f"{fitted} is fitted to the data: a row then follows from other records, "
            f"and no choice covers that; candidates are {' and '.join(PUBLIC_SCALINGS)}"
        )  # fmt: skip
    different = len({repr(word) for word in words}) == len(words) > 0
    if words is not value or not different or not all(word in PUBLIC_SCALINGS for word in words):
        allowed = f"must be a list of different scalings, as in [{', '.join(PUBLIC_SCALINGS)}]"
        raise InputError(key, value, allowed)
    return list(value)


def _check_numbers(key: str, name: str, value: Any) -> list[float]:
    low = 1.0 / _LARGEST if name == RADIUS else 0.0
    allowed = f"must be a list of different numbers from {low:g} to {_LARGEST:g}, as in [1, 10]"
    if not isinstance(value, (list, tuple)) or not value:
        raise InputError(key, value, allowed)
    found = [checks.number(key, item, low=low, high=_LARGEST, allowed=allowed) for item in value]
    if len(set(found)) < len(found):
        raise InputError(key, value, allowed)
    return found
