"""Regularised risk in a feature space, solved by its dual with a proved distance to the minimiser.

minimise P(w) = sum_i l(<w, phi_i>; y_i) + (m / 2) |w|^2. For slopes a_i in the domain of l*, with
w(a) = -sum_i a_i phi_i / m,

    P(w(a)) - D(a) = sum_i [l(z_i) + l*(a_i) - a_i z_i],    z_i = <w(a), phi_i>.

No term is negative, so no digits cancel and very small gaps can be proved. P is m-strongly convex,
and so is -D as a function of w(a). Therefore |w(a) - w*| <= sqrt(gap / m).

For smooth losses the last steps are Newton steps in w. At any w, the slopes a_i = l'(z_i) leave the
gap |P'(w)|^2 / (2 m), and |w - w*| <= |P'(w)| / m.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.kernels.base import Kernel
from dperm_cli.loops import dual_ascent
from dperm_cli.problem.data import Matrix

_EPS = float(np.finfo(float).eps)
_BLOCK = 2048
_MOST_GRAM_BYTES = 1_700_000_000  # bytes of a Gram matrix that is held in float64
_DIRECT = 4000  # most unknowns of a linear system that is solved directly
_CLIP = 1e-12
_PLAIN_PASSES = 4  # passes before more expensive steps
_PATIENCE = 30  # passes without a gap smaller by a tenth after which the solver stops
_ROUNDS = 12


class FeatureSystem:
    """Records as finite features [n, D] in float64 or float32. Sums are computed in float64.

    ``state`` in its methods is sum_i a_i x_i, [D].
    """

    def __init__(self, x: np.ndarray) -> None:
        self.x = np.ascontiguousarray(x)
        self.n, self.dim = self.x.shape
        self.square = np.concatenate(
            [np.einsum("ij,ij->i", b, b) for _, b in self._blocks()] or [np.zeros(0)]
        )

    def _blocks(self):
        for start in range(0, self.n, _BLOCK):
            part = slice(start, start + _BLOCK)
            yield part, np.asarray(self.x[part], dtype=float)

    def combine(self, a: np.ndarray) -> np.ndarray:
        """sum_i a_i x_i, [D]."""
        total = np.zeros(self.dim)
        for part, block in self._blocks():
            total += block.T @ a[part]
        return total

    def margins(self, w: np.ndarray) -> np.ndarray:
        """<x_i, w>, [n]."""
        return np.concatenate([block @ w for _, block in self._blocks()] or [np.zeros(0)])

    def products(self, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        total = self.combine(a)
        return total, self.margins(total)

    def ascend(self, loss, y, m, order, a, state) -> float:
        w = -state / m
        moved = dual_ascent.ascend_rows(
            self.x, y, loss.code, float(loss.width), m, self.square, order, a, w
        )
        state[:] = -m * w
        return moved

    def gram(self, chosen: np.ndarray) -> np.ndarray:
        part = np.asarray(self.x[chosen], dtype=float)
        return part @ part.T

    values = margins

    def weighted_gram(self, weights: np.ndarray) -> np.ndarray:
        """sum_i weight_i x_i x_i^T, [D, D]."""
        total = np.zeros((self.dim, self.dim))
        for part, block in self._blocks():
            total += block.T @ (block * weights[part, None])
        return total

    def at(self, chosen: np.ndarray, state: np.ndarray) -> np.ndarray:
        """<sum, x_i> of the chosen records."""
        return np.asarray(self.x[chosen], dtype=float) @ state

    def move(self, chosen: np.ndarray, change: np.ndarray, state: np.ndarray) -> None:
        """Add change_i x_i to the sum."""
        state += np.asarray(self.x[chosen], dtype=float).T @ change

    @property
    def length(self) -> float:
        return float(np.sqrt(np.max(self.square, initial=0.0)))


class GramSystem:
    """Records through their Gram matrix, for an exact kernel.

    The matrix is stored in float32 where float64 would not fit into memory. ``state`` in its
    methods is sum_j a_j K(x_j, x_i), [n].
    """

    def __init__(self, kernel: Kernel, x: Matrix) -> None:
        self.kernel, self.points = kernel, x
        self.n = int(x.shape[0])
        self.exactly = 8 * self.n**2 <= _MOST_GRAM_BYTES
        self.matrix = np.empty((self.n, self.n), np.float64 if self.exactly else np.float32)
        for part, block in self._fresh():
            self.matrix[part] = block

    def _fresh(self):
        # smaller blocks: products of sparse rows need several times the memory of the result
        for start in range(0, self.n, _BLOCK // 4):
            part = slice(start, start + _BLOCK // 4)
            yield part, self.kernel.gram(self.points[part], self.points)

    def products(self, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.exactly:
            found = self.matrix @ a
        else:
            used = np.flatnonzero(a)
            found = np.empty(self.n)
            for start in range(0, self.n, _BLOCK):
                part = slice(start, start + _BLOCK)
                block = self.kernel.gram(self.points[part], self.points[used])
                found[part] = block @ a[used]
        return found.copy(), found

    def values(self, weights: np.ndarray) -> np.ndarray:
        """<sum_j c_j phi_j, phi_i>, [n]."""
        return self.products(weights)[1]

    def ascend(self, loss, y, m, order, a, state) -> float:
        z = -state / m
        moved = dual_ascent.ascend_gram(
            self.matrix, y, loss.code, float(loss.width), m, order, a, z
        )
        state[:] = -m * z
        return moved

    def gram(self, chosen: np.ndarray) -> np.ndarray:
        if self.exactly:
            return self.matrix[np.ix_(chosen, chosen)]
        return self.kernel.gram(self.points[chosen], self.points[chosen])

    def at(self, chosen: np.ndarray, state: np.ndarray) -> np.ndarray:
        return state[chosen]

    def move(self, chosen: np.ndarray, change: np.ndarray, state: np.ndarray) -> None:
        used = np.flatnonzero(change)
        state += change[used] @ self.matrix[chosen[used]]

    @property
    def length(self) -> float:
        return float(np.sqrt(np.max(self.kernel.diagonal(self.points), initial=0.0)))


@dataclass(frozen=True)
class Solution:
    """A point w, and what its dual point proves about it.

    Attributes:
        slopes: the dual point a, [n].
        weights: w itself, [D], for feature rows; for a kernel the c [n] of w = sum_i c_i phi_i.
        margins: the z_i, [n].
        norm: |w|.
        value: P(w).
        gap: a bound on P(w) - min P (sums over records).
        distance: a bound on |w - w*|.
        seconds, epochs: the time and the passes over the records that were spent.
    """

    slopes: np.ndarray
    weights: np.ndarray
    margins: np.ndarray
    norm: float
    value: float
    gap: float
    distance: float
    seconds: float
    epochs: int


def solve(
    system: Any, loss: Any, y: np.ndarray, modulus: float, *, gap: float, seconds: float
) -> Solution:
    """Ascend until the gap of the sum is at most ``gap``, or the time is over.

    The order of the records in each pass is fixed. So the result is the same whenever the time
    suffices.

    Args:
        system: the records in feature space.
        loss: a loss of the margin.
        y: labels or targets, [n].
        modulus: m.
        gap: the gap to reach, for the sum over records.
        seconds: the time limit.
    """
    began = time.perf_counter()
    run = DualSolver(system, loss, np.asarray(y, dtype=float), modulus)
    best = run.certify(_start(loss, run.y))
    now, epochs, idle, end = best, 0, 0, began + seconds
    while best.gap > gap and idle < _PATIENCE and time.perf_counter() < end:
        if epochs >= _PLAIN_PASSES and run.has_curvature:
            best = run.newton(best, gap, end)
            break
        a, state = now.slopes.copy(), -modulus * now.weights if run.finite else run.state(now)
        epochs += 1
        system.ascend(loss, run.y, modulus, shuffle(np.arange(system.n), epochs), a, state)
        if epochs > _PLAIN_PASSES and loss.smoothness is None:
            a = run.polish(now, a, state)
        now = run.certify(a)
        idle = 0 if now.gap < 0.9 * best.gap else idle + 1
        best = now if now.gap < best.gap else best
    best = run.plain(best, gap)
    return replace(best, seconds=time.perf_counter() - began, epochs=epochs)


def verify_dual(
    system: Any, loss: Any, y: np.ndarray, modulus: float, slopes: np.ndarray, weights: np.ndarray
) -> Solution:
    """The solution that stored slopes prove, or stored weights of a smooth loss."""
    run = DualSolver(system, loss, np.asarray(y, dtype=float), modulus)
    if run.has_curvature:
        return run.at(weights)
    # clip to the domain of l*, here [0, -y]: slopes outside it are no dual point
    return run.certify(np.clip(slopes, np.minimum(-run.y, 0.0), np.maximum(-run.y, 0.0)))


@dataclass(frozen=True)
class DualSolver:
    """One problem to solve: the records, the loss, and the modulus m of the regulariser."""

    system: Any
    loss: Any
    y: np.ndarray
    modulus: float

    @property
    def finite(self) -> bool:
        """Whether the records have finite features."""
        return isinstance(self.system, FeatureSystem)

    @property
    def has_curvature(self) -> bool:
        """Whether the loss has a second derivative for Newton's method."""
        return self.loss.smoothness is not None

    def at(self, weights: np.ndarray) -> Solution:
        """The solution that weights of a smooth loss prove."""
        return self._at(weights, self.system.values(weights))

    def plain(self, found: Solution, gap: float) -> Solution:
        """The solution as ``verify_dual`` computes it, bit for bit, if that also proves the gap.

        Otherwise a stored solution would be rejected when it is read again.
        """
        again = self.at(found.weights) if self.has_curvature else found
        return again if again.gap <= gap else found

    def state(self, now: Solution) -> np.ndarray:
        """sum_i a_i <phi_i, phi_j> at the dual point, from its margins."""
        return -self.modulus * now.margins

    def certify(self, a: np.ndarray) -> Solution:
        """The solution that the slopes prove, recomputed in float64."""
        state, sums = self.system.products(a)
        z = -sums / self.modulus
        terms, sizes = self.loss.fenchel_terms(z, a, self.y)
        square = max(0.0, float(a @ sums)) / self.modulus**2
        value = float(np.sum(self.loss.value(z, self.y))) + 0.5 * self.modulus * square
        gap = math.fsum(terms) + self._rounding(z, a, sizes)
        distance = math.sqrt(gap / self.modulus)
        norm = math.sqrt(square)
        weights = -(state if self.finite else a) / self.modulus
        return Solution(a, weights, z, norm, value, gap, distance, 0.0, 0)

    def _rounding(self, z: np.ndarray, a: np.ndarray, sizes: float) -> float:
        """A bound on the rounding error of the gap.

        Each margin z_i has an error of the order of sum |a_j| |phi|^2 / m. The derivative of its
        term of the gap is l'(z_i) - a_i.
        """
        system = self.system
        reach = float(np.sum(np.abs(a))) * system.length**2 / self.modulus
        error = (math.sqrt(system.n) + 16.0) * _EPS * reach
        slack = np.abs(self.loss.slope(z, self.y) - a)
        curved = 0.0 if self.loss.smoothness is None else float(self.loss.smoothness)
        more = 0.5 * curved * error**2 * system.n
        return error * float(np.sum(slack)) + more + 4.0 * _EPS * sizes

    def polish(self, now: Solution, a: np.ndarray, state: np.ndarray) -> np.ndarray:
        """Passes over the records near the kink, and exact steps on those that lie on it."""
        system, y, m = self.system, self.y, self.modulus
        slack = np.abs(1.0 - y * now.margins)
        free = (a != 0.0) & (a != -y)
        count = min(system.n, max(2000, 4 * int(np.sum(free))))
        near = free | (self.loss.fenchel_terms(now.margins, a, y)[0] > 0.0)
        near[np.argpartition(slack, count - 1)[:count]] = True
        chosen = np.flatnonzero(near)
        for _ in range(_ROUNDS):
            for turn in range(4):
                system.ascend(self.loss, y, m, shuffle(chosen, turn), a, state)
            inside = chosen[(a[chosen] != 0.0) & (a[chosen] != -y[chosen])]
            if 0 < len(inside) <= _DIRECT and not self._exact_step(inside, a, state):
                break
        return a

    def _exact_step(self, inside: np.ndarray, a: np.ndarray, state: np.ndarray) -> bool:
        """Minimise over the slopes that are not at a bound; returns whether they changed."""
        system, m, y = self.system, self.modulus, self.y[inside]
        gram = system.gram(inside)
        slope = y + system.at(inside, state) / m
        padded = gram + (1e-13 * float(np.trace(gram)) + 1e-300) * np.eye(len(inside))
        try:
            step = -m * _solve_definite(padded, slope)
        except np.linalg.LinAlgError:
            return False
        low, high = np.minimum(-y, 0.0), np.maximum(-y, 0.0)
        old = a[inside]
        moved = np.clip(old + step, low, high) - old
        if float(moved @ slope) + 0.5 * float(moved @ gram @ moved) / m >= 0.0:
            with np.errstate(divide="ignore", invalid="ignore"):
                room = np.where(step > 0.0, (high - old) / step, (low - old) / step)
            moved = float(np.min(np.where(step != 0.0, room, 1.0), initial=1.0)) * step
            moved = np.clip(old + moved, low, high) - old
        a[inside] = np.clip(old + moved, low, high)
        system.move(inside, a[inside] - old, state)
        return bool(np.max(np.abs(moved)) > 1e-15)

    def newton(self, start: Solution, gap: float, end: float) -> Solution:
        """Damped Newton steps in w, until the gap that the gradient proves is at most ``gap``."""
        best = now = self._at(start.weights, start.margins)
        zero = self._at(np.zeros_like(start.weights), np.zeros_like(start.margins))
        if zero.value < now.value:
            best = now = zero
        idle = 0
        while best.gap > gap and idle < 4 and time.perf_counter() < end:
            before = now.value
            step, along, slant = self._step(now)
            size = 1.0
            while size > 1e-8:
                there = self._value(now.margins + size * along, now.weights + size * step)
                if there <= now.value + 0.1 * size * slant + 1e-11 * abs(now.value):
                    break
                size *= 0.5
            weights = now.weights + size * step
            now = self.at(weights)
            falls = now.gap < 0.5 * best.gap or now.value < before - 1e-6 * abs(before)
            idle = 0 if falls else idle + 1
            best = now if now.gap < best.gap else best
        return best if best.gap < start.gap else start

    def _at(self, weights: np.ndarray, z: np.ndarray) -> Solution:
        """The solution at w that its slopes prove: |w - w*| <= |P'(w)| / m."""
        system, m, slopes = self.system, self.modulus, self.loss.slope(z, self.y)
        if self.finite:
            gradient = system.combine(slopes) + m * weights
            length, square = float(np.linalg.norm(gradient)), float(weights @ weights)
        else:
            rest = slopes + m * weights
            length = math.sqrt(max(0.0, float(rest @ system.values(rest))))
            # rounding can hide a part of that square where large terms nearly cancel
            hidden = math.sqrt((math.sqrt(system.n) + 16.0) * _EPS)
            length = math.hypot(length, hidden * system.length * float(np.sum(np.abs(rest))))
            square = max(0.0, float(weights @ z))
        size = float(np.sum(np.abs(slopes))) * system.length
        # an error of a margin changes its slope by up to ``smoothness`` times that error
        off = float(self.loss.smoothness) * system.n * system.length**2 * math.sqrt(square)
        length += _EPS * ((math.sqrt(system.n) + 16.0) * size + 16.0 * off)
        value = float(np.sum(self.loss.value(z, self.y))) + 0.5 * m * square
        return Solution(
            slopes, weights, z, math.sqrt(square), value, 0.5 * length**2 / m, length / m, 0.0, 0
        )

    def _step(self, now: Solution) -> tuple[np.ndarray, np.ndarray, float]:
        """Newton's step, its margins, and the slope of P along it."""
        system, m, z = self.system, self.modulus, now.margins
        curvature = self.loss.curvature(z, self.y)
        if self.finite:
            gradient = system.combine(now.slopes) + m * now.weights
            step = -_solve_definite(
                system.weighted_gram(curvature) + m * np.eye(len(gradient)), gradient
            )
            return step, system.margins(step), float(gradient @ step)
        # (S K S + m) S^-1 c = S z - l' / S with S^2 = l''
        root = np.sqrt(np.maximum(curvature, _CLIP))
        wanted = root * z - now.slopes / root
        step = root * self._inner(root, wanted, now.weights / root) - now.weights
        along = system.values(step)
        return step, along, float((now.slopes + m * now.weights) @ along)

    def _inner(self, root: np.ndarray, wanted: np.ndarray, guess: np.ndarray) -> np.ndarray:
        """The solution of (S K S + m) v = wanted."""
        matrix, m = self.system.matrix, self.modulus
        if self.system.n <= _DIRECT:
            return _solve_definite(root[:, None] * matrix * root + m * np.eye(len(root)), wanted)
        from scipy.sparse import linalg

        operator: Any = linalg.LinearOperator
        solve: Any = linalg.cg
        kind = matrix.dtype

        def apply(v: np.ndarray) -> np.ndarray:
            return root * (matrix @ (root * v).astype(kind)) + m * v

        size = len(root)
        weight = 1.0 / (root**2 * matrix.diagonal() + m)
        found, _ = solve(
            operator((size, size), matvec=apply, dtype=float), wanted, guess, rtol=1e-10,
            maxiter=500, M=operator((size, size), matvec=lambda v: weight * v, dtype=float),
        )  # fmt: skip
        return found

    def _value(self, z: np.ndarray, weights: np.ndarray) -> float:
        square = float(weights @ (weights if self.finite else z))
        return float(np.sum(self.loss.value(z, self.y))) + 0.5 * self.modulus * square


def shuffle(indices: np.ndarray, turn: int) -> np.ndarray:
    """The indices in a fixed order that depends on ``turn``: sorted by a hash of both."""
    word = indices.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    word ^= np.uint64((turn + 1) * 0xD1B54A32D192ED03 % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        word = (word ^ (word >> np.uint64(shift))) * np.uint64(factor)
    return indices[np.argsort(word, kind="stable")]


def _solve_definite(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The solution of a positive definite system."""
    from scipy.linalg import cho_factor, cho_solve

    return cho_solve(cho_factor(matrix, lower=True, check_finite=False), right)


def _start(loss: Any, y: np.ndarray) -> np.ndarray:
    """Slopes at w = 0, or 0 for a loss with a kink."""
    zero = np.zeros(len(y))
    return zero if loss.smoothness is None else loss.slope(zero, y)
