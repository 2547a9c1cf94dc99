"""The constant of private ERM: the best proved upper bound over the best proved lower bound.

Two classes of problems on one set: linear losses, and all convex losses with the same Lipschitz
constant. The lower bounds are about linear losses, so that they are for both classes. The upper
bounds are for the worst data set. All are expected excess risks of a sum over n records.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from dperm_cli.bounds import bst14_lower, one_shot
from dperm_cli.bounds.base import Setting
from dperm_cli.bounds.hidden_directions import find_mu
from dperm_cli.bounds.hidden_lower import Found, Privacy, find_for
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.privacy.budget import Budget
from dperm_cli.problem.problem import ProblemSpec

LINEAR, LIPSCHITZ = "linear losses", "Lipschitz losses"
MOST_STEPS = 10**12  # of noisy gradient descent: more would change no digit that is shown
_OTHER_LOWER = (bst14_lower.two_points, bst14_lower.caps, bst14_lower.tracing_bound)


@dataclass(frozen=True)
class UpperBound:
    """An upper bound on the expected excess risk of some mechanism's worst data set.

    Attributes:
        value: in the unit of the sum.
        name: of the mechanism that has it.

    >>> UpperBound(2.0, "noisy_gd").name
    'noisy_gd'
    """

    value: float
    name: str


@dataclass(frozen=True)
class MinimaxGap:
    """Best bounds of one class of problems, and what lies between them.

    Attributes:
        losses: ``LINEAR`` or ``LIPSCHITZ``.
        lower: for any mechanism with the guarantee.
        lower_gaussian: for mechanisms whose events are Gaussian; None at delta = 0.
        upper: of the best mechanism that is known.
        upper_gaussian: of the best one whose events are Gaussian; None at delta = 0.

    >>> lower = Found(10.0, "cap", 5, 1)
    >>> MinimaxGap(LINEAR, lower, None, UpperBound(23.0, "exponential"), None).factor
    2.3
    """

    losses: str
    lower: Found
    lower_gaussian: Found | None
    upper: UpperBound
    upper_gaussian: UpperBound | None

    @property
    def factor(self) -> float:
        """How far apart the bounds for any mechanism are, at most."""
        return self.upper.value / self.lower.value if self.lower.value > 0.0 else math.inf

    @property
    def factor_gaussian(self) -> float | None:
        """The same among mechanisms whose events are Gaussian."""
        if self.lower_gaussian is None or self.upper_gaussian is None:
            return None
        best = max(self.lower_gaussian.value, self.lower.value)
        return self.upper_gaussian.value / best if best > 0.0 else math.inf


def find_gaps(spec: ProblemSpec, budget: Budget) -> list[MinimaxGap]:
    """The gap of linear losses, and of all losses as Lipschitz.

    Args:
        spec: public facts: records, set and Lipschitz constant; no regulariser.
        budget: epsilon, delta and the relation.

    Raises:
        InputError: no bounds are known for the set.
    """
    lower = _find_lower(spec, budget)
    body = spec.constraint
    if lower is None or not (body.is_ball or body.half_side is not None or body.axis_hull):
        allowed = "has no bounds with constants on both sides: try a ball, a box or a simplex"
        raise InputError("constraint", body.name, allowed)
    gaussian = find_for(spec, Privacy.of(budget, gaussian=True)) if budget.delta else None
    found = []
    for losses in (LINEAR, LIPSCHITZ):
        bounds = list(_list_upper(spec, budget, losses))
        noisy = [one for one, is_gaussian in bounds if is_gaussian]
        least = min((one for one, _ in bounds), key=lambda one: one.value)
        best = min(noisy, key=lambda one: one.value) if noisy and budget.delta else None
        found.append(MinimaxGap(losses, lower, gaussian, least, best))
    return found


def find_lipschitz_upper(spec: ProblemSpec, budget: Budget) -> UpperBound:
    """The best proved upper bound on the risk of losses as Lipschitz as these, over mechanisms.

    It holds on every set, and with a regulariser, which depends on no record.

    Args:
        spec: the public facts of a problem.
        budget: epsilon, delta and the relation.

    Returns:
        The bound, and the mechanism that has it.
    """
    bounds = (one for one, _ in _list_upper(spec, budget, LIPSCHITZ))
    return min(bounds, key=lambda one: one.value)


def _find_lower(spec: ProblemSpec, budget: Budget) -> Found | None:
    """The largest lower bound for any mechanism; None where the set has none."""
    kind = "approx" if budget.delta else "pure"
    at = Setting(spec, budget, kind, "any", 0.0, 0, {})
    others = [Found(one.value(at), one.id, 0, 0) for one in _OTHER_LOWER if not one.applies(at)]
    found = find_for(spec, Privacy.of(budget))
    return None if found is None else max(found, *others)


def _list_upper(
    spec: ProblemSpec, budget: Budget, losses: str
) -> Iterator[tuple[UpperBound, bool]]:
    """Upper bounds, and whether the mechanism's events are Gaussian (or none).

    A replaced record moves a sum of gradients by 2 L; one that comes or goes by L.
    """
    moves = (2.0 if budget.relation == "replace_one" else 1.0) * spec.lipschitz
    whole = spec.n * spec.lipschitz_total
    yield UpperBound(whole * _reach(spec), "the centre of the set"), True
    linear = losses == LINEAR
    if linear and spec.constraint.is_ball:
        value = _find_one_shot_risk(spec, moves / budget.epsilon, whole, True)
        yield UpperBound(value, "one noisy sum (Gamma norm)"), False
    if linear and spec.constraint.axis_hull is not None:
        value = _find_corner_risk(spec, moves, budget.epsilon)
        yield UpperBound(value, "exponential mechanism over corners"), False
    if budget.delta:
        scale = moves / find_mu(budget.epsilon, budget.delta)
        if linear:
            name = "one noisy sum (Gaussian)"
            yield UpperBound(_find_one_shot_risk(spec, scale, whole, False), name), True
        steps = math.hypot(whole / math.sqrt(MOST_STEPS), math.sqrt(spec.p) * scale)
        yield UpperBound(_reach(spec) * steps, "noisy_gd, any number of steps"), True
    draw = spec.p * moves * spec.constraint.diameter / budget.epsilon
    yield UpperBound(draw, "exponential mechanism"), False


def _find_one_shot_risk(spec: ProblemSpec, scale: float, whole: float, gamma: bool) -> float:
    """The risk of one noisy sum on the set, for noise of this scale."""
    body, longest = spec.constraint, whole / scale
    if body.is_ball:
        find = one_shot.find_gamma_risk if gamma else one_shot.find_gaussian_risk
        return scale * float(body.radius) * find(spec.p, longest)
    if body.half_side is not None:
        return scale * spec.p * float(body.half_side) * one_shot.find_side_risk(longest)
    hull = body.axis_hull
    corners = 2 * spec.p if hull.signed else spec.p
    return scale * float(hull.radius) * math.sqrt(2.0 * math.log(corners))


def _find_corner_risk(spec: ProblemSpec, moves: float, epsilon: float) -> float:
    """The risk of a corner drawn with weights exp(-epsilon loss / range).

    The range is the largest difference that a record makes between two corners' losses.
    """
    hull = spec.constraint.axis_hull
    corners, apart = (2 * spec.p, 2.0) if hull.signed else (spec.p, math.sqrt(2.0))
    return apart * float(hull.radius) * moves * one_shot.find_draw_risk(corners) / epsilon


def _reach(spec: ProblemSpec) -> float:
    """The largest distance from the set's centre to one of its points."""
    body = spec.constraint
    if body.half_side is not None:
        return float(body.half_side) * math.sqrt(spec.p)
    return float(body.outer_radius)
