"""Configure mechanisms inside mechanisms: defaults, and keys like ``mechanism.inner.steps``."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from dperm_cli.core import catalogue, checks
from dperm_cli.core.errors import InputError
from dperm_cli.core.near_names import nearest
from dperm_cli.runner.compose.composer import Composer

INNER = "inner"


def fill_defaults(config: Mapping[str, Any], composer: Composer, key: str = "mechanism") -> Any:
    """A mechanism's configuration with that of its inner one in full, at any depth.

    ``inner`` may be a name or a mapping with one; what it does not set has the values of
    ``conf/mechanism/<name>.yaml``. What is neither is left for the mechanism to refuse.
    """
    if INNER not in config:
        return dict(config)
    return {**config, INNER: _inner(config[INNER], composer, f"{key}.{INNER}")}


def has_key(config: Mapping[str, Any], path: str) -> bool:
    """Whether ``path`` (``steps``, ``inner.steps``) is a key of the group's configuration."""
    node, last = _find_parent(config, path)
    return node is not None and last in node and last != "name"


def set_key(config: dict[str, Any], group: str, path: str, value: Any, composer: Composer) -> None:
    """Set a key of a group's configuration; UnknownKey for one that it does not have."""
    node, last = _find_parent(config, path)
    if node is None or not has_key(config, path):
        # where nothing holds the last word, none of the group's own keys is the whole path
        head, word = (group, path) if node is None else f"{group}.{path}".rsplit(".", 1)
        beside = config if node is None else node
        if not _own_keys(beside):
            allowed = f"unknown key: {beside.get('name', group)} has no keys of its own"
            raise InputError(f"{group}.{path}", value, allowed)
        guess, elsewhere = _find_owners(group, head, word, _own_keys(beside))
        checks.known_keys([word], _own_keys(beside), f"{head}.", lambda _: guess, elsewhere)
    assert node is not None
    inner = group == "mechanism" and last == INNER
    node[last] = _inner(value, composer, f"{group}.{path}") if inner else value


def _find_owners(group: str, head: str, word: str, own: list[str]) -> tuple[str | None, str]:
    """For a key that is not among ``own``: the nearest key, of any choice of the group where none
    of ``own`` is near, and the choices that have it, as they are typed.
    """
    found = catalogue.choices(group).items()
    every = sorted({key for _, choice in found for key in choice.key_names})
    guess = None if word in every else nearest(word, own) or nearest(word, every)
    owners = [name for name, choice in found if (guess or word) in choice.key_names]
    if guess in own or not owners:
        return guess, ""
    return guess, f"it belongs to {head}={', '.join(owners)}" + ": name one" * (len(owners) > 1)


def _own_keys(config: Mapping[str, Any]) -> list[str]:
    return [key for key in config if key != "name"]


def _find_parent(config: Any, path: str) -> tuple[dict[str, Any] | None, str]:
    """The mapping that holds the last word of a path, or None, and that word."""
    *way, last = path.split(".")
    for word in way:
        config = config.get(word) if isinstance(config, dict) else None
    return (config if isinstance(config, dict) else None), last


def _inner(value: Any, composer: Composer, key: str) -> Any:
    if isinstance(value, str):
        value = {"name": value}
    if not isinstance(value, Mapping) or not isinstance(value.get("name"), str):
        return value
    try:
        defaults = copy.deepcopy(composer.compose({"mechanism": value["name"]})["mechanism"])
    except InputError as error:
        # the name is unknown: the key is the one that was typed
        near = (error.nearest,) if error.nearest else ()
        raise InputError(key, error.value, error.allowed, near) from None
    checks.known_keys((word for word in value if word != "name"), _own_keys(defaults), f"{key}.")
    return fill_defaults({**defaults, **value}, composer, key)
