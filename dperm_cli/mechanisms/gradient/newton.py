"""Newton's method with two noises: on gradients and on curvature [GHST23]."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, ClassVar, cast

import numpy as np

from dperm_cli.core import progress
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.fields import Auto, Choices, Help, Probability
from dperm_cli.core.symmetric import unpack_symmetric
from dperm_cli.mechanisms.adversary import Adversary, linear_pair
from dperm_cli.mechanisms.base import Mechanism, Output, Plan, Release, Steps, Strength
from dperm_cli.mechanisms.shared.released_bound import ReleasedBound
from dperm_cli.mechanisms.shared.secure_plan import put_sums_on_grid
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Event, Gaussian, GaussianMatrix
from dperm_cli.privacy.gate import Gate
from dperm_cli.privacy.secure_grid import Grid
from dperm_cli.privacy.streams import NoiseStream
from dperm_cli.problem.problem import Loss, ProblemSpec, without_curvature
from dperm_cli.solvers import trust_region
from dperm_cli.views.central import CentralView

CURVATURES = ("matrix", "direction")
OUTPUTS = ("last", "suffix")
MOST_PARAMETERS = 500
STEPS = {"matrix": 30, "direction": 20}
SHARES = {"matrix": 0.1, "direction": 0.25}  # of mu^2, for the second noise
SPREAD = 4.0  # strength over sqrt(p) times the noise: twice the edge of its spectrum
RELATIVE = 0.3  # noise on a direction, over the longest that it can be


@dataclass(frozen=True)
class Newton(Mechanism):
    """theta <- argmin over C of <g, u> + <u, (H + strength I) u> / 2, g and H under noise.

    Algorithm: [GHST23], with a quadratic upper bound H = sum of w(z) x x^T for the Hessian; g is
    the noisy sum of gradients of each of T steps. ``curvature=direction`` adds noise to each
    minimiser, as the paper does: given g, it moves by beta / strength of its longest length at
    most. ``curvature=matrix`` (ours) releases H itself, once, at the centre: the rest is
    post-processing. Guarantee: (epsilon, delta), exact Gaussian composition of both noises; trust:
    central. ``noise_scale`` is that of a gradient, in the unit of the SUM. Shapes: theta [trials,
    p]. Cost: T n p for gradients and n p^2 (direction: T n p^2) for curvature, T p^3, a trial.
    Unsupported: delta = 0, losses with kinks (use ``mechanism=huberized mechanism.inner=newton``),
    a lasso, p > 500.

    Not a choice of ``mechanism=auto``: in 78 cells of logistic loss it was best in 3, all at
    epsilon 0.1, and 2 to 13 times above the best elsewhere.

    >>> from dperm_cli.problem.problem import bare_spec
    >>> from dperm_cli.sets import make_ball
    >>> spec = bare_spec(1000, 1.0, make_ball(1.0, 5), smoothness=0.25)
    >>> round(Newton().plan(spec, Budget(1.0, 1e-6)).noise_scale, 2)
    48.78
    """

    curvature: Annotated[
        str, Choices(*CURVATURES), Help("matrix: released once; direction: noise on every step")
    ] = "matrix"
    steps: Annotated[Steps, Help("auto = 30 noisy gradients (direction: 20 noisy steps)")] = "auto"
    share: Annotated[
        Probability | Auto, Help("of mu^2, for curvature; auto = 0.1 (direction: 0.25)")
    ] = "auto"
    strength: Annotated[
        Strength, Help("added to the curvature, the ridge included; auto: by the noise")
    ] = "auto"
    output: Annotated[
        Output,
        Choices(*OUTPUTS),
        Help("suffix: mean of the last half of the points where gradients were taken"),
    ] = "last"

    by_sums: ClassVar[bool] = True
    secure: ClassVar[bool] = True

    def choose_secure_form(self, budget: Budget) -> Newton:
        """Itself, with a matrix that is released once: a direction is no sum of records."""
        if self.curvature != "matrix":
            raise Unsupported(
                f"curvature={self.curvature} has no secure form: use mechanism.curvature=matrix, "
                "or noise=research"
            )
        return self

    def plan_on_grid(self, spec: ProblemSpec, plan: Plan, loss: Loss) -> tuple[Plan, Grid]:
        """Sums of gradients and the matrix, both exact, on one grid."""
        if len(plan.events) == 1:
            return put_sums_on_grid(plan, spec, loss)
        if loss.code is None:
            words = "has matrices of more than one margin, which have no exact sum"
            raise Unsupported(f"{loss.name} {words}; use mechanism=noisy_gd, or noise=research")
        found, grid = put_sums_on_grid(plan, spec, loss)
        settings = {**found.settings, "curvature_scale": cast(Gaussian, found.events[1]).scale}
        return replace(found, settings=settings), grid

    def check(self, spec: ProblemSpec, budget: Budget) -> None:
        """Smooth losses, few enough parameters, delta > 0."""
        _check_support(spec, budget.delta)

    def events(self, spec: ProblemSpec, scale: float, budget: Budget) -> tuple[Gaussian, ...]:
        """T sums of gradients, and curvature."""
        _check_support(spec, None)
        relation = budget.relation
        first = Gaussian(scale, spec.lipschitz, self._steps, spec.gradient_gap)
        bend = spec.smoothness or 0.0
        if not bend > 0.0:
            return (first,)
        second = self._second_mu(first, relation)
        if self.curvature == "matrix":
            size = bend * math.sqrt(rank(spec))
            moves = Gaussian(1.0, size, gap=math.sqrt(2.0) * size).sensitivity(relation)
            return first, GaussianMatrix(moves / second, size, gap=math.sqrt(2.0) * size)
        strength = self._strength(spec, scale, relation)
        record, gap = bend / (strength + bend), bend / strength
        moves = Gaussian(1.0, record, gap=gap).sensitivity(relation)
        noise = moves * math.sqrt(self._steps) / second
        return first, Gaussian(noise, record, self._steps, gap)

    def settings(self, spec: ProblemSpec, events: Any, budget: Budget) -> dict[str, Any]:
        """The curvature's noise and what is added to it."""
        return {
            "curvature": self.curvature if len(events) > 1 else "none",
            "curvature_scale": events[1].scale if len(events) > 1 else 0.0,
            "strength": self._strength(spec, events[0].scale, budget.relation),
            "share": self._share if len(events) > 1 else 0.0,
            "output": self.output,
        }

    def release(self, view: CentralView, plan: Plan, gate: Gate) -> Release:
        """All trials side by side."""
        spec, facts = view.spec, plan.settings
        constraint, penalty = spec.constraint, spec.penalty
        first, second = plan.events[0], plan.events[1] if len(plan.events) > 1 else None
        noise = gate.stream(first, spec.p)
        theta = np.tile(constraint.centre(), (gate.trials, 1))
        move = _choose_step(view, facts, second, gate, theta)
        start = plan.steps // 2 if facts["output"] == "suffix" else plan.steps
        total, shown = np.zeros_like(theta), ReleasedBound(constraint, gate.trials)
        for step in range(plan.steps):
            slope = noise.add(view.gradient_sum(theta), step) + penalty.subgradient(theta)
            if step >= start:
                total += theta
                shown.add(theta, slope)
            theta = constraint.project(theta + move(slope, theta, step))
            progress.report("newton", step + 1, plan.steps)
        if start == plan.steps:
            return Release(theta)
        mean = constraint.project(total / (plan.steps - start))
        return Release(mean, shown.columns(plan.noise_scale, view.gradient_error))

    def adversary(self, budget: Budget) -> Adversary:
        """A linear loss has no curvature: one step is minus a noisy gradient, under a ridge."""
        chosen = replace(self, steps=1, strength="auto")
        first, second = linear_pair(budget.relation, ridge=1.0)
        return Adversary(first, second, chosen, kind="gaussian", floor=0.8)

    @property
    def _steps(self) -> int:
        return STEPS[self.curvature] if self.steps == "auto" else int(self.steps)

    @property
    def _share(self) -> float:
        return SHARES[self.curvature] if self.share == "auto" else float(self.share)

    def _second_mu(self, first: Gaussian, relation: str) -> float:
        """mu of the curvature's noise: the share of what both have."""
        mu = math.sqrt(self._steps) * first.sensitivity(relation) / first.scale
        return mu * math.sqrt(self._share / (1.0 - self._share))

    def _strength(self, spec: ProblemSpec, scale: float, relation: str) -> float:
        """What is added to H in all, the ridge of the problem included."""
        first = Gaussian(scale, spec.lipschitz, self._steps, spec.gradient_gap)
        bend, least = spec.smoothness or 0.0, spec.penalty.ridge
        second = self._second_mu(first, relation)
        # T steps of gradient noise alone cross the set, where H is small
        wander = scale * math.sqrt(spec.p * self._steps) / spec.constraint.diameter
        if self.strength != "auto":
            wanted = float(self.strength)
        elif not bend > 0.0:
            wanted = wander
        elif self.curvature == "matrix":
            size = bend * math.sqrt(rank(spec))
            moves = Gaussian(1.0, size, gap=math.sqrt(2.0) * size).sensitivity(relation)
            wanted = max(wander, SPREAD * math.sqrt(spec.p) * moves / second)
        else:
            # noise of at most RELATIVE of the longest step, and of half an error of H's own norm
            wide = bend * math.sqrt(spec.p * self._steps) / second
            wanted = max(wander, wide / RELATIVE, math.sqrt(wide * spec.n * bend))
        if self.curvature == "direction":
            wanted = max(wanted, bend)
        return max(wanted, least)


