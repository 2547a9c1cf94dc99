"""``constraint.radius=auto``: the radius of a ball from public facts, and why it is that one.

A quadratic loss and a mechanism whose noise does not grow with the set need no radius. Their ball
is so wide that it plays no part: beyond n B / b lies only what rows of less curvature in all than
one record's could ask for. A loss whose slopes are bounded whatever the margin costs little more
noise on a wide ball; measured, margins up to 10 lose next to nothing where the noise is small. A
ball that is wider still is taken where the noise is predicted to cost next to nothing there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dperm_cli.core import registry
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError

AUTO = "auto"
KEY = "constraint.radius"
# over B / b: no fewer, where there are few records and noise alone makes a solution long
LEAST_FREE_RADIUS = 1000.0
# noise over signal up to which the wide ball was within 5 % of the best in every measured cell
SMALL_NOISE = 0.01
# how many times wider a ball may be, and the predicted risk per record, over that of a slope, up
# to which it is
WIDER = (4.0, 2.0)
LARGEST_RISK = 0.002


@dataclass(frozen=True)
class PublicRadius:
    """A radius in the set's own norm, and the rule that it follows from."""

    value: float
    reason: str


def is_auto(config: Mapping[str, Any]) -> bool:
    """Whether the radius of a set's configuration follows from public facts."""
    return config.get("radius") == AUTO


def has_rule(cell: Any) -> bool:
    """Whether there is a rule for a cell's set, loss and mechanism."""
    try:
        _refuse_without_rule(cell)
    except InputError:
        return False
    return True


def check_rule(cell: Any) -> None:
    """InputError where a cell asks for a rule, and there is none for its set, loss or mechanism."""
    if is_auto(cell.constraint_config):
        _refuse_without_rule(cell)


def _refuse_without_rule(cell: Any) -> None:
    name, loss = cell.constraint_config["name"], cell.loss
    if registry.load("constraint", name).radius_around is None:
        known = " and ".join(registry.list_offering("constraint", "radius_around"))
        raise InputError(KEY, AUTO, f"has no rule for {name}: give a number, or take {known}")
    if cell.kernel is not None or cell.mechanism.trust == "local":
        where = "a kernel" if cell.kernel is not None else "local mechanisms"
        raise InputError(KEY, AUTO, f"has no rule for {where}: give a number")
    if loss.quadratic and not cell.mechanism.free_of_radius:
        names = registry.names("mechanism")
        free = [n for n in names if registry.load("mechanism", n).free_of_radius]
        raise InputError(
            KEY, AUTO, f"has no rule for loss={loss.name} with mechanism={cell.mechanism_name}: "
            f"give a number, or take mechanism={' or '.join(free)}, which needs none"
        )  # fmt: skip
    if not loss.quadratic and loss.wide_margin is None:
        rules = "; ".join(registry.list_offering("loss", "wide_margin"))
        raise InputError(
            KEY, AUTO, f"has no rule for loss={loss.name}: give a number; {rules} has one"
        )


def resolve_radius(cell: Any, facts: Any) -> PublicRadius:
    """The radius of a cell's set.

    Args:
        cell: A cell that ``check_rule`` lets pass.
        facts: The ``PublicFacts`` of its data.

    Raises:
        InputError: as ``check_rule``.
    """
    check_rule(cell)
    if facts.blocks:  # the set holds that of each candidate for the scaling
        each = [resolve_radius(cell, facts.of_block(block)) for block in facts.blocks]
        return max(each, key=lambda one: one.value)
    n = facts.n if cell.population is None else cell.population
    if cell.loss.quadratic:
        target = cell.loss.slope_bound(0.0, facts.target_bound) or 1.0
        reach = max(float(n), LEAST_FREE_RADIUS) * target / facts.row_bound
        around = registry.load("constraint", cell.constraint_config["name"]).radius_around
        radius = around(reach, cell.loss.dimension(facts))
        return PublicRadius(radius, f"{cell.mechanism_name} needs no radius: this ball is so wide "
                            "that it plays no part")  # fmt: skip
    noise, p = _find_noise(cell, facts, n), cell.loss.dimension(facts)
    margin = _find_margin(cell.loss.wide_margin, noise, p)
    words = f"margins up to {margin:g}: the slopes of {cell.loss.name} are bounded on any ball"
    if margin > cell.loss.wide_margin:
        words += (
            f", and with noise over signal of {noise:.2g} one as wide is predicted to cost at most "
            f"{LARGEST_RISK:g} a record"
        )
    elif noise <= SMALL_NOISE:
        words += f", and noise over signal is {noise:.2g}, at most {SMALL_NOISE:g}"
    else:
        words += (
            f"; noise over signal is {noise:.2g}, above {SMALL_NOISE:g}: a smaller ball may have "
            "less risk, and a private choice costs more than it gains"
        )
    return PublicRadius(margin / facts.row_bound, words)


def _find_margin(least: float, noise: float, p: int) -> float:
    """The largest margin whose noise is predicted to cost next to nothing, at least ``least``."""
    # here, since a configuration is checked before what computes is imported
    from dperm_cli.mechanisms.shared.predicted_risk import predict_share

    margins = (least * factor for factor in WIDER)
    fits = (margin for margin in margins if predict_share(noise, p, margin) <= LARGEST_RISK)
    return next(fits, least)


def _find_noise(cell: Any, facts: Any, n: int) -> float:
    """x: the norm of the noise on one sum of gradients over n times the bound on one."""
    # here, since a configuration is checked before what computes is imported
    from dperm_cli.privacy.accounting import calibrate
    from dperm_cli.runner.cells.cell_budget import delta_of

    moved = 2.0 if cell.relation == "replace_one" else 1.0
    p = cell.loss.dimension(facts)
    pure = cell.privacy == "pure" or cell.delta == 0.0 or "approx" not in cell.mechanism.guarantees
    if pure:
        return moved * math.sqrt(p * (p + 1.0)) / (n * cell.epsilon)
    delta = delta_of(cell.delta, n)
    return moved * math.sqrt(p) / (n * calibrate.mu(cell.epsilon, delta))
