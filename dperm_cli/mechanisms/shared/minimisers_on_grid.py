"""Plans of noisy minimisers on a grid: what the solver and rounding add to the sensitivities.

A solver finds a point theta~ within a public distance rho of the exact minimiser, on every data
set: this is proved, rounding errors of its gradients included (``solvers.perturbed_minimiser``).
The point is rounded to the grid of step g, and noise is added there. So two neighbouring data sets
move it by at most what their exact minimisers are apart, and 2 rho + g sqrt(p). The linear term of
a perturbed objective is rounded to a grid of its own, of step h, which moves minimisers by at most
h sqrt(p) / Lam. Proofs: the page on secure noise.
"""

from __future__ import annotations

import math
from dataclasses import replace

from dperm_cli.core.errors import Unsupported
from dperm_cli.mechanisms.base import Plan
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.events import Event, GammaNorm, Gaussian, PerturbedObjective
from dperm_cli.privacy.secure_grid import Grid, grid_for, require_bits
from dperm_cli.problem.problem import ProblemSpec
from dperm_cli.solvers import perturbed_minimiser, rounding_bounds

UNIT = 2.0**-53
MOST_STEPS = 10**8  # of the solver that cannot fail
LARGEST_DRAW = 2.0**17  # of a coordinate, in noise scales: larger ones do not fit in 64 bits
_ROOM = 1.0 + 4.0 * UNIT
_MOST_EXTRA = 1.01  # times the noise of the same release without a grid
_MOST_SECOND = 1.5  # the same of a second noise, which is small beside the first
_SMALL_SECOND = 0.01  # of what the first noise moves the minimiser by: as good as none


def put_minimiser_on_grid(spec: ProblemSpec, plan: Plan) -> tuple[Plan, Grid]:
    """The plan of output perturbation with a minimiser that is certain to be found, on a grid.

    Args:
        spec: public facts of the problem.
        plan: the plan in real numbers; one event, the minimiser plus Gaussian or Gamma-norm noise.

    Returns:
        The plan with the same ratio of sensitivity to noise, its settings naming the ``distance``
        rho in the place of a gap; and the grid.

    Raises:
        Unsupported: from public facts alone, where no solver is certain to find the minimiser, or
            where the noise has no exact form on a grid.
    """
    event, *others = plan.events
    if others or not isinstance(event, Gaussian | GammaNorm):
        raise Unsupported("more than one noisy minimiser has no secure form")
    grid = grid_for([event], reach_of_points(spec))
    found, distance = put_noisy_minimiser_on_grid(spec, event, plan.guarantee.relation, grid)
    exact = spec.gradient_gap / (spec.n * spec.strong_convexity)
    settings = {name: value for name, value in plan.settings.items() if name != "minimiser_gap"}
    settings |= {"distance": distance, "inflation": 2.0 * distance / exact}
    return replace(plan, events=(found,), noise_scale=found.scale, settings=settings), grid


def reach_of_points(spec: ProblemSpec) -> float:
    """More than the norm of any point of the set."""
    return 1.001 * spec.constraint.radius


def put_noisy_minimiser_on_grid(
    spec: ProblemSpec, event: Gaussian | GammaNorm, relation: str, grid: Grid
) -> tuple[Gaussian | GammaNorm, float]:
    """The event of one noisy minimiser on a grid, and the distance rho.

    Args:
        spec: public facts of the problem.
        event: the same event in real numbers.
        relation: the relation whose ratio of sensitivity to noise is kept.
        grid: of the point and the noise.

    Raises:
        Unsupported: as ``put_minimiser_on_grid``.
    """
    modulus = spec.n * spec.strong_convexity
    _require_certain(spec, modulus)
    diagonal = event.grid_diagonal(spec.p)
    record, gap = (
        slope * _slack(spec.p) / modulus for slope in (spec.lipschitz, spec.gradient_gap)
    )
    assert event.gap is not None
    left_open = 0.5 * min(event.record_norm - record, event.gap - gap)
    wanted = max(left_open, 1e-9 * min(record, gap))
    distance = perturbed_minimiser.provable_distance(spec, modulus, 0.0, wanted)
    _require_few_steps(spec, modulus, 0.0, distance)
    more = (2.0 * distance + diagonal * grid.step) * _ROOM
    moved = event.change_fields(record_norm=record + more, gap=gap + more)
    grown = moved.sensitivity(relation) / event.sensitivity(relation)
    if not grown <= _MOST_EXTRA:
        raise Unsupported(
            f"{grid} and a minimiser to {distance:.3g} take {grown:.3g} times the noise; use less "
            "epsilon, more ridge, or noise=research"
        )
    found = moved.change_fields(scale=event.scale * grown * _ROOM)
    require_bits(found.scale, grid)
    return found, distance


