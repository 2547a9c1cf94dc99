"""Show the help pages of ``help_pages/``, filled in with the lists of the catalogue."""

from __future__ import annotations

import os
import textwrap

from dperm_cli.core import catalogue, checks
from dperm_cli.core.errors import InputError
from dperm_cli.core.operands import CONFIG_DIR, Syntax

_PAGE_WIDTH = 100
_SETTING_WIDTH = 38
_PAGES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "help_pages")


def help_page(verb: str) -> str:
    """The text of ``dperm VERB --help``. The verb ``dperm`` stands for ``dperm --help``."""
    with open(os.path.join(_PAGES, f"{verb}.txt"), encoding="utf-8") as file:
        page = file.read().rstrip("\n")
    if verb == "run":
        return page.replace("{keys}", "\n".join(_list_keys()))
    if verb == "account":
        return page.replace("{mechanisms}", ", ".join(catalogue.choices("mechanism")))
    return page


def _list_keys() -> list[str]:
    """The choices of each group, and the keys of a run with their defaults."""
    lines = [f"  {group:<11}{' '.join(catalogue.choices(group))}" for group in catalogue.GROUPS]
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
    for word in groups:
        checks.choice("group", word, catalogue.LISTED_GROUPS)
    shown = groups or catalogue.LISTED_GROUPS
    return "\n\n".join(_list_group(group, folder, keys=bool(groups)) for group in shown)


def _list_group(group: str, folder: str | None, keys: bool) -> str:
    # an experiment is a verb's operand and a file of its own form: its keys are not settings
    keys = keys and group in catalogue.GROUPS
    found = catalogue.choices(group, folder)
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
