"""Check values of configuration keys; errors name the key and what is allowed.

Every comparison is written so that nan fails it, and booleans and strings are never
taken for numbers.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable

from dperm_cli.core.errors import InputError, UnknownKey

MAX_INT64 = 2**63 - 1
# Bytes of one name and of a path: less than systems allow, since what is written beside a file has
# a longer name.
LONGEST_NAME, LONGEST_PATH = 200, 3000


def number(
    key: str,
    value: object,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    low_open: bool = False,
    high_open: bool = False,
    allowed: str | None = None,
) -> float:
    """A finite float between ``low`` and ``high``."""
    words = allowed or f"must be a number{_interval(low, high, low_open, high_open)}"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(key, value, words)
    try:
        result = float(value)
    except OverflowError:
        raise InputError(key, value, words) from None
    above = result > low if low_open else result >= low
    below = result < high if high_open else result <= high
    if not (math.isfinite(result) and above and below):
        raise InputError(key, value, words)
    return result


def positive(key: str, value: object) -> float:
    """A finite float above zero."""
    return number(key, value, low=0.0, low_open=True, allowed="must be a finite number > 0")


def nonnegative(key: str, value: object) -> float:
    """A finite float, zero or above."""
    return number(key, value, low=0.0, allowed="must be a finite number >= 0")


def integer(key: str, value: object, *, low: int, high: int | None = None) -> int:
    """An integer between ``low`` and ``high`` (inclusive; what 64 bits hold, if not given)."""
    words = f"must be an integer >= {low}" + ("" if high is None else f" and <= {high}")
    if isinstance(value, bool) or not isinstance(value, int):
        if not (isinstance(value, float) and math.isfinite(value) and value == int(value)):
            raise InputError(key, value, words)
        value = int(value)
    if value < low or (high is not None and value > high):
        raise InputError(key, value, words)
    if value > MAX_INT64:
        raise InputError(key, value, f"{words} and < 2^63")
    return value


def boolean(key: str, value: object) -> bool:
    """True or false, and nothing that merely looks like it."""
    if not isinstance(value, bool):
        raise InputError(key, value, "must be true or false")
    return value


def choice(key: str, value: object, names: Iterable[str]) -> str:
    """One of the given names."""
    names = list(names)
    if not isinstance(value, str) or value not in names:
        raise InputError(key, value, f"must be one of {', '.join(names)}", names)
    return value


def known_keys(
    given: Iterable[str],
    known: Iterable[str],
    prefix: str = "",
    guess: Callable[[str], str | None] | None = None,
    elsewhere: str = "",
) -> None:
    """Nothing, where every given key is a known one.

    Args:
        given: The keys that were typed or written.
        known: The keys that there are.
        prefix: What the user types before each of them, as in ``mechanism.inner.``.
        guess: What to suggest for an unknown key, instead of the nearest of the known ones.
        elsewhere: What to type to have the key, where something else has it.

    Raises:
        UnknownKey: For the first key that is not known; no other function raises it.
    """
    words = tuple(known)
    for key in given:
        if key not in words:
            listed = [f"{prefix}{word}" for word in words]
            found = guess(key) if guess else None
            raise UnknownKey(f"{prefix}{key}", listed, found, elsewhere)


def path(key: str, value: object, allowed: str = "must be the name of a file") -> str:
    """The name of a file or folder that the system can hold; whether it is there is not asked."""
    if not isinstance(value, str) or not value or "\0" in value:
        raise InputError(key, value, allowed)
    try:
        parts = [os.fsencode(part) for part in value.split("/")]
    except UnicodeEncodeError:
        shown = value.encode("ascii", "backslashreplace").decode()
        raise InputError(key, shown, allowed) from None
    if max(map(len, parts)) > LONGEST_NAME or sum(map(len, parts)) + len(parts) > LONGEST_PATH:
        words = f"is too long: a name has at most {LONGEST_NAME} bytes, a path {LONGEST_PATH}"
        raise InputError(key, value, words)
    return value


def folder(key: str, value: object) -> str:
    """A ``path`` at which a folder is, or nothing yet."""
    found = path(key, value, "must be the name of a folder")
    if os.path.islink(found) and not os.path.exists(found):
        raise InputError(key, found, "is a link to nothing; it must be a folder")
    if os.path.exists(found) and not os.path.isdir(found):
        raise InputError(key, found, "is a file; it must be a folder")
    inside = found
    while not os.path.lexists(inside) and os.path.dirname(inside) not in ("", inside):
        inside = os.path.dirname(inside)
    if os.path.lexists(inside) and not os.path.isdir(inside):
        raise InputError(key, found, f"lies in {inside}, which is no folder")
    return found


def _interval(low: float, high: float, low_open: bool, high_open: bool) -> str:
    left = "(" if low_open or low == -math.inf else "["
    right = ")" if high_open or high == math.inf else "]"
    if low == -math.inf and high == math.inf:
        return ""
    return f" in {left}{low:g}, {high:g}{right}"
