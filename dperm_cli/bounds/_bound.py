"""What a bound is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from dperm_cli.privacy.budget import Budget
from dperm_cli.problem.problem import ProblemSpec


@dataclass(frozen=True)
class Setting:
    """What a bound is evaluated at: a problem's public facts, a budget and a mechanism's plan.

    ``kind`` is the guarantee in force (``pure`` or ``approx``); ``settings`` are the plan's.
    """

    spec: ProblemSpec
    budget: Budget
    kind: str
    mechanism: str
    noise_scale: float
    steps: int
    settings: Mapping[str, Any]


class Bound(Protocol):
    """A bound on the expected excess risk (the sum over records).

    ``kind`` is ``upper`` or ``lower``; ``constant`` is ``explicit`` when ``value`` is the bound
    itself and ``order`` when the theorem leaves a constant open (``value`` then takes it as one).
    """

    id: ClassVar[str]
    paper: ClassVar[str]
    statement: ClassVar[str]
    kind: ClassVar[str]
    constant: ClassVar[str]

    def applies(self, at: Setting) -> str | None:
        """None, or why the bound says nothing here."""
        ...

    def value(self, at: Setting) -> float: ...
