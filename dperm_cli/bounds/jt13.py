"""The error bounds of [JT13], as printed and with the constants of their proofs.

Predictions and losses are of one record (the paper's averages): n, lambda, L, R = R_phi and C as in
[JT13, eq. (2)], ``epsilon`` in nats. Functions that say *order* take an open constant as one. None
of them is a bound on the excess risk of a record of dperm, and none is in the registry for that.
docs/proofs/_jt13.md lists them by statement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Setting:
    """n records, budget (epsilon, delta), and lambda, L, R, C of [JT13, eq. (2)].

    >>> round(Setting(n=1000, epsilon=1.0, delta=1e-6, ridge=0.1).sensitivity, 3)
    0.02
    """

    n: float
    epsilon: float
    delta: float
    ridge: float
    lipschitz: float = 1.0
    bound: float = 1.0
    radius: float | None = None

    @property
    def ball(self) -> float:
        """C; L R / lambda where none is given."""
        own = self.lipschitz * self.bound / self.ridge
        return own if self.radius is None else self.radius

    @property
    def sensitivity(self) -> float:
        """s = 2 L R^2 / (lambda n), of one prediction."""
        return 2.0 * self.lipschitz * self.bound**2 / (self.ridge * self.n)


def theorem_3(at: Setting, queries: int, failure: float) -> float:
    """order: C R^2 sqrt(L ln(T / beta)) ln^2(1 / delta) / sqrt(n epsilon lambda)."""
    logs = math.sqrt(at.lipschitz * math.log(queries / failure)) * math.log(1.0 / at.delta) ** 2
    return at.ball * at.bound**2 * logs / math.sqrt(at.n * at.epsilon * at.ridge)


def interactive_error(threshold: float) -> float:
    """5 sigma / 4: of every answer, while no noise is above sigma / 4 and the updates suffice."""
    return 1.25 * threshold


def interactive_updates(ball: float, bound: float, threshold: float, step: float) -> float:
    """C^2 / (2 eta (3 sigma / 4) - eta^2 R^2): more updates than that cannot be.

    Each takes the denominator off |w_t - w*|^2 <= C^2 while no noise is above sigma / 4; inf where
    the step is so long that it is not positive.
    """
    progress = 1.5 * step * threshold - (step * bound) ** 2
    return ball**2 / progress if progress > 0.0 else math.inf


def noise_failure(queries: int, threshold: float, scale: float) -> float:
    """T exp(-sigma / (4 b)): chance that some noise of T queries is above sigma / 4, at most."""
    return min(1.0, queries * math.exp(-threshold / (4.0 * scale)))


def theorem_5_queries(at: Setting) -> float:
    """order: T = C n epsilon lambda / (L R sqrt(ln(1 / delta)))."""
    top = at.ball * at.n * at.epsilon * at.ridge
    return top / (at.lipschitz * at.bound * math.sqrt(math.log(1.0 / at.delta)))


def theorem_5(at: Setting, queries: float, failure: float) -> float:
    """order: (L R)^(3/2) sqrt(C ln^(1/2)(1 / delta)) ln(T / beta) / sqrt(n epsilon lambda)."""
    root = math.sqrt(at.ball * math.sqrt(math.log(1.0 / at.delta)))
    top = (at.lipschitz * at.bound) ** 1.5 * root * math.log(queries / failure)
    return top / math.sqrt(at.n * at.epsilon * at.ridge)


def fitted_square(ball: float, bound: float, noise: float, queries: float) -> float:
    """4 C R sd / sqrt(T) >= E mean_t <w - w*, phi(z_t)>^2 for the least squares in the ball.

    ``noise`` is the standard deviation sd of one noisy prediction (sqrt(2) nu for Laplace).
    """
    return 4.0 * ball * bound * noise / math.sqrt(queries)


def spread_square(ball: float, bound: float, queries: float) -> float:
    """16 C^2 R^2 / sqrt(T): what the mean square over all points exceeds that over T random ones
    by, at most, for all w in the ball at once and in expectation."""
    return 16.0 * (ball * bound) ** 2 / math.sqrt(queries)


def semi_interactive(at: Setting, noise: float, queries: float) -> float:
    """E of the loss of w over that of w*, on all points that Z is drawn from, with constants."""
    square = fitted_square(at.ball, at.bound, noise, queries)
    square += spread_square(at.ball, at.bound, queries)
    return at.lipschitz * math.sqrt(square)


def theorem_13(at: Setting, queries: float, failure: float) -> float:
    """order: the bound of Theorem 5, for Z drawn from a distribution instead of a finite set."""
    return theorem_5(at, queries, failure)


def corollary_6(at: Setting, error: float, failure: float) -> float:
    """order: n = L^4 R^3 ln^2(1 / beta) ln^(1/2)(1 / delta) / (error^2 epsilon) records."""
    logs = math.log(1.0 / failure) ** 2 * math.sqrt(math.log(1.0 / at.delta))
    return at.lipschitz**4 * at.bound**3 * logs / (error**2 * at.epsilon)


def theorem_8(at: Setting, columns: int, smooth: float, failure: float) -> float:
    """order: R d^(1/3) L^(8/3) ln(L_phi) ln(1 / beta) ln^2(1 / delta) / ((lambda^2 n)^(2/3)
    sqrt(epsilon))."""
    logs = math.log(max(smooth, math.e)) * math.log(1.0 / failure) * math.log(1.0 / at.delta) ** 2
    top = at.bound * columns ** (1.0 / 3.0) * at.lipschitz ** (8.0 / 3.0) * logs
    return top / ((at.ridge**2 * at.n) ** (2.0 / 3.0) * math.sqrt(at.epsilon))


def non_interactive(
    ball: float, bound: float, steps: int, scale: float, exponent: float, log_count: float
) -> float:
    """sqrt((R^2 C^2 + 2 (B + 1) b^2) / B) + log_count / c: E of the largest error on the net."""
    residual = ((bound * ball) ** 2 + 2.0 * (steps + 1) * scale**2) / steps
    return math.sqrt(residual) + log_count / exponent


def gaussian_process(at: Setting, mu: float, queries: int) -> float:
    """tau R sqrt(2 ln(2 T)): E of the largest of T errors of kernel_release, tau R = s / mu."""
    return at.sensitivity / mu * math.sqrt(2.0 * math.log(2.0 * queries))
