"""The event of objective perturbation.

What it spends is in ``privacy.accounting.objective_perturbation``.
"""

from __future__ import annotations

import math
from typing import Annotated

from dperm_cli.core import checks
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.fields import Choices, Count, NonNegative, Positive
from dperm_cli.privacy.accounting import bounded_laws, generator_range
from dperm_cli.privacy.accounting.objective_perturbation import joint_epsilon
from dperm_cli.privacy.events.base import (
    MOVES,
    NoiseEvent,
    PrivacyLoss,
    ProvedRelation,
    largest_move,
    require_proof,
)

NOISES = ("gamma_norm", "gaussian")
UNLIKELY = 2.0**-50
OWN_BITS = 40  # of the scale of a linear term, that its grid keeps


@dataclass(frozen=True)
class PerturbedObjective(NoiseEvent):
    """``count`` adaptive minimisations of a perturbed objective.

    ``noise`` and its ``scale`` are those of the linear term, in the unit of the summed gradient;
    ``record_norm`` bounds the L2 norm of one record's gradient, ``gap`` (optional, Gamma norms
    only) that of the difference of two records'. ``curvature`` bounds the largest eigenvalue of
    one record's Hessian, ``rank`` its rank; ``strength`` is Lam. The Gaussian form is a black box,
    (epsilon, ``delta``), and is proved for rank 1.

    >>> PerturbedObjective("gamma_norm", 4.0, 0.5, curvature=0.25, strength=2.0).kind()
    'pure'
    """

    noise: Annotated[str, Choices(*NOISES)]
    scale: Positive
    record_norm: NonNegative
    curvature: NonNegative
    strength: Positive
    delta: float = 0.0
    rank: Count = 1
    count: Count = 1
    gap: NonNegative | None = None
    relation: ProvedRelation = ""

    law = "perturbed_objective"
    stream = "PerturbedStream"
    phrase = (
        "a minimiser of the objective with a {noise} linear term of scale "
        f"{{scale}} under a regulariser of strength {{strength}}{MOVES} (L2 norm, gradient at "
        "the released point)"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        gaussian = self.noise == "gaussian"
        checks.number(
            "delta", self.delta, low=0.0, high=1.0 if gaussian else 0.0,
            low_open=gaussian, high_open=gaussian,
        )  # fmt: skip
        checks.integer("rank", self.rank, low=1, high=1 if gaussian else None)

    def sensitivity(self, relation: str) -> float:
        """Of the summed gradient at the released point."""
        require_proof(self, relation)
        gap = None if self.noise == "gaussian" else self.gap
        return largest_move(self.record_norm, gap, relation)

    @property
    def jacobian(self) -> float:
        """J, rounded up."""
        return self.rank * math.log1p(self.curvature / self.strength) * (1.0 + 1e-15)

    def epsilon(self, relation: str, second: float = 0.0) -> float:
        """The epsilon of one minimisation, at ``delta``; rounded up.

        Of the Gaussian form: with Gaussian events beside it that are ``second``-GDP together.
        """
        if self.noise == "gamma_norm":
            return self.jacobian + self.ratio(relation)
        return self.jacobian + joint_epsilon(self.delta, self.ratio(relation), second, relation)

    @property
    def own_grid(self) -> int:
        """The linear term leaves no trace on the grid of what is released: it has a fine one."""
        return math.frexp(self.scale)[1] - 1 - OWN_BITS

    def largest_noise(self, dim: int) -> float:
        """The largest 2-norm that one draw of the linear term can have."""
        return generator_range.largest_norm(self.noise, self.scale, dim)

    def likely_noise(self, dim: int) -> float:
        """A 2-norm that one draw of the linear term exceeds with a chance of ``UNLIKELY``."""
        return self.noise_radius(dim, UNLIKELY, room=1.001)

    def kind(self) -> str:
        return "approx" if self.delta > 0.0 else "pure"

    @property
    def noise_law(self) -> str:
        return self.noise

    def loss(self, relation: str) -> PrivacyLoss:
        step = bounded_laws.pure(self.epsilon(relation), self.count)
        return PrivacyLoss(bounded=step, log_failure=self.count * math.log1p(-self.delta))
