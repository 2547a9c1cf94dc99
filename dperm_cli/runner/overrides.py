"""Command-line words of ``dperm run`` parsed once, by Hydra's own grammar."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import (
    ChoiceSweep,
    IntervalSweep,
    Override,
    OverrideType,
    QuotedString,
    RangeSweep,
)
from hydra.errors import HydraException

from dperm_cli.core.errors import InputError


@dataclass(frozen=True)
class Setting:
    """``key=value``; ``sweep`` is True when several values were given with ``-m``."""

    key: str
    values: tuple[Any, ...]
    sweep: bool


@dataclass(frozen=True)
class Request:
    """What was asked for: flags and settings, in the order they were typed."""

    settings: tuple[Setting, ...]
    multirun: bool = False
    config_dir: str | None = None
    show: bool = False

    def value(self, key: str, default: Any) -> Any:
        """The last single value typed for a key."""
        found = [s.values[0] for s in self.settings if s.key == key and len(s.values) == 1]
        return found[-1] if found else default


FLAGS = ("-m", "--multirun", "--config-dir", "-cd", "--cfg", "-h", "--help", "--debug")


def parse(arguments: list[str]) -> Request:
    """Flags and settings of a command line; InputError for anything else."""
    words, multirun, config_dir, show = list(arguments), False, None, False
    settings: list[Setting] = []
    while words:
        word = words.pop(0)
        if word in ("-m", "--multirun"):
            multirun = True
        elif word in ("--config-dir", "-cd"):
            config_dir = _operand(word, words)
        elif word.startswith("--config-dir="):
            config_dir = word.partition("=")[2]
        elif word in ("--cfg", "-c"):
            _check_cfg(_operand(word, words))
            show = True
        elif word.startswith("-"):
            raise InputError("option", word, f"must be one of {', '.join(FLAGS)}", FLAGS)
        else:
            settings.append(_setting(word))
    _check_sweeps(settings, multirun)
    return Request(tuple(settings), multirun, config_dir, show)


def _operand(flag: str, words: list[str]) -> str:
    if not words:
        raise InputError(flag, "", "needs a value")
    return words.pop(0)


def _check_cfg(value: str) -> None:
    if value != "job":
        raise InputError("--cfg", value, "must be job")


def _check_sweeps(settings: list[Setting], multirun: bool) -> None:
    for setting in settings:
        if setting.sweep and not multirun:
            listed = ",".join(str(value) for value in setting.values)
            allowed = f"several values need -m, or '{setting.key}=[{listed}]'"
            raise InputError(setting.key, listed, allowed)


def _setting(word: str) -> Setting:
    try:
        override = OverridesParser.create().parse_override(word)
    except HydraException:
        return _json_setting(word)
    if not override.key_or_group:
        raise InputError("argument", word, "must read KEY=VALUE")
    if override.type == OverrideType.DEL:
        raise InputError("argument", word, "keys cannot be deleted; set them instead")
    if override.package is not None:
        raise InputError("argument", word, "packages (@) are not used here")
    values = _values(override)
    if not values:
        raise InputError(override.key_or_group, word, "needs at least one value")
    return Setting(override.key_or_group, values, override.is_sweep_override())


def _json_setting(word: str) -> Setting:
    """``key={"1": 1}``: a map with quoted keys, which Hydra's grammar does not know."""
    key, _, text = word.partition("=")
    try:
        value = json.loads(text) if text[:1] in "{[" else None
    except ValueError:
        value = None
    if not key or value is None:
        allowed = "cannot be read as KEY=VALUE (quote lists and maps: 'k=[1,2]', 'k={a: 1}')"
        raise InputError("argument", word, allowed)
    return Setting(key, (value,), False)


def _values(override: Override) -> tuple[Any, ...]:
    value = override.value()
    if isinstance(value, IntervalSweep):
        raise InputError(override.key_or_group, override.input_line, "intervals are not a grid")
    if isinstance(value, ChoiceSweep):
        return tuple(_plain(item) for item in value.list)
    if isinstance(value, RangeSweep):
        return tuple(_plain(item) for item in value.range())
    return (_plain(value),)


def _plain(value: Any) -> Any:
    if isinstance(value, QuotedString):
        return value.text
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(_plain(key)): _plain(item) for key, item in value.items()}
    return value