def rank(spec: ProblemSpec) -> int:
    """Of one record's Hessian: 1 for a loss of the margin."""
    return max(spec.bounds.classes - 1, 1) if spec.task == "multiclass" else 1


class Spectral:
    """H + strength I of every trial by its eigenvalues [trials, p] and vectors [trials, p, p]."""

    def __init__(self, matrix: np.ndarray, strength: float) -> None:
        values, self.basis = np.linalg.eigh(matrix)
        self.values = np.maximum(values, 0.0) + strength

    def minimiser(self, constraint: Any, slope: np.ndarray, at: np.ndarray) -> np.ndarray:
        """argmin over the set of the model around ``at``, less ``at``."""
        if constraint.is_ball:
            return trust_region.minimise_in_ball(
                self.values, self.basis, slope, at, constraint.radius
            )
        return trust_region.minimise_in_set(self.values, self.basis, slope, at, constraint)


# From a gradient [trials, p] and the point that it was taken at to the move, at a step's number.
Step = Callable[[np.ndarray, np.ndarray, int], np.ndarray]


def _step_by_public_matrix(constraint: Any, matrix: np.ndarray, strength: float) -> Step:
    """Steps by a matrix that was released, or is public: they are post-processing."""
    model = Spectral(matrix, strength)
    return lambda slope, at, step: model.minimiser(constraint, slope, at)


