"""Count the steps of the grid walk [BST14, Sec. 6], as printed and as the proof needs."""

from __future__ import annotations

import math

from dperm_cli.core.dataclass import dataclass

_SHARE = 8.0  # Algorithm 6 runs at a quarter of the accuracy, Algorithm 5 at half of that


@dataclass(frozen=True)
class Walk:
    """The numbers of Algorithms 5 and 6 in the coordinates in which the set is round.

    ``eta`` is the Lipschitz constant of f there, ``size`` |C| >= sup |u - u'|, ``tau`` the edge of
    the cube, ``dim`` the dimension, ``accuracy`` the Dist_inf asked of the whole. ``cube``: the set
    is the cube itself, and neither penalty nor retries are needed. ``printed``: the constants as
    the paper prints them.
    """

    eta: float
    size: float
    tau: float
    dim: int
    accuracy: float
    cube: bool
    printed: bool = False

    @property
    def inner(self) -> float:
        """The accuracy that the cube's sampler is run at."""
        return self.accuracy if self.cube else self.accuracy / _SHARE

    @property
    def alpha(self) -> float:
        """The weight of the gauge penalty, 3 e^{2 a} (eta |C| + p) at a = accuracy / 4."""
        if self.cube:
            return 0.0
        return 3.0 * math.exp(2.0 * self.accuracy / 4.0) * (self.eta * self.size + self.dim)

    @property
    def slope(self) -> float:
        """Lipschitz constant of -log F over the cube."""
        return self.eta + self.alpha

    @property
    def spacing(self) -> float:
        """gamma = a / (2 slope sqrt(p)): the widest the cells may be."""
        return self.inner / (2.0 * self.slope * math.sqrt(self.dim)) if self.slope else math.inf

    @property
    def cells(self) -> float:
        """Cells along an edge: tau / gamma, rounded up unless as printed."""
        count = self.tau / self.spacing
        return count if self.printed else float(max(1, math.ceil(count * (1.0 - 1e-12))))

    @property
    def conductance(self) -> float:
        """>= 1 / (4 p cells e^{a/2}) = a / (8 slope tau p^{3/2} e^{a/2}) [BST14, Lemma 6.1]."""
        return 1.0 / (4.0 * self.dim * self.cells * math.exp(0.5 * self.inner))

    @property
    def log_least(self) -> float:
        """>= -log of the least stationary probability.

        log F varies by slope tau sqrt(p) over the cube; the paper's slope tau is its variation
        along an edge.
        """
        across = 1.0 if self.printed else math.sqrt(self.dim)
        return self.slope * self.tau * across + self.dim * math.log(self.cells)

    @property
    def steps(self) -> float:
        """t_inf = 1 + (4 / Phi^2) log(1 / (e' pi*)) [BST14, Lemma 6.2].

        |law / pi - 1| <= e' = 1 - e^{-a/2} bounds the log of the ratio by a/2; e' = a/2 does not.
        """
        relative = 0.5 * self.inner if self.printed else -math.expm1(-0.5 * self.inner)
        return 1.0 + 4.0 / self.conductance**2 * (self.log_least - math.log(relative))

    @property
    def attempts(self) -> float:
        """m = 4 eta |C| + p log |C| + log(1 / (1 - e^{-a/4})), for a failure of 2^-m in base 2."""
        if self.cube:
            return 1.0
        log = 4.0 * self.eta * self.size + self.dim * math.log(self.size)
        log -= math.log(-math.expm1(-0.25 * self.accuracy))
        return log if self.printed else float(math.ceil(log / math.log(2.0)))
