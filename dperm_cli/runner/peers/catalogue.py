"""The peers that there are: read from their files, without running them."""

from __future__ import annotations

import ast
from functools import cached_property
from pathlib import Path
from typing import Any

from dperm_cli.core import checks
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.digests import hash_parts

FOLDER = Path(__file__).parent / "adapters"
MAIN = Path(__file__).parent / "adapter_main.py"
# what a card says of a method, beside what it can do
CARD = ("title", "source", "intercept", "clipping", "differs")


@dataclass(frozen=True)
class Peer:
    """A method of others.

    Attributes:
        name: Of its file.
        about: What its adapter states.
        path: The adapter.
    """

    name: str
    about: dict[str, Any]
    path: Path

    @property
    def lock(self) -> Path | None:
        """The file of the packages that its environment has; None where dperm's own will do."""
        path = self.path.with_suffix(".lock")
        return path if path.is_file() else None

    @cached_property
    def digest(self) -> str:
        """Of the adapter and of its packages."""
        files = [self.path, *([self.lock] if self.lock else [])]
        return hash_parts(*(path.read_text("utf-8") for path in files), size=8)

    def find_reason(self, loss: str, kind: str, relation: str, constraint: str) -> str | None:
        """Why the method does not do a problem, or None."""
        asked = {"losses": loss, "kinds": kind, "relations": relation, "sets": constraint}
        for name, word in asked.items():
            if word not in self.about[name]:
                return f"{name} are {', '.join(self.about[name])}"
        return None


def list_peers() -> dict[str, Peer]:
    """All peers by name."""
    found = {}
    for path in sorted(FOLDER.glob("*.py")):
        if path.stem != "__init__":
            found[path.stem] = Peer(path.stem, _read_about(path), path)
    return found


def find_peer(name: str) -> Peer:
    """The peer of a name.

    Raises:
        InputError: There is none.
    """
    known = list_peers()
    return known[checks.choice("peer", name, known)]


def _read_about(path: Path) -> dict[str, Any]:
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "ABOUT":
            return ast.literal_eval(node.value)
    raise ValueError(f"{path.name} states nothing about its method")
