"""What objective and approximate minima perturbation share: strength, noise and attack."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dperm_cli.core import checks
from dperm_cli.core.errors import Unsupported
from dperm_cli.mechanisms._adversary import Adversary, linear_pair
from dperm_cli.mechanisms._protocol import Mechanism
from dperm_cli.mechanisms._views import CentralView
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import PerturbedObjective
from dperm_cli.privacy.noise import Gate
from dperm_cli.privacy.objective import noise_ratio
from dperm_cli.problem import nearby
from dperm_cli.problem.losses._glm import Glm
from dperm_cli.problem.problem import ProblemSpec, without_curvature

NOISES = ("auto", "gamma", "gaussian")
_WITHIN = 1.0 - 1e-12  # of delta: the accountant rounds what it adds up
_FAR = 25.0  # in logs, the largest strength that is looked at, over the least
_SMALLEST = 1e-6  # the least strength over the one that balances noise, where no bound is known


@dataclass(frozen=True)
class Perturbed:
    """A perturbed objective: the sum + (added / 2) |theta - centre|^2 + <b, theta>.

    Attributes
    ----------
    event : noise, and the strength Lam of the whole, n * ridge + added.
    added : the coefficient of the extra regulariser, >= 0.
    distance : how far from the exact minimiser a point may be that is taken for it.
    """

    event: PerturbedObjective
    added: float
    distance: float

    def settings(self) -> dict[str, Any]:
        """What a reader may want to know, JSON-able."""
        return {
            "noise": "gamma" if self.event.noise == "gamma_norm" else "gaussian",
            "strength": self.event.strength,
            "added": self.added,
            "jacobian": self.event.jacobian,
            "distance": self.distance,
        }


@dataclass(frozen=True)
class Perturbing(Mechanism):
    """A minimiser of a perturbed objective: the keys of its noise, its events and its attack."""

    noise: str = "auto"
    strength: Any = "auto"

    guarantees: ClassVar[tuple[str, ...]] = ("pure", "approx")
    relations: ClassVar[tuple[str, ...]] = ("replace_one", "add_remove")
    secure: ClassVar[bool] = False  # a minimiser in floating point has no exact density
    attack_floor: ClassVar[float] = 0.85  # where noise is of a Gamma norm

    def __post_init__(self) -> None:
        checks.choice("mechanism.noise", self.noise, NOISES)
        checks.auto_or(checks.positive, "mechanism.strength", self.strength)

    @property
    def given(self) -> float | None:
        """The strength asked for, None for auto."""
        return None if self.strength == "auto" else float(self.strength)

    def at_scale(self, spec: ProblemSpec, scale: float, share: float = 1.0) -> PerturbedObjective:
        """At the strength that suits this noise, and the noise that suits delta 1/n^2, of which
        the event has a ``share``."""
        delta = usual_delta(spec)
        gamma = is_gamma(self.noise, delta, spec)
        strength = max(self.given or balanced(spec, scale, gamma), spec.penalty.ridge)
        return event(spec, scale, strength, gamma, share * delta)

    def adversary(self, budget: Budget) -> Adversary:
        """One record with the linear loss and ridge 1: theta is minus its gradient and b.

        Without curvature there is no Jacobian, and all of epsilon is in the noise, which moves by
        the sensitivity, in a set too large to be met.
        """
        first, second = linear_pair(budget.relation, ridge=1.0)
        scale = self.plan(first.spec(), budget).noise_scale
        first, second = linear_pair(budget.relation, ridge=1.0, radius=2.0 + 20.0 * scale)
        if is_gamma(self.noise, budget.delta, first.spec()):
            return Adversary(first, second, self, kind="threshold", floor=self.attack_floor)
        return Adversary(first, second, self, kind="gaussian", floor=0.75)


def usual_delta(spec: ProblemSpec) -> float:
    """1/n^2, below a half."""
    return min(0.25, spec.n**-2.0)


def is_gamma(noise: str, delta: float, spec: ProblemSpec) -> bool:
    """Whether the noise is of a Gamma norm: asked for, or auto where there is no Gaussian form."""
    if noise == "gaussian" and delta == 0.0:
        raise Unsupported("Gaussian noise needs delta > 0; use mechanism.noise=gamma")
    return noise == "gamma" or (noise == "auto" and (delta == 0.0 or hessian_rank(spec) > 1))


def hessian_rank(spec: ProblemSpec) -> int:
    """A bound on the rank of one record's Hessian, where it has one."""
    if isinstance(spec.form, Glm):
        return 1
    if spec.loss == "multinomial":
        return spec.bounds.classes - 1  # that of diag(p) - p p^T
    return spec.p


def curvature(spec: ProblemSpec) -> float:
    """beta, or Unsupported for a loss with kinks."""
    if spec.smoothness is None:
        reason = (
            f"{spec.loss} has kinks: objective perturbation is private for losses whose gradient "
            "is Lipschitz; use mechanism=huberized, or noisy_gd"
        )
        raise Unsupported(without_curvature(spec, reason))
    return spec.smoothness


def design(
    spec: ProblemSpec, budget: Budget, gamma: bool, strength: float | None = None
) -> Perturbed:
    """The noise of a budget, at the strength given or at the one that minimises ``theory_risk``."""
    curvature(spec)
    planner = _Planner(spec, budget, gamma)
    chosen = planner.best() if strength is None else planner.checked(strength)
    return finish(planner.event(chosen), spec)


