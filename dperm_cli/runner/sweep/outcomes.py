"""How a cell of a study ended."""

from __future__ import annotations

from dperm_cli.core.dataclass import dataclass

# A finished cell is looked up; a failed one is tried again.
FINISHED = ("ok", "unsupported", "planned")


@dataclass(frozen=True)
class Outcome:
    """How a cell ended: ``ok``, ``unsupported`` or ``failed`` with its reason."""

    key: str
    status: str
    reason: str | None = None
    looked_up: bool = False
