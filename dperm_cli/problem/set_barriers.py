"""Barrier terms of sets for the primal-dual interior-point iteration.

Every inequality slack >= 0 has a multiplier, and an iteration moves both towards
slack * multiplier = target. A piece eliminates its own unknowns and leaves, for the parameter
theta, a positive semidefinite matrix and a right-hand side.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = list[np.ndarray]


class Block:
    """The slacks and multipliers of one set, and the directions last computed for them."""

    weight: float = 1.0
    slacks: Arrays
    duals: Arrays
    d_slacks: Arrays
    d_duals: Arrays

    def targets(self, mu: float) -> Arrays:
        """The products slack * multiplier on the central path, for the parameter mu."""
        return [np.full_like(w, self.weight * mu) for w in self.slacks]

    def corrected_targets(self, mu: float) -> Arrays:
        """``targets`` less the products of the directions: Mehrotra's correction."""
        pairs = zip(self.d_slacks, self.d_duals, strict=True)
        return [self.weight * mu - dw * dq for dw, dq in pairs]

    def largest_step(self) -> float:
        """The largest step that keeps slacks and multipliers non-negative."""
        values = [*self.slacks, *self.duals]
        return min(map(_ratio, values, [*self.d_slacks, *self.d_duals]), default=np.inf)

    def complementarity(self, step: float) -> tuple[float, float]:
        """Sum of the products slack * multiplier after a step, and of their weights."""
        pairs = zip(self.slacks, self.d_slacks, self.duals, self.d_duals, strict=True)
        total = sum(float((w + step * dw) @ (q + step * dq)) for w, dw, q, dq in pairs)
        return total, self.weight * sum(w.size for w in self.slacks)

    def log_barrier(self, step: float) -> float:
        """-sum log slack after a step."""
        moved = (w + step * dw for w, dw in zip(self.slacks, self.d_slacks, strict=True))
        return -sum(float(np.sum(np.log(w))) for w in moved)

    def log_barrier_slope(self) -> float:
        pairs = zip(self.slacks, self.d_slacks, strict=True)
        return -sum(float(np.sum(dw / w)) for w, dw in pairs)

    def move(self, step: float) -> None:
        self.slacks = [w + step * dw for w, dw in zip(self.slacks, self.d_slacks, strict=True)]
        self.duals = [q + step * dq for q, dq in zip(self.duals, self.d_duals, strict=True)]

    def _set_directions(self, targets: Arrays, d_slacks: Arrays) -> None:
        self.d_slacks = d_slacks
        self.d_duals = [
            (t - q * (w + dw)) / w
            for t, w, q, dw in zip(targets, self.slacks, self.duals, d_slacks, strict=True)
        ]


