"""List what the command line offers, from the YAML files' lines and the schemas beside them.

It imports no plug-in of the package and parses no YAML, so that help appears at once. The schemas
are made from the plug-ins' declared fields (``dperm_cli.runner.editor_schemas``).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, replace
from functools import cache, partial
from typing import Any

from dperm_cli.core import plugin_sources
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.fields import keys_of
from dperm_cli.core.package_paths import find_shipped

ACCOUNT_KEYS = (
    "mechanism", "calibration", "n", "epsilon", "noise_scale", "delta", "L", "radius", "p", "ridge",
    "lasso", "smoothness", "constraint", "privacy", "privacy.relation", "format", "out", "figure",
    "rigorous", "shuffled", "epsilon_shuffled",
)  # fmt: skip
PLAN_KEYS = (
    "task", "n", "p", "epsilon", "target", "like", "loss", "constraint", "privacy", "delta",
    "ridge", "lasso", "noise", "mechanism", "classes", "row_bound", "target_bound",
    "like_is_public", "tune", "format", "out", "figure",
)  # fmt: skip
GROUPS = ("dataset", "loss", "constraint", "privacy", "mechanism", "sampler", "kernel")
LISTED_GROUPS = (*GROUPS, "experiment")
SCHEMA = "schema.json"


@dataclass(frozen=True)
class Choice:
    """One YAML file of a group: its name, one-line description and ``key: default`` lines.

    ``plugin`` is the name in the file; ``width`` what it says of a constraint's Gaussian width.
    """

    name: str
    summary: str
    keys: tuple[str, ...]
    plugin: str
    width: str = ""

    @property
    def key_names(self) -> list[str]:
        """The keys without their defaults."""
        return [line.partition(":")[0].strip() for line in self.keys]


@dataclass(frozen=True)
class Setting:
    """A ``key: default`` line, what it means, and the words that the key takes."""

    line: str
    meaning: str
    words: tuple[str, ...]

    @property
    def key(self) -> str:
        """The key alone."""
        return self.line.partition(":")[0]


def choices(group: str, extra: str | None = None) -> dict[str, Choice]:
    """The choices of a group by name, and plug-ins from outside that were added.

    Args:
        group: Its name.
        extra: A user's own configuration folder, whose files have the keys of their plug-ins too.
    """
    found = add_outside(group, _read_folder(find_shipped("conf"), group))
    own = {} if extra is None else _read_folder(extra, group)
    return {name: _complete(choice, found) for name, choice in own.items()} | found


def list_names(group: str, extra: str | None = None) -> list[str]:
    """The choices of a group, and the names that entry points of installed packages have."""
    known = choices(group, extra)
    return [*dict.fromkeys([*known, *plugin_sources.list_installed(group)])]


def _read_folder(root: str, group: str) -> dict[str, Choice]:
    folder = os.path.join(root, group)
    names = _list_files(folder) if os.path.isdir(folder) else ()
    return {name: _read(os.path.join(folder, f"{name}.yaml"), name) for name in names}


def _list_files(folder: str) -> list[str]:
    """The names of a folder's YAML files, less their ending."""
    return [file[:-5] for file in sorted(os.listdir(folder)) if file.endswith(".yaml")]


def _complete(choice: Choice, shipped: Mapping[str, Choice]) -> Choice:
    """A user's choice with the defaults of its plug-in for the keys that it leaves out."""
    plugin = shipped.get(choice.plugin)
    lines = {line.partition(":")[0]: line for line in (plugin.keys if plugin else ())}
    lines |= {line.partition(":")[0]: line for line in choice.keys}
    return replace(choice, keys=tuple(lines.values()))


def list_shipped(group: str) -> list[str]:
    """The names of a group's shipped choices."""
    return _list_files(os.path.join(find_shipped("conf"), group))


for _group in GROUPS:  # loss=auto is a choice and no plug-in
    plugin_sources.reserve_names(_group, partial(list_shipped, _group))


def add_outside(group: str, found: dict[str, Choice]) -> dict[str, Choice]:
    """Choices of a group, and after them the plug-ins from outside that were added."""
    classes = plugin_sources.classes(group)
    return found | {name: _describe_outside(group, name, classes[name]) for name in classes}


