"""How far one record moves the sums of x x^T, y x and y^2 together."""

from __future__ import annotations

import math


def joint_sensitivity(
    relation: str,
    row: float = 1.0,
    target: float = 1.0,
    cross: float = 1.0,
    square: float = 0.0,
) -> float:
    """The largest L2 norm by which a neighbour moves (svec(X'X), cross X'y, square y'y).

    svec has off-diagonal entries times sqrt(2). The proof is on the mechanism's page: with c the
    inner product of the rows the squared distance grows in all norms, and the best c is known for
    each y'^2. It is first a convex function of y'^2, then a quartic in |y'| with one inner maximum.

    Args:
        relation: ``replace_one`` or ``add_remove``.
        row: the bound b on the norm of a row.
        target: the bound B on the modulus of a target.
        cross: the weight of X'y.
        square: the weight of y'y.

    >>> joint_sensitivity("add_remove", square=1.0) ** 2, round(joint_sensitivity("replace_one"), 5)
    (2.9999999999999996, 2.12132)
    """
    if relation == "add_remove":
        return math.hypot(row * row, cross * row * target, square * target * target)

    def square_distance(other: float) -> float:
        """The squared distance for |y| = target, |y'| = other and the best angle."""
        inner = min(row**2, cross**2 * target * other / 2.0)
        blocks = 2.0 * (row**4 - inner**2) + (cross * row) ** 2 * (target**2 + other**2)
        both = 2.0 * cross**2 * inner * target * other
        return blocks + both + square**2 * (target**2 - other**2) ** 2

    tried = [0.0, target]
    bend = cross**2 * target
    if bend > 0.0:
        tried.append(min(2.0 * row**2 / bend, target))  # where x' is parallel to x
    if square > 0.0:
        inside = target**2 - 2.0 * (cross * row / square) ** 2
        if inside > 0.0:
            tried.append((target - math.sqrt(inside)) / 2.0)
    return math.sqrt(max(square_distance(other) for other in tried))
