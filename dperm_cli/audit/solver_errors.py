"""Replace solvers by ones with the largest allowed error, or without a certificate.

A minimiser is only known to lie within a gap of the least objective. Noise has to hide whatever
point a solver finds within that gap: ``far_points`` puts the two minimisers of neighbouring data
sets as far apart as the gap allows, and a replay then measures how far the released value moved.
A solver whose certificate is not good enough must end a release: ``no_certificates`` makes one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

from dperm_cli.audit.replay import Replay, replay
from dperm_cli.losses.base import to_dense
from dperm_cli.problem.problem import Problem
from dperm_cli.views import central

_SHARE = 0.999  # of the distance that a gap leaves, so that rounding does not decide


class Calls:
    """How often a solver was asked."""

    def __init__(self) -> None:
        self.count = 0


@contextmanager
def far_points(first: Any, seed: int = 0) -> Iterator[Calls]:
    """Certified minimisers of the problem ``first`` and of others are pushed apart.

    The distance is sqrt(2 gap / m), m the strong convexity of the sum: what a gap leaves open.
    """
    real, calls = central.find_certified_minimiser, Calls()
    known: dict[bool, np.ndarray] = {}

    def push_apart(problem: Any, gap: float) -> np.ndarray:
        found = real(problem, gap)
        modulus = float(problem.penalty.ridge)
        mine = _same_records(problem, first)
        known[mine] = found
        if not modulus > 0.0:
            return found
        calls.count += 1
        way = found - known[not mine] if len(known) == 2 else _along(problem, len(found), seed)
        length = float(np.linalg.norm(way))
        way = way / length if length > 0.0 else _along(problem, len(found), seed)
        # the first one is not known yet when it is asked for: its own push is a fixed direction
        return found + _SHARE * math.sqrt(2.0 * gap / modulus) * way

    with patch.object(central, "find_certified_minimiser", push_apart):
        yield calls


def replay_far_points(
    mechanism: Any, plan: Any, first: Any, second: Any, seed: int, direction: int
) -> Replay:
    """A replay with certified minimisers pushed apart; an empty one where none is asked for."""
    if not isinstance(first, Problem):
        return Replay(0, 0.0)
    with far_points(first, direction) as calls:
        found = replay(mechanism, plan, first, second, seed)
    return found if calls.count else Replay(0, 0.0)


def _same_records(problem: Any, first: Any) -> bool:
    one, other = problem.data, first.data
    return np.array_equal(one.y, other.y) and np.array_equal(to_dense(one.x), to_dense(other.x))


def _along(problem: Any, p: int, seed: int) -> np.ndarray:
    """A direction that follows from the sizes alone."""
    found = np.ones(p) / math.sqrt(p)
    return found if seed % 2 == 0 else -found


@contextmanager
def no_certificates() -> Iterator[Calls]:
    """Solvers find the centre of the set and prove nothing of it; those of samplers are let be."""
    calls = Calls()

    def solve(problem: Any, **_: Any) -> Any:
        calls.count += 1
        theta = np.asarray(problem.constraint.centre(), dtype=float)
        value = float(problem.objective(theta))
        return SimpleNamespace(theta=theta, gap=math.inf, lower=-math.inf, value=value, seconds=0.0)

    def locate(problem: Any, tilts: np.ndarray, *_: Any) -> tuple[np.ndarray, np.ndarray]:
        calls.count += 1
        centre = np.asarray(problem.constraint.centre(), dtype=float)
        return np.tile(centre, (len(tilts), 1)), np.full(len(tilts), math.inf)

    blind = SimpleNamespace(solve=solve, locate=locate)
    with patch.multiple(central, optimum=blind, perturbed_minimiser=blind):
        yield calls
