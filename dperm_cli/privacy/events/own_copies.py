"""Copies of events that nobody else holds: what is accounted for is then what is drawn."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from types import NoneType
from typing import Any

from dperm_cli.core.errors import PrivacyError
from dperm_cli.privacy.events.base import Event

_PLAIN: tuple[Any, ...] = (float, int, str)  # bool is one of its own


def copy_events(events: Iterable[Event]) -> tuple[Event, ...]:
    """Copies of events; the given ones may be changed later without effect.

    Raises:
        PrivacyError: An event of a class from outside whose fields are no plain values.
    """
    return tuple(_copy_value(one) for one in list(events))


def _copy_value(value: Any) -> Any:
    if isinstance(value, Event):
        return _copy_event(value)
    if isinstance(value, tuple | list):
        return tuple(_copy_value(item) for item in tuple.__iter__(tuple(value)))
    if isinstance(value, bool | NoneType):
        return value
    for plain in _PLAIN:
        if isinstance(value, plain):
            return value if type(value) is plain else plain.__getnewargs__(value)[0]
    raise PrivacyError(f"an event holds <{type(value).__name__}>: its fields are plain values")


def _copy_event(event: Event) -> Event:
    cls = type(event)
    names = [field.name for field in dataclasses.fields(event)]  # type: ignore[arg-type]
    held = object.__getattribute__(event, "__dict__")
    if cls.__getattribute__ is not object.__getattribute__ or _has(cls, "__getattr__"):
        raise PrivacyError(f"{cls.__name__} looks up its fields by a method of its own")
    for name in names:
        if name not in held or _is_computed(cls, name):
            allowed = "is no plain field: what is accounted for could be another number than drawn"
            raise PrivacyError(f"{name} of {cls.__name__} {allowed}")
    made = object.__new__(cls)
    vars(made).update({name: _copy_value(held[name]) for name in names})
    return made


def _is_computed(cls: type, name: str) -> bool:
    """Whether a class has a property, or the like, for a field."""
    found = next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)
    return _has(type(found), "__get__")


def _has(cls: type, method: str) -> bool:
    return any(method in vars(base) for base in cls.__mro__)
