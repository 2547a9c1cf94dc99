"""Parse the words after a verb: options, KEY=VALUE settings and operands.

Every verb declares its ``Syntax``. Words in Hydra's grammar are passed on unchanged, to
``runner/compose/command_line.py``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from dperm_cli.core import checks
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import NOTHING, InputError

FORMATS = ("table", "json")  # the output formats of a verb, the default first
CONFIG_DIR = {"--config-dir": "--config-dir", "-cd": "--config-dir"}
HELP = ("-h", "--help")
PLUGIN = "--plugin"


@dataclass(frozen=True)
class Words:
    """A parsed command line.

    Attributes:
        operands: What the verb is about, in order: folders, files, names.
        settings: The values of the verb's own keys. Where a key is repeated, the last value counts.
        options: The values of options such as ``--config-dir DIR``; "" where the value is missing.
        switches: The options without a value that were typed.
        passed_on: Words for another parser, in order.
    """

    operands: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    switches: frozenset[str] = frozenset()
    passed_on: tuple[str, ...] = ()

    def choose(self, key: str, allowed: Sequence[str]) -> str:
        """The value of a key, one of ``allowed``, of which the first is the default.

        Raises:
            InputError: It is another value.
        """
        return checks.choice(key, self.settings.get(key, allowed[0]), allowed)


@dataclass(frozen=True)
class Syntax:
    """Which words a verb takes.

    Args:
        keys: The keys of its own settings.
        switches: Options without a value, with the name under which each is stored.
        options: Options with a value, ``--option VALUE`` or ``--option=VALUE``, with their names.
        operands: Whether it takes operands. If not, a bare word is a key without its value.
        passes_on: Whether unknown words are passed on to another parser, instead of refused.
        empty: Keys that may have an empty value, for a verb without operands.

    >>> found = Syntax(keys=("out", "format")).split(["a", "out=b", "c", "out=d"])
    >>> found.operands, found.settings, found.choose("format", FORMATS)
    (('a', 'c'), {'out': 'd'}, 'table')
    """

    keys: Sequence[str] = ()
    switches: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    operands: bool = True
    passes_on: bool = False
    empty: Sequence[str] = ()

    def split(self, arguments: Sequence[str]) -> Words:
        """Parse a command line.

        Raises:
            InputError: A word is an unknown option, or a key has no value.
            UnknownKey: A setting has a key that the verb does not have.
        """
        words, operands, passed_on = list(arguments), [], []
        settings: dict[str, str] = {}
        options: dict[str, str] = {}
        switches = set()
        while words:
            word = words.pop(0)
            key, equals, value = word.partition("=")
            if word in self.switches:
                switches.add(self.switches[word])
            elif key in self.options:
                options[self.options[key]] = value if equals else words.pop(0) if words else ""
            elif word.startswith("-") and not self.passes_on:
                raise self.refuse_option(word, words)
            elif key in self.keys and (equals or not self.operands):
                if not self.operands and not value and not (equals and key in self.empty):
                    raise InputError(key, value, "needs a value: write KEY=VALUE")
                settings[key] = value
            elif self._is_unknown(word, equals):
                checks.known_keys([key], self.keys)
            elif self.passes_on and (equals or not self.operands):
                passed_on.append(word)
            else:
                operands.append(word)
        return Words(tuple(operands), settings, options, frozenset(switches), tuple(passed_on))

    def has_key(self, key: str) -> bool:
        """Whether a setting of the verb begins with this key."""
        return key in self.keys

    def refuse_option(self, word: str, after: Sequence[str]) -> InputError:
        """The error for an unknown option ``word``; ``after`` are the words that follow it.

        >>> Syntax(keys=("format",)).refuse_option("--format", ["json"])
        InputError("option=--format: settings have no dashes (did you mean 'format=json'?)")
        """
        setting = word.lstrip("-")
        if self.has_key(setting.partition("=")[0]):
            typed = add_value(setting, after)
            return InputError("option", word, f"settings have no dashes (did you mean {typed!r}?)")
        if not self.options:
            return InputError("option", word, "is not one of this verb", self.keys)
        known = next(iter(self.options))
        return InputError("option", word, f"must be {known}", [known])

    def _is_unknown(self, word: str, equals: str) -> bool:
        if self.passes_on:
            return False
        # an existing folder may be named like KEY=VALUE
        return not self.operands or (bool(equals) and bool(self.keys) and not os.path.exists(word))


def take_plugins(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """What stands behind ``--plugin``, as often as it is typed, and the other words.

    Where ``--`` ends a line that is being completed, nothing stands behind its last word.

    Raises:
        InputError: Nothing stands behind one.
    """
    found, rest = [], []
    left = iter(words)
    for word in left:
        option, equals, value = word.partition("=")
        if option != PLUGIN:
            rest.append(word)
            continue
        value = value if equals else next(left, "")
        if value == "--":
            rest += [word, value]
            continue
        if not value:
            raise InputError(PLUGIN, "", "needs a file ending in .py, or an installed package")
        found.append(value)
    return found, rest


def refuse_repeated(words: Iterable[str]) -> None:
    """InputError for a key with two values, for verbs that spend: neither may be what was meant.

    >>> refuse_repeated(["epsilon=1", "out=a", "epsilon=1"])
    """
    found: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if equals and found.setdefault(key, value) != value:
            before = f"was typed before, as {key}={found[key]}: give it once"
            raise InputError(key, value, before)


def refuse_operands(key: str, words: Sequence[str], allowed: str) -> InputError:
    """The error for operands that are too few, too many, or missing.

    >>> refuse_operands("STUDY", [], "must be one folder")
    InputError('STUDY: must be one folder')
    """
    return InputError(key, " ".join(words) if words else NOTHING, allowed)


def add_value(setting: str, after: Sequence[str]) -> str:
    """``KEY=VALUE`` for a key without its value, with the next word where that is none itself.

    >>> add_value("epsilon", ["1"]), add_value("epsilon", ["delta=0"]), add_value("epsilon=2", [])
    ('epsilon=1', 'epsilon=VALUE', 'epsilon=2')
    """
    if "=" in setting:
        return setting
    taken = after and "=" not in after[0] and not after[0].startswith("-")
    return f"{setting}={after[0] if taken else 'VALUE'}"


def settings_in(words: Iterable[str]) -> dict[str, str]:
    """The values of all words KEY=VALUE. Where a key is repeated, the last value counts."""
    return dict(word.split("=", 1) for word in words if "=" in word)


def find_config_dir(words: Sequence[str]) -> str | None:
    """The user's own configuration folder, where ``--config-dir`` names one."""
    return Syntax(options=CONFIG_DIR, passes_on=True).split(words).options.get("--config-dir")


def wants_help(arguments: Iterable[str]) -> bool:
    """Whether a command line asks for its verb's help, wherever it says so."""
    return any(word in HELP for word in arguments)
