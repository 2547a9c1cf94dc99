"""Command-line words of ``dperm run`` parsed once, by Hydra's own grammar.

Only the grammar: no configuration is read here and nothing is composed, so whatever is refused
is refused before Hydra starts.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Any

from dperm_cli.core import catalogue, checks
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.operands import CONFIG_DIR, Syntax, add_value
from dperm_cli.core.plain_yaml import DEPTH
from dperm_cli.runner.compose import cell_schema, word_grammar
from dperm_cli.runner.compose.user_yaml import COLUMN_KEYS, refuse_programs, refuse_text

MAX_WORD = 1 << 20  # characters of one word
# Of a key that names a column any text is a value, whatever Hydra's grammar makes of it; but null,
# whole numbers, lists, and what stands in quotes mean what they mean elsewhere.
_NO_COLUMN = re.compile(r"(?i:null)|[-+]?\d+|\[.*\]|'.*'|\".*\"", re.DOTALL)


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
# What users of Hydra may type, and what is said here instead
_INSTEAD_OF_OPTIONS = {
    "--config-path": "--config-dir", "-cp": "--config-dir", "--config-name": "GROUP=NAME",
    "-cn": "GROUP=NAME", "--info": "--cfg job", "-i": "--cfg job", "--hydra-help": "--help",
    "--shell-completion": "dperm completion bash", "-sc": "dperm completion bash",
}  # fmt: skip
_INSTEAD_OF_KEYS = {
    "hydra.run.dir": "out={value}", "hydra.sweep.dir": "out={value}",
    "hydra.sweep.subdir": "out=FOLDER", "hydra.job.name": "out=FOLDER",
    "hydra.output_subdir": "out=FOLDER", "hydra.mode": "-m", "hydra.verbose": "--debug",
    "hydra.searchpath": "--config-dir DIR", "hydra/sweeper": "-m epsilon=0.1,1,10",
    "hydra.launcher.n_jobs": "workers={value}", "hydra/launcher": "workers=auto",
}  # fmt: skip
_LAUNCHERS = {
    "basic": "workers=1", "submitit_slurm": "backend=submitit", "submitit_local": "workers=auto",
    "dask": "backend=dask",
}  # fmt: skip


class RunSyntax(Syntax):
    """The words of a run: its options, and settings for Hydra's grammar as operands."""

    def has_key(self, key: str) -> bool:
        """Whether a run has such a key, or a group for it."""
        return key.partition(".")[0] in cell_schema.known_top_level()

    def refuse_option(self, word: str, after: Sequence[str]) -> InputError:
        """For a setting with dashes (``--epsilon=1``, ``--epsilon 1``), an option of Hydra's that
        is not one here, or a misspelt flag."""
        name, equals, value = word.partition("=")
        instead = _INSTEAD_OF_OPTIONS.get(name)
        if instead == "--config-dir":
            instead += f" {value if equals else after[0] if after else 'DIR'}"
        if instead is not None:
            return InputError("option", word, f"is an option of Hydra: say {instead}")
        setting = _find_key(name.lstrip("-")) + equals + value
        if self.has_key(setting.partition("=")[0]):
            typed = add_value(setting, after)
            return InputError("option", word, f"settings have no dashes (did you mean {typed!r}?)")
        return InputError("option", word, f"must be one of {', '.join(FLAGS)}", FLAGS)


def _find_key(name: str) -> str:
    """The key that is meant by one with dashes inside: ``constraint-radius``, ``on-error``."""
    group, _, key = name.partition("-")
    joined = name.replace("-", "_")
    return f"{group}.{key.replace('-', '_')}" if key and group in catalogue.GROUPS else joined


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
    _check_shapes(words.operands)
    multirun = "-m" in words.switches
    settings = tuple(_read_setting(word, multirun) for word in words.operands)
    _check_sweeps(settings, multirun)
    folder = words.options.get("--config-dir")
    return Request(settings, multirun, folder, looked == "job", looked == "preflight")


def _check_shapes(words: Sequence[str]) -> None:
    """InputError for words that are no setting here, with what to type instead."""
    for place, word in enumerate(words):
        key, equals, value = word.partition("=")
        if not equals:
            _refuse_bare_word(word, words[place + 1 :])
        bare = key.lstrip("+")
        if bare != key and SYNTAX.has_key(bare):
            allowed = f"every key is there already, nothing is added: say {word.lstrip('+')}"
            raise InputError("argument", word, allowed)
        if bare in _INSTEAD_OF_KEYS:
            known, instead = cell_schema.known_top_level(), _find_instead(bare, value)
            checks.known_keys([bare], known, guess=lambda key, instead=instead: instead)


def _find_instead(key: str, value: str) -> str:
    """What to type in place of a setting of Hydra's."""
    instead = _LAUNCHERS.get(value) if key == "hydra/launcher" else None
    return (instead or _INSTEAD_OF_KEYS[key]).format(value=value)


def _refuse_bare_word(word: str, after: Sequence[str]) -> None:
    """InputError for a key without its value, or a name without its group."""
    if word and SYNTAX.has_key(word):
        raise InputError("argument", word, f"has no value: say {add_value(word, after)}")
    for group in catalogue.GROUPS:
        if word in catalogue.choices(group):
            raise InputError("argument", word, f"has no key: say {group}={word}")


def _check_sweeps(settings: Iterable[Setting], multirun: bool) -> None:
    for setting in settings:
        if setting.sweep and not multirun:
            listed = ",".join(str(value) for value in setting.values)
            allowed = f"several values need -m, or '{setting.key}=[{listed}]'"
            raise InputError(setting.key, listed, allowed)


def _read_setting(word: str, multirun: bool) -> Setting:
    """A setting as it was typed; a value that names a column is text where it is nothing else."""
    key, _, text = word.partition("=")
    if key not in COLUMN_KEYS or key.endswith(("columns", "drop")):
        return _setting(word)
    own = Setting(key, (text,), False)
    is_list = multirun and "," in text
    if not _NO_COLUMN.fullmatch(text) and not is_list:
        _check_word(word)
        return check_setting(own)
    try:
        found = _setting(word)
    except InputError:
        return check_setting(own)
    return found if multirun or not found.sweep else check_setting(own)


def _setting(word: str) -> Setting:
    _check_word(word)
    found = word_grammar.read_word(word)
    return check_setting(Setting(found.key, found.values, found.is_sweep))


def _check_word(word: str) -> None:
    key = word.partition("=")[0]
    refuse_text(key if key in COLUMN_KEYS else "argument", word)
    if len(word) > MAX_WORD:
        raise InputError("argument", word, f"must be at most {MAX_WORD} characters")
    deepest = max(itertools.accumulate((c in "[{(") - (c in ")}]") for c in word), default=0)
    if deepest > DEPTH:
        raise InputError("argument", word, f"must not be nested deeper than {DEPTH}")


def check_setting(setting: Setting) -> Setting:
    for value in setting.values:
        refuse_programs(value, f"{setting.key}.")
    return setting
