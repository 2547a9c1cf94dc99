"""Show the help pages of ``help_pages/``, filled in with the lists of the catalogue."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping, Sequence

from dperm_cli.core import catalogue, checks
from dperm_cli.core.errors import InputError
from dperm_cli.core.operands import CONFIG_DIR, Syntax, settings_in

_PAGE_WIDTH = 100
_SETTING_WIDTH = 38
CHOOSING_VERBS = ("run", "describe", "account", "audit", "ask")  # that choose from groups
_PAGES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "help_pages")


def help_page(verb: str, typed: Sequence[str] = ()) -> str:
    """The text of ``dperm VERB --help``. The verb ``dperm`` stands for ``dperm --help``.

    Args:
        verb: The verb.
        typed: The other words of the command line: the page has the keys of the choices that they
            name, as in ``dperm run dataset=csv --help``.

    Raises:
        InputError: A word names a choice that there is not.
    """
    with open(os.path.join(_PAGES, f"{verb}.txt"), encoding="utf-8") as file:
        page = file.read().rstrip("\n")
    chosen = _find_chosen(typed) if verb in CHOOSING_VERBS else {}
    if verb == "run":
        chosen = {group: (name,) for group, name in catalogue.defaults().items()} | chosen
        return page.replace("{keys}", "\n".join([*_list_keys(), *_list_chosen(chosen, typed)]))
    if verb == "account":
        page = page.replace("{mechanisms}", ", ".join(catalogue.choices("mechanism")))
    keys = _list_chosen(chosen, typed)
    return "\n".join([page, "", "keys and their defaults", *keys]) if keys else page


def _list_keys() -> list[str]:
    """The choices of each group, and the keys of a run that belong to no choice."""
    lines = [f"  {group:<11}{' '.join(catalogue.choices(group))}" for group in catalogue.GROUPS]
    return [*lines, "", "keys and their defaults", *_settings(catalogue.top_level(), "  ")]


def _find_chosen(typed: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The choices that words such as ``dataset=csv`` name, by their group."""
    return {
        group: tuple(name.strip() for name in value.strip("[]").split(","))
        for group, value in settings_in(typed).items()
        if group in catalogue.GROUPS and value != "all"
    }


def _list_chosen(chosen: Mapping[str, Sequence[str]], typed: Sequence[str]) -> list[str]:
    """The keys of choices, each with its default."""
    options = Syntax(options=CONFIG_DIR, passes_on=True).split(typed).options
    folder = check_folder(options.get("--config-dir"))
    lines = []
    for group, names in chosen.items():
        found = catalogue.choices(group, folder)
        for name in names:
            keys = catalogue.settings(group, found[checks.choice(group, name, found)])
            lines += [f"  with {group}={name}:"] if keys else []
            lines += _settings(keys, f"    {group}.")
    return lines


def list_text(arguments: list[str]) -> str:
    """The text of ``dperm list [--config-dir DIR] [GROUP [NAME ...] ...]``.

    Raises:
        InputError: A word is no group, and no choice of the group before it.
    """
    words = Syntax(options=CONFIG_DIR).split(arguments)
    folder = check_folder(words.options.get("--config-dir"))
    shown = _read_groups(words.operands, folder)
    keys = bool(shown)
    for group in () if shown else catalogue.LISTED_GROUPS:
        shown[group] = []
    return "\n\n".join(_list_group(group, names, folder, keys) for group, names in shown.items())


def check_folder(folder: str | None) -> str | None:
    """The value of ``--config-dir``, a folder where one is named."""
    if folder is not None and not os.path.isdir(folder):
        raise InputError("--config-dir", folder, "must be an existing folder")
    return folder


def _read_groups(words: Sequence[str], folder: str | None) -> dict[str, list[str]]:
    """The groups that were named, each with those of its choices that were."""
    shown: dict[str, list[str]] = {}
    group = ""
    for word in words:
        if word in catalogue.LISTED_GROUPS:
            group = word
            shown.setdefault(group, [])
        elif group:
            shown[group].append(checks.choice(group, word, catalogue.choices(group, folder)))
        else:
            _refuse_word(word, folder)
    return shown


def _refuse_word(word: str, folder: str | None) -> None:
    for group in catalogue.LISTED_GROUPS:
        if word in catalogue.choices(group, folder):
            raise InputError("group", word, f"is a {group}: say dperm list {group} {word}")
    checks.choice("group", word, catalogue.LISTED_GROUPS)


def _list_group(group: str, names: Sequence[str], folder: str | None, keys: bool) -> str:
    # an experiment is a verb's operand and a file of its own form: its keys are not settings
    keys = keys and group in catalogue.GROUPS
    found = catalogue.choices(group, folder)
    found = {name: found[name] for name in dict.fromkeys(names)} or found
    width = max((len(name) for name in found), default=0) + 2
    lines = [f"{group}="]
    for choice in found.values():
        lines += _wrap_text(choice.summary, f"  {choice.name:<{width}}")
        if keys and choice.width:
            lines += _wrap_text(f"Gaussian width {choice.width}", " " * (width + 2))
        if keys:
            lines += _settings(catalogue.settings(group, choice), f"      {group}.")
    return "\n".join(lines)


def _settings(settings: list[catalogue.Setting], indent: str) -> list[str]:
    """``key: default`` in one column and its meaning in another."""
    lines = []
    for setting in settings:
        lines += _wrap_text(setting.meaning, f"{indent}{setting.line}".ljust(_SETTING_WIDTH) + "  ")
    return lines


def _wrap_text(text: str, head: str) -> list[str]:
    """Lines of the text, wrapped at the page's width; the first begins with ``head``."""
    parts = textwrap.wrap(text, max(_PAGE_WIDTH - len(head), 40), break_on_hyphens=False) or [""]
    rest = [" " * len(head) + part for part in parts[1:]]
    return [(head + parts[0]).rstrip(), *rest]