def finish(event: PerturbedObjective, spec: ProblemSpec) -> Perturbed:
    """The design of an event; the ridge counts into its strength."""
    added = max(0.0, event.strength - spec.penalty.ridge)
    return Perturbed(event, added, nearby.reachable(spec, event.strength))


def theory_risk(spec: ProblemSpec, strength: float, noise: float) -> float:
    """(added / 2) D^2 + noise^2 / (2 strength) >= the expected excess risk; noise^2 = E |b|^2."""
    added = max(0.0, strength - spec.penalty.ridge)
    return 0.5 * added * spec.constraint.diameter**2 + noise**2 / (2.0 * strength)


def noise_norm(p: int, scale: float, gamma: bool) -> float:
    """sqrt(E |b|^2): p (p + 1) scale^2 for a Gamma norm, p scale^2 for a Gaussian."""
    return scale * math.sqrt(p * (p + 1.0) if gamma else p)


def balanced(spec: ProblemSpec, scale: float, gamma: bool) -> float:
    """The strength that minimises ``theory_risk`` for noise of this scale."""
    wanted = noise_norm(spec.p, scale, gamma) / spec.constraint.diameter
    return max(wanted, spec.penalty.ridge)


def event(
    spec: ProblemSpec, scale: float, strength: float, gamma: bool, delta: float
) -> PerturbedObjective:
    """The event of noise of this scale."""
    rank = hessian_rank(spec)
    if not gamma and rank > 1:
        raise Unsupported(
            f"Gaussian noise is proved for losses of the margin, not for {spec.loss}: use "
            "mechanism.noise=gamma"
        )
    return PerturbedObjective(
        noise="gamma_norm" if gamma else "gaussian",
        scale=scale,
        record_norm=spec.lipschitz,
        curvature=curvature(spec),
        strength=strength,
        delta=0.0 if gamma else _WITHIN * delta,
        rank=rank,
        gap=spec.gradient_gap if gamma else None,
    )


class _Planner:
    """From a budget to strength and noise; everything here is public."""

    def __init__(self, spec: ProblemSpec, budget: Budget, gamma: bool) -> None:
        self._spec, self._budget, self._gamma = spec, budget, gamma
        self._unit = event(spec, 1.0, 1.0, gamma, budget.delta)

    def scale(self, strength: float) -> float:
        """The least noise at this strength, inf where the Jacobian leaves no room for any."""
        left = self._budget.epsilon - self._jacobian(strength)
        sensitivity, relation = self._unit.sensitivity(self._budget.relation), self._budget.relation
        if not left > 0.0:
            return math.inf
        if self._gamma:
            return sensitivity / left
        return sensitivity / noise_ratio(left, self._unit.delta, relation)

    def risk(self, strength: float) -> float:
        noise = noise_norm(self._spec.p, self.scale(strength), self._gamma)
        return theory_risk(self._spec, strength, noise)

    def best(self) -> float:
        """The minimiser of ``theory_risk`` over strengths of at least n * ridge."""
        from scipy.optimize import minimize_scalar

        ridge = self._spec.penalty.ridge
        least = max(ridge, self._least() * (1.0 + 1e-9))
        # noise as if the Jacobian were free: the strength is above what balances that
        free = self._unit.sensitivity(self._budget.relation) / self._budget.epsilon
        low = math.log(max(least, _SMALLEST * balanced(self._spec, free, self._gamma)))
        found: Any = minimize_scalar(
            lambda t: math.log(self.risk(math.exp(t))),
            bounds=(low, low + _FAR),
            method="bounded",
            options={"xatol": 1e-6},
        )
        best = math.exp(float(found.x))
        return ridge if ridge > self._least() and self.risk(ridge) <= self.risk(best) else best

    def checked(self, strength: float) -> float:
        """The strength asked for, the ridge's own if that is more; Unsupported if too weak."""
        whole, least = max(strength, self._spec.penalty.ridge), self._least()
        if not whole > least:
            raise Unsupported(
                f"strength {whole:.6g} spends all of epsilon {self._budget.epsilon:g} on the "
                f"Jacobian; it must exceed {least:.6g}"
            )
        return whole

    def event(self, strength: float) -> PerturbedObjective:
        """Rounded so that the event's epsilon fits the budget."""
        scale, budget, step = self.scale(strength), self._budget, 1e-14
        while True:
            found = event(self._spec, scale, strength, self._gamma, budget.delta)
            if found.epsilon(budget.relation) <= budget.epsilon:
                return found
            scale, step = scale * (1.0 + step), 2.0 * step

    def _jacobian(self, strength: float) -> float:
        return replace(self._unit, strength=strength).jacobian

    def _least(self) -> float:
        """The strength whose Jacobian is epsilon."""
        share = min(self._budget.epsilon / self._unit.rank, 700.0)
        return self._unit.curvature / math.expm1(share)


def minimise(
    view: CentralView, planned: Perturbed, gate: Gate, *, centred: bool = True
) -> np.ndarray:
    """A minimiser of the perturbed objective a trial, to ``distance``, [trials, p].

    What passes the gate is the sum of gradients at the released point, of which b is a known
    function there. PrivacyError where a minimiser cannot be had to ``distance``.
    """
    noise = gate.stream(planned.event, view.spec.p)
    middle = view.spec.constraint.centre() if centred else np.zeros(view.spec.p)

    def point(b: np.ndarray) -> np.ndarray:
        return view.perturbed(b - planned.added * middle, planned.added, planned.distance)

    return noise.find(point, view.gradient_sum, 0)
