"""Approximate minima perturbation: objective perturbation that needs no exact minimiser
[INSTTW19, Alg. 1]."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from dperm_cli.core import checks
from dperm_cli.core.errors import Unsupported
from dperm_cli.mechanisms import _objective
from dperm_cli.mechanisms._objective import Perturbed, Perturbing
from dperm_cli.mechanisms._protocol import NO_BUDGET, Design, Plan, Release
from dperm_cli.mechanisms._views import CentralView
from dperm_cli.privacy import calibrate
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import GammaNorm, Gaussian, PerturbedObjective
from dperm_cli.privacy.noise import Gate
from dperm_cli.problem.problem import ProblemSpec

SHARE = 0.01  # of epsilon and of delta, for what is left of the minimisation
Events = tuple[PerturbedObjective, GammaNorm | Gaussian]


@dataclass(frozen=True)
class ApproximateMinimaPerturbation(Perturbing):
    """theta = Project(theta~ + b2), theta~ within ``distance`` of the perturbed minimiser.

    Algorithm: [INSTTW19, Alg. 1], which is ``objective_perturbation`` with (1 - share) of the
    budget, stopped at a certified distance r of the exact minimiser, and noise b2 with the rest:
    N(0, (2 r / mu)^2 I), mu = mu(share epsilon, share delta), or of a Gamma norm with scale 2 r /
    (share epsilon). Constants corrected for replace_one. Guarantee: pure epsilon, or (epsilon,
    delta), for the point that is released, however the minimiser was found; the same losses, sets
    and relations as ``objective_perturbation``; trust: central. ``noise_scale`` is that of the
    linear term, in the unit of the SUM of gradients. Shapes: theta [trials, p]. Cost: one
    minimisation a trial.

    ``distance`` (public, in the unit of theta) is by default what arithmetic can certify; a
    minimisation that misses it is a failed run.
    """

    share: float = SHARE
    distance: Any = "auto"

    attack_floor: ClassVar[float] = 0.8  # the second noise is small beside the first

    def __post_init__(self) -> None:
        super().__post_init__()
        limits = {"low": 0.0, "low_open": True, "high": 1.0, "high_open": True}
        checks.number("mechanism.share", self.share, **limits)
        checks.auto_or(checks.positive, "mechanism.distance", self.distance)

    def design(self, spec: ProblemSpec, budget: Budget) -> Design:
        """Strength, both noises and the distance, from public facts alone."""
        gamma = _objective.is_gamma(self.noise, budget.delta, spec)
        rest = 1.0 - self.share
        first = Budget(rest * budget.epsilon, rest * budget.delta, budget.relation)
        planned = _objective.design(spec, first, gamma, self.given)
        planned = replace(planned, distance=self._distance(planned))
        events = self._events(planned, self._second_scale(planned.distance, budget, gamma))
        settings = {**planned.settings(), "second_scale": events[1].scale, "share": self.share}
        return Design(events, planned.event.scale, 1, settings)

    def events(self, spec: ProblemSpec, scale: float, budget: Budget = NO_BUDGET) -> Events:
        """At the strength that suits this noise, and the noise that suits delta 1/n^2.

        The second noise is to the distance what the share asks for at the first one's epsilon.
        """
        event = self.at_scale(spec, scale, 1.0 - self.share)
        planned = _objective.finish(event, spec)
        planned = replace(planned, distance=self._distance(planned))
        gamma, epsilon = event.noise == "gamma_norm", event.epsilon("replace_one")
        delta = 0.0 if gamma else _objective.usual_delta(spec)
        whole = Budget(epsilon / (1.0 - self.share), delta)
        return self._events(planned, self._second_scale(planned.distance, whole, gamma))

    def release(self, view: CentralView, plan: Plan, gate: Gate) -> Release:
        """Minimise, add the second noise, project."""
        first, second = plan.events
        assert isinstance(first, PerturbedObjective)
        facts = plan.settings
        planned = Perturbed(first, facts["added"], facts["distance"])
        found = _objective.minimise(view, planned, gate)
        noise = gate.stream(second, view.spec.p)
        return Release(view.spec.constraint.project(noise.add(found, 0)))

    def _distance(self, planned: Perturbed) -> float:
        """The distance asked for, if arithmetic can certify it."""
        least = planned.distance
        if self.distance == "auto":
            return least
        if float(self.distance) < least:
            raise Unsupported(
                f"distance {self.distance:g} is below the {least:.3g} that can be certified here"
            )
        return float(self.distance)

    def _second_scale(self, distance: float, budget: Budget, gamma: bool) -> float:
        epsilon, delta = self.share * budget.epsilon, self.share * budget.delta
        if gamma:
            return calibrate.pure_scale(epsilon, 2.0 * distance) * (1.0 + 1e-12)
        return calibrate.gaussian_scale(epsilon, delta, 2.0 * distance) * (1.0 + 1e-12)

    def _events(self, planned: Perturbed, scale: float) -> Events:
        """Both points are within the distance of their minimisers: it moves by twice that.

        That holds under either relation, so it is one record's norm under add_remove and the
        gap under replace_one.
        """
        kind = GammaNorm if planned.event.noise == "gamma_norm" else Gaussian
        move = 2.0 * planned.distance
        return planned.event, kind(scale, move, gap=move)
