"""Read one word ``key=value`` of a command line by Hydra's grammar.

Names, paths and numbers, and lists of them with commas, are most of what is typed. They are read
here, to what Hydra reads, because importing Hydra's grammar takes longer than a looked-up run. All
other words are Hydra's. Only its grammar is used: no configuration is read and none composed.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from dperm_cli.core.errors import InputError
from dperm_cli.core.plain_yaml import NODES

LONGEST_GRAMMAR = 4096  # of a list or map for Hydra's grammar, whose time grows as the square

_KEY = re.compile(r"[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)*")
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]{0,14})")
_REAL = re.compile(r"[-+]?(0|[1-9][0-9]{0,14})(\.[0-9]{1,20})?([eE][-+]?[0-9]{1,3})?")
_TEXT = re.compile(r"/?[A-Za-z_][A-Za-z0-9_]*([-./][A-Za-z0-9_]+)*")
_NAMED = {"null": None, "true": True, "false": False}  # in capitals too
_NO_TEXT = (*_NAMED, "nan", "inf")


class Word(NamedTuple):
    """A key and its values; ``is_sweep`` where several were given."""

    key: str
    values: tuple[Any, ...]
    is_sweep: bool


def read_word(word: str) -> Word:
    """The key and the values of a word; InputError for what is no setting."""
    return _read_plain_word(word) or _read_by_hydra(word)


def _read_plain_word(word: str) -> Word | None:
    """A word of names, paths, numbers, true, false and null alone; None for any other."""
    key, _, text = word.partition("=")
    pieces = text.split(",")
    if not _KEY.fullmatch(key) or len(pieces) > NODES:
        return None
    values = []
    for piece in pieces:
        if _WHOLE.fullmatch(piece):
            values.append(int(piece))
        elif _REAL.fullmatch(piece):
            values.append(float(piece))
        elif piece.lower() in _NAMED:
            values.append(_NAMED[piece.lower()])
        elif _TEXT.fullmatch(piece) and piece.lower() not in _NO_TEXT:
            values.append(piece)
        else:
            return None
    return Word(key, tuple(values), len(values) > 1)


def _read_by_hydra(word: str) -> Word:
    if word.partition("=")[2][:1] in ("[", "{") and len(word) > LONGEST_GRAMMAR:
        return _read_json(word)
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.core.override_parser.types import OverrideType
    from hydra.errors import HydraException

    try:
        override = OverridesParser.create().parse_override(word)
    except HydraException:
        return _read_json(word)
    except (ValueError, OverflowError, RecursionError):
        raise InputError("argument", word, "holds a number that is too long to read") from None
    key = override.key_or_group
    if not key:
        raise InputError("argument", word, "must read KEY=VALUE")
    if override.type == OverrideType.DEL:
        raise InputError("argument", word, "keys cannot be deleted; set them instead")
    if override.package is not None:
        raise InputError("argument", word, "packages (@) are not used here")
    values = _list_values(override)
    if not values:
        raise InputError(key, word, "needs at least one value")
    return Word(key, values, override.is_sweep_override())


def _read_json(word: str) -> Word:
    """``key={"1": 1}``: a map with quoted keys, which Hydra's grammar does not know."""
    key, _, text = word.partition("=")
    try:
        value = json.loads(text) if text[:1] in "{[" else None
    except ValueError:
        value = None
    if not key or value is None:
        allowed = "cannot be read as KEY=VALUE (quote lists and maps: 'k=[1,2]', 'k={a: 1}')"
        raise InputError("argument", word, allowed)
    return Word(key, (value,), False)


def _list_values(override: Any) -> tuple[Any, ...]:
    """The values of a word that Hydra parsed."""
    from hydra.core.override_parser.types import ChoiceSweep, Glob, IntervalSweep, RangeSweep

    value, key = override.value(), str(override.key_or_group)
    if isinstance(value, (IntervalSweep, Glob)):
        kind = "globs" if isinstance(value, Glob) else "intervals"
        raise InputError(key, override.input_line, f"{kind} are not a grid")
    if isinstance(value, ChoiceSweep):
        return _take_values(key, value.list)
    if isinstance(value, RangeSweep):
        if not value.step:
            raise InputError(key, override.input_line, "needs a step that is not 0")
        return _take_values(key, value.range())
    return (_simplify(value),)


def _take_values(key: str, items: Iterable[Any]) -> tuple[Any, ...]:
    found = tuple(_simplify(item) for item in itertools.islice(items, NODES + 1))
    if len(found) > NODES:
        raise InputError(key, f"{found[0]}, {found[1]}, ...", f"must be at most {NODES} values")
    return found


def _simplify(value: Any) -> Any:
    """A parsed value as plain data."""
    from hydra.core.override_parser.types import QuotedString

    if isinstance(value, QuotedString):
        return value.text
    if isinstance(value, list):
        return [_simplify(item) for item in value]
    if isinstance(value, dict):
        return {str(_simplify(key)): _simplify(item) for key, item in value.items()}
    return value
