"""Objects of a plug-in's class: with its defaults, and with each field at other values."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import MISSING
from typing import Any

from dperm_cli.audit.contracts.promises import Broken, NotTried
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import Choices, Field, FromRun, fields_of

_MOST = 12  # objects of one class
_NONE = object()
_FREE = 1.7  # for a number without a default: no power of two, whose rounding is kind


def make_examples(cls: type[Any], **own: Any) -> tuple[Any, ...]:
    """Objects of a class: the first with its defaults, others with one field changed.

    Args:
        cls: a class of declared fields.
        own: values of fields that no key sets.

    Raises:
        Broken: the defaults themselves are refused.
        NotTried: a key must be given, and no value of it can be guessed.
    """
    fields = [field for name, field in fields_of(cls).items() if name not in own]
    given = {field.name: _fill_in(field) for field in fields if field.default is MISSING}
    try:
        found = [cls(**given, **own)]
    except InputError as error:
        if error.value is None:  # a key that only a user can give, such as the name of a file
            raise NotTried(str(error)) from None
        raise Broken(f"its own defaults are refused: {error}") from None
    # a seed first: of all keys it alone must not change a public fact
    fields.sort(key=lambda field: field.name != "seed")
    others = [_vary(field, given.get(field.name, field.default)) for field in fields]
    for values in itertools.zip_longest(*others, fillvalue=_NONE):
        for field, value in zip(fields, values, strict=True):
            made = (
                None if value is _NONE else _try_to_make(cls, {**given, **own, field.name: value})
            )
            if made is not None and made not in found:
                found.append(made)
    return tuple(found[:_MOST])


def _try_to_make(cls: type[Any], given: Mapping[str, Any]) -> Any:
    try:
        return cls(**given)
    except InputError:  # values that do not go together
        return None


def _fill_in(field: Field) -> Any:
    """A value for a field without a default."""
    if Choices in field.metadata:
        return field.metadata[Choices][0]
    if field.words:
        return field.words[0]
    if bool in field.types:
        return False
    number = _FREE if float in field.types else 3 if int in field.types else None
    if number is None:
        raise NotTried(f"the key {field.key} has no default, and none can be guessed")
    low, high = _limits(field)
    if low is not None and high is not None and not low <= number <= high:
        return type(number)(low + 0.4 * (high - low))
    return number if low is None or number > low else type(number)(low + number)


def _limits(field: Field) -> tuple[Any, Any]:
    """The least and the largest number; None where there is none, or another field has it."""
    numbers = field.range
    low = numbers.low if numbers.above is None else numbers.above
    high = numbers.high if numbers.below is None else numbers.below
    return low, None if isinstance(high, str) else high


def _vary(field: Field, value: Any) -> list[Any]:
    """Other values of a field, near its default where the range is wide."""
    if FromRun in field.metadata:
        return []
    if Choices in field.metadata:
        return [word for word in field.metadata[Choices] if word != value]
    if isinstance(value, bool):
        return [not value]
    if not isinstance(value, int | float) or not {int, float} & set(field.types):
        return []
    low, high = _limits(field)
    if isinstance(value, int) and float not in field.types:
        return [max(value // 2, 1 if low is None else int(low)), value + 1]
    if low is not None and high is not None and high < 1e3:
        return [low + share * (high - low) for share in (0.2, 0.85)]
    return [0.3 * value, 3.0 * value]
