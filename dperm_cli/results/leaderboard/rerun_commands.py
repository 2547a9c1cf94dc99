"""The command that makes a line of the leaderboard again, from what its record says of itself."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from dperm_cli.core import catalogue
from dperm_cli.results.records.row_facts import Row, as_json, flatten, read_map

_SELECTION = "private_selection"
_CANDIDATES = "candidates"
_INSIDE = ("name", "inner", _CANDIDATES)
_PROBLEM = ("dataset", "loss", "constraint", "privacy")
_GROUPS = (*_PROBLEM, "mechanism", "sampler", "kernel")
_LEVELS = ("epsilon", "delta", "information", "ridge", "lasso", "trials", "seed")


def write_run(row: Row) -> str:
    """``dperm run ...`` for the cell of a row of dperm.

    Args:
        row: A row with its configuration, ``overrides``.

    Returns:
        The command, in which everything that is not a default is named; it may be typed as it is.
    """
    config = read_map(row.get("overrides"))
    words = _list_words(config, _GROUPS, tuple(key for key in config if key not in _GROUPS))
    return shlex.join(["dperm", "run", *words])


def write_peer_run(name: str, row: Row) -> str:
    """``dperm peers run NAME ...`` for a peer on the problem of a row of dperm."""
    config = read_map(row.get("overrides"))
    return shlex.join(["dperm", "peers", "run", name, *_list_words(config, _PROBLEM, _LEVELS)])


def _list_words(
    config: Mapping[str, Any], groups: tuple[str, ...], keys: tuple[str, ...]
) -> Iterator[str]:
    tuned = _find_candidates(config) if "mechanism" in groups else {}
    if tuned:
        config = {**config, "mechanism": _unwrap(config["mechanism"])}
    for group in groups:
        chosen = config.get(group)
        if not isinstance(chosen, Mapping):
            continue
        name = chosen.get("name")
        yield f"{group}={name}"
        defaults = catalogue.list_defaults(group, str(name))
        for key, value in flatten(chosen).items():
            path = f"{group}.{key}"
            if key != "name" and path not in tuned and not _is_same(value, defaults.get(key)):
                yield _write(path.removesuffix(".name"), value)
    main = catalogue.list_defaults()
    for key in keys:
        if key in config and key not in tuned and not _is_same(config[key], main.get(key)):
            yield _write(key, config[key])
    if tuned:
        yield _write("tune", tuned)


def _find_candidates(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a private choice was among, by key; empty where nothing was chosen."""
    mechanism = config.get("mechanism")
    if not isinstance(mechanism, Mapping) or mechanism.get("name") != _SELECTION:
        return {}
    found = mechanism.get(_CANDIDATES)
    return found if isinstance(found, Mapping) else {}


def _unwrap(mechanism: Mapping[str, Any]) -> Mapping[str, Any]:
    """The mechanism that was asked for, where ``tune`` put a private choice around it.

    One whose own keys are missing was put there in the place of ``auto``.
    """
    defaults, inner = catalogue.list_defaults("mechanism", _SELECTION), mechanism.get("inner")
    own = {key: value for key, value in mechanism.items() if key not in _INSIDE}
    is_default = all(_is_same(value, defaults.get(key)) for key, value in own.items())
    if not is_default or not isinstance(inner, Mapping):
        return {key: value for key, value in mechanism.items() if key != _CANDIDATES}
    is_replaced = set(inner) == {"name"} and catalogue.list_defaults("mechanism", inner["name"])
    return {"name": "auto"} if is_replaced else inner


def _write(key: str, value: Any) -> str:
    return f"{key}={_spell(value)}"


def _spell(value: Any) -> str:
    """A value in the grammar of the command line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_spell(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_spell, value)) + "]"
    return value if isinstance(value, str) else json.dumps(value)


def _is_same(value: Any, default: str | None) -> bool:
    """Whether a value is what a configuration file says, which is text."""
    return default is not None and (value == as_json(default) or str(value) == default)
