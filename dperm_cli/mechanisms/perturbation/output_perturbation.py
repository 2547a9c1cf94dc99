"""Output perturbation of a strongly convex minimiser [BST14, Alg. 3 and App. B]."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.fields import Auto, Help, Range
from dperm_cli.mechanisms.adversary import Adversary, linear_pair
from dperm_cli.mechanisms.base import EitherNoise, Plan, Release
from dperm_cli.mechanisms.shared import noisy_minimiser
from dperm_cli.mechanisms.shared.minimisers_on_grid import put_minimiser_on_grid
from dperm_cli.mechanisms.shared.noise_law import noise_moment
from dperm_cli.mechanisms.shared.point_noise import PointNoise
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import GammaNorm, Gaussian
from dperm_cli.privacy.gate import Gate
from dperm_cli.privacy.secure_grid import Grid
from dperm_cli.problem.problem import Loss, ProblemSpec
from dperm_cli.views.central import CentralView


@dataclass(frozen=True)
class OutputPerturbation(EitherNoise):
    """theta = Project(argmin over C of the sum + b), b noise for the minimiser's sensitivity.

    Algorithm: [BST14, Alg. 3] with |b| ~ Gamma(p, S / epsilon) in a uniform direction, and
    [BST14, App. B] with b ~ N(0, (S / mu)^2 I), mu = mu(epsilon, delta). Guarantee: pure epsilon,
    or (epsilon, delta), exact for one release of sensitivity S = G / (n Delta) under replace_one
    (G <= 2 L bounds the difference of two records' gradients) or L / (n Delta) under add_remove;
    trust: central. ``noise_scale`` is S / epsilon or S / mu, in the unit of theta. Shapes: theta
    [trials, p]. Cost: one minimisation. Unsupported: no strong convexity (ridge = 0); Gaussian
    noise at delta = 0.

    ``noise=auto`` is the law of less noise, gamma at delta = 0. The minimiser is found to a gap
    fixed beforehand, and S grows by what that leaves open: ``inflation`` of itself, or as much as
    certificates in floating point need (``noisy_minimiser.provable_gap``). A minimiser that is not
    found so well is a failed run, without a release; that it failed is not a private outcome.

    >>> from dperm_cli.problem.problem import Regulariser, bare_spec
    >>> from dperm_cli.sets import make_ball
    >>> spec = bare_spec(1000, 1.0, make_ball(1.0, 5), regulariser=Regulariser(0.1))
    >>> round(OutputPerturbation().plan(spec, Budget(1.0, 0.0)).noise_scale, 4)
    0.02
    """

    inflation: Annotated[
        float | Auto, Range(above=0, high=1), Help("share for an inexact minimiser; auto = 1e-3")
    ] = "auto"

    requires: ClassVar[tuple[str, ...]] = ("strong_convexity",)
    by_sums: ClassVar[bool] = True
    secure: ClassVar[bool] = True

    def scale(self, spec: ProblemSpec, budget: Budget) -> float:
        """S / epsilon or S / mu."""
        stable = noisy_minimiser.stability(spec, self._inflation)
        return noisy_minimiser.scale_for(stable, budget, self.is_gamma(spec, budget))

    def events(
        self, spec: ProblemSpec, scale: float, budget: Budget
    ) -> tuple[GammaNorm | Gaussian]:
        """One release of the minimiser."""
        stable = noisy_minimiser.stability(spec, self._inflation)
        return (stable.event(scale, self.is_gamma(spec, budget)),)

    def settings(
        self, spec: ProblemSpec, events: tuple[GammaNorm | Gaussian], budget: Budget
    ) -> dict[str, Any]:
        """The kind of noise, and how well the minimiser is found."""
        stable = noisy_minimiser.stability(spec, self._inflation)
        exact = spec.gradient_gap / (spec.n * spec.strong_convexity)
        return {
            "noise": "gamma" if self.is_gamma(spec, budget) else "gaussian",
            "minimiser_gap": stable.certificate,
            "inflation": 2.0 * stable.error / exact,
        }

    def release(self, view: CentralView, plan: Plan, gate: Gate) -> Release:
        """One minimisation, one draw a trial, and the projection."""
        gap, distance = (plan.settings.get(name) for name in ("minimiser_gap", "distance"))
        event = plan.events[0]
        return Release(noisy_minimiser.release_minimiser(view, event, gap, gate, distance))

    def plan_on_grid(self, spec: ProblemSpec, plan: Plan, loss: Loss) -> tuple[Plan, Grid]:
        """With a minimiser that is certain to be found, whatever the records are."""
        return put_minimiser_on_grid(spec, plan)

    def predict_risk(self, spec: ProblemSpec, plan: Plan) -> float:
        """(s^2 / 2) times the trace of the Hessian: that of the ridge, and of a record's loss."""
        bends = spec.lipschitz * spec.row_bound if spec.smoothness is None else spec.smoothness
        gamma = plan.settings["noise"] == "gamma"
        moment = noise_moment(spec.p, plan.noise_scale, gamma)
        return 0.5 * moment * (spec.strong_convexity + bends / spec.p)

    def point_noise(self, spec: ProblemSpec, plan: Plan, theta: np.ndarray) -> PointNoise:
        """The one draw, on the minimiser."""
        event: Any = plan.events[0]
        return PointNoise((), ((event.noise_law, event.scale),), spec.penalty.ridge)

    def adversary(self, budget: Budget) -> Adversary:
        """One record with the linear loss and ridge 1: its gradient is minus the minimiser.

        The two minimisers are S apart, in a set too large to be met by the noise.
        """
        first, _ = linear_pair(budget.relation, ridge=1.0, radius=10.0)
        chosen = self.fix_noise(budget)
        scale = chosen.plan(first.spec(), budget).noise_scale
        first, second = linear_pair(budget.relation, ridge=1.0, radius=2.0 + 10.0 * scale)
        if chosen.noise == "gamma":
            return Adversary(first, second, chosen, kind="threshold", floor=0.85)
        return Adversary(first, second, chosen, kind="gaussian", floor=0.8)

    @property
    def _inflation(self) -> float:
        return noisy_minimiser.INFLATION if self.inflation == "auto" else float(self.inflation)
