"""Objective perturbation: the minimiser of the sum with a random linear term [BST14, App. E]."""

from __future__ import annotations

import math
from typing import Annotated

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.fields import Help
from dperm_cli.mechanisms.base import Design
from dperm_cli.mechanisms.shared import perturbed_objective
from dperm_cli.mechanisms.shared.perturbed_objective import PerturbedMechanism, PerturbedPlan
from dperm_cli.privacy.accounting.calibrate import Calibration
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Disclosure, Event, PerturbedObjective
from dperm_cli.problem.problem import ProblemSpec

NOT_PRIVATE = (
    "the constants printed in App. E are not private: Lam = beta / (2 epsilon) lets the Jacobian "
    "alone spend ln(1 + 2 epsilon), more than epsilon below 1.2564 (log ratio 2.0986 at epsilon 1; "
    "delta 5.3e-3 for 1e-6); set calibration=tight, or mechanism.allow_not_private=true for a "
    "release without any guarantee"
)


@dataclass(frozen=True)
class ObjectivePerturbation(PerturbedMechanism):
    """theta = Project(theta~ + b2), theta~ near the argmin over C of the sum
    + (added / 2) |theta - centre|^2 + <b, theta>, b and b2 noise.

    Algorithm: [CMS11, Alg. 2; KST12; BST14, App. E (14)] with corrected constants, for losses with
    a Lipschitz gradient over any convex set: strength Lam = n ridge + added, J = rank ln(1 + beta
    / Lam); b of density prop. to exp(-|b| / scale), scale = G / (epsilon - J), G <= 2 L the largest
    difference of two records' gradients, or b ~ N(0, scale^2 I) with delta(epsilon) <= 2
    delta_GM(epsilon - J; 2 L / scale). No solver finds that minimiser exactly: theta~ is within
    ``distance`` of it, proved with all rounding, and b2 pays for 2 ``distance``: mu2 = .005 of a
    Gaussian, accounted jointly with the first event, or .001 epsilon of a Gamma norm; more where
    ``distance`` is wide. Guarantee: pure epsilon, or (epsilon, delta), for the point that is
    released. Relations: replace_one, and add_remove with L for G and 2 L; trust: central.
    ``noise_scale`` is the scale of b, in the unit of the SUM of gradients. Shapes: theta [trials,
    p]. Cost: one minimisation a trial.
    Unsupported: losses with kinks; Gaussian noise for losses that are not of a margin; a strength
    whose Jacobian exceeds epsilon, or so weak that no number of steps is certain to be enough.

    ``strength=auto`` minimises a bound on the risk from public facts; a ridge of that size needs no
    extra regulariser. ``calibration=paper`` is the printed form, which is not private: see
    ``NOT_PRIVATE``.

    >>> from dperm_cli.problem.problem import bare_spec
    >>> from dperm_cli.sets import make_ball
    >>> spec = bare_spec(1000, 1.0, make_ball(1.0, 5), smoothness=0.25)
    >>> round(ObjectivePerturbation().plan(spec, Budget(1.0, 0.0)).noise_scale, 2)
    2.39
    """

    calibration: Calibration = "tight"
    allow_not_private: Annotated[bool, Help("calibration=paper runs, guarantee none")] = False

    @property
    def is_unprotected(self) -> bool:
        """Whether the user asked for a release without a guarantee."""
        return self.calibration == "paper" and self.allow_not_private

    def design(self, spec: ProblemSpec, budget: Budget) -> Design:
        """Strength and noise, from public facts alone."""
        if self.calibration == "paper":
            # Gaussian where it may be, as printed
            gamma = perturbed_objective.list_laws(self.noise, budget, spec)[-1]
            return self._design_paper_form(spec, budget, gamma)
        planned = self.choose_plan(spec, budget)
        return Design(planned.events, planned.event.scale, 1, planned.settings())

    def plan_law(self, spec: ProblemSpec, budget: Budget, gamma: bool) -> PerturbedPlan:
        """Both events of one law, at the strength given or the one of least risk."""
        return perturbed_objective.design(spec, budget, gamma, self.given_strength)

    def events(self, spec: ProblemSpec, scale: float, budget: Budget) -> tuple[Event, ...]:
        """At the strength that suits this noise."""
        first = self.event_at_scale(spec, scale, budget)
        return perturbed_objective.design_at(spec, first, budget.relation).events

    @property
    def is_centred(self) -> bool:
        """App. E has its regulariser about 0."""
        return self.calibration != "paper"

    def _design_paper_form(self, spec: ProblemSpec, budget: Budget, gamma: bool) -> Design:
        """The noise and strength of [BST14, App. E and Thm E.1], which are not private."""
        if not self.allow_not_private:
            raise Unsupported(NOT_PRIVATE)
        first = make_paper_event(spec, budget, gamma, self.given_strength)
        planned = perturbed_objective.design_at(spec, first, budget.relation)
        events: tuple[Event, ...] = (*planned.events, Disclosure())
        reason = "constants that are not private (App. E)"
        return Design(events, planned.event.scale, 1, planned.settings(), reason=reason)


def make_paper_event(
    spec: ProblemSpec, budget: Budget, gamma: bool, strength: float | None = None
) -> PerturbedObjective:
    """App. E as printed: exp(-epsilon |b| / (2 L)) or N(0, 8 L^2 ln(1/delta) / epsilon^2), and

    Lam >= beta / (2 epsilon), by default Theorem E.1's L p / (epsilon D), or L sqrt(p ln(1/delta))
    / (epsilon D) for the Gaussian, if that is more. NOT PRIVATE.
    """
    least = perturbed_objective.curvature(spec) / (2.0 * budget.epsilon)
    logs = 1.0 if gamma else math.log(1.0 / budget.delta)
    scale = spec.lipschitz / budget.epsilon * (2.0 if gamma else math.sqrt(8.0 * logs))
    if strength is None:
        size = spec.p if gamma else math.sqrt(spec.p * logs)
        wanted = spec.lipschitz * size / (budget.epsilon * spec.constraint.diameter)
        strength = max(least, wanted, spec.penalty.ridge)
    elif strength < least:
        raise Unsupported(f"App. E asks for a strength of at least beta / (2 epsilon) = {least:g}")
    delta = budget.delta or 0.5
    event = perturbed_objective.make_event(
        spec, scale, max(strength, spec.penalty.ridge), gamma, delta
    )
    return event
