"""Noisy full-gradient descent [BST14, Note 2 after Thm 2.1]."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, Any, ClassVar

import numpy as np

from dperm_cli.core import progress
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.fields import Auto, Choices, Help, Range
from dperm_cli.mechanisms.adversary import Adversary, linear_pair
from dperm_cli.mechanisms.base import Mechanism, Plan, Release, Steps, StepSize
from dperm_cli.mechanisms.shared.dual_averaging import DualAveraging
from dperm_cli.mechanisms.shared.predicted_risk import (
    LEAST_SHARE,
    predict_from_noise,
    relative_noise,
    typical_reach,
)
from dperm_cli.mechanisms.shared.released_bound import ReleasedBound
from dperm_cli.mechanisms.shared.row_span import RowSpanView, can_reduce
from dperm_cli.mechanisms.shared.step_schedule import ScheduleFacts, StepSchedule
from dperm_cli.privacy.accounting.calibrate import Calibration
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Gaussian
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.problem import ProblemSpec
from dperm_cli.sets import make_ball
from dperm_cli.views.central import CentralView

STEPS = 200
MOMENTUM = 0.9
# dual averaging's risk over that of an exact minimiser of the same noise: the least, and what it is
# on small sets in few columns, times p^-COLUMNS_POWER and reach^-REACH_POWER
FORESEEN, FORESEEN_FEW, COLUMNS_POWER, REACH_POWER = 0.9, 3.2, 0.5, 0.3
ARRIVAL_NOISE = 0.0015  # relative noise below which 200 steps are too few to come down to it


@dataclass(frozen=True)
class NoisyGd(Mechanism):
    """theta <- Project(theta - eta [sum of all n gradients + N(0, sigma^2 I)]), with momentum.

    Algorithm: [BST14, Note 2 after Thm 2.1]; T = 200 full gradients. Guarantee: (epsilon, delta)
    with sigma = sensitivity * sqrt(T) / mu(epsilon, delta), exact for T Gaussian releases;
    sensitivity G under replace_one (G <= 2 L bounds the difference of two records' gradients at a
    point of the set) or L under add_remove; trust: central. ``noise_scale`` is sigma, in the unit
    of the SUM of gradients. Shapes: theta [trials, p]. Cost: T n p a trial.
    Unsupported: delta = 0; ``calibration=paper`` (the paper states no sigma for full gradients).

    ``step_size`` is the time one gradient is followed for, in units of 1 / gradient of the sum.
    ``auto`` is dual averaging where the loss is smooth and there is no lasso (``dual_averaging``),
    and adapts the step to the released gradients elsewhere (``step_schedule``). ``theory`` is the
    constant r / sqrt(T (n^2 L^2 + p sigma^2)) of the bound in docs/proofs/noisy_gd.md, r the
    distance from the centre of the set to its farthest point. With ``momentum`` m a step moves by
    (1 - m) of it at once and by the rest over the steps after.
    ``averaging=auto`` is ``uniform`` for ``theory``, ``last`` for a number and the schedule's
    choice for ``auto``.

    >>> from dperm_cli.problem.problem import bare_spec
    >>> from dperm_cli.sets import make_ball
    >>> spec = bare_spec(1000, 1.0, make_ball(1.0, 5))
    >>> round(NoisyGd().plan(spec, Budget(1.0, 1e-6)).noise_scale, 2)
    119.49
    """

    calibration: Calibration = "tight"
    steps: Annotated[Steps, Range(1, 10**7), Help("noisy full gradients; auto = 200")] = "auto"
    step_size: Annotated[StepSize, Help("for the sum; auto: by the released gradients")] = "auto"
    averaging: Annotated[
        str, Choices("auto", "last", "uniform", "suffix"), Help("suffix: the last half")
    ] = "auto"
    momentum: Annotated[
        float | Auto,
        Range(0, below=1),
        Help("auto = 0.9 (theory = 0)"),
    ] = "auto"

    by_sums: ClassVar[bool] = True
    secure: ClassVar[bool] = True

    def check(self, spec: ProblemSpec, budget: Budget) -> None:
        """Gaussian noise needs delta > 0; the paper has no scale for full gradients."""
        if not budget.delta > 0:
            raise Unsupported("noisy_gd adds Gaussian noise and needs delta > 0")
        if self.calibration == "paper":
            raise Unsupported("the paper states no noise scale for full gradients")

    def events(self, spec: ProblemSpec, scale: float, budget: Budget) -> tuple[Gaussian]:
        """T sums of all gradients plus N(0, scale^2 I)."""
        return (Gaussian(scale, spec.lipschitz, self._steps(), gap=spec.gradient_gap),)

    def release(self, view: CentralView, plan: Plan, gate: Gate) -> Release:
        """Run the descent, all trials at once; a mean of queried points comes with its bounds."""
        return descend(view, plan, gate)

    def predict_risk(self, spec: ProblemSpec, plan: Plan) -> float:
        """That of the noise on the mean of all gradients."""
        noise = plan.noise_scale / math.sqrt(plan.steps)
        found = predict_from_noise(spec, noise)
        if not is_averaged(spec):
            return found
        early = max(1.0, ARRIVAL_NOISE / max(relative_noise(spec, noise), LEAST_SHARE))
        return foresee_share(spec.p, typical_reach(spec)) * early * found

    def adversary(self, budget: Budget) -> Adversary:
        """Opposite gradients and no momentum: theta_T is minus the sum of T noisy gradients.

        That sum is N(0, T sigma^2) shifted by T sensitivities: exactly the mu that is claimed.
        """
        chosen = replace(self, steps=10, step_size=1.0, averaging="last", momentum=0.0)
        first, second = linear_pair(budget.relation)
        return Adversary(first, second, chosen, kind="gaussian", floor=0.8)

    def _steps(self) -> int:
        return STEPS if self.steps == "auto" else int(self.steps)

    def settings(
        self, spec: ProblemSpec, events: tuple[Gaussian], budget: Budget
    ) -> dict[str, Any]:
        """Step size, averaging and momentum."""
        scale, steps = events[0].scale, events[0].count
        theory, auto = self.step_size == "theory", self.step_size == "auto"
        step_size: Any = theory_step(spec, scale, steps) if theory else self.step_size
        averaging = "uniform" if theory else "adaptive" if auto else "last"
        momentum = 0.0 if theory else MOMENTUM
        return {
            "step_size": step_size if auto else float(step_size),
            "averaging": averaging if self.averaging == "auto" else self.averaging,
            "momentum": momentum if self.momentum == "auto" else float(self.momentum),
        }


def foresee_share(p: int, reach: float) -> float:
    """Dual averaging's risk over that of an exact minimiser of the same noise.

    Args:
        p: the number of columns.
        reach: the largest margin of the set, in units of those at which the loss bends.

    Returns:
        A factor: small sets in few columns are where the exact minimiser is far ahead.
    """
    few = FORESEEN_FEW * p**-COLUMNS_POWER * reach**-REACH_POWER
    return max(FORESEEN, few)


def descend(view: CentralView, plan: Plan, gate: Gate) -> Release:
    """Projected, noisy, accelerated descent, and the output that the plan takes of it, [trials, p].

    ``uniform`` and ``suffix`` are means of the points whose gradients were taken, all and those
    of the last half; ``adaptive`` is the schedule's own choice, ``last`` with a constant step.
    The means come with bounds on their risk that released gradients show (``released_bound``).
    Gradients are asked for at points of the set only: there, and not beyond, L bounds them.
    Where the rows span little of the space, all this happens in coordinates of that span, with the
    same law of each output (``row_span``).
    """
    spec = view.spec
    noise = gate.stream(plan.events[0], spec.p)
    few = gate.can_run_compiled and can_reduce(spec, plan, spec.n, extra=plan.steps)
    turned = RowSpanView(view, noise, plan.steps) if few else None
    records, noise, body = (
        (turned, turned, make_ball(spec.constraint.radius, turned.dim))
        if turned
        else (view, noise, spec.constraint)
    )
    project, momentum, penalty = body.project, plan.settings["momentum"], spec.penalty
    theta = np.tile(body.centre(), (gate.trials, 1))
    averaging = plan.settings["averaging"]
    first = {"uniform": 0, "suffix": plan.steps // 2}.get(averaging, plan.steps)
    query, total, shown = theta, np.zeros_like(theta), ReleasedBound(body, gate.trials)
    facts = _schedule_facts(spec, plan)
    smooth = is_averaged(spec)
    dual = DualAveraging(facts, theta, momentum, project) if facts and smooth else None
    pace = StepSchedule(facts, theta, momentum) if facts and not smooth else None
    schedule = dual or pace
    for step in range(plan.steps):
        noisy = noise.add(records.gradient_sum(query), step)
        # the regulariser depends on no record: it is added to what was released
        noisy = noisy + penalty.subgradient(query)
        if step >= first:
            total += query
            shown.add(query, noisy)
        if dual:
            query = theta = dual.move(noisy)
        else:
            if pace:
                eta = pace.choose_step(noisy, query)
            else:
                eta = np.broadcast_to(plan.settings["step_size"], gate.trials)
            moved = project(query - (1.0 - momentum) * eta[:, None] * noisy)
            query, theta = project(moved + momentum * (moved - theta)), moved
            if pace:
                pace.observe(theta)
        progress.report("noisy_gd", step + 1, plan.steps)
    bounds: dict[str, Any] = {}
    if first < plan.steps:
        theta = total / (plan.steps - first)
        bounds = shown.columns(plan.noise_scale, view.gradient_error)
    elif averaging == "adaptive" and schedule:
        theta = schedule.output
    return Release(turned.out(theta) if turned else theta, bounds)


def theory_step(spec: ProblemSpec, scale: float, steps: int) -> float:
    """r / sqrt(T (n^2 L^2 + p sigma^2)), L with the regulariser: minimises ``theory_bound``.

    r is the largest distance of a point of the set from its centre, where the descent starts.
    """
    return spec.constraint.outer_radius / math.sqrt(steps * _second_moment(spec, scale))


def theory_bound(spec: ProblemSpec, scale: float, steps: int) -> float:
    """r sqrt((n^2 L^2 + p sigma^2) / T) >= E excess risk of ``step_size=theory``."""
    return spec.constraint.outer_radius * math.sqrt(_second_moment(spec, scale) / steps)


def _second_moment(spec: ProblemSpec, scale: float) -> float:
    return (spec.n * spec.lipschitz_total) ** 2 + spec.p * scale**2


def is_averaged(spec: ProblemSpec) -> bool:
    """Whether ``step_size=auto`` is dual averaging: for a smooth loss without a lasso."""
    return bool(spec.smoothness) and spec.lasso == 0


def _schedule_facts(spec: ProblemSpec, plan: Plan) -> ScheduleFacts | None:
    """What an adaptive schedule works from, or None for a constant step."""
    if not isinstance(plan.settings["step_size"], str):
        return None
    assert spec.form is not None
    reach = float(np.linalg.norm(spec.constraint.centre()))
    gradient = spec.form.lipschitz(replace(spec.bounds, radius=reach))
    smooth = spec.smoothness or None  # a linear loss has no curvature to go by
    # a kink is felt over a range of margins of the size of the targets, or in all directions
    # over a range of the size of the rows
    location = spec.task == "location"
    rate = spec.p / spec.row_bound if location else spec.row_bound / spec.target_bound
    curvature = spec.lipschitz * rate if smooth is None else smooth
    # the lasso's kinks are felt over what a coordinate of a spread-out point is
    kinks = spec.lasso * math.sqrt(spec.p) / spec.constraint.radius
    return ScheduleFacts(
        steps=plan.steps,
        p=spec.p,
        noise=plan.noise_scale,
        diameter=spec.constraint.diameter,
        curvature=spec.n * (curvature + spec.p * (spec.ridge + kinks)),
        largest_step=math.inf if smooth is None else 1.0 / (spec.n * (smooth + spec.ridge)),
        gradient_bound=spec.n * (gradient + spec.regulariser.lipschitz(reach, spec.p)),
        is_ball=spec.constraint.is_ball,
    )
