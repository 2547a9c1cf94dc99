"""The potential f of a loss and a data set."""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse

from dperm_cli.losses.shared.margin_loss import Glm, margins
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Loss, ProblemSpec
from dperm_cli.samplers.base import Pieces, Target

_NONE = np.zeros(0)


class Records:
    """f = exponent * (sum of losses + n r) + (kappa / 2) |theta|^2 of a data set.

    It holds the records: it belongs to a release, never to a plan. ``loss`` and ``data`` are there
    for samplers that need more of the loss than its values.
    """

    def __init__(self, loss: Loss, data: Data, target: Target) -> None:
        self.loss, self.data, self.target = loss, data, target
        centre = target.constraint.centre()
        here = float(np.sum(np.abs(loss.values(centre, data))))
        reach = target.lipschitz * target.constraint.diameter
        self.magnitude = target.exponent * here + reach + self._rest(centre)

    def value(self, theta: np.ndarray) -> np.ndarray:
        """f at each row."""
        return self._exponent * np.sum(self.loss.values(theta, self.data), axis=-1) + self._rest(
            theta
        )

    def gradient(self, theta: np.ndarray) -> np.ndarray:
        """A subgradient at each row."""
        return self._exponent * self.loss.gradient(theta, self.data) + self._rest_slope(theta)

    def both(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """f and a subgradient at one point: a loss of the margin has its margins computed once."""
        if not isinstance(self.loss, Glm):
            return float(self.value(theta)), self.gradient(theta)
        z, y = margins(theta, self.data), self.data.y
        value = self._exponent * float(np.sum(self.loss.value(z, y)))
        slope = self._exponent * np.asarray(self.data.x.T @ self.loss.slope(z, y))
        return value + float(self._rest(theta)), slope + self._rest_slope(theta)

    def along(self, origin: np.ndarray, direction: np.ndarray) -> Pieces:
        """t -> f(origin + t direction), for the losses that ``piecewise`` names."""
        parts = [self._losses_along(origin, direction), self._rest_along(origin, direction)]
        return Pieces(
            slope=sum(part.slope for part in parts),
            curvature=sum(part.curvature for part in parts),
            at=np.concatenate([part.at for part in parts]),
            jump=np.concatenate([part.jump for part in parts]),
        )

    def _losses_along(self, origin: np.ndarray, direction: np.ndarray) -> Pieces:
        loss, data, c = self.loss, self.data, self._exponent
        if not _bends_by_pieces(loss):
            raise NotImplementedError(loss.name)
        if not isinstance(loss, Glm):
            rows = data.x.toarray() if sparse.issparse(data.x) else data.x
            moving = np.flatnonzero(direction)
            rate = np.broadcast_to(direction[moving], (data.n, len(moving))).ravel()
            start = (origin[moving] - rows[:, moving]).ravel()
            return _kinks(start, rate, c, c)
        start, rate = margins(origin, data), margins(direction, data)
        if loss.quadratic:
            slope = c * math.fsum(rate * loss.slope(start, data.y))
            bend = float(loss.smoothness)
            return Pieces(slope, c * math.fsum(bend * rate * rate), _NONE, _NONE)
        sign, offset, up, down = loss.pieces(data.y)
        return _kinks(sign * start + offset, sign * rate, c * up, c * down)

    def _rest_along(self, origin: np.ndarray, direction: np.ndarray) -> Pieces:
        ridge, lasso = self.target.ridge, self.target.lasso
        kinks = _kinks(origin, direction, lasso, lasso)
        slope = kinks.slope + ridge * float(origin @ direction)
        return kinks._replace(slope=slope, curvature=ridge * float(direction @ direction))

    @property
    def _exponent(self) -> float:
        return self.target.exponent

    def _rest(self, theta: np.ndarray) -> np.ndarray:
        target = self.target
        out = 0.5 * target.ridge * np.sum(theta * theta, axis=-1)
        return out + target.lasso * np.sum(np.abs(theta), axis=-1) if target.lasso else out

    def _rest_slope(self, theta: np.ndarray) -> np.ndarray:
        return self.target.ridge * theta + self.target.lasso * np.sign(theta)


def piecewise(spec: ProblemSpec) -> bool:
    """Whether every record's loss is piecewise quadratic along every line."""
    return spec.form is not None and _bends_by_pieces(spec.form)


def _bends_by_pieces(loss: Loss) -> bool:
    return loss.quadratic or loss.pieces is not None or loss.distance_power == 1.0


def _kinks(start: np.ndarray, rate: np.ndarray, up: float, down: float) -> Pieces:
    """The sum of up max(r, 0) + down max(-r, 0) over r = start + rate t."""
    moving = rate != 0
    if not np.any(moving) or up + down == 0:
        return Pieces(0.0, 0.0, _NONE, _NONE)
    start, rate = start[moving], rate[moving]
    slope = math.fsum(np.where(rate > 0, -down * rate, up * rate))
    return Pieces(slope, 0.0, -start / rate, (up + down) * np.abs(rate))
