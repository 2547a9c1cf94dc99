"""Build a constraint set that is part of another set's configuration (``constraint.inner``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from dperm_cli.core import registry
from dperm_cli.core.errors import InputError, UnknownKey
from dperm_cli.core.fields import Allowed, Help, configure
from dperm_cli.sets.base import ConvexSet

_KEY = "constraint.inner"
FORM = "must be a set, as in {name: l1_ball, radius: 1}"
Inner = Annotated[Mapping[str, Any] | Any | None, Allowed(FORM), Help("null = an L1 ball")]


def build(inner: Any, p: int) -> Any:
    """The set of a mapping {name: ..., radius: ...} in dimension p. A set is returned unchanged.

    Error messages name keys as the user types them, as in ``constraint.inner.radius``.
    """
    if isinstance(inner, ConvexSet):
        if inner.p != p and p != 0:
            words = f"lies in {inner.p} dimensions, but {p} are needed"
            raise InputError(_KEY, inner.name or "set", words)
        return inner
    if isinstance(inner, str):
        inner = {"name": inner, "radius": 1.0}
    if not isinstance(inner, Mapping) or not isinstance(inner.get("name"), str):
        raise InputError(_KEY, inner, FORM)
    try:
        return _build(inner, p)
    except UnknownKey:
        raise
    except InputError as error:
        head, _, tail = error.key.partition(".")
        key = f"{_KEY}.{tail}" if head == "constraint" and tail else f"{_KEY}.name"
        raise InputError(key, error.value, error.allowed) from None


def _build(inner: Mapping[str, Any], p: int) -> Any:
    given = {"radius": 1.0} | {key: value for key, value in inner.items() if key != "name"}
    return configure(registry.load("constraint", inner["name"]), _KEY, given, p=p)
