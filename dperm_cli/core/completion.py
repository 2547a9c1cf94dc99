"""Completion for bash: the script, and the words that it offers."""

from __future__ import annotations

import os
from collections.abc import Iterable

from dperm_cli.core import catalogue, plugin_sources
from dperm_cli.core.new_plugin import KINDS
from dperm_cli.core.operands import settings_in


def read_script() -> str:
    """The script that makes bash ask for the words."""
    with open(os.path.join(os.path.dirname(__file__), "completion.bash"), encoding="utf-8") as file:
        return file.read().rstrip("\n")


def complete_words(arguments: list[str], verbs: Iterable[str]) -> list[str]:
    """Completions of the last word, given ``typed words -- prefix``."""
    split = arguments.index("--") if "--" in arguments else len(arguments)
    typed, prefix = arguments[:split], "".join(arguments[split + 1 :])
    if not typed:
        found: Iterable[str] = verbs
    elif typed[0] == "list":
        found = catalogue.LISTED_GROUPS
    elif typed[0] == "reproduce":
        sized = ("size=small", "size=full", "out=", "format=", "verdicts=")
        names = (*catalogue.choices("experiment"), "all", "claims")
        found = names if len(typed) == 1 else sized
    elif typed[0] == "data":
        found = (
            ("list", "path", "fetch", "verify") if len(typed) == 1 else catalogue.choices("dataset")
        )
    elif typed[0] in ("run", "describe"):
        found = _run_words(typed[1:], prefix)
    elif typed[0] == "account":
        found = _account_words(prefix)
    elif typed[0] == "audit":
        found = _audit_words(prefix)
    elif typed[0] in ("report", "status", "merge", "verify", "compare"):
        found = _study_words(typed[0])
    elif typed[0] == "new":
        found = KINDS if len(typed) == 1 else ()
    elif typed[0] == "check":
        found = _list_files()
    elif typed[0] == "completion":
        found = ("bash",)
    else:
        found = ()
    return [word for word in found if word.startswith(prefix)]


def _list_files() -> list[str]:
    """The Python files of the working folder, and the keys of ``dperm check``."""
    try:
        files = sorted(entry.name for entry in os.scandir() if entry.name.endswith(".py"))
    except OSError:
        files = []
    return [*files, "format="]


def _study_words(verb: str) -> list[str]:
    """Studies under outputs/, and the verb's keys."""
    try:
        studies = sorted(entry.path for entry in os.scandir("outputs") if entry.is_dir())
    except OSError:
        studies = []
    keys = {"merge": ["out=", "format="], "verify": []}.get(verb, ["format="])
    return [*studies, *keys]


def _offer_values(key: str, typed: str, names: Iterable[str]) -> list[str]:
    """``KEY=`` with each name in place of the last of the values that were typed."""
    before, comma, _ = typed.rpartition(",")
    return [f"{key}={before}{comma}{name}" for name in names]


def _list_names(group: str) -> list[str]:
    """The choices of a group, and the names that entry points of installed packages have."""
    return [*dict.fromkeys([*catalogue.choices(group), *plugin_sources.list_installed(group)])]


def _account_words(prefix: str) -> list[str]:
    key, equals, typed = prefix.partition("=")
    if equals and key in ("mechanism", "constraint"):
        return _offer_values(key, typed, _list_names(key))
    return [f"{key}=" for key in catalogue.ACCOUNT_KEYS]


def _audit_words(prefix: str) -> list[str]:
    key, equals, typed = prefix.partition("=")
    if equals and key == "mechanism":
        return _offer_values(key, typed, ("all", *_list_names(key)))
    if equals and key == "format":
        return ["format=table", "format=json"]
    keys = ("mechanism", "epsilon", "delta", "seed", "format", "out")
    return [*(f"{key}=" for key in keys), "--quick", "--help"]


def _run_words(typed: list[str], prefix: str) -> list[str]:
    group, equals, typed_values = prefix.partition("=")
    if equals and group in catalogue.GROUPS:
        return _offer_values(group, typed_values, _list_names(group))
    words = _words_of_keys(settings_in(typed))
    if equals:
        return [f"{group}={word}" for word in words.get(group, ())]
    found = [f"{name}=" for name in (*catalogue.GROUPS, *words)]
    return [*found, "-m", "--config-dir", "--cfg", "--help"]


def _words_of_keys(chosen: dict[str, str]) -> dict[str, tuple[str, ...]]:
    """Every key that may be set beside these choices, with the words that it takes."""
    defaults = catalogue.defaults()
    found = {setting.key: setting.words for setting in catalogue.top_level()}
    for group in catalogue.GROUPS:
        choice = catalogue.choices(group).get(chosen.get(group, defaults[group]))
        for setting in catalogue.settings(group, choice) if choice else ():
            found[f"{group}.{setting.key}"] = setting.words
    return found
