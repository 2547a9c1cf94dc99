"""Draw Gaussians restricted to intersections of Euclidean balls."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from dperm_cli.samplers.base import Source
from dperm_cli.samplers.shared.first_accepted import MOST, draw_first_accepted, endless
from dperm_cli.sets.base import Balls

_PROPOSALS_PER_TILT = 32  # proposals between two tilts of ``NearBall``


class WithinBalls:
    """A Gaussian restricted to an intersection of balls, drawn by rejection.

    Proposals are Gaussians tilted by exp(-k_b |z - c_b|^2) for every ball b. Those outside are
    dropped, and the others accepted with probability exp(-sum_b k_b (r_b^2 - |z - c_b|^2)). Any
    k >= 0 gives the same law.
    """

    narrow: ClassVar[bool] = False
    cost: ClassVar[float] = 2e-4

    def __init__(self, found: Balls) -> None:
        self.centres, self.radii = np.ascontiguousarray(found.centres), found.radii

    def __call__(self, mean: np.ndarray, variance: float, source: Source) -> np.ndarray:
        from dperm_cli.loops.proximal_chain import tilts

        k = np.zeros(len(self.radii))
        middle, s = tilts(np.asarray(mean, dtype=float), variance, self.centres, self.radii, k)
        scale = math.sqrt(s)

        def propose(count: int) -> tuple[np.ndarray, np.ndarray]:
            z = middle + scale * source.normal(count, len(mean))
            return z, self.room(z)

        def log_accept(room: np.ndarray) -> np.ndarray:
            return np.where(np.min(room, axis=1) >= 0.0, -(room @ k), -math.inf)

        return draw_first_accepted(propose, log_accept, source)

    def room(self, z: np.ndarray) -> np.ndarray:
        """r_b^2 - |z - c_b|^2 of points [m, p], [m, balls]."""
        away = z[:, None, :] - self.centres
        return self.radii**2 - np.einsum("mbj,mbj->mb", away, away)


class NearBall:
    """A Gaussian restricted to a set and a ball about one of its points.

    Proposals are Gaussians on the set tilted by exp(-k |z - c|^2). They are isotropic, so the set's
    own sampler draws them. What is in the ball is accepted with probability
    exp(-k (r^2 - |z - c|^2)). Any k >= 0 gives the same law, and k may depend on what was rejected
    before.
    """

    cost: ClassVar[float] = 3e-3
    narrow: ClassVar[bool] = False

    def __init__(self, inner: Any, body: Any) -> None:
        self.inner, self.centre, self.reach = inner, body.point, float(body.reach)

    def __call__(self, mean: np.ndarray, variance: float, source: Source) -> np.ndarray:
        from dperm_cli.loops.proximal_chain import tilts

        found, square = np.zeros(1), self.reach**2
        tilts(mean, variance, self.centre[None], np.array([self.reach]), found)
        k = float(found[0])
        for _ in range(MOST // _PROPOSALS_PER_TILT):
            outside, s = 0, 1.0 / (1.0 / variance + 2.0 * k)
            middle = s * (mean / variance + 2.0 * k * self.centre)
            for log_u in np.log(source.uniform(_PROPOSALS_PER_TILT)):
                z = self.inner(middle, s, source)
                room = square - float(np.sum((z - self.centre) ** 2))
                if room >= 0.0 and log_u <= -k * room:
                    return z
                outside += room < 0.0
            k = 1.5 * k + 0.1 / square if outside > _PROPOSALS_PER_TILT // 2 else 0.7 * k
        raise endless()


class NarrowNearBall(NearBall):
    """``NearBall`` for a set whose own sampler is fast for small variances only."""

    narrow: ClassVar[bool] = True
