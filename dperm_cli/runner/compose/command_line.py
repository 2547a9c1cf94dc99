"""Command-line words of ``dperm run`` parsed once, by Hydra's own grammar.

Only the grammar: no configuration is read here and nothing is composed, so whatever is refused
is refused before Hydra starts.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import (
    ChoiceSweep,
    Glob,
    IntervalSweep,
    Override,
    OverrideType,
    QuotedString,
    RangeSweep,
)
from hydra.errors import HydraException

from dperm_cli.core import checks
from dperm_cli.core.errors import InputError
from dperm_cli.core.operands import CONFIG_DIR, Syntax
from dperm_cli.runner.compose import cell_schema
from dperm_cli.runner.compose.user_yaml import DEPTH, NODES, refuse_programs, refuse_text

MAX_WORD = 1 << 20  # characters of one word
LONGEST_GRAMMAR = 4096  # of a list or map for Hydra's grammar, whose time grows as the square


@dataclass(frozen=True)
class Setting:
    """``key=value``; ``sweep`` is True when several values were given with ``-m``."""

    key: str
    values: tuple[Any, ...]
    sweep: bool


@dataclass(frozen=True)
class Request:
    """What was asked for: flags and settings, in the order they were typed.

    ``show`` asks for the cells as they are configured, ``preflight`` for what they need; neither
    runs them.
    """

    settings: tuple[Setting, ...]
    multirun: bool = False
    config_dir: str | None = None
    show: bool = False
    preflight: bool = False


FLAGS = ("-m", "--multirun", "--config-dir", "-cd", "--plugin", "--cfg", "-h", "--help", "--debug")


class RunSyntax(Syntax):
    """The words of a run: its options, and settings for Hydra's grammar as operands."""

    def refuse_option(self, word: str, after: Sequence[str]) -> InputError:
        """For a setting with dashes (``--epsilon=1``, ``--epsilon 1``) or a misspelt flag."""
        setting = word.lstrip("-")
        if setting.partition("=")[0].partition(".")[0] in cell_schema.known_top_level():
            if "=" not in setting:
                setting += f"={after[0] if after else 'VALUE'}"
            return InputError("option", word, "settings have no dashes", [setting])
        return InputError("option", word, f"must be one of {', '.join(FLAGS)}", FLAGS)


SYNTAX = RunSyntax(
    switches={"-m": "-m", "--multirun": "-m"},
    options={**CONFIG_DIR, "--cfg": "--cfg", "-c": "--cfg"},
)


def parse(arguments: Sequence[str]) -> Request:
    """Flags and settings of a command line; InputError for anything else."""
    words = SYNTAX.split(arguments)
    looked = words.options.get("--cfg")
    if looked is not None:
        checks.choice("--cfg", looked, ("job", "preflight"))
    settings = tuple(_setting(word) for word in words.operands)
    multirun = "-m" in words.switches
    _check_sweeps(settings, multirun)
    folder = words.options.get("--config-dir")
    return Request(settings, multirun, folder, looked == "job", looked == "preflight")


def _check_sweeps(settings: Iterable[Setting], multirun: bool) -> None:
    for setting in settings:
        if setting.sweep and not multirun:
            listed = ",".join(str(value) for value in setting.values)
            allowed = f"several values need -m, or '{setting.key}=[{listed}]'"
            raise InputError(setting.key, listed, allowed)


def _setting(word: str) -> Setting:
    _check_word(word)
    if word.partition("=")[2][:1] in ("[", "{") and len(word) > LONGEST_GRAMMAR:
        return check_setting(_json_setting(word))
    try:
        override = OverridesParser.create().parse_override(word)
    except HydraException:
        return check_setting(_json_setting(word))
    except (ValueError, OverflowError, RecursionError):
        raise InputError("argument", word, "holds a number that is too long to read") from None
    if not override.key_or_group:
        raise InputError("argument", word, "must read KEY=VALUE")
    if override.type == OverrideType.DEL:
        raise InputError("argument", word, "keys cannot be deleted; set them instead")
    if override.package is not None:
        raise InputError("argument", word, "packages (@) are not used here")
    values = _values(override)
    if not values:
        raise InputError(override.key_or_group, word, "needs at least one value")
    return check_setting(Setting(override.key_or_group, values, override.is_sweep_override()))


def _check_word(word: str) -> None:
    refuse_text("argument", word)
    if len(word) > MAX_WORD:
        raise InputError("argument", word, f"must be at most {MAX_WORD} characters")
    deepest = max(itertools.accumulate((c in "[{(") - (c in ")}]") for c in word), default=0)
    if deepest > DEPTH:
        raise InputError("argument", word, f"must not be nested deeper than {DEPTH}")


def check_setting(setting: Setting) -> Setting:
    for value in setting.values:
        refuse_programs(value, f"{setting.key}.")
    return setting


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
    value, key = override.value(), str(override.key_or_group)
    if isinstance(value, (IntervalSweep, Glob)):
        kind = "globs" if isinstance(value, Glob) else "intervals"
        raise InputError(key, override.input_line, f"{kind} are not a grid")
    if isinstance(value, ChoiceSweep):
        return _list_values(key, value.list)
    if isinstance(value, RangeSweep):
        if not value.step:
            raise InputError(key, override.input_line, "needs a step that is not 0")
        return _list_values(key, value.range())
    return (_plain(value),)


def _list_values(key: str, items: Iterable[Any]) -> tuple[Any, ...]:
    found = tuple(_plain(item) for item in itertools.islice(items, NODES + 1))
    if len(found) > NODES:
        raise InputError(key, f"{found[0]}, {found[1]}, ...", f"must be at most {NODES} values")
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, QuotedString):
        return value.text
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(_plain(key)): _plain(item) for key, item in value.items()}
    return value
