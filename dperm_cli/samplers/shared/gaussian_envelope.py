"""Draws of a Gaussian exp(-u' H u / 2 + b' u), H not isotropic, restricted to a ball or a box."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import log_ndtr

from dperm_cli.samplers.base import Source
from dperm_cli.samplers.shared.tangent_boxes import quantile
from dperm_cli.samplers.shared.truncated_gaussian import on_interval

_BLOCK = 16
_MOST_BLOCKS = 1_000_000
_HALVINGS = 60
_FLAT = 1e-4  # curvature over a box below which it is left out of the proposal


class OnBall:
    """{|u| <= r}: proposed at precision H + 2 k I, kept with probability exp(-k (r^2 - |u|^2)).

    Every k >= 0 gives the same law. The one with E|u|^2 = r^2, or 0 where the Gaussian is within
    already, puts the proposals where the ball ends.
    """

    def __init__(self, hessian: np.ndarray, pull: np.ndarray, radius: float) -> None:
        values, self._axes = np.linalg.eigh(hessian)
        self._values = np.maximum(values, 0.0)
        self._pull, self._radius = self._axes.T @ pull, radius
        self.tilt = self._root()
        precision = self._values + 2.0 * self.tilt
        self._middle, self._scale = self._pull / precision, 1.0 / np.sqrt(precision)

    def __call__(self, source: Source) -> np.ndarray:
        for _ in range(_MOST_BLOCKS):
            u = self._middle + self._scale * source.normal(_BLOCK, len(self._middle))
            room = self._radius**2 - np.sum(u * u, axis=1)
            keep = (room >= 0) & (np.log(source.uniform(_BLOCK)) <= -self.tilt * room)
            if np.any(keep):
                return self._axes @ u[int(np.argmax(keep))]
        raise ArithmeticError("no point of the ball was proposed: not a private outcome")

    def _root(self) -> float:
        if self._square(0.0) <= self._radius**2:
            return 0.0
        low, high = 0.0, 1.0 / self._radius**2
        while self._square(high) > self._radius**2:
            low, high = high, 2.0 * high
        for _ in range(_HALVINGS):
            k = 0.5 * (low + high)
            low, high = (k, high) if self._square(k) > self._radius**2 else (low, k)
        return high

    def _square(self, k: float) -> float:
        """E|u|^2 at tilt k."""
        precision = self._values + 2.0 * k
        if float(np.min(precision)) <= 0.0:
            return math.inf
        return float(np.sum(1.0 / precision + (self._pull / precision) ** 2))


class OnBox:
    """{|u_j| <= a}: a diagonal H, each coordinate by inversion, so without rejection.

    ``at`` is a point of the box, ``slope`` and ``curvature`` [p] those of the exponent there:
    the density is exp(-<slope, u - at> - sum curvature_j (u_j - at_j)^2 / 2).
    """

    def __init__(
        self, at: np.ndarray, slope: np.ndarray, curvature: np.ndarray, half: float
    ) -> None:
        self.at, self.slope, self.half = at, slope, half
        self.curvature = np.where(curvature * half**2 < _FLAT, 0.0, curvature)

    def __call__(self, source: Source) -> np.ndarray:
        return self.many(source.uniform(1, len(self.at)))[0]

    def many(self, u: np.ndarray) -> np.ndarray:
        """One point for each row of uniforms [m, p]."""
        bent, half = self.curvature > 0, self.half
        out = quantile(self.slope, np.full_like(self.slope, half), u)
        out[:, bent] = on_interval(*self._gaussian(), -half, half, u[:, bent])
        return np.clip(out, -half, half)

    def log_mass(self) -> float:
        """log of the integral of the density over the box."""
        bent, half = self.curvature > 0, self.half
        mean, scale = self._gaussian()
        low, high = (-half - mean) / scale, (half - mean) / scale
        peak = self.slope[bent] ** 2 * scale**2 / 2.0 + np.log(scale) + 0.5 * math.log(2 * math.pi)
        a, b = np.minimum(low, -high), np.minimum(high, -low)  # in the lower tail
        total = float(np.sum(peak + log_ndtr(b) + np.log(-np.expm1(log_ndtr(a) - log_ndtr(b)))))
        slope = self.slope[~bent]
        steep = np.maximum(np.abs(slope) * half, 1e-8)
        flat = np.log(2 * half) + steep + np.log(-np.expm1(-2.0 * steep) / (2.0 * steep))
        return total + float(np.sum(flat + slope * self.at[~bent]))

    def _gaussian(self) -> tuple[np.ndarray, np.ndarray]:
        bent = self.curvature > 0
        scale = 1.0 / np.sqrt(self.curvature[bent])
        return self.at[bent] - self.slope[bent] * scale**2, scale


class WithinBox:
    """{|u_j| <= a}: the whole Gaussian, what falls outside the box dropped."""

    def __init__(self, at: np.ndarray, slope: np.ndarray, hessian: np.ndarray, half: float) -> None:
        self.half, self.lower = half, np.linalg.cholesky(hessian)
        self.mean = at - np.linalg.solve(hessian, slope)
        self.log_peak = 0.5 * float(slope @ (at - self.mean))
        self.spread = np.sqrt(np.diag(np.linalg.inv(hessian)))

    def __call__(self, source: Source) -> np.ndarray:
        for _ in range(_MOST_BLOCKS):
            normal = source.normal(_BLOCK, len(self.mean))
            u = self.mean + np.linalg.solve(self.lower.T, normal.T).T
            inside = np.all(np.abs(u) <= self.half, axis=1)
            if np.any(inside):
                return u[int(np.argmax(inside))]
        raise ArithmeticError("no point of the box was proposed: not a private outcome")

    def log_share(self) -> float:
        """log of the mass within the box, as if the coordinates were independent."""
        low, high = (-self.half - self.mean) / self.spread, (self.half - self.mean) / self.spread
        a, b = np.minimum(low, -high), np.minimum(high, -low)
        return float(np.sum(log_ndtr(b) + np.log(-np.expm1(log_ndtr(a) - log_ndtr(b)))))

    def log_whole(self) -> float:
        """log of the integral of exp(-<slope, u - at> - (u - at)' H (u - at) / 2) over R^p."""
        half_log = float(np.sum(np.log(np.diag(self.lower))))
        return self.log_peak + 0.5 * len(self.mean) * math.log(2.0 * math.pi) - half_log
