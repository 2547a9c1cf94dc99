"""Read a constraint set that stands inside another one's configuration."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from dperm_cli.core import registry
from dperm_cli.core.errors import InputError, UnknownKey
from dperm_cli.sets.base import ConvexSet

_KEY = "constraint.inner"


def build(inner: Any, p: int) -> Any:
    """The set of a mapping {name: ..., radius: ...} in dimension p; a set built before stays.

    Errors name keys as the user types them, as in ``constraint.inner.radius``.
    """
    if isinstance(inner, ConvexSet):
        if inner.p != p and p != 0:
            words = f"lies in {inner.p} dimensions, but {p} are needed"
            raise InputError(_KEY, inner.name or "set", words)
        return inner
    if isinstance(inner, str):
        inner = {"name": inner, "radius": 1.0}
    if not isinstance(inner, Mapping) or not isinstance(inner.get("name"), str):
        raise InputError(_KEY, inner, "must be a set, as in {name: l1_ball, radius: 1}")
    try:
        return _build(inner, p)
    except UnknownKey:
        raise
    except InputError as error:
        head, _, tail = error.key.partition(".")
        key = f"{_KEY}.{tail}" if head == "constraint" and tail else f"{_KEY}.name"
        raise InputError(key, error.value, error.allowed) from None


def _build(inner: Mapping[str, Any], p: int) -> Any:
    cls = registry.load("constraint", inner["name"])
    aliases = cls.keys
    back = {field: key for key, field in aliases.items()}
    fields = {back.get(f.name, f.name) for f in dataclasses.fields(cls)} - {"p"}
    given = {key: value for key, value in inner.items() if key != "name"}
    for key in given:
        if key not in fields:
            raise UnknownKey(f"{_KEY}.{key}", [f"{_KEY}.{name}" for name in fields])
    given.setdefault("radius", 1.0)
    return cls(**{aliases.get(key, key): value for key, value in given.items()}, p=p)
