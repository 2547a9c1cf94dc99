"""Approximate minima perturbation: objective perturbation with a fixed share of the budget for what
the solver leaves open [INSTTW19, Alg. 1]."""

from __future__ import annotations

from typing import Annotated, ClassVar

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.fields import Auto, Help, Positive, Probability
from dperm_cli.mechanisms.base import Design
from dperm_cli.mechanisms.shared import perturbed_objective
from dperm_cli.mechanisms.shared.perturbed_objective import PerturbedMechanism, PerturbedPlan
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Event, PerturbedObjective
from dperm_cli.problem.problem import ProblemSpec

SHARE = 0.01  # of epsilon and of delta, for what is left of the minimisation


@dataclass(frozen=True)
class ApproximateMinimaPerturbation(PerturbedMechanism):
    """theta = Project(theta~ + b2), theta~ within ``distance`` of the perturbed minimiser.

    Algorithm: [INSTTW19, Alg. 1], which is ``objective_perturbation`` with (1 - share) of the
    budget and noise b2 with the rest: N(0, (2 r / mu)^2 I), mu = mu(share epsilon, share delta), or
    of a Gamma norm with scale 2 r / (share epsilon), r the certified distance. Constants corrected
    for replace_one. It is here for comparison: ``objective_perturbation`` pays for the same
    distance jointly, at less noise. Guarantee: pure epsilon, or (epsilon, delta), for the point
    that is released; the same losses, sets and relations as there; trust: central. ``noise_scale``
    is that of the linear term, in the unit of the SUM of gradients. Shapes: theta [trials, p].
    Cost: one minimisation a trial.

    ``distance`` (public, in the unit of theta) is by default what arithmetic can prove.

    >>> from dperm_cli.problem.problem import bare_spec
    >>> from dperm_cli.sets import make_ball
    >>> spec = bare_spec(1000, 1.0, make_ball(1.0, 5), smoothness=0.25)
    >>> round(ApproximateMinimaPerturbation().plan(spec, Budget(1.0, 0.0)).noise_scale, 2)
    2.41
    """

    share: Annotated[Probability, Help("of epsilon and delta, for the second noise")] = SHARE
    distance: Annotated[
        Positive | Auto, Help("from the exact minimiser; auto = what is worth it and can be proved")
    ] = "auto"

    attack_floor: ClassVar[float] = 0.8  # the second noise is small beside the first

    def design(self, spec: ProblemSpec, budget: Budget) -> Design:
        """Strength, both noises and the distance, from public facts alone."""
        planned = self.choose_plan(spec, budget)
        settings = {**planned.settings(), "share": self.share}
        return Design(planned.events, planned.event.scale, 1, settings)

    def plan_law(self, spec: ProblemSpec, budget: Budget, gamma: bool) -> PerturbedPlan:
        """Both events of one law, each with its share of the budget."""
        rest = 1.0 - self.share
        first = Budget(rest * budget.epsilon, rest * budget.delta, budget.relation)
        event = perturbed_objective.first_event(spec, first, gamma, self.given_strength)
        return self._pay_solver_error(spec, event, budget)

    def events(self, spec: ProblemSpec, scale: float, budget: Budget) -> tuple[Event, ...]:
        """At the strength that suits this noise.

        The second noise is to the distance what the share asks for at the first one's epsilon.
        """
        event = self.event_at_scale(spec, scale, budget, 1.0 - self.share)
        delta = 0.0 if event.noise == "gamma_norm" else budget.delta
        whole = Budget(event.epsilon(budget.relation) / (1.0 - self.share), delta)
        return self._pay_solver_error(spec, event, whole).events

    def _pay_solver_error(
        self, spec: ProblemSpec, event: PerturbedObjective, budget: Budget
    ) -> PerturbedPlan:
        """The event with a second one that has the share of the budget."""
        epsilon, delta = self.share * budget.epsilon, self.share * budget.delta

        def scale(move: float) -> float:
            if event.noise == "gamma_norm":
                return calibrate.pure_scale(epsilon, move)
            return calibrate.gaussian_scale(epsilon, delta, move)

        least = perturbed_objective.add_second_event(event, spec, scale)
        if self.distance == "auto":
            return least
        if float(self.distance) < least.distance:
            raise Unsupported(
                f"distance {self.distance:g} is below the {least.distance:.3g} that can be "
                "certified here"
            )
        return perturbed_objective.add_second_event(event, spec, scale, float(self.distance))
