"""The regularised exponential mechanism [GLL22]: (epsilon, delta) for any convex loss."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, cast

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.fields import Auto, Help, NonNegative
from dperm_cli.mechanisms.adversary import Adversary
from dperm_cli.mechanisms.base import Design, Mechanism, Plan, Release
from dperm_cli.mechanisms.shared.sampled_release import design_draw, draw, interval_pair
from dperm_cli.privacy import events as privacy_events
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.accounting.calibrate import Calibration
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.problem import ProblemSpec
from dperm_cli.samplers.base import Target
from dperm_cli.samplers.shared.choose_sampler import LawSampler, choose_sampler, name_of
from dperm_cli.views.central import CentralView

# Room for the rounding of (epsilon - 2 t) + 2 t and of the two logarithms of delta.
_ROUNDING = 1e-11
_REACH = 12.0


@dataclass(frozen=True)
class RegularizedExponential(Mechanism):
    """One draw of the density exp(-c L(theta; D) - (kappa / 2) |theta|^2) on the set.

    Algorithm and guarantee: [GLL22]. The negative log density is m-strongly convex, m = kappa +
    c n ridge, and a neighbour's differs from it by a function with Lipschitz constant c S:
    (c S / sqrt(m))-GDP, so (epsilon, delta) with c S / sqrt(m) = mu(epsilon, delta). S is the
    difference of two records' gradients (``ProblemSpec.gradient_gap``, at most 2 L) under
    replace_one, L under add_remove. A sampler at distance t in sup |log ratio| costs 2 t of epsilon
    and a factor e^t of delta. ``noise_scale`` is sqrt(m) / c, in the unit of the summed loss's
    gradient. Trust: central. Shapes: theta [trials, p]. Unsupported: delta = 0, no curvature
    (``kappa=0`` without a ridge), ``calibration=paper`` (BST14 has no such mechanism).

    ``kappa=auto`` weighs p / c, the spread of the draw, against what the quadratic term can cost:
    kappa / c + n ridge = S sqrt(2 p) / (mu R), or the ridge alone where that is more.

    >>> from dperm_cli.problem.problem import bare_spec
    >>> from dperm_cli.sets import make_ball
    >>> spec = bare_spec(1000, 1.0, make_ball(1.0, 1))
    >>> RegularizedExponential().plan(spec, Budget(1.0, 1e-6)).settings["sampler"]["name"]
    'tangent_cells'
    """

    calibration: Calibration = "tight"
    kappa: Annotated[NonNegative | Auto, Help("quadratic; auto = by spread and bias")] = "auto"
    sampler: LawSampler = "auto"

    def check(self, spec: ProblemSpec, budget: Budget) -> None:
        """(epsilon, delta) with delta > 0."""
        if not budget.delta > 0:
            raise Unsupported("regularized_exponential is (epsilon, delta) and needs delta > 0")
        if self.calibration == "paper":
            raise Unsupported("BST14 has no regularised exponential mechanism")

    def design(self, spec: ProblemSpec, budget: Budget) -> Design:
        """Exponent, curvature, sampler and its certificate, from public facts alone."""
        moves = _law(spec, 1.0).sensitivity(budget.relation)

        def at(distance: float) -> Target:
            mu = calibrate.mu(
                (budget.epsilon - 2.0 * distance) * (1.0 - _ROUNDING),
                budget.delta * math.exp(-distance) * (1.0 - _ROUNDING),
            )
            return self._target(spec, moves / mu)

        chosen = choose_sampler(self.sampler, at, budget.epsilon)
        if name_of(chosen.sampler) == "net":
            raise Unsupported("a law on a finite net is not strongly log-concave; use sampler=auto")
        scale = noise_scale(chosen.target)
        return design_draw(_law(spec, scale), chosen, scale)

    def events(
        self, spec: ProblemSpec, scale: float, budget: Budget
    ) -> tuple[privacy_events.RegularizedExponential]:
        """An exact draw with sqrt(m) / c = scale."""
        return (_law(spec, scale),)

    def release(self, view: CentralView, plan: Plan, gate: Gate) -> Release:
        """Draw from the law of the plan's event, with the planned curvature."""
        spec, event = view.spec, cast(privacy_events.RegularizedExponential, plan.events[0])
        stream = gate.stream(_law(spec, event.scale), spec.p)
        # the set may have moved since it was planned for, inside a localization
        target = replace(plan.sampler.target, spec=spec)
        if event.scale != plan.noise_scale or plan.noise_scale != noise_scale(target):
            target = _steeper(spec, event.scale, target.kappa)
        return draw(view, plan, target, stream)

    def adversary(self, budget: Budget) -> Adversary:
        """One linear loss and a quadratic term: a Gaussian, moved by all that is claimed.

        The ends of the interval are ``_REACH`` of its standard deviations from its middle.
        """
        pair, chosen = interval_pair(budget.relation, 1, _REACH), replace(self, kappa=1.0)
        return Adversary(*pair, chosen, kind="profile")

    def _target(self, spec: ProblemSpec, scale: float) -> Target:
        """The law whose sqrt(m) / c is ``scale``."""
        ridge, kappa = spec.n * spec.ridge, self.kappa
        if kappa != "auto":
            if not kappa + ridge > 0.0:
                raise Unsupported("needs curvature: mechanism.kappa above 0, or a ridge")
            return _steeper(spec, scale, float(kappa))
        curvature = max(ridge, scale * math.sqrt(2.0 * spec.p) / spec.constraint.radius)
        exponent = curvature / scale**2
        return Target(spec, exponent, exponent * (curvature - ridge))


def noise_scale(target: Target) -> float:
    """sqrt(m) / c, m = kappa + c n ridge."""
    return math.sqrt(target.strong_convexity) / target.exponent


def _steeper(spec: ProblemSpec, scale: float, kappa: float) -> Target:
    """The law with this kappa and sqrt(m) / c = scale: scale^2 c^2 = n ridge c + kappa."""
    half = 0.5 * spec.n * spec.ridge / scale**2
    return Target(spec, half + math.sqrt(half**2 + kappa / scale**2), kappa)


def _law(spec: ProblemSpec, scale: float) -> privacy_events.RegularizedExponential:
    """One draw with sqrt(m) / c = scale."""
    return privacy_events.RegularizedExponential(scale, spec.lipschitz, gap=spec.gradient_gap)
