"""Measure how far one stream's values differ between two neighbouring runs, in sensitivities.

A meter belongs to one stream. ``move`` takes the value of one call in both runs. It returns the
largest total so far over all trials, divided by the declared sensitivity. This is at most 1 if the
mechanism keeps to the sensitivity that it declared. Values are [trials, dim].
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, Literal

import numpy as np

from dperm_cli.core.symmetric import order_of, unpack_symmetric


class Meter(ABC):
    """Adds up how far the values of one stream moved between two runs."""

    _sum: np.ndarray | float = 0.0  # over the calls so far, where a meter adds them up

    @abstractmethod
    def move(self, before: Any, after: Any) -> float:
        """The total so far, over the declared sensitivity."""


class _Norm(Meter):
    """Distances in the norm of order ``order``, divided by ``sensitivity``.

    The order "nuc" is the nuclear norm of packed symmetric matrices (``core.symmetric``).
    """

    def __init__(self, order: float | Literal["nuc"], sensitivity: float) -> None:
        self._order: float | Literal["nuc"] = order
        self._sensitivity = sensitivity

    def _distances(self, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        moved = np.atleast_2d(np.asarray(after, dtype=float) - np.asarray(before, dtype=float))
        if self._order == "nuc":
            found = _find_nuclear_norms(moved)
        else:
            found = np.linalg.norm(moved, ord=self._order, axis=-1)
        if self._sensitivity > 0.0:
            return found / self._sensitivity
        # nothing may move at all, nor by so little that its square is 0; a nan stays a nan
        return np.where(np.all(moved == 0.0, axis=-1), 0.0, np.inf + found)


def _find_nuclear_norms(packed: np.ndarray) -> np.ndarray:
    """The sum of the eigenvalues' moduli of each packed matrix; nan where it is not finite."""
    matrices = unpack_symmetric(packed, order_of(packed.shape[-1]))
    finite = np.all(np.isfinite(packed), axis=-1)
    values = np.linalg.eigvalsh(np.where(finite[:, None, None], matrices, 0.0))
    return np.where(finite, np.sum(np.abs(values), axis=-1), np.nan)


class PerCall(_Norm):
    """Every call is measured by itself, for the steps of an adaptive sequence."""

    def move(self, before: np.ndarray, after: np.ndarray) -> float:
        return float(np.max(self._distances(before, after)))


class Total(_Norm):
    """The moves of all calls are added up, for disjoint batches with Gamma-norm noise."""

    def move(self, before: np.ndarray, after: np.ndarray) -> float:
        self._sum = self._sum + self._distances(before, after)
        return float(np.max(self._sum))


class RootOfSquares(_Norm):
    """The root of the sum of squared moves, for calls that are parts of one Gaussian vector."""

    def __init__(self, sensitivity: float) -> None:
        super().__init__(2, sensitivity)

    def move(self, before: np.ndarray, after: np.ndarray) -> float:
        self._sum = self._sum + self._distances(before, after) ** 2
        return float(np.max(np.sqrt(self._sum)))


class ChannelRatio(Meter):
    """The largest log ratio of all users' answers together, over what one user may spend.

    Neighbours differ in one record, so only its user's answers may have another law.
    """

    def __init__(self, channel: Any, allowed: float) -> None:
        self._channel, self._allowed = channel, allowed

    def move(self, before: np.ndarray, after: np.ndarray) -> float:
        """The values are those that answers stand for, over the channel's bound."""
        apart = self._channel.distance(before, after)
        # equal vectors have distance 0; rounding could give another number for long ones
        same = np.all(before == after, axis=-1)
        self._sum = self._sum + np.where(same, 0.0, apart)
        return float(np.max(self._sum)) / self._allowed


class LawRange(Meter):
    """For a law exp(-exponent loss): the range of the log ratio over the one declared for a draw.

    Such a draw has no value that noise is added to. Instead, the objects that define the law in
    both runs are compared, by their method ``log_ratio_range(other, exponent)``.
    """

    def __init__(self, exponent: float, oscillation: float) -> None:
        self._exponent, self._declared = exponent, exponent * oscillation

    def move(self, before: Any, after: Any) -> float:
        found = before.log_ratio_range(after, self._exponent)
        return found / self._declared if self._declared > 0.0 else math.inf


class ScoreRange(Meter):
    """For choices by scores: the range over a list of the difference of two runs' scores, over the
    declared one. Every choice is measured by itself."""

    def __init__(self, oscillation: float) -> None:
        self._declared = oscillation

    def move(self, before: np.ndarray, after: np.ndarray) -> float:
        found = float(np.max(np.ptp(after - before, axis=-1)))
        return found / self._declared if self._declared > 0.0 else math.inf * (found > 0.0)


class LawSlope(Meter):
    """For a strongly log-concave law: the distance of gradients, over the declared sensitivity.

    The objects compared have a method ``slope_distance(other, scale)``.
    """

    def __init__(self, scale: float, sensitivity: float) -> None:
        self._scale, self._declared = scale, sensitivity / scale

    def move(self, before: Any, after: Any) -> float:
        found = before.slope_distance(after, self._scale)
        return found / self._declared if self._declared > 0.0 else math.inf
