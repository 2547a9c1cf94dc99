"""Show the help pages of ``help_pages/``, filled in with the lists of the catalogue."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Mapping, Sequence

from dperm_cli.core import catalogue, checks, plugin_sources
from dperm_cli.core.errors import InputError
from dperm_cli.core.operands import CONFIG_DIR, Syntax, find_config_dir, settings_in

_PAGE_WIDTH = 100
_SETTING_WIDTH = 38
CHOOSING_VERBS = ("run", "describe", "account", "audit", "ask")  # that choose from groups
_OUTSIDE = ("event", "bound")  # kinds that have no choices, and are shown for plug-ins alone
_LISTED = (*catalogue.LISTED_GROUPS, *_OUTSIDE)
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
        page = page.replace("{mechanisms}", ", ".join(catalogue.list_names("mechanism")))
    keys = _list_chosen(chosen, typed)
    return "\n".join([page, "", "keys and their defaults", *keys]) if keys else page


def _list_keys() -> list[str]:
    """The choices of each group, and the keys of a run that belong to no choice."""
    lines = [f"  {group:<11}{' '.join(catalogue.list_names(group))}" for group in catalogue.GROUPS]
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
    folder = check_folder(find_config_dir(typed))
    lines = []
    for group, names in chosen.items():
        found = catalogue.choices(group, folder)
        for name in names:
            if name not in found and plugin_sources.find(group, name) is not None:
                found = catalogue.choices(group, folder)  # an installed package has it
            keys = catalogue.settings(group, found[plugin_sources.choose(group, name, found)])
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
    plugin_sources.add_installed(lambda line: print(f"dperm: {line}", file=sys.stderr))
    shown = _read_groups(words.operands, folder)
    if shown:
        parts = [_list_group(group, names, folder, True) for group, names in shown.items()]
        return "\n\n".join(parts)
    every = [*catalogue.LISTED_GROUPS, *filter(plugin_sources.classes, _OUTSIDE)]
    parts = [_list_group(group, (), folder, False) for group in every]
    return "\n\n".join([*parts, *_list_sources()])


def check_folder(folder: str | None) -> str | None:
    """The value of ``--config-dir``, a folder where one is named."""
    if folder is not None and not os.path.isdir(folder):
        raise InputError("--config-dir", folder, "must be an existing folder")
    return folder


def _list_sources() -> list[str]:
    """Where the plug-ins from outside come from, where there are any."""
    lines = ["plug-ins from outside, whose guarantees rest on their own proofs"]
    for source in plugin_sources.list_sources():
        offered = ", ".join(f"{kind} {name}" for kind, name in source.names)
        lines += _wrap_text(offered, f"  {source.describe()}: ")
    return ["\n".join(lines)] if lines[1:] else []


def _read_groups(words: Sequence[str], folder: str | None) -> dict[str, list[str]]:
    """The groups that were named, each with those of its choices that were."""
    shown: dict[str, list[str]] = {}
    group = ""
    for word in words:
        if word in _LISTED:
            group = word
            shown.setdefault(group, [])
        elif group:
            shown[group].append(plugin_sources.choose(group, word, _find_choices(group, folder)))
        else:
            _refuse_word(word, folder)
    return shown


def _refuse_word(word: str, folder: str | None) -> None:
    for group in _LISTED:
        if word in _find_choices(group, folder):
            raise InputError("group", word, f"is a {group}: say dperm list {group} {word}")
    checks.choice("group", word, _LISTED)


def _find_choices(group: str, folder: str | None) -> dict[str, catalogue.Choice]:
    """The choices of a group; of events and bounds, the names of those from outside."""
    if group not in _OUTSIDE:
        return catalogue.choices(group, folder)
    names = plugin_sources.classes(group)
    return {name: catalogue.Choice(name, "", (), name) for name in names}


def _list_group(group: str, names: Sequence[str], folder: str | None, keys: bool) -> str:
    # an experiment is a verb's operand and a file of its own form: its keys are not settings
    keys = keys and group in catalogue.GROUPS
    found = _find_choices(group, folder)
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
