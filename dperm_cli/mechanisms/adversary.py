"""``Adversary``: the pair of neighbouring data sets and the test by which the audit attacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from dperm_cli.core import registry
from dperm_cli.core.dataclass import dataclass
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem
from dperm_cli.sets import make_ball

if TYPE_CHECKING:
    from dperm_cli.kernels.shared.kernel_problem import KernelProblem

KINDS = ("gaussian", "profile", "interval", "sign", "threshold")
FAR_RADIUS = 1e9  # radius of a set so large that its boundary plays no part


def first_coordinate(theta: np.ndarray) -> np.ndarray:
    """theta_1 of each trial, [trials, p] -> [trials]."""
    return theta[:, 0]


@dataclass(frozen=True)
class Adversary:
    """A pair of neighbours to attack, and how the outputs on them are told apart.

    Attributes:
        first, second: problems that are neighbours under the budget's relation.
        mechanism: the configured mechanism; the adversary chooses its public settings.
        statistic: a function of theta [trials, p] with one number for each trial, [trials].
        kind: how error rates become a bound on epsilon. ``gaussian``: the outputs are N(0, 1) and
            N(mu, 1) up to scale. ``profile``: the outputs have noise of the plan's events, of an
            unknown scale. ``interval``: the statistic is in [0, 1], with densities exp(-a u) and
            exp(-a' u) up to a factor, a > a'. ``sign``: the outputs differ only in the sign of the
            statistic. ``threshold``: nothing is known of the law.
        floor: the share of the claimed epsilon that the bound must reach, or None.
        must_catch: whether the attack must notice half the noise.
    """

    first: Problem | KernelProblem
    second: Problem | KernelProblem
    mechanism: Any
    statistic: Callable[[np.ndarray], np.ndarray] = field(default=first_coordinate)
    kind: str = "threshold"
    floor: float | None = None
    must_catch: bool = True

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind {self.kind!r}: must be one of {', '.join(KINDS)}")


def linear_pair(
    relation: str, n: int = 1, ridge: float = 0.0, radius: float = FAR_RADIUS
) -> tuple[Problem, Problem]:
    """Neighbours on a line with the linear loss, whose gradients depend on no theta.

    Under ``replace_one`` all n gradients are -1 and one of them becomes +1: as far apart as the
    Lipschitz constant 1 allows. Under ``add_remove`` one gradient is -1, or its record is gone (a
    row of zeros), and all other gradients are 0.
    """
    y = np.ones(n)
    if relation == "add_remove":
        x = np.zeros((n, 1))
        x[0] = 1.0
        return make_line(x, y, ridge, radius), make_line(np.zeros((n, 1)), y, ridge, radius)
    other = y.copy()
    other[0] = -1.0
    x = np.ones((n, 1))
    return make_line(x, y, ridge, radius), make_line(x, other, ridge, radius)


def make_line(x: np.ndarray, y: np.ndarray, ridge: float, radius: float) -> Problem:
    """Linear losses of records on a line, over an interval."""
    name = "adversarial pair"
    data = Data.of_records(name, "binary", x, y, row_bound=1.0, target_bound=1.0, fingerprint=name)
    return Problem(data, registry.load("loss", "linear")(), make_ball(radius, 1), ridge)


def kernel_pair() -> tuple[KernelProblem, KernelProblem]:
    """One record x = 1 on a line with the linear kernel, the hinge and lambda = 2; its label turns.

    The minimisers are 1 / 2 and -1 / 2, as far apart as 2 L R / (lambda n) = 1 allows, and so are
    the predictions at the one public query z = 1.
    """
    from dperm_cli.kernels.shared.kernel_problem import KernelProblem  # by need

    sides = []
    for label in (1.0, -1.0):
        name = f"adversarial kernel pair {label:g}"
        rows = np.ones((1, 1))
        data = Data.of_records(
            name, "binary", rows, np.array([label]), row_bound=1.0, target_bound=1.0,
            fingerprint=name,
        )  # fmt: skip
        kernel = registry.load("kernel", "linear")()
        loss = registry.load("loss", "hinge")()
        sides.append(KernelProblem(data, loss, kernel, 2.0, rows))
    return sides[0], sides[1]
