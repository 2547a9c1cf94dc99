"""Turn a mechanism's plan into the same plan with noise on a grid."""

from __future__ import annotations

from dataclasses import replace

from dperm_cli.core.errors import Unsupported
from dperm_cli.mechanisms.base import Mechanism, Plan
from dperm_cli.mechanisms.shared.inner_mechanism import describe_inner, inner_plan, name_of
from dperm_cli.privacy.secure_grid import Grid, grid_for, list_noise_events, put_on_grid
from dperm_cli.problem.problem import Loss, ProblemSpec


def secure_plan(
    mechanism: Mechanism, plan: Plan, spec: ProblemSpec, loss: Loss
) -> tuple[Plan, Grid]:
    """The plan of a release whose values and noise lie on a grid, and that grid.

    Scales grow by what rounding adds to the sensitivities, so that the guarantee of the plan holds
    unchanged. Whatever else the plan fixed stays as it is: it is public. ``Unsupported`` where
    the mechanism has no secure form, where its sums would not be exact, and for losses without a
    compiled slope, whose gradients are not made record by record.
    """
    if not mechanism.secure:
        raise Unsupported(f"{name_of(mechanism)} has no secure form; use noise=research")
    if mechanism.plan_on_grid is not None:
        return mechanism.plan_on_grid(spec, plan, loss)
    if loss.code is None:
        raise Unsupported(f"{spec.loss} has no exact sum of gradients; use noise=research")
    before, relation = list_noise_events(plan.events), plan.guarantee.relation
    grid = grid_for(before, 1.001 * spec.n * max(event.record_norm for event in before))
    events = tuple(put_on_grid(event, spec.p, grid, relation) for event in before)
    scales = {old.scale: new.scale for old, new in zip(before, events, strict=True)}
    return replace(plan, events=events, noise_scale=scales[plan.noise_scale]), grid


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
        plan, events=found.events, noise_scale=found.noise_scale, settings=settings, inner=found
    )
    return moved, grid


def secure_channel_plan(plan: Plan) -> Plan:
    """The unchanged plan of a release by local channels, whose answers are discrete already.

    ``Unsupported`` where some are a continuum.
    """
    for event in plan.events:
        if not event.discrete:
            raise Unsupported(
                "answers of the l_2 channel have no secure form; use mechanism.channel=l_inf or "
                "l_1, or noise=research"
            )
    return plan
