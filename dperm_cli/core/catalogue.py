"""List what the command line offers, from the names and first lines of the YAML files.

It imports nothing heavy and parses no YAML, so that help appears at once.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from dperm_cli.core.package_paths import find_shipped

ACCOUNT_KEYS = (
    "mechanism", "calibration", "n", "epsilon", "noise_scale", "delta", "L", "radius", "p", "ridge",
    "lasso", "smoothness", "constraint", "privacy", "privacy.relation", "format", "out", "figure",
)  # fmt: skip
GROUPS = ("dataset", "loss", "constraint", "privacy", "mechanism", "sampler", "kernel")
LISTED_GROUPS = (*GROUPS, "experiment")


@dataclass(frozen=True)
class Choice:
    """One YAML file of a group: its name, one-line description and ``key: default`` lines.

    ``width`` is what a constraint's file says of its Gaussian width.
    """

    name: str
    summary: str
    keys: tuple[str, ...]
    width: str = ""


def choices(group: str, extra: str | None = None) -> dict[str, Choice]:
    """The choices of a group by name; ``extra`` is a user's own configuration folder."""
    found: dict[str, Choice] = {}
    for root in filter(None, (find_shipped("conf"), extra)):
        folder = os.path.join(root, group)
        for file in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            if file.endswith(".yaml"):
                found[file[:-5]] = _read(os.path.join(folder, file), file[:-5])
    return found


def values(line: str) -> tuple[str, ...]:
    """The words that a ``key: default  # a | b: meaning`` line offers for its key, if any."""
    default, _, comment = line.partition(" #")
    if default.partition(":")[2].strip() in ("true", "false"):
        return ("true", "false")
    listed = comment.split(":")[0].split("|") if "|" in comment else []
    words = [part.split("(")[0].strip() for part in listed]
    return tuple(word for word in words if word and " " not in word)


def top_level() -> tuple[str, ...]:
    """The ``key: default  # meaning`` lines of the main configuration."""
    lines = _main()
    return tuple(line for line in lines if line[:1].isalpha() and not line.startswith("defaults"))


def defaults() -> dict[str, str]:
    """The choice of each group that holds when none is made."""
    pairs = (line.strip(" -").partition(": ") for line in _main() if line.startswith("  - "))
    return {group: name for group, _, name in pairs if group in GROUPS}


def _main() -> list[str]:
    with open(os.path.join(find_shipped("conf"), "config.yaml"), encoding="utf-8") as file:
        return file.read().splitlines()


def _read(path: str, name: str) -> Choice:
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = file.read(65536).splitlines()
    summary = lines[0].lstrip("# ").rstrip() if lines and lines[0].startswith("#") else ""
    keys = tuple(ln for ln in lines if ln[:1].isalpha() and not ln.startswith("name:"))
    said = (line.removeprefix("# width: ") for line in lines[:2] if line.startswith("# width: "))
    return Choice(name, summary, keys, next(said, ""))
