"""What an audit is told of a small mechanism, and what several of the mechanisms share."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dperm_cli.audit.outside.records import read_kind
from dperm_cli.runner.audits.outside_audit import Question, Result, audit_claim
from dperm_cli.runner.audits.outside_targets import make_target

GRID = 2.0**-10  # noise in floating point would leak through its lowest bits


@dataclass(frozen=True)
class Subject:
    """A mechanism and its claim.

    Attributes:
        call: The mechanism.
        source: Where the fault was found, or ``constructed``; empty for a sound one.
        epsilon, delta, relation, records: What is claimed.
        runs: Runs of an audit.
    """

    call: Callable[..., Any]
    source: str = ""
    epsilon: float = 1.0
    delta: float = 0.0
    relation: str = "replace_one"
    records: str = "numeric:p=1,norm=1,n=4"
    runs: int = 10_000

    @property
    def name(self) -> str:
        """The function's name."""
        return self.call.__name__

    def audit(self, seed: int = 0, runs: int | None = None) -> Result:
        """Audit the claim; ``seed`` also settles the mechanism's noise."""
        question = Question(
            self.epsilon, self.delta, self.relation, read_kind(self.records),
            self.runs if runs is None else runs, seed=seed,
        )  # fmt: skip
        return audit_claim(
            make_target(self.call, self.delta, np.random.default_rng(seed)), question
        )


def to_grid(values: Any) -> Any:
    """The nearest multiples of ``GRID``."""
    return np.round(np.asarray(values, dtype=float) / GRID) * GRID


def draw_laplace(rng: np.random.Generator, scale: float, size: Any = None) -> Any:
    """Laplace noise on the grid: added to values on the grid it is noise that was rounded after."""
    return to_grid(rng.laplace(scale=scale, size=size))


def clip(X: np.ndarray, size: float = 1.0) -> np.ndarray:
    """Every number between -size and size, on the grid; nan is 0."""
    return to_grid(np.clip(np.nan_to_num(X), -size, size))


def minimise_logistic(x: np.ndarray, y: np.ndarray, ridge: float, tilt: float) -> float:
    """The minimiser of sum log(1 + exp(-y x t)) + ridge t^2 / 2 + tilt t, by bisection."""
    pairs = [(float(a) * float(b)) for a, b in zip(x, y, strict=True)]
    reach = (sum(map(abs, pairs)) + abs(tilt)) / ridge + 1.0
    low, high = -reach, reach
    for _ in range(50):
        t = 0.5 * (low + high)
        slope = ridge * t + tilt
        for z in pairs:
            slope -= z / (1.0 + math.exp(min(700.0, z * t)))
        low, high = (low, t) if slope > 0.0 else (t, high)
    return round(0.5 * (low + high), 6)