def _step_by_hidden_matrix(view: CentralView, strength: float, noise: NoiseStream) -> Step:
    """Steps by H at the point itself, each released with noise in units of its longest length.

    On a ball the minimiser of the model, which is no longer than min(D, |slope| / strength);
    elsewhere -(H + strength I)^-1 slope, which is no longer than |slope| / strength.
    """
    constraint = view.spec.constraint

    def move(slope: np.ndarray, at: np.ndarray, step: int) -> np.ndarray:
        model = Spectral(view.curvature_sum(at), strength)
        longest = np.linalg.norm(slope, axis=1)[:, None] / strength
        if constraint.is_ball:
            longest = np.minimum(longest, constraint.diameter)
            found = model.minimiser(constraint, slope, at)
        else:
            found = trust_region.minimise_unconstrained(model.values, model.basis, slope)
        return longest * noise.add(found / longest, step)

    return move


def _choose_step(
    view: CentralView, facts: Any, second: Event | None, gate: Gate, start: np.ndarray
) -> Step:
    spec, strength = view.spec, facts["strength"]
    if second is None:
        flat = np.zeros((gate.trials, spec.p, spec.p))
        return _step_by_public_matrix(spec.constraint, flat, strength)
    matrix = facts["curvature"] == "matrix"
    noise = gate.stream(second, spec.p * (spec.p + 1) // 2 if matrix else spec.p)
    if not matrix:
        return _step_by_hidden_matrix(view, strength, noise)
    triangle = view.packed_curvature(start[0])
    noisy = noise.add(np.tile(triangle, (gate.trials, 1)), 0)
    return _step_by_public_matrix(spec.constraint, unpack_symmetric(noisy, spec.p), strength)


def _check_support(spec: ProblemSpec, delta: float | None) -> None:
    if delta is not None and not delta > 0.0:
        raise Unsupported("newton adds Gaussian noise and needs delta > 0")
    if spec.smoothness is None:
        reason = f"{spec.loss} has kinks and no curvature"
        reason = f"{reason}; use mechanism=huberized mechanism.inner=newton"
        raise Unsupported(without_curvature(spec, reason))
    if spec.lasso > 0.0:
        raise Unsupported("newton needs a smooth objective, and a lasso has kinks")
    if spec.p > MOST_PARAMETERS:
        raise Unsupported(
            f"{spec.p} parameters: a matrix of {spec.p**2:.2g} entries and {spec.p**3:.2g} "
            f"operations a step; at most {MOST_PARAMETERS}, use noisy_gd"
        )
