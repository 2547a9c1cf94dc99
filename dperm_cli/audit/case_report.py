"""The case under audit (a configuration), and the report of attacks and findings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, field
from typing import Any

from dperm_cli.audit.hard_pairs import Pair
from dperm_cli.audit.opened_cell import OK, OpenedCell
from dperm_cli.core.dataclass import dataclass


@dataclass(frozen=True)
class Neighbours:
    """Two data sets that a run opened, and the raw records they come from."""

    pair: Pair
    first: OpenedCell
    second: OpenedCell


@dataclass(frozen=True)
class Case:
    """A configuration under audit.

    Attributes
    ----------
    name : of the mechanism.
    words : the configuration, as it would be typed.
    neighbours : pairs of data sets, the first of them for the attack.
    silent : rows of zeros, where a release is a function of the noise; None for location data.
    twins : the first data set opened another way that must give the same law, by name: stored
        sparse or dense, or with seeded noise where the case has secure noise.
    asked : (epsilon, delta, relation) that was asked for; delta None where that is 1 / n^2.
    effort : how many times longer than a case of the grid the releases may take.
    """

    name: str
    words: str
    neighbours: Sequence[Neighbours]
    silent: OpenedCell | None
    twins: dict[str, tuple[OpenedCell, OpenedCell]]
    asked: tuple[float, float | None, str]
    effort: float = 1.0


_UNPRINTED = ("seconds", "effort")  # fields of a report that are no columns of its row


@dataclass
class Report:
    """What was attacked and what was found, in words and numbers; its fields are columns."""

    mechanism: str
    case: int = field(default=0, kw_only=True)
    settings: str
    relation: str = ""
    status: str = OK
    reason: str = ""
    claim: float = math.nan
    delta: float = math.nan
    bound: float = 0.0
    statistic: str = ""
    trials: int = 0
    replay_calls: int = 0
    replay_worst: float = 0.0
    exact: float | None = None
    law: float | None = None
    paths: list[str] = field(default_factory=list)
    pairs: list[str] = field(default_factory=list)
    not_attacked: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0
    effort: float = 1.0

    @property
    def is_attacked(self) -> bool:
        return self.replay_calls > 0 or self.trials > 0

    @property
    def verdict(self) -> str:
        if self.faults:
            return "violation"
        return "ok" if self.is_attacked else "not attacked"

    @property
    def head(self) -> str:
        """What a line about the case begins with."""
        return f"{self.mechanism}, case {self.case} ({self.settings})"

    def row(self) -> dict[str, Any]:
        """One flat record, JSON-able."""
        found = {name: v for name, v in asdict(self).items() if name not in _UNPRINTED}
        faults = found.pop("faults")
        return found | {"verdict": self.verdict, "faults": faults}
