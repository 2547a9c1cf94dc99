"""Pages of the reference, written from the code: verbs, keys of every group, Python names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from dperm_cli.api.name_table import NAMES
from dperm_cli.cli import VERBS
from dperm_cli.core import catalogue
from dperm_cli.core.help import help_page

GROUP_WORDS = {
    "dataset": "Data sets",
    "loss": "Losses",
    "constraint": "Constraint sets",
    "privacy": "Privacy",
    "mechanism": "Mechanisms",
    "sampler": "Samplers",
    "kernel": "Kernels",
}
_ROOT = Path(__file__).resolve().parents[1]


def write_pages() -> dict[str, str]:
    """All pages of the reference, by their names on the site."""
    return {
        "reference/command_line.md": write_verbs(),
        "reference/keys.md": write_keys(),
        "reference/python.md": write_names(),
    }


def write_verbs() -> str:
    """The page of all verbs, each with its help page."""
    parts = [
        "# The command line",
        "Each verb with its help page, as `dperm VERB --help` prints it. Numbers are explained in "
        "[conventions](../conventions.md).",
        f"```text\n{help_page('dperm')}\n```",
    ]
    for verb in VERBS:
        parts += [f"## dperm {verb}", f"```text\n{help_page(verb)}\n```"]
    return "\n\n".join(parts) + "\n"


def write_keys() -> str:
    """The page of the keys of a run: those of no group, and those of every choice of a group."""
    parts = ["# Keys", "The keys of `dperm run` and of the verbs that take the same words."]
    parts += ["## Keys of every run", _write_table(catalogue.top_level(), "")]
    for group in catalogue.GROUPS:
        parts.append(f"## {GROUP_WORDS[group]}")
        parts.append(f"Choose one by `{group}=NAME`, and set its keys by `{group}.KEY=VALUE`.")
        for name, choice in catalogue.choices(group).items():
            parts += [f"### {group}={name}", _escape(_begin_sentence(choice.summary))]
            settings = catalogue.settings(group, choice)
            parts.append(_write_table(settings, f"{group}.") if settings else "It has no keys.")
    return "\n\n".join(parts) + "\n"


def write_names() -> str:
    """The page of all public Python names, with their docstrings."""
    parts = [
        "# Python names",
        "All that `import dperm_cli` offers, from the docstrings. [Python](../api.md) has an "
        "example of each.",
    ]
    for name, place in sorted(NAMES.items(), key=lambda pair: pair[0].lower()):
        module, _, word = place.partition(":")
        home, own = find_definition(module, word or name)
        parts += [f"## {name}", f"::: {home}.{own}"]
    return "\n\n".join(parts) + "\n"


def find_definition(module: str, name: str) -> tuple[str, str]:
    """The module that defines what another one imports under a name; nothing is run.

    Args:
        module: The module that a name is taken from.
        name: The name there.

    Returns:
        The dotted name of the module that defines it, and its name there.
    """
    for _ in range(8):
        imported = dict(_list_imports(module))
        if name not in imported:
            break
        module, name = imported[name]
    return module, name


def _list_imports(module: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Names that a module imports from other modules of the package, with where they come from."""
    file = _ROOT.joinpath(*module.split("."))
    path = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dperm_cli"):
            for alias in node.names:
                yield alias.asname or alias.name, (node.module or "", alias.name)


def _write_table(settings: list[catalogue.Setting], prefix: str) -> str:
    rows = ["| key | default | takes |", "|---|---|---|"]
    for setting in settings:
        default = setting.line.partition(":")[2].strip()
        shown = f"`{_escape(default)}`" if default else ""
        rows.append(f"| `{prefix}{setting.key}` | {shown} | {_escape(setting.meaning)} |")
    return "\n".join(rows)


def _begin_sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _escape(text: str) -> str:
    """The text in a cell of a table: no bar, and no mark that begins HTML."""
    return text.replace("|", "\\|").replace("<", "&lt;")
