"""Show the help pages of ``help_pages/``, filled in with the lists of the catalogue."""

from __future__ import annotations

import os
import sys
import textwrap

from dperm_cli.core import catalogue, checks, plugin_sources
from dperm_cli.core.errors import InputError
from dperm_cli.core.operands import CONFIG_DIR, Syntax

_PAGE_WIDTH = 100
_SETTING_WIDTH = 38
_OUTSIDE = ("event", "bound")  # kinds that have no choices, and are shown for plug-ins alone
_LISTED = (*catalogue.LISTED_GROUPS, *_OUTSIDE)
_PAGES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "help_pages")


def help_page(verb: str) -> str:
    """The text of ``dperm VERB --help``. The verb ``dperm`` stands for ``dperm --help``."""
    with open(os.path.join(_PAGES, f"{verb}.txt"), encoding="utf-8") as file:
        page = file.read().rstrip("\n")
    if verb == "run":
        return page.replace("{keys}", "\n".join(_list_keys()))
    if verb == "account":
        return page.replace("{mechanisms}", ", ".join(_list_names("mechanism")))
    return page


def _list_names(group: str) -> tuple[str, ...]:
    """The choices of a group, and the names that entry points of installed packages have."""
    return tuple(dict.fromkeys([*catalogue.choices(group), *plugin_sources.list_installed(group)]))


def _list_keys() -> list[str]:
    """The choices of each group, and the keys of a run with their defaults."""
    lines = [f"  {group:<11}{' '.join(_list_names(group))}" for group in catalogue.GROUPS]
    lines += ["", "keys and their defaults"]
    lines += _settings(catalogue.top_level(), "  ")
    for group, name in catalogue.defaults().items():
        keys = catalogue.settings(group, catalogue.choices(group)[name])
        lines += [f"  with {group}={name}:"] if keys else []
        lines += _settings(keys, f"    {group}.")
    return lines


def list_text(arguments: list[str]) -> str:
    """The text of ``dperm list [--config-dir DIR] [group ...]``."""
    words = Syntax(options=CONFIG_DIR).split(arguments)
    groups, folder = words.operands, words.options.get("--config-dir")
    if folder is not None and not os.path.isdir(folder):
        raise InputError("--config-dir", folder, "must be an existing folder")
    plugin_sources.add_installed(lambda line: print(f"dperm: {line}", file=sys.stderr))
    if len(groups) == 2 and groups[0] in catalogue.GROUPS and groups[1] not in _LISTED:
        checks.choice(groups[0], groups[1], catalogue.choices(groups[0], folder))
        return _list_group(groups[0], folder, keys=True, only=groups[1])
    for word in groups:
        checks.choice("group", word, _LISTED)
    every = [*catalogue.LISTED_GROUPS, *filter(plugin_sources.classes, _OUTSIDE)]
    parts = [_list_group(group, folder, keys=bool(groups)) for group in groups or every]
    return "\n\n".join(parts if groups else [*parts, *_list_sources()])


def _list_sources() -> list[str]:
    """Where the plug-ins from outside come from, where there are any."""
    lines = ["plug-ins from outside, whose guarantees rest on their own proofs"]
    for source in plugin_sources.list_sources():
        offered = ", ".join(f"{kind} {name}" for kind, name in source.names)
        lines += _wrap_text(offered, f"  {source.describe()}: ")
    return ["\n".join(lines)] if lines[1:] else []


def _list_group(group: str, folder: str | None, keys: bool, only: str | None = None) -> str:
    # an experiment is a verb's operand and a file of its own form: its keys are not settings
    keys = keys and group in catalogue.GROUPS
    if group in _OUTSIDE:
        return "\n".join([f"{group}=", *(f"  {name}" for name in plugin_sources.classes(group))])
    found = catalogue.choices(group, folder)
    found = found if only is None else {only: found[only]}
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