def put_perturbed_on_grid(spec: ProblemSpec, plan: Plan) -> tuple[Plan, Grid]:
    """The plan of a perturbed objective whose linear term and released point lie on grids.

    The second noise keeps its share of the budget: its scale grows with its sensitivity
    2 rho + h sqrt(p) / Lam + g sqrt(p). The first pays for rows that are a hair too long.

    Args:
        spec: public facts of the problem.
        plan: the plan in real numbers.

    Returns:
        The plan, with the ``distance`` rho that is proved for any draw of the linear term; and the
        grid of the released point.

    Raises:
        Unsupported: from public facts alone, as ``put_minimiser_on_grid``.
    """
    if len(plan.events) != 2:
        raise Unsupported("a release without a guarantee has no secure form; use noise=research")
    first, second = plan.events
    assert isinstance(first, PerturbedObjective)
    assert isinstance(second, Gaussian | GammaNorm)
    _require_certain(spec, first.strength)
    diagonal, slack = second.grid_diagonal(spec.p), _slack(spec.p)
    grid = grid_for([second], reach_of_points(spec))
    own = _own_step(first)
    norms = [size if size is None else size * slack for size in (first.record_norm, first.gap)]
    kept = first.change_fields(
        record_norm=norms[0], gap=norms[1], curvature=first.curvature * slack * slack
    )
    tilt = _largest_tilt(first, spec.p) + first.strength * spec.constraint.radius
    wanted = float(plan.settings["distance"])
    distance = perturbed_minimiser.provable_distance(spec, first.strength, tilt, wanted)
    _require_few_steps(spec, first.strength, tilt, distance)
    move = (2.0 * distance + diagonal * own / first.strength + diagonal * grid.step) * _ROOM
    grown = move / second.record_norm
    paid = second.change_fields(record_norm=move, gap=move, scale=second.scale * grown * _ROOM)
    most = max(second.scale, _SMALL_SECOND * first.scale / first.strength)
    if not paid.scale <= _MOST_SECOND * most:
        raise Unsupported(
            f"{grid} and a minimiser to {distance:.3g} take a second noise of {paid.scale:.3g}, "
            f"more than {_MOST_SECOND:g} times the {most:.3g} of noise=research; use a smaller "
            "radius, more strength, or noise=research"
        )
    require_bits(paid.scale, grid)
    events = _keep_epsilon(plan, kept, paid)
    settings = {**plan.settings, "distance": distance, "second_scale": paid.scale}
    return replace(plan, events=events, noise_scale=events[0].noise_scale, settings=settings), grid


def _keep_epsilon(
    plan: Plan, first: PerturbedObjective, second: Gaussian | GammaNorm
) -> tuple[Event, ...]:
    """Both events, the first one's noise raised by what keeps the epsilon of the plan."""
    relation, delta = plan.guarantee.relation, plan.guarantee.delta
    asked = account(plan.events, delta=delta, relation=relation).epsilon
    scale, step = first.scale, 4.0 * UNIT
    while account((first, second), delta=delta, relation=relation).epsilon > asked:
        first = first.change_fields(scale=scale * (1.0 + step))
        step *= 2.0
        if step > _MOST_EXTRA - 1.0:
            raise Unsupported("rounding takes more than 1 % of the noise; use noise=research")
    return first, second


def _require_certain(spec: ProblemSpec, modulus: float) -> None:
    """``Unsupported`` where a solver could fail, which would speak of the records."""
    if spec.smoothness is None:
        rounded = spec.form is not None and spec.form.round_kink is not None
        other = "mechanism=huberized" if rounded else "mechanism=noisy_gd"
        raise Unsupported(
            f"{spec.loss} has kinks: no solver is certain to find its minimiser on every data set, "
            f"and failing would tell of the records; use {other}, or noise=research"
        )
    if not perturbed_minimiser.always_converges(spec):
        raise Unsupported(
            "no solver is certain to find the minimiser on this set, and failing would tell of the "
            "records; use constraint=l2_ball, box, l1_ball or simplex, mechanism=noisy_gd, or "
            "noise=research"
        )
    if not modulus > 0.0:
        raise Unsupported("the minimiser is not stable without strong convexity: set ridge")


def _require_few_steps(spec: ProblemSpec, modulus: float, tilt: float, distance: float) -> None:
    """``Unsupported`` where the steps that are certain to be enough are too many."""
    if spec.p == 1:
        return  # a bracket is halved
    facts = rounding_bounds.rounding(spec, modulus, tilt)
    count = rounding_bounds.steps(facts, spec.constraint.diameter, distance)
    if count > MOST_STEPS:
        raise Unsupported(
            f"a curvature of {facts.condition:.3g} times the strong convexity can take {count:,} "
            f"steps to the minimiser, more than {MOST_STEPS:,}; use more ridge or "
            "mechanism.strength, mechanism=noisy_gd, or noise=research"
        )


def _slack(p: int) -> float:
    """How much longer than its bound a row that was scaled in floating point may be."""
    return 1.0 + 2.0 * (p + 16.0) * UNIT


def _own_step(first: PerturbedObjective) -> float:
    """The step h of the grid of the linear term."""
    assert first.own_grid is not None
    return math.ldexp(1.0, first.own_grid)


def _largest_tilt(first: PerturbedObjective, p: int) -> float:
    """A 2-norm that no draw of the linear term on its grid exceeds."""
    size = float(p) if first.noise == "gamma_norm" else math.sqrt(p)
    return LARGEST_DRAW * size * first.scale
