"""``PointNoise``: what noise a released minimiser holds, for confidence intervals."""

from __future__ import annotations

from dperm_cli.core.dataclass import dataclass


@dataclass(frozen=True)
class PointNoise:
    """The noise of a minimiser of a sum over records, from its plan.

    Attributes:
        on_gradient: (law, scale) of noise on the gradient of the sum at the minimiser, each
            ``gaussian`` or ``gamma_norm``.
        on_point: the same of noise on the minimiser itself.
        strength: the curvature of all regularisers of the sum.
    """

    on_gradient: tuple[tuple[str, float], ...]
    on_point: tuple[tuple[str, float], ...]
    strength: float
