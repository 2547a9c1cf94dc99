"""The base class of balls of a norm around the origin."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from dperm_cli.sets.base import ConvexSet


class NormBall(ConvexSet):
    """{theta : norm(theta) <= size}; a subclass gives ``p``, ``size``, ``radius`` and ``norm``."""

    @abstractmethod
    def norm(self, theta: np.ndarray) -> np.ndarray:
        """The set's own norm of each row of [..., p]."""

    def gauge(self, theta: np.ndarray) -> np.ndarray:
        """The least t >= 0 with theta in t C, for each row of [..., p]."""
        return self.norm(np.asarray(theta, dtype=float)) / self.size

    def contains(self, theta: np.ndarray, tolerance: float = 1e-9) -> np.ndarray:
        """Whether each row of [..., p] is in (1 + tolerance) C; false for nan."""
        return self.gauge(theta) <= 1.0 + tolerance
