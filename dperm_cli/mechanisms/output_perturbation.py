"""Output perturbation of a strongly convex minimiser [BST14, Alg. 3 and App. B]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dperm_cli.core import checks
from dperm_cli.core.errors import Unsupported
from dperm_cli.mechanisms import _minimiser
from dperm_cli.mechanisms._adversary import Adversary, linear_pair
from dperm_cli.mechanisms._protocol import Plan, Release
from dperm_cli.mechanisms._views import CentralView
from dperm_cli.privacy.accountant import account
from dperm_cli.privacy.budget import Budget, Guarantee
from dperm_cli.privacy.events import GammaNorm, Gaussian
from dperm_cli.privacy.noise import Gate
from dperm_cli.problem.problem import ProblemSpec

NOISES = ("auto", "gamma", "gaussian")


@dataclass(frozen=True)
class OutputPerturbation:
    """theta = Project(argmin over C of the sum + b), b noise for the minimiser's sensitivity.

    Algorithm: [BST14, Alg. 3] with |b| ~ Gamma(p, S / epsilon) in a uniform direction, and
    [BST14, App. B] with b ~ N(0, (S / mu)^2 I), mu = mu(epsilon, delta). Guarantee: pure epsilon,
    or (epsilon, delta), exact for one release of sensitivity S = G / (n Delta) under replace_one
    (G <= 2 L bounds the difference of two records' gradients) or L / (n Delta) under add_remove;
    trust: central. ``noise_scale`` is S / epsilon or S / mu, in the unit of theta. Shapes: theta
    [trials, p]. Cost: one minimisation. Unsupported: no strong convexity (ridge = 0); Gaussian
    noise at delta = 0.

    ``noise=auto`` is gamma at delta = 0 and gaussian above. The minimiser is found to a gap fixed
    beforehand, and S grows by what that leaves open: by ``inflation`` of itself, or by as much as
    certificates in floating point need (``_minimiser.provable``). A minimiser that is not found so
    well is a failed run, without a release; that it failed is not a private outcome.
    """

    noise: str = "auto"
    inflation: Any = "auto"

    guarantees: ClassVar[tuple[str, ...]] = ("pure", "approx")
    relations: ClassVar[tuple[str, ...]] = ("replace_one", "add_remove")
    requires: ClassVar[tuple[str, ...]] = ("strong_convexity",)
    secure: ClassVar[bool] = False  # a minimiser in floating point has no exact sensitivity

    def __post_init__(self) -> None:
        checks.choice("mechanism.noise", self.noise, NOISES)
        limits = {"low": 0.0, "low_open": True, "high": 1.0}
        checks.auto_or(checks.number, "mechanism.inflation", self.inflation, **limits)

    def plan(self, spec: ProblemSpec, budget: Budget) -> Plan:
        """Sensitivity and noise, from public facts alone."""
        gamma = self.noise == "gamma" or (self.noise == "auto" and budget.delta == 0.0)
        if not gamma and budget.delta == 0.0:
            raise Unsupported("Gaussian noise needs delta > 0; use mechanism.noise=gamma")
        stable = _minimiser.stability(spec, self._inflation)
        scale = _minimiser.scale_for(stable, budget, gamma)
        events = (stable.event(scale, gamma),)
        accounted = account(events, delta=budget.delta, relation=budget.relation)
        guarantee = Guarantee(
            "approx" if budget.delta > 0.0 else "pure",
            accounted.epsilon,
            budget.delta,
            budget.relation,
            accounted.accountant,
        )
        settings = {
            "noise": "gamma" if gamma else "gaussian",
            "minimiser_gap": stable.certificate,
            "inflation": 2.0 * stable.error / (stable.gap - 2.0 * stable.error),
        }
        return Plan(events, guarantee, scale, 1, settings)

    def events(self, spec: ProblemSpec, scale: float) -> tuple[GammaNorm | Gaussian]:
        """One release of the minimiser; ``noise=auto`` counts as Gaussian."""
        stable = _minimiser.stability(spec, self._inflation)
        return (stable.event(scale, self.noise == "gamma"),)

    def release(self, view: CentralView, plan: Plan, gate: Gate) -> Release:
        """One minimisation, one draw a trial, and the projection."""
        certificate = plan.settings["minimiser_gap"]
        relation = plan.guarantee.relation
        return Release(_minimiser.release(view, plan.events[0], relation, certificate, gate))

    def adversary(self, budget: Budget) -> Adversary:
        """One record with the linear loss and ridge 1: its gradient is minus the minimiser.

        The two minimisers are S apart, in a set too large to be met by the noise.
        """
        first, _ = linear_pair(budget.relation, ridge=1.0, radius=10.0)
        scale = self.plan(first.spec(), budget).noise_scale
        first, second = linear_pair(budget.relation, ridge=1.0, radius=2.0 + 10.0 * scale)
        if isinstance(self.plan(first.spec(), budget).events[0], GammaNorm):
            return Adversary(first, second, self, kind="threshold", floor=0.85)
        return Adversary(first, second, self, kind="gaussian", floor=0.8)

    @property
    def _inflation(self) -> float:
        return _minimiser.INFLATION if self.inflation == "auto" else float(self.inflation)
