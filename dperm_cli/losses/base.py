"""What all losses have in common: the constants that follow from the others."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dperm_cli.problem.data import Bounds


class PerRecord:
    """Defaults for the constants of pairs of records; a subclass gives ``lipschitz``."""

    lipschitz: Callable[[Bounds], float]

    def oscillation(self, bounds: Bounds, constraint: Any) -> float:
        """>= sup over records d, d' within the bounds of sup - inf over the set of l_d - l_d'.

        2 L diameter, L being the Lipschitz constant on this set (``bounds.radius`` is not used).
        """
        return 2.0 * self.lipschitz(on(bounds, constraint)) * constraint.diameter

    def variation(self, bounds: Bounds, constraint: Any) -> float:
        """>= sup over records within the bounds of sup - inf over the set of l_d: L diameter."""
        return self.lipschitz(on(bounds, constraint)) * constraint.diameter

    def gradient_gap(self, bounds: Bounds) -> float:
        """>= sup over records d, d' and |theta| <= radius of |grad l_d - grad l_d'|_2: 2 L."""
        return 2.0 * self.lipschitz(bounds)


def on(bounds: Bounds, constraint: Any) -> Bounds:
    """The bounds with the radius of this set."""
    return replace(bounds, radius=constraint.radius)


def row_norm(bounds: Bounds, norm: float) -> float:
    """sup of |x|_norm over rows of Euclidean norm at most ``bounds.row``; norm is 1, 2 or inf."""
    return bounds.row * norm_factor(bounds.columns, norm)


def norm_factor(length: int, norm: float) -> float:
    """sup of |v|_norm / |v|_2 over v of this length: sqrt(length) for norm 1, else 1."""
    if norm not in (1, 2, math.inf):
        raise ValueError(f"norm {norm}: must be 1, 2 or inf")
    return math.sqrt(length) if norm == 1 else 1.0
