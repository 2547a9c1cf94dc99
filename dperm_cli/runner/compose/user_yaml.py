"""A user's own YAML files, read as data: bounds first, then words, and only then values.

Hydra never sees these files. It would follow their ``defaults`` lists, their package headers and
search paths and run their callbacks; here a file is one mapping of ``name`` and parameters.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from dperm_cli.core import plain_yaml
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError

BITS = 1024  # of a whole number: what float64 holds
# Keys that name columns, whose values are compared with a header and looked up nowhere else: any
# text of a header is one. The last is the first as ``dperm data verify`` has it.
COLUMN_KEYS = ("dataset.target", "dataset.columns", "dataset.drop", "target")
NAME = re.compile(r"[a-z0-9_]+")


@dataclass(frozen=True)
class UserFolder:
    """The folder given as ``--config-dir``: ``<group>/<name>.yaml`` and nothing else of it."""

    root: Path

    @classmethod
    def from_path(cls, name: str) -> UserFolder:
        """InputError unless the folder exists."""
        if not name or "\0" in name or not os.path.isdir(name):
            raise InputError("--config-dir", name, "must be an existing folder")
        return cls(Path(name).resolve())

    def names(self, group: str) -> list[str]:
        """What the folder offers for a group; files of any other name are not looked at."""
        try:
            found = os.listdir(self.root / group)
        except OSError:
            return []
        stems = (file[:-5] for file in found if file.endswith(".yaml"))
        return sorted(stem for stem in stems if NAME.fullmatch(stem))

    def load(self, group: str, name: str) -> dict[str, Any]:
        """The parameters of a choice; InputError for anything that is more than data."""
        return read(group, name, self.root / group / f"{name}.yaml", self.root)


def read(key: str, name: str, path: Path, root: Path) -> dict[str, Any]:
    """One file as a dict of plain values; ``key`` and ``name`` are what the user typed."""

    def refuse(words: str) -> InputError:
        return InputError(key, name, f"{path.name}: {words}")

    if not Path(os.path.realpath(path)).is_relative_to(root):
        raise refuse("leads out of the folder given as --config-dir")
    data = plain_yaml.read_mapping(path, refuse, "`name:` and parameters")
    if not isinstance(data.get("name"), str):
        raise refuse("must hold `name:` and parameters")
    for word in data:
        if str(word).split(".")[0] in ("hydra", "defaults", "<<"):
            raise InputError(f"{key}.{word}", name, "is not read: a file holds name and parameters")
    refuse_programs(data, f"{key}.")
    return data


def refuse_programs(node: Any, path: str) -> None:
    """A configuration is data: nothing in it may be looked up elsewhere or run."""
    if isinstance(node, dict):
        for key, value in node.items():
            if str(key).startswith("_"):
                raise InputError(f"{path}{key}", value, "keys beginning with _ are not allowed")
            refuse_programs(key, path)
            refuse_programs(value, f"{path}{key}.")
    elif isinstance(node, list):
        for item in node:
            refuse_programs(item, path)
    elif isinstance(node, str):
        refuse_text(path.rstrip("."), node)
    elif isinstance(node, int) and node.bit_length() > BITS:
        words = "must be a number that can be computed with"
        raise InputError(path.rstrip("."), f"<{node.bit_length()} bits>", words)


def refuse_text(key: str, text: str) -> None:
    """InputError for an interpolation, a NUL, or what is not text."""
    if "${" in text and key not in COLUMN_KEYS:
        raise InputError(key, text, "interpolations are not allowed")
    try:
        clean = b"\0" not in text.encode()
    except UnicodeEncodeError:
        clean = False
    if not clean:
        raise InputError(key, text.encode("ascii", "backslashreplace").decode(), "must be text")
