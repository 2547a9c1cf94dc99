"""What a mechanism is: a frozen dataclass with ``plan`` and ``release``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np

from dperm_cli.mechanisms._adversary import Adversary
from dperm_cli.mechanisms._views import CentralView
from dperm_cli.privacy.budget import Budget, Guarantee
from dperm_cli.privacy.events import Event
from dperm_cli.privacy.noise import Gate
from dperm_cli.problem.problem import ProblemSpec


@dataclass(frozen=True)
class Plan:
    """Everything a mechanism fixes before it sees a record.

    ``noise_scale`` is the standard deviation (or scale) of one noise draw in the unit the
    mechanism's docstring names; ``steps`` the number of noisy releases; ``settings`` whatever else
    is public and worth a reader's eye (step size, batch, averaging), all of it JSON-able.
    """

    events: tuple[Event, ...]
    guarantee: Guarantee
    noise_scale: float
    steps: int
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Release:
    """What comes out: ``theta`` of shape [trials, p], one independent draw a row.

    ``info`` holds public by-products only (post-processing of released values).
    """

    theta: np.ndarray
    info: Mapping[str, Any] = field(default_factory=dict)


class Mechanism(Protocol):
    """The contract that ``tests/contract`` holds every mechanism to.

    ``guarantees`` lists the kinds it can give, strongest first; ``relations`` the neighbouring
    relations it is proved for; ``secure`` says whether it can run with noise on a grid (it sees the
    records through ``view.gradient_sum`` alone). ``plan`` sees public facts only and is the one
    place that raises ``Unsupported``. ``events`` is what the mechanism does to the data at a noise
    scale, and what ``plan`` accounts for: the epsilon of a scale follows from it without a plan.
    ``release`` touches records through the view and randomness through the gate, and draws
    ``gate.trials`` independent outputs. One with ``trust = "local"`` gets a ``LocalView``, through
    which users' devices answer and nothing else is seen. ``adversary`` is the pair of data sets and
    the statistic by which ``dperm audit`` attacks it under a budget.
    """

    guarantees: ClassVar[tuple[str, ...]]
    relations: ClassVar[tuple[str, ...]]
    secure: ClassVar[bool]

    def plan(self, spec: ProblemSpec, budget: Budget) -> Plan: ...

    def events(self, spec: ProblemSpec, scale: float) -> tuple[Event, ...]: ...

    def release(self, view: CentralView, plan: Plan, gate: Gate) -> Release: ...

    def adversary(self, budget: Budget) -> Adversary: ...
