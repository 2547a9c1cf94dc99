"""The error bounds of [JT13], as printed and with the constants of their proofs.

Predictions and losses are averages over records, as in the paper. n, lambda, L, R = R_phi and C are
those of [JT13, eq. (2)]; ``epsilon`` is in nats. A function whose docstring begins with *order*
leaves a constant open and takes it as one.

None of these bounds the excess risk that dperm reports, so none is listed in ``all_bounds``.
docs/proofs/_jt13.md lists them by the number of the statement.
"""

from __future__ import annotations

import math

from dperm_cli.core.dataclass import dataclass


@dataclass(frozen=True)
class Setting:
    """The numbers that the bounds of [JT13] depend on.

    Attributes:
        n: the number of records.
        epsilon, delta: the budget.
        ridge: lambda of [JT13, eq. (2)].
        lipschitz: L, the Lipschitz constant of the loss in the prediction.
        bound: R, the largest norm of a feature vector.
        radius: C, the radius of the ball of functions; None for L R / lambda.

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
        """C, which is L R / lambda where ``radius`` is None."""
        own = self.lipschitz * self.bound / self.ridge
        return own if self.radius is None else self.radius

    @property
    def sensitivity(self) -> float:
        """s = 2 L R^2 / (lambda n): how far one record can move one prediction."""
        return 2.0 * self.lipschitz * self.bound**2 / (self.ridge * self.n)


def theorem_3(at: Setting, queries: int, failure: float) -> float:
    """order: C R^2 sqrt(L ln(T / beta)) ln^2(1 / delta) / sqrt(n epsilon lambda)."""
    logs = math.sqrt(at.lipschitz * math.log(queries / failure)) * math.log(1.0 / at.delta) ** 2
    return at.ball * at.bound**2 * logs / math.sqrt(at.n * at.epsilon * at.ridge)


def interactive_error(threshold: float) -> float:
    """5 sigma / 4: the largest error of an answer.

    It holds while no noise exceeds sigma / 4 and the number of updates is not used up.
    """
    return 1.25 * threshold


def interactive_updates(ball: float, bound: float, threshold: float, step: float) -> float:
    """C^2 / (2 eta (3 sigma / 4) - eta^2 R^2): the largest possible number of updates.

    While no noise exceeds sigma / 4, each update lowers |w_t - w*|^2 <= C^2 by the denominator or
    more. The result is inf where the step is so long that the denominator is not positive.
    """
    progress = 1.5 * step * threshold - (step * bound) ** 2
    return ball**2 / progress if progress > 0.0 else math.inf


def noise_failure(queries: int, threshold: float, scale: float) -> float:
    """T exp(-sigma / (4 b)) >= the chance that the noise of one of T queries exceeds sigma / 4."""
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
    """16 C^2 R^2 / sqrt(T): by how much a mean square over all points may exceed that over T random
    points. It holds in expectation, for all w in the ball at once.
    """
    return 16.0 * (ball * bound) ** 2 / math.sqrt(queries)


def semi_interactive(at: Setting, noise: float, queries: float) -> float:
    """A bound, with constants, on the expected loss of w less that of w*.

    The loss is the average over all points that the test data Z are drawn from.
    """
    square = fitted_square(at.ball, at.bound, noise, queries)
    square += spread_square(at.ball, at.bound, queries)
    return at.lipschitz * math.sqrt(square)


def theorem_13(at: Setting, queries: float, failure: float) -> float:
    """order: as ``theorem_5``, for test data Z drawn from a distribution, not from a finite set."""
    return theorem_5(at, queries, failure)


def corollary_6(at: Setting, error: float, failure: float) -> float:
    """order: n = L^4 R^3 ln^2(1 / beta) ln^(1/2)(1 / delta) / (error^2 epsilon).

    So many records suffice for this error.
    """
    logs = math.log(1.0 / failure) ** 2 * math.sqrt(math.log(1.0 / at.delta))
    return at.lipschitz**4 * at.bound**3 * logs / (error**2 * at.epsilon)


def theorem_8(at: Setting, columns: int, smooth: float, failure: float) -> float:
    """order: R d^(1/3) L^(8/3) ln(L_phi) ln(1 / beta) ln^2(1 / delta) over a power of n.

    The denominator is (lambda^2 n)^(2/3) sqrt(epsilon).
    """
    logs = math.log(max(smooth, math.e)) * math.log(1.0 / failure) * math.log(1.0 / at.delta) ** 2
    top = at.bound * columns ** (1.0 / 3.0) * at.lipschitz ** (8.0 / 3.0) * logs
    return top / ((at.ridge**2 * at.n) ** (2.0 / 3.0) * math.sqrt(at.epsilon))


def non_interactive(
    ball: float, bound: float, steps: int, scale: float, exponent: float, log_count: float
) -> float:
    """Expected largest error on the net: sqrt((R^2 C^2 + 2 (B + 1) b^2) / B) + log_count / c."""
    residual = ((bound * ball) ** 2 + 2.0 * (steps + 1) * scale**2) / steps
    return math.sqrt(residual) + log_count / exponent


def gaussian_process(at: Setting, mu: float, queries: int) -> float:
    """The expected largest of T errors of kernel_release: tau R sqrt(2 ln(2 T)), tau R = s / mu."""
    return at.sensitivity / mu * math.sqrt(2.0 * math.log(2.0 * queries))
