"""Ball of an Lp norm."""

from __future__ import annotations

import math
from functools import cached_property
from operator import attrgetter
from typing import Annotated, Any, ClassVar

import numpy as np

from dperm_cli.core import checks
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import Check, Help
from dperm_cli.problem.cone_program import ConeProgram, add_power_ball
from dperm_cli.sets.base import ConvexSet, Delegate, Dimension, Radius
from dperm_cli.sets.box import Box
from dperm_cli.sets.l1_ball import L1Ball
from dperm_cli.sets.l2_ball import L2Ball
from dperm_cli.sets.shared.gaussian_widths import expected_norm
from dperm_cli.sets.shared.norm_ball import NormBall
from dperm_cli.sets.shared.roots import falling_root

_ALLOWED = "must be a number >= 1, or inf"


def _power(key: str, value: Any) -> float:
    if isinstance(value, str) and value.lower() in ("inf", ".inf", "infinity"):
        return math.inf
    if isinstance(value, float) and value == math.inf:
        return value
    try:
        return checks.number(key, value, low=1.0)
    except InputError:
        raise InputError(key, value, _ALLOWED) from None


@dataclass(frozen=True)
class LpBall(Delegate):
    """{theta in R^p : |theta|_power <= r} for 1 <= power <= inf, r set by ``constraint.radius``.

    ``radius`` is the Euclidean one, as in every other set: r p^{max(0, 1/2 - 1/power)}.

    >>> [round(LpBall(1.0, 4, power=power).radius, 3) for power in (1.5, 4.0, math.inf)]
    [1.0, 1.414, 2.0]
    """

    audit_place: ClassVar[int] = 10
    sign_symmetric: ClassVar[bool] = True

    reach: Radius
    p: Dimension
    power: Annotated[float, Check(_power), Help("of the norm, from 1 to inf")] = 1.5

    size = property(attrgetter("reach"))
    norm_power = property(attrgetter("power"))

    @cached_property
    def body(self) -> ConvexSet:
        """The set that does the work: those of powers 1, 2 and inf have their own."""
        known = {1.0: L1Ball, 2.0: L2Ball, math.inf: Box}
        if self.power in known:
            return known[self.power](self.reach, self.p)
        return _Between(self.reach, self.p, self.power)


class _Between(NormBall):
    """The ball of a power strictly between 1 and inf."""

    def __init__(self, reach: float, p: int, power: float) -> None:
        self.p, self._reach, self._power = p, reach, power
        self._dual = power / (power - 1.0)

    size = property(attrgetter("_reach"))
    norm_power = property(attrgetter("_power"))

    def add_cone_constraints(self, program: ConeProgram, theta: np.ndarray) -> None:
        add_power_ball(program, theta, self._power, self._reach)

    @property
    def radius(self) -> float:
        return self._reach * self.p ** max(0.0, 0.5 - 1.0 / self._power)

    @property
    def inner_radius(self) -> float:
        """r p^{min(0, 1/2 - 1/power)}."""
        return self._reach * self.p ** min(0.0, 0.5 - 1.0 / self._power)

    def norm(self, theta: np.ndarray) -> np.ndarray:
        return _norm(theta, self._power)

    def support(self, g: np.ndarray) -> np.ndarray:
        """r times the norm of the conjugate power."""
        return self._reach * _norm(g, self._dual)

    def lmo(self, g: np.ndarray) -> np.ndarray:
        """-r sign(g) (|g| / |g|_q)^{q - 1} with the conjugate power q; the origin where g = 0."""
        g = np.asarray(g, dtype=float)
        norm = _norm(g, self._dual)[..., None]
        share = np.abs(g) / np.where(norm > 0, norm, 1.0)
        return -self._reach * np.sign(g) * share ** (self._dual - 1.0)

    def project(self, theta: np.ndarray) -> np.ndarray:
        """Row by row the t with t + m t^{power - 1} = |theta_j| whose norm is r."""
        theta = np.asarray(theta, dtype=float)
        outside = self.norm(theta) > self._reach
        result = theta.copy()
        if np.any(outside):
            rows = theta[outside] / self._reach
            result[outside] = self._reach * np.sign(rows) * self._to_sphere(np.abs(rows))
        return result

    def width(self, rng: np.random.Generator | None = None, draws: int = 0) -> tuple[float, float]:
        """r E |g|_q with the conjugate power q, by a one-dimensional integral."""
        return self._reach * expected_norm(self.p, self._dual), 0.0

    def _to_sphere(self, x: np.ndarray) -> np.ndarray:
        """The projection of rows [m, p] of moduli, of norm above 1, on the unit sphere.

        The multiplier m is the conjugate norm of x - t, so it is within the largest conjugate norm
        of the ball from that of x.
        """
        power = self._power
        high = _norm(x, self._dual)
        low = high - self.p ** max(0.0, 1.0 / self._dual - 1.0 / power)

        def excess(m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            t = _solve_shrinkage(x, m[:, None], power)
            norm = _norm(t, power)
            safe = np.where(t > 0, t, 1.0)
            pull = safe ** (power - 1.0)
            rate = pull / (1.0 + m[:, None] * (power - 1.0) * pull / safe)
            share = (t / norm[:, None]) ** (power - 1.0)
            return norm - 1.0, -np.sum(np.where(t > 0, share * rate, 0.0), axis=1)

        m = falling_root(excess, np.maximum(low, 0.0), high)
        t = _solve_shrinkage(x, m[:, None], power)
        return t / _norm(t, power)[:, None]


def _solve_shrinkage(x: np.ndarray, m: np.ndarray, power: float) -> np.ndarray:
    """The t in [0, x] with t + m t^{power - 1} = x, by Newton steps from above.

    The smaller of the two exponents is made 1, which leaves s^e + c s = x with e >= 1: convex.
    """
    exponent = max(power - 1.0, 1.0 / (power - 1.0))
    first, second = (m, np.ones_like(m)) if power >= 2 else (np.ones_like(m), m)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        s = np.where(first > 0, (x / first) ** (1.0 / exponent), np.inf)
        s = np.minimum(s, np.where(second > 0, x / second, np.inf))
    for _ in range(60):
        lift = first * s ** (exponent - 1.0)
        slope = exponent * lift + second
        move = (s * (lift + second) - x) / np.where(slope > 0, slope, 1.0)
        s = np.maximum(s - move, 0.0)
        if np.all(np.abs(move) <= 3e-16 * s):
            break
    return s if power >= 2 else s**exponent


def _norm(rows: np.ndarray, power: float) -> np.ndarray:
    """The Lp norm of each row of [..., p], without overflow or underflow."""
    modulus = np.abs(np.asarray(rows, dtype=float))
    largest = np.max(modulus, axis=-1)
    sound = (largest > 0) & np.isfinite(largest)
    scaled = modulus / np.where(sound, largest, 1.0)[..., None]
    total = np.sum(scaled**power, axis=-1) ** (1.0 / power)
    return np.where(sound, largest * total, largest)
