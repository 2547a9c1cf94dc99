"""Run noisy gradient methods on the Euclidean ball in coordinates of the span of the rows.

Decided by n, p, the set, the steps and the budget: the rank of the rows is a private fact, and
nothing here looks at it. Proof that the law stays what it is: docs/proofs/noisy_sgd.md and
docs/proofs/noisy_gd.md.
"""

from __future__ import annotations

import math

import numpy as np

from dperm_cli.loops import reduced_sgd
from dperm_cli.losses.shared.margin_loss import Glm
from dperm_cli.mechanisms.base import Plan
from dperm_cli.privacy.streams import NoiseStream
from dperm_cli.problem.problem import ProblemSpec
from dperm_cli.views.central import CentralView, map_points

LEAST_SHARE = 2  # p is at least so many times the coordinates that are left
MOST_NUMBERS = 1 << 26  # of the basis: half a GiB
MOST_DEGREES = 1 << 21  # beyond them scipy's chi^2 quantile jumps by 1e-5 deviations and more
_SHARE = 1e-3  # of delta that the bounded range of the generator may be worth
_ATOM = 2.0**-64


def can_reduce(spec: ProblemSpec, plan: Plan, least_steps: int, extra: int = 1) -> bool:
    """Whether n + extra coordinates serve in place of p, from public facts.

    Fewer steps than n are faster than making a basis. The bounded range of the generator moves
    each loop's law by at most its atoms: (1 + e^epsilon) times what they add up to is within a
    thousandth of delta, or the plain loop runs.
    """
    n, p = spec.n, spec.p
    fits = spec.constraint.is_ball and isinstance(spec.form, Glm) and spec.lasso == 0
    if not fits or p < LEAST_SHARE * (n + extra) + reduced_sgd.LEAST_OUTSIDE or least_steps < n:
        return False
    budget = plan.guarantee
    numbers = plan.steps * (n + extra + 8.0) + p  # p of them for the direction outside
    lost = numbers * _ATOM * (1.0 + math.exp(min(budget.epsilon, 60.0)))
    small = n * p <= MOST_NUMBERS and p <= MOST_DEGREES
    return small and lost <= _SHARE * budget.delta


class RowSpanView:
    """Noisy gradients in n coordinates of the row span and one new direction a step outside it.

    Normal vectors Z_0, .., Z_{T-1} of the complement's k = p - n dimensions are Q R with R upper
    triangular: R_st normal for s < t, R_tt^2 chi^2 with k - t degrees of freedom, and Q a uniform
    frame that is independent of R [Bartlett]. What depends on inner products alone needs R only.
    """

    def __init__(self, view: CentralView, noise: NoiseStream, steps: int) -> None:
        spec = view.spec
        self.frame = reduced_sgd.frame(view.x)
        self.dim, self._noise = spec.n + steps, noise
        self._view, self._n, self._outer = view, spec.n, spec.p - spec.n

    def gradient_sum(self, theta: np.ndarray) -> np.ndarray:
        """The sum over all records at rows of [trials, n + T], in the same coordinates."""
        form, rows = self._view.loss, self.frame.rows
        assert isinstance(form, Glm)
        y, found = self._view.y, np.zeros_like(theta)
        inside = theta[:, : self._n]
        found[:, : self._n] = map_points(lambda one: form.slope(one @ rows.T, y) @ rows, inside)
        return found

    def add(self, value: np.ndarray, step: int) -> np.ndarray:
        """``value`` [trials, n + T] and column ``step`` of R beside n normal numbers."""
        return self._noise.add_in_frame(value, step, self._n + step, self._outer - step)

    def out(self, theta: np.ndarray) -> np.ndarray:
        """One point of R^p, [trials, p], for one of [trials, n + T]: Q maps its outside part."""
        away = self._noise.draw_direction(self.frame)
        length = np.linalg.norm(theta[:, self._n :], axis=1)
        inside = reduced_sgd.map_each(theta[:, : self._n], self.frame.basis.T)
        return inside + length[:, None] * away