def _describe_outside(group: str, name: str, made: Any) -> Choice:
    """A plug-in from outside as a choice: what its docstring's first line and its fields say."""
    source = plugin_sources.find_source(group, name)
    assert source is not None
    lines = (vars(made).get("__doc__") or "").strip().splitlines()
    own = lines and not lines[0].startswith(f"{made.__name__}(")  # a dataclass's own signature
    words = f"{lines[0].rstrip('.')}; plug-in" if own else "plug-in"
    keys = tuple(f"{key}: {_spell(value)}" for key, value in outside_defaults(made).items())
    return Choice(name, f"{words} ({source.describe()})", keys, name)


def outside_defaults(made: Any) -> dict[str, Any]:
    """The keys of a plug-in from outside with their defaults; None for one without a default."""
    left_out = ("p",) if made.group == "constraint" else ()
    fields = keys_of(made).items()
    return {
        word: None if field.default is MISSING else field.default
        for word, field in fields
        if word not in left_out
    }


def _spell(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def settings(group: str, choice: Choice) -> list[Setting]:
    """What may be set in a choice of a group; a comment in a user's own file comes first."""
    outside = plugin_sources.classes(group).get(choice.plugin)
    if outside is not None:
        declared = {key: field.schema() for key, field in keys_of(outside).items()}
        return _explain(choice.keys, declared)
    known = {file["properties"]["name"]["const"]: file for file in _schema(group)["oneOf"]}
    return _explain(choice.keys, known.get(choice.plugin, {}).get("properties", {}))


def top_level() -> list[Setting]:
    """The keys of the main configuration."""
    lines = [ln for ln in _main() if ln[:1].isalpha() and not ln.startswith("defaults")]
    return _explain(lines, _schema()["properties"])


def _explain(lines: Iterable[str], declared: dict[str, Any]) -> list[Setting]:
    found = []
    for line in lines:
        setting, _, comment = line.partition(" #")
        schema = declared.get(setting.partition(":")[0], {})
        forms = schema.get("anyOf", [schema])
        words = [word for form in forms for word in form.get("enum", ())]
        if {"type": "boolean"} in forms or schema.get("type") == "boolean":
            words = ["true", "false", *words]
        shown = [*words, *filter(None, map(_describe_range, forms))]
        if {"type": "string"} in forms:  # a column, say: a name, not a number alone
            shown = [word for word in shown if word not in ("integer", "number")]
        told = schema.get("description", "")
        if schema.get("type") != "boolean" and shown:
            told = f"{' | '.join(shown)}{': ' * bool(told)}{told}"
        found.append(Setting(setting.rstrip(), comment.strip() or told, tuple(words)))
    return found


def _describe_range(form: dict[str, Any]) -> str:
    """``integer >= 1`` for a number's schema, nothing for another one."""
    if form.get("type") not in ("integer", "number"):
        return ""
    signs = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}
    limits = [f"{sign} {form[name]:.10g}" for name, sign in signs.items() if name in form]
    return f"{form['type']} {' and '.join(limits)}".rstrip()


@cache
def _schema(group: str = "") -> dict[str, Any]:
    with open(os.path.join(find_shipped("conf"), group, SCHEMA), encoding="utf-8") as file:
        return json.load(file)


def defaults() -> dict[str, str]:
    """The choice of each group that holds when none is made."""
    pairs = (line.strip(" -").partition(": ") for line in _main() if line.startswith("  - "))
    return {group: name for group, _, name in pairs if group in GROUPS}


@cache
def list_defaults(group: str = "", plugin: str = "") -> dict[str, str]:
    """The keys of a shipped choice with their defaults as text; the main ones without a group."""
    shipped = _read_folder(find_shipped("conf"), group) if group else {}
    found = [choice.keys for choice in shipped.values() if choice.plugin == plugin]
    lines = found[0] if group and found else () if group else _main()
    pairs = (line.partition(":") for line in lines if line[:1].isalpha())
    return {key: text.partition(" #")[0].strip() for key, _, text in pairs}


def _main() -> list[str]:
    with open(os.path.join(find_shipped("conf"), "config.yaml"), encoding="utf-8") as file:
        return file.read().splitlines()


def _read(path: str, name: str) -> Choice:
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = file.read(65536).splitlines()
    summary = lines[0].lstrip("# ").rstrip() if lines and lines[0].startswith("#") else ""
    keys = tuple(ln for ln in lines if ln[:1].isalpha() and not ln.startswith("name:"))
    said = (line.removeprefix("# width: ") for line in lines[:2] if line.startswith("# width: "))
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("name:"))
    return Choice(name, summary, keys, next(named, name), next(said, ""))
