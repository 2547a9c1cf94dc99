"""The case under audit (a configuration), and the report of attacks and findings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dperm_cli.audit.hard_pairs import Pair
from dperm_cli.audit.opened_cell import OK, OpenedCell


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


@dataclass
class Report:
    """What was attacked and what was found, in words and numbers."""

    name: str
    words: str
    number: int = 0
    status: str = OK
    reason: str = ""
    relation: str = ""
    claim: float = math.nan
    delta: float = math.nan
    bound: float = 0.0
    by: str = ""
    trials: int = 0
    calls: int = 0
    heard: int = 0
    seconds: float = 0.0
    effort: float = 1.0
    worst: float = 0.0
    exact: float | None = None
    law: float | None = None
    paths: list[str] = field(default_factory=list)
    pairs: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def is_attacked(self) -> bool:
        return self.calls > 0 or self.trials > 0

    @property
    def head(self) -> str:
        """What a line about the case begins with."""
        return f"{self.name}, case {self.number} ({self.words})"

    def row(self) -> dict[str, Any]:
        """One flat record, JSON-able."""
        return {
            "mechanism": self.name,
            "case": self.number,
            "settings": self.words,
            "relation": self.relation,
            "status": self.status,
            "reason": self.reason,
            "claim": self.claim,
            "delta": self.delta,
            "bound": self.bound,
            "statistic": self.by,
            "trials": self.trials,
            "replay_calls": self.calls,
            "replay_worst": self.worst,
            "exact": self.exact,
            "law": self.law,
            "paths": list(self.paths),
            "pairs": list(self.pairs),
            "not_attacked": list(self.left_out),
            "verdict": "violation"
            if self.faults
            else ("ok" if self.is_attacked else "not attacked"),
            "faults": list(self.faults),
        }
