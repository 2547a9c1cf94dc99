"""Completion for bash, zsh and fish: the scripts, and the words that all of them offer."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from dperm_cli.core import catalogue
from dperm_cli.core.cache_contents import ALL, CLEARED
from dperm_cli.core.new_plugin import KINDS
from dperm_cli.core.operands import PLUGIN, find_config_dir, settings_in

SHELLS = ("bash", "zsh", "fish")
# The keys of each verb that takes paths, and whether outputs/ is where these are looked for.
_PATH_VERBS = {
    "report": (
        "format=", "html=", "x=", "y=", "hue=", "facet=", "aggregate=", "theme=", "show=",
        "columns=", "rows=", "ranks=", "slopes=", "formats=",
    ),
    "status": ("format=",),
    "verify": ("rigorous=",),
    "compare": ("format=",),
    "merge": ("out=", "format="),
    "predict": ("columns=", "format=", "out="),
    "statement": ("answers=", "format=", "out="),
    "check": ("format=",),
}  # fmt: skip
_STUDY_VERBS = ("report", "status", "verify", "compare", "merge")
_PATH_KEYS = ("out", "save", "pair", "verdicts", "answers", "dataset.path", "dataset.test_path")
_PATH_OPTIONS = ("--config-dir", "-cd", PLUGIN)


def read_script(shell: str) -> str:
    """The script that makes one of ``SHELLS`` ask for the words."""
    path = os.path.join(os.path.dirname(__file__), f"completion.{shell}")
    with open(path, encoding="utf-8") as file:
        return file.read().rstrip("\n")


def complete_words(arguments: list[str], verbs: Iterable[str]) -> list[str]:
    """Completions of the last word, given ``typed words -- prefix``.

    What ends with ``=`` or ``/`` is not a whole word yet.
    """
    split = arguments.index("--") if "--" in arguments else len(arguments)
    typed, prefix = arguments[:split], "".join(arguments[split + 1 :])
    if not typed:
        return _keep(prefix, verbs)
    key, equals, value = prefix.partition("=")
    if equals and key in _PATH_KEYS:
        return [f"{key}={path}" for path in _list_paths(value)]
    if typed[-1] in _PATH_OPTIONS:
        return _list_paths(prefix)
    return _keep(prefix, _verb_words(typed, prefix))


def _keep(prefix: str, words: Iterable[str]) -> list[str]:
    return [word for word in words if word.startswith(prefix)]


def _verb_words(typed: Sequence[str], prefix: str) -> Iterable[str]:
    verb, first = typed[0], len(typed) == 1
    if verb == "list":
        return _list_words(typed[1:])
    if verb == "reproduce":
        sized = ("size=small", "size=full", "out=", "format=", "verdicts=")
        return (*catalogue.choices("experiment"), "all", "claims") if first else sized
    if verb == "data":
        return ("list", "path", "fetch", "verify") if first else catalogue.choices("dataset")
    if verb == "cache":
        return ("format=", *(f"clear={name}" for name in (*CLEARED, ALL)))
    if verb in ("run", "describe", "ask"):
        return [*_run_words(typed[1:], prefix), *(_list_paths(prefix) if verb == "ask" else ())]
    if verb == "account":
        return _account_words(prefix)
    if verb == "plan":
        return _plan_words(prefix)
    if verb == "audit":
        return _audit_words(prefix)
    if verb in _PATH_VERBS:
        studies = _list_studies() if verb in _STUDY_VERBS else ()
        paths = [path for path in _list_paths(prefix) if path.rstrip("/") not in studies]
        return [*studies, *_PATH_VERBS[verb], *paths]
    if verb == "new":
        return KINDS if first else ()
    return SHELLS if verb == "completion" and first else ()


def _list_studies() -> list[str]:
    """Studies under outputs/."""
    try:
        return sorted(entry.path for entry in os.scandir("outputs") if entry.is_dir())
    except OSError:
        return []


def _list_paths(prefix: str) -> list[str]:
    """Files and folders whose path begins with the prefix; a folder ends with a slash."""
    head, slash, tail = prefix.rpartition("/")
    folder = os.path.expanduser(head + slash)
    try:
        entries = sorted(os.scandir(folder or "."), key=lambda entry: entry.name)
    except OSError:
        return []
    found = [entry for entry in entries if entry.name.startswith(tail)]
    shown = [entry for entry in found if tail or not entry.name.startswith(".")]
    return [f"{head}{slash}{one.name}{'/' if one.is_dir() else ''}" for one in shown]


def _list_words(typed: Sequence[str]) -> list[str]:
    """Groups, and the choices of the last one that was typed."""
    groups = [word for word in typed if word in catalogue.LISTED_GROUPS]
    names = catalogue.list_names(groups[-1], find_config_dir(typed)) if groups else ()
    return [*catalogue.LISTED_GROUPS, *names, "--config-dir", PLUGIN]


def _offer_values(key: str, typed: str, names: Iterable[str]) -> list[str]:
    """``KEY=`` with each name in place of the last of the values that were typed."""
    before, comma, _ = typed.rpartition(",")
    return [f"{key}={before}{comma}{name}" for name in names]


def _account_words(prefix: str) -> list[str]:
    key, equals, typed = prefix.partition("=")
    if equals and key in ("mechanism", "constraint"):
        return _offer_values(key, typed, catalogue.list_names(key))
    return [*(f"{key}=" for key in catalogue.ACCOUNT_KEYS), "--config-dir", PLUGIN]


def _plan_words(prefix: str) -> list[str]:
    key, equals, typed = prefix.partition("=")
    group = "dataset" if key == "like" else key
    if equals and group in ("dataset", "loss", "constraint", "privacy", "mechanism"):
        return _offer_values(key, typed, catalogue.list_names(group))
    keys = (*catalogue.PLAN_KEYS, "constraint.radius", "privacy.relation")
    return [*(f"{one}=" for one in keys), "--config-dir", PLUGIN]


def _audit_words(prefix: str) -> list[str]:
    key, equals, typed = prefix.partition("=")
    if equals and key == "mechanism":
        return _offer_values(key, typed, ("all", *catalogue.list_names(key)))
    if equals and key == "format":
        return ["format=table", "format=json"]
    keys = ("mechanism", "epsilon", "delta", "seed", "format", "out")
    return [*(f"{key}=" for key in keys), "--quick", PLUGIN, "--help"]


def _run_words(typed: Sequence[str], prefix: str) -> list[str]:
    folder = find_config_dir(typed)
    group, equals, typed_values = prefix.partition("=")
    if equals and group in catalogue.GROUPS:
        return _offer_values(group, typed_values, catalogue.list_names(group, folder))
    words = _words_of_keys(settings_in(typed), folder)
    if equals:
        return [f"{group}={word}" for word in words.get(group, ())]
    found = [f"{name}=" for name in (*catalogue.GROUPS, *words)]
    return [*found, "-m", "--config-dir", PLUGIN, "--cfg", "--help"]


def _words_of_keys(chosen: dict[str, str], folder: str | None) -> dict[str, tuple[str, ...]]:
    """Every key that may be set beside these choices, with the words that it takes."""
    defaults = catalogue.defaults()
    found = {setting.key: setting.words for setting in catalogue.top_level()}
    for group in catalogue.GROUPS:
        choice = catalogue.choices(group, folder).get(chosen.get(group, defaults[group]))
        for setting in catalogue.settings(group, choice) if choice else ():
            found[f"{group}.{setting.key}"] = setting.words
    return found
