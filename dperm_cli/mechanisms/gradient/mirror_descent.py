"""Noisy mirror descent with full gradients [TTZ14]."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, Any, ClassVar

import numpy as np

from dperm_cli.core import progress
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.fields import Help
from dperm_cli.mechanisms.adversary import Adversary, linear_pair
from dperm_cli.mechanisms.base import Mechanism, Output, Plan, Release, Steps, StepSize
from dperm_cli.mechanisms.shared import mirror_maps
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Gaussian
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.problem import ProblemSpec
from dperm_cli.views.central import CentralView

STEPS = 200  # of step_size=auto
FEWEST, MOST = 50, 1000  # steps that step_size=theory asks for
_ENOUGH = 2.0  # times the steps from which on the bound is the noise's own, or nearly


@dataclass(frozen=True)
class MirrorDescent(Mechanism):
    """theta <- argmin over C of a <gradient + N(0, scale^2 I), x> + B(x, theta), T times.

    Algorithm: [TTZ14, Alg. 1]. The map is the relative entropy of weights on the vertices where
    the set has a short list of them (L1 ball, simplex, polytope), and |x|_q^2 / (2 (q - 1)) on the
    ball of a power 1 < q <= 2. Guarantee: (epsilon, delta), exact: T Gaussian releases of the sum
    of gradients of sensitivity G under replace_one (G <= 2 L bounds the difference of two records'
    gradients) or L under add_remove; trust: central. ``noise_scale`` is in the unit of the sum of
    gradients. Shapes: theta [trials, p]. Cost: T full gradients. Unsupported: delta = 0; sets
    without a map.

    ``step_size=theory`` makes the bound of docs/proofs/mirror_descent.md, Theorem 2, least, for
    smooth losses and others; ``auto`` does so with smaller shares of the worst curvature and slope,
    which suits data that are not the worst. ``steps=auto`` is 200, with ``theory`` what the bound
    asks for. ``output`` averages the points that the theorem is about, or takes the last one, of
    which nothing is proved.

    Not a choice of ``mechanism=auto``: from epsilon 3 on its risk falls no more with the noise, as
    its steps suit the worst data. ``noisy_gd`` and ``objective_perturbation`` serve the same sets.

    >>> from dperm_cli.problem.problem import bare_spec
    >>> from dperm_cli.sets import make_ball
    >>> spec = bare_spec(1000, 1.0, make_ball(1.0, 5))
    >>> MirrorDescent().plan(spec, Budget(1.0, 1e-6)).settings["map"]
    'power'
    """

    steps: Annotated[Steps, Help("auto = 200 noisy gradients (theory = from the bound)")] = "auto"
    step_size: Annotated[StepSize, Help("in the map's unit; theory = least risk bound")] = "auto"
    output: Output = "average"

    by_sums: ClassVar[bool] = True
    secure: ClassVar[bool] = True

    def check(self, spec: ProblemSpec, budget: Budget) -> None:
        """Gaussian noise needs delta > 0, and the set a map."""
        if not budget.delta > 0:
            raise Unsupported(
                "mirror_descent adds Gaussian noise and needs delta > 0; for delta = 0 use "
                "mechanism=frank_wolfe"
            )
        mirror_maps.choose_map(spec.constraint)

    def events(self, spec: ProblemSpec, scale: float, budget: Budget) -> tuple[Gaussian]:
        """T sums of all gradients plus N(0, scale^2 I)."""
        if self.steps == "auto" and self.step_size == "theory" and math.isinf(budget.epsilon):
            raise Unsupported("steps=auto is chosen for a budget: give epsilon, or the steps")
        return (_event(spec, scale, self._steps(spec, budget)),)

    def settings(
        self, spec: ProblemSpec, events: tuple[Gaussian], budget: Budget
    ) -> dict[str, Any]:
        """The step size and the map."""
        mirror, steps = mirror_maps.choose_map(spec.constraint), events[0].count
        facts = mirror.facts(spec, events[0].scale)
        _, size, smooth = facts.step(steps)
        theory, auto = self.step_size == "theory", self.step_size == "auto"
        size = size if theory else facts.long_step(steps) if auto else float(self.step_size)
        return {
            "mirror_step": size,
            "smooth_step": smooth and theory,
            "output": self.output,
            **mirror.public(spec),
        }

    def release(self, view: CentralView, plan: Plan, gate: Gate) -> Release:
        """Run the descent, all trials at once."""
        spec, penalty = view.spec, view.spec.penalty
        noise = gate.stream(plan.events[0], spec.p)
        mirror, size = mirror_maps.choose_map(spec.constraint), plan.settings["mirror_step"]
        state = np.tile(mirror.start(), (gate.trials, 1))
        theta = mirror.point(state)
        total = np.zeros_like(theta)
        for step in range(plan.steps):
            # the regulariser depends on no record: it is added to what was released
            noisy = noise.add(view.gradient_sum(theta), step) + penalty.subgradient(theta)
            before, state = theta, mirror.move(state, noisy, size)
            theta = mirror.point(state)
            total += theta if plan.settings["smooth_step"] else before
            progress.report("mirror_descent", step + 1, plan.steps)
        return Release(total / plan.steps if plan.settings["output"] == "average" else theta)

    def adversary(self, budget: Budget) -> Adversary:
        """Opposite gradients in a ball: the last point is minus the sum of the noisy gradients.

        That sum is N(0, T sigma^2) shifted by T sensitivities: exactly the mu that is claimed.
        """
        chosen = replace(self, steps=10, step_size=1.0, output="last")
        first, second = linear_pair(budget.relation)
        return Adversary(first, second, chosen, kind="gaussian", floor=0.8)

    def _steps(self, spec: ProblemSpec, budget: Budget) -> int:
        """From so many steps on, the bound is nearly that of infinitely many."""
        if self.steps != "auto":
            return int(self.steps)
        if self.step_size != "theory":
            return STEPS
        mu = calibrate.mu(budget.epsilon, budget.delta)
        per_step = _event(spec, 1.0, 1).sensitivity(budget.relation) / mu
        facts = mirror_maps.choose_map(spec.constraint).facts(spec, per_step)
        needed = (facts.second - facts.noise) / facts.noise
        if facts.curvature is not None:
            needed = 2.0 * facts.curvature * math.sqrt(facts.distance / facts.noise)
        return min(MOST, max(FEWEST, math.ceil(_ENOUGH * needed)))


def _event(spec: ProblemSpec, scale: float, steps: int) -> Gaussian:
    return Gaussian(scale, spec.lipschitz, steps, gap=spec.gradient_gap)