class BoxBarrier(Block):
    """Slacks a - theta and a + theta, at theta = 0 to begin with."""

    @staticmethod
    def products(p: int) -> int:
        """The number of complementarity products."""
        return 2 * p

    def __init__(self, constraint: Any, mu: float) -> None:
        size = np.full(constraint.p, constraint.size)
        self.slacks = [size, size.copy()]
        self.duals = [mu / w for w in self.slacks]

    def matrix(self, theta: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        """(b, c, w) of diag(b) + c w w^T."""
        (u, v), (p, q) = self.slacks, self.duals
        return p / u + q / v, 0.0, np.zeros_like(u)

    def right_side(self, theta: np.ndarray, targets: Arrays) -> np.ndarray:
        return targets[1] / self.slacks[1] - targets[0] / self.slacks[0]

    def update_directions(self, theta: np.ndarray, d_theta: np.ndarray, targets: Arrays) -> None:
        self._set_directions(targets, [-d_theta, d_theta])


class L1Barrier(Block):
    """|theta_j| <= t_j and sum t <= r: slacks t - theta, t + theta and r - sum t."""

    @staticmethod
    def products(p: int) -> int:
        """The number of complementarity products."""
        return 2 * p + 1

    def __init__(self, constraint: Any, mu: float) -> None:
        p, size = constraint.p, constraint.size
        t = np.full(p, 0.5 * size / p)
        self.slacks = [t, t.copy(), np.array([0.5 * size])]
        self.duals = [mu / w for w in self.slacks]

    def matrix(self, theta: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        """(b, c, w) of diag(b) + c w w^T."""
        q1, q2, q3 = (q / w for q, w in zip(self.duals, self.slacks, strict=True))
        total = q1 + q2
        c = float(q3[0] / (1.0 + q3[0] * np.sum(1.0 / total)))
        return 4.0 * q1 * (q2 / total), c, (q2 - q1) / total

    def right_side(self, theta: np.ndarray, targets: Arrays) -> np.ndarray:
        m1, m2, m3 = (t / w for t, w in zip(targets, self.slacks, strict=True))
        q1, q2, _ = (q / w for q, w in zip(self.duals, self.slacks, strict=True))
        return m2 - m1 + (q2 - q1) * self._solve_t(m3 - m1 - m2)

    def update_directions(self, theta: np.ndarray, d_theta: np.ndarray, targets: Arrays) -> None:
        m1, m2, m3 = (t / w for t, w in zip(targets, self.slacks, strict=True))
        q1, q2, _ = (q / w for q, w in zip(self.duals, self.slacks, strict=True))
        d_t = -self._solve_t(m3 - m1 - m2 + (q2 - q1) * d_theta)
        self._set_directions(targets, [d_t - d_theta, d_t + d_theta, -np.sum(d_t, keepdims=True)])

    def _solve_t(self, v: np.ndarray) -> np.ndarray:
        """(diag(q1 + q2) + q3 1 1^T)^-1 v."""
        q1, q2, q3 = (q / w for q, w in zip(self.duals, self.slacks, strict=True))
        total = q1 + q2
        share = q3 * np.sum(v / total) / (1.0 + q3 * np.sum(1.0 / total))
        return (v - share) / total


class L2Barrier(Block):
    """(r, theta) in the second-order cone, with Nesterov and Todd's scaling.

    The multiplier s is a vector of the same cone; u o s = (u . s, u0 s + s0 u) is the cone's
    product, det u = u0^2 - |u|^2, and W the symmetric map with W s = W^-1 u = lam.
    """

    @staticmethod
    def products(p: int) -> int:
        """The number of complementarity products."""
        return 1

    def __init__(self, constraint: Any, mu: float) -> None:
        radius, zeros = constraint.radius, np.zeros(constraint.p)
        self.slacks = [np.concatenate([[radius], zeros])]
        self.duals = [np.concatenate([[mu / radius], zeros])]
        self._rescale()

    def matrix(self, theta: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        """(b, c, w) of diag(b) + c w w^T, the block of W^-2 that theta sees."""
        b = self._beta**-2
        return np.full(theta.shape, b), 2.0 * b, self._point[1:]

    def right_side(self, theta: np.ndarray, targets: Arrays) -> np.ndarray:
        return self._unscale_vector(_divide(self._lam, targets[0]))[1:]

    def update_directions(self, theta: np.ndarray, d_theta: np.ndarray, targets: Arrays) -> None:
        du = np.concatenate([[0.0], d_theta])
        inner = _divide(self._lam, targets[0]) - self._unscale_vector(du)
        self.d_slacks = [du]
        self.d_duals = [self._unscale_vector(inner) - self.duals[0]]

    def targets(self, mu: float) -> Arrays:
        return [self.weight * mu * _unit(self._lam.size)]

    def corrected_targets(self, mu: float) -> Arrays:
        product = _product(
            self._unscale_vector(self.d_slacks[0]), self._scale_vector(self.d_duals[0])
        )
        return [self.weight * mu * _unit(self._lam.size) - product]

    def largest_step(self) -> float:
        primal = _cone_step(self._det_u, self.slacks[0], self.d_slacks[0])
        return min(primal, _cone_step(self._det_s, self.duals[0], self.d_duals[0]))

    def complementarity(self, step: float) -> tuple[float, float]:
        u = self.slacks[0] + step * self.d_slacks[0]
        return float(u @ (self.duals[0] + step * self.d_duals[0])), self.weight

    def log_barrier(self, step: float) -> float:
        return -0.5 * float(np.log(_det(self.slacks[0] + step * self.d_slacks[0])))

    def log_barrier_slope(self) -> float:
        return float(self.slacks[0][1:] @ self.d_slacks[0][1:]) / self._det_u

    def move(self, step: float) -> None:
        super().move(step)
        self._rescale()

    def _rescale(self) -> None:
        self._det_u, self._det_s = _det(self.slacks[0]), _det(self.duals[0])
        u = self.slacks[0] / np.sqrt(self._det_u)
        s = self.duals[0] / np.sqrt(self._det_s)
        self._beta = float((self._det_u / self._det_s) ** 0.25)
        self._point = (u + _reflect(s)) / np.sqrt(2.0 * (1.0 + u @ s))
        self._axis = self._point + _unit(u.size)
        self._axis /= np.sqrt(2.0 * (1.0 + self._point[0]))
        self._lam = self._scale_vector(self.duals[0])

    def _scale_vector(self, v: np.ndarray) -> np.ndarray:
        """W v."""
        return self._beta * (2.0 * (self._axis @ v) * self._axis - _reflect(v))

    def _unscale_vector(self, v: np.ndarray) -> np.ndarray:
        """W^-1 v."""
        axis = _reflect(self._axis)
        return (2.0 * (axis @ v) * axis - _reflect(v)) / self._beta


def _ratio(values: np.ndarray, directions: np.ndarray) -> float:
    falling = directions < 0
    if not np.any(falling):
        return np.inf
    return float(np.min(values[falling] / -directions[falling]))


def _cone_step(det: float, v: np.ndarray, d: np.ndarray) -> float:
    """The largest step that keeps v + step d in the second-order cone (det = det v > 0)."""
    a, b = float(d[1:] @ d[1:] - d[0] ** 2), float(v[1:] @ d[1:] - v[0] * d[0])
    square = b * b + a * det
    if b > 0:
        return det / (b + np.sqrt(square)) if square >= 0 else np.inf
    return float((np.sqrt(square) - b) / a) if a > 0 else np.inf


def _det(v: np.ndarray) -> float:
    tail = np.linalg.norm(v[1:])
    return max(float((v[0] - tail) * (v[0] + tail)), float(np.finfo(float).tiny))


def _unit(size: int) -> np.ndarray:
    e = np.zeros(size)
    e[0] = 1.0
    return e


def _reflect(v: np.ndarray) -> np.ndarray:
    return np.concatenate([v[:1], -v[1:]])


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.concatenate([[a @ b], a[0] * b[1:] + b[0] * a[1:]])


def _divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The c with a o c = b."""
    tail = np.linalg.norm(a[1:])
    first = (a[0] * b[0] - a[1:] @ b[1:]) / ((a[0] - tail) * (a[0] + tail))
    return np.concatenate([[first], (b[1:] - first * a[1:]) / a[0]])
