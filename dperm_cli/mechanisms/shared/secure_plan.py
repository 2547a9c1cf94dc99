"""Turn a mechanism's plan into the same plan with noise on a grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dperm_cli.core.errors import Unsupported
from dperm_cli.mechanisms.base import Mechanism, Plan
from dperm_cli.mechanisms.shared.inner_mechanism import describe_inner, inner_plan, name_of
from dperm_cli.mechanisms.shared.nearest_secure import name_nearest
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Channel, NoiseEvent
from dperm_cli.privacy.secure_grid import Grid, grid_for, list_noise_events, put_on_grid
from dperm_cli.problem.problem import Loss, ProblemSpec
from dperm_cli.views.grid import require_exact_sums

ERROR_UNIT = 2.0**-50  # eight times the unit roundoff of float64


def make_secure_plan(
    mechanism: Mechanism, spec: ProblemSpec, budget: Budget, loss: Loss
) -> tuple[Plan, Grid]:
    """The plan of a mechanism in its secure form, with noise on a grid, and that grid.

    Args:
        mechanism: Which is to release.
        spec: Public facts of the problem.
        budget: What may be spent.
        loss: Of the problem.

    Raises:
        Unsupported: From public facts alone (``secure_plan``).
    """
    require_secure(mechanism)
    plan = mechanism.choose_secure_form(budget).plan(spec, budget)
    return secure_plan(mechanism, plan, spec, loss)


def require_secure(mechanism: Mechanism) -> None:
    """``Unsupported`` for a mechanism without a secure form."""
    if not mechanism.secure:
        name = name_of(mechanism)
        raise Unsupported(f"{name} has no secure form; {name_nearest(name)}")


def secure_plan(
    mechanism: Mechanism, plan: Plan, spec: ProblemSpec, loss: Loss
) -> tuple[Plan, Grid]:
    """A plan whose values and noise lie on a grid, and that grid.

    Scales grow by what rounding adds to the sensitivities, so that the guarantee of the plan holds
    unchanged. Whatever else the plan fixed stays as it is: it is public. ``Unsupported`` where
    the mechanism or an event has no secure form, where its sums would not be exact, and for losses
    whose gradients are not made record by record.
    """
    require_secure(mechanism)
    own = mechanism.plan_on_grid
    found = None if own is None else own(spec, plan, loss)
    if found is not None:
        return found
    return put_sums_on_grid(plan, spec, loss)


def put_sums_on_grid(
    plan: Plan, spec: ProblemSpec, loss: Loss, grid: Grid | None = None
) -> tuple[Plan, Grid]:
    """The plan of a mechanism that releases noisy sums of gradients, with both on a grid.

    Args:
        plan: the plan in real numbers.
        spec: public facts of the problem.
        loss: of the problem.
        grid: of values and noise; None for the one that fits the plan's events.

    Raises:
        Unsupported: as ``secure_plan``.
    """
    require_exact_sums(loss)
    before, relation = list_noise_events(plan.events), plan.guarantee.relation
    own = grid or grid_for(before, reach_of_sums(before, spec))
    error = bound_gradient_error(spec, loss)
    try:
        events = tuple(put_on_grid(event, spec.p, own, relation, error) for event in before)
    except Unsupported:
        if grid is not None or len(before) == 1:
            raise
        for event in before:  # the reason is one of them, or that all have one grid
            alone = grid_for([event], reach_of_sums([event], spec))
            put_on_grid(event, spec.p, alone, relation, error)
        raise Unsupported(say_sizes(before, spec)) from None
    scales = {old.scale: new.scale for old, new in zip(before, events, strict=True)}
    return replace(plan, events=events, noise_scale=scales[plan.noise_scale]), own


def say_sizes(events: Sequence[NoiseEvent], spec: ProblemSpec) -> str:
    """Why values that fit a grid each fit none together, and what brings their sizes together."""
    sizes = " and ".join(f"{event.record_norm:.3g}" for event in events)
    bounds = {"dataset.row_bound": spec.bounds.row, "dataset.target_bound": spec.bounds.target}
    far = [f"{key} ({value:.3g})" for key, value in bounds.items() if not 0.1 <= value <= 10.0]
    way = f"scale the records so that {' and '.join(far)} is near 1, or " if far else ""
    return f"no grid fits values that a record moves by up to {sizes}; {way}use noise=research"


def reach_of_sums(events: Sequence[NoiseEvent], spec: ProblemSpec) -> float:
    """More than the norm of any sum of records that the events are about."""
    return 1.001 * spec.n * max(event.record_norm for event in events)


def bound_gradient_error(spec: ProblemSpec, loss: Loss) -> float | None:
    """How far one record's computed gradient is from the exact one, at most; None where unknown.

    It is known of a smooth loss of one margin (Lemma 4 of the page on secure noise).
    """
    if loss.code is None or spec.smoothness is None:
        return None
    return ERROR_UNIT * (spec.p + 32.0) * (spec.lipschitz + spec.smoothness * spec.bounds.radius)


def secure_inner_plan(
    inner: Mechanism, plan: Plan, spec: ProblemSpec, loss: Loss
) -> tuple[Plan, Grid]:
    """The plan of a mechanism that adds no event to its ``inner`` one's, on the inner one's grid.

    Args:
        inner: the mechanism whose plan ``plan.inner`` is.
        plan: the plan of the mechanism around it.
        spec: public facts of the inner mechanism's problem.
        loss: its loss.
    """
    found, grid = secure_plan(inner, inner_plan(plan, plan.events), spec, loss)
    settings = {**plan.settings, "inner": describe_inner(inner, found)}
    moved = replace(
        plan, events=found.events, noise_scale=found.noise_scale, settings=settings, inner=found,
        certificate=found.certificate, guarantee=found.guarantee,
    )  # fmt: skip
    return moved, grid


def secure_channel_plan(plan: Plan) -> Plan:
    """The unchanged plan of a release by local channels, whose answers are discrete already.

    ``Unsupported`` for what is no channel that is known.
    """
    for event in plan.events:
        if isinstance(event, Channel) and event.shape and not event.discrete:
            raise Unsupported(
                f"answers of the {event.shape} channel have no secure form; use "
                "mechanism.channel=l_2, or noise=research"
            )
        if not event.discrete:
            raise Unsupported(f"{type(event).__name__} has no secure form; use noise=research")
    return plan
