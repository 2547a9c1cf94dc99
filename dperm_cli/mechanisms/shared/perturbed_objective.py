"""Helpers of objective perturbation and approximate minima perturbation: noise and attack."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, ClassVar, cast

import numpy as np

from dperm_cli.core.brent import find_minimum
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.fields import Help
from dperm_cli.mechanisms.adversary import Adversary, linear_pair
from dperm_cli.mechanisms.base import CentralNoise, Mechanism, Plan, Release, Strength
from dperm_cli.mechanisms.shared import noise_law
from dperm_cli.mechanisms.shared.minimisers_on_grid import put_perturbed_on_grid
from dperm_cli.mechanisms.shared.noise_law import noise_moment
from dperm_cli.mechanisms.shared.point_noise import PointNoise
from dperm_cli.mechanisms.shared.predicted_risk import predict_from_noise
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.accounting.objective_perturbation import noise_ratio
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import GammaNorm, Gaussian, PerturbedObjective
from dperm_cli.privacy.gate import Gate
from dperm_cli.privacy.secure_grid import Grid
from dperm_cli.problem.problem import Loss, ProblemSpec, without_curvature
from dperm_cli.solvers import perturbed_minimiser
from dperm_cli.views.central import CentralView

Second = GammaNorm | Gaussian

SECOND_MU = 0.005  # of the noise that pays for the solver, Gaussian: .03 % more of the first
SECOND_SHARE = 0.001  # of epsilon, for the same of a Gamma norm
_SECOND_SIZE = 0.01  # of scale / Lam, which b moves the minimiser by: as good as no second noise
DELTA_ROUNDING = 1.0 - 1e-12  # of delta: the accountant rounds what it adds up
_LOG_STRENGTH_RANGE = 25.0  # in logs, the largest strength that is looked at, over the least
_SMALLEST = 1e-6  # the least strength over the one that balances noise, where no bound is known


@dataclass(frozen=True)
class PerturbedPlan:
    """A perturbed objective: the sum + (added / 2) |theta - centre|^2 + <b, theta>, and the noise
    that its minimiser gets.

    Attributes
    ----------
    event : noise b, and the strength Lam of the whole, n * ridge + added.
    second : noise on the point that is found for b; its sensitivity is twice ``distance``.
    added : the coefficient of the extra regulariser, >= 0.
    distance : how far from the exact minimiser the point may be.
    """

    event: PerturbedObjective
    second: Second
    added: float
    distance: float

    @property
    def events(self) -> tuple[PerturbedObjective, Second]:
        """All that touches the data."""
        return self.event, self.second

    @property
    def is_gamma(self) -> bool:
        """Whether the noise is of a Gamma norm."""
        return self.event.noise == "gamma_norm"

    def settings(self) -> dict[str, Any]:
        """What a reader may want to know, JSON-able."""
        return {
            "noise": "gamma" if self.is_gamma else "gaussian",
            "strength": self.event.strength,
            "added": self.added,
            "jacobian": self.event.jacobian,
            "distance": self.distance,
            "second_scale": self.second.scale,
        }


@dataclass(frozen=True)
class PerturbedMechanism(Mechanism):
    """A minimiser of a perturbed objective: the keys of its noise, its events and its attack."""

    noise: CentralNoise = "auto"
    strength: Annotated[Strength, Help("of the regulariser in all; auto = least risk")] = "auto"

    guarantees: ClassVar[tuple[str, ...]] = ("pure", "approx")
    attack_floor: ClassVar[float] = 0.85  # for Gamma-norm noise only
    by_sums: ClassVar[bool] = True
    secure: ClassVar[bool] = True

    @property
    def given_strength(self) -> float | None:
        """The strength asked for, None for auto."""
        return None if self.strength == "auto" else float(self.strength)

    @abstractmethod
    def plan_law(self, spec: ProblemSpec, budget: Budget, gamma: bool) -> PerturbedPlan:
        """Strength and both noises of one law, from public facts alone."""

    def point_noise(self, spec: ProblemSpec, plan: Any, theta: np.ndarray) -> PointNoise:
        """That of the linear term, and the second one on the minimiser."""
        first, second = plan.events[:2]
        return PointNoise(
            ((first.noise, first.scale),), ((second.noise_law, second.scale),), first.strength
        )

    def choose_plan(self, spec: ProblemSpec, budget: Budget) -> PerturbedPlan:
        """The plan of the law asked for, or of the one whose linear term has less noise."""
        return noise_law.choose_least(
            list_laws(self.noise, budget, spec),
            lambda gamma: self.plan_law(spec, budget, gamma),
            lambda made: noise_moment(spec.p, made.event.scale, made.is_gamma),
        )

    def is_gamma(self, spec: ProblemSpec, budget: Budget) -> bool:
        """Whether the noise is of a Gamma norm: asked for, or the smaller."""
        laws = list_laws(self.noise, budget, spec)
        return laws[0] if len(laws) == 1 else self.choose_plan(spec, budget).is_gamma

    def event_at_scale(
        self, spec: ProblemSpec, scale: float, budget: Budget, share: float = 1.0
    ) -> PerturbedObjective:
        """The first event at the strength that suits this noise, with a ``share`` of delta."""
        gamma = self.is_gamma(spec, budget)
        strength = max(
            self.given_strength or balance_strength(spec, scale, gamma), spec.penalty.ridge
        )
        strength = max(strength, perturbed_minimiser.least_modulus(spec))
        return make_event(spec, scale, strength, gamma, share * budget.delta)

    def release(self, view: CentralView, plan: Plan, gate: Gate) -> Release:
        """Minimise, add the second noise whatever was found, project."""
        first, second = cast(tuple[PerturbedObjective, GammaNorm | Gaussian], plan.events[:2])
        planned = PerturbedPlan(first, second, plan.settings["added"], plan.settings["distance"])
        return Release(_noisy_minimiser(view, planned, gate, self.is_centred))

    def plan_on_grid(self, spec: ProblemSpec, plan: Plan, loss: Loss) -> tuple[Plan, Grid]:
        """Linear term and released point on grids, each of its own."""
        return put_perturbed_on_grid(spec, plan)

    def predict_risk(self, spec: ProblemSpec, plan: Plan) -> float:
        """That of the linear term, which is noise on the sum of gradients."""
        gamma = plan.settings["noise"] == "gamma"
        moment = noise_moment(spec.p, plan.noise_scale, gamma)
        return predict_from_noise(spec, math.sqrt(moment / spec.p))

    @property
    def is_centred(self) -> bool:
        """Whether the extra regulariser is centred on the set, and not on 0."""
        return True

    def adversary(self, budget: Budget) -> Adversary:
        """One record with the linear loss and ridge 1: theta is minus its gradient and b.

        Without curvature there is no Jacobian, and all of epsilon is in the noise, which moves by
        the sensitivity, in a set too large to be met.
        """
        first, second = linear_pair(budget.relation, ridge=1.0)
        gamma = list_laws(self.noise, budget, first.spec())[-1]
        chosen = replace(self, noise="gamma" if gamma else "gaussian")
        scale = chosen.plan(first.spec(), budget).noise_scale
        first, second = linear_pair(budget.relation, ridge=1.0, radius=2.0 + 20.0 * scale)
        if gamma:
            return Adversary(first, second, chosen, kind="threshold", floor=self.attack_floor)
        return Adversary(first, second, chosen, kind="gaussian", floor=0.75)


def list_laws(noise: str, budget: Budget, spec: ProblemSpec) -> tuple[bool, ...]:
    """Whether the noise may be of a Gamma norm, for each law that may be taken.

    The Gaussian form is proved where one record's Hessian has rank 1.
    """
    only_gamma = noise == "auto" and hessian_rank(spec) > 1
    return (True,) if only_gamma else noise_law.list_laws(noise, budget)


def hessian_rank(spec: ProblemSpec) -> int:
    """A bound on the rank of one record's Hessian, where it has one."""
    found = None if spec.form is None else spec.form.hessian_rank(spec.bounds)
    return spec.p if found is None else found


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
) -> PerturbedPlan:
    """Both events of a budget, at the strength given or at the one that minimises ``theory_risk``.

    Gamma norms: the second event has a share of epsilon, ``SECOND_SHARE``. Gaussian: it is mu2-GDP
    with ``SECOND_MU``, or a tenth of what one record moves the first by if that is less, and the
    budget holds for both jointly. More, where the distance that can be proved is so wide that its
    noise would outweigh the first.
    """
    return _choose_share(
        spec,
        gamma,
        budget.epsilon,
        lambda share: _design_with_share(spec, budget, gamma, strength, share),
    )


def design_at(spec: ProblemSpec, first: PerturbedObjective, relation: str) -> PerturbedPlan:
    """Both events for a first event whose noise is given; the second is chosen as by ``design``."""
    gamma = first.noise == "gamma_norm"
    epsilon = first.epsilon(relation)

    def pay_share(share: float) -> PerturbedPlan:
        if not gamma:
            return _pay_gaussian(spec, first, share)
        return add_second_event(
            first, spec, lambda m: calibrate.pure_scale(share / (1.0 - share) * epsilon, m)
        )

    return _choose_share(spec, gamma, epsilon, pay_share)


def _choose_share(
    spec: ProblemSpec, gamma: bool, epsilon: float, pay_share: Callable[[float], PerturbedPlan]
) -> PerturbedPlan:
    """What ``pay_share`` makes of the usual share, or of the one that balances both noises."""
    usual = SECOND_SHARE if gamma else SECOND_MU
    planned = pay_share(usual)
    wanted = _balanced_share(spec, planned, epsilon)
    return planned if wanted <= usual else pay_share(wanted)


def _design_with_share(
    spec: ProblemSpec, budget: Budget, gamma: bool, strength: float | None, share: float
) -> PerturbedPlan:
    """``design`` with a share of epsilon for the second event, or a mu2 for a Gaussian."""
    if not gamma:
        first = first_event(spec, budget, gamma, strength, _cap_second_mu(share))
        return _pay_gaussian(spec, first, share)
    left = Budget((1.0 - share) * budget.epsilon, budget.delta, budget.relation)
    first = first_event(spec, left, gamma, strength)
    return add_second_event(
        first, spec, lambda move: calibrate.pure_scale(share * budget.epsilon, move)
    )


def _pay_gaussian(spec: ProblemSpec, first: PerturbedObjective, mu: float) -> PerturbedPlan:
    mu = _cap_second_mu(mu)(spec.lipschitz / first.scale)
    return add_second_event(first, spec, lambda move: move / mu)


def _cap_second_mu(mu: float) -> Callable[[float], float]:
    """mu2 beside a first event of a ratio of one record's norm to its scale: a tenth at most."""
    return lambda ratio: min(mu, 0.1 * ratio)


def _balanced_share(spec: ProblemSpec, planned: PerturbedPlan, epsilon: float) -> float:
    """The share of epsilon, or the mu2, at which both noises together are about the least.

    The second noise is c / share, and the first one, of size a, grows by a share or, as a root of
    squares, by a (mu2 / ratio)^2 / 2.
    """
    first, move = planned.event, 2.0 * planned.distance
    size = first.scale / first.strength
    if first.noise == "gamma_norm":
        return min(0.1, (move / epsilon / size) ** (2.0 / 3.0))
    return math.sqrt(move / size * spec.lipschitz / first.scale)


def first_event(
    spec: ProblemSpec,
    budget: Budget,
    gamma: bool,
    strength: float | None = None,
    second: Callable[[float], float] = lambda ratio: 0.0,
) -> PerturbedObjective:
    """The noise that spends a budget, together with a second event that is mu2-GDP where
    ``second`` gives mu2 of one record's norm over the scale."""
    curvature(spec)
    planner = NoisePlanner(spec, budget, gamma, second)
    return planner.event(planner.best() if strength is None else planner.check_strength(strength))


def add_second_event(
    first: PerturbedObjective,
    spec: ProblemSpec,
    scale: Callable[[float], float],
    distance: float | None = None,
) -> PerturbedPlan:
    """The first event with a second one of the same kind that pays for the solver's ``distance``,
    by default one that costs next to nothing, if that can be proved. ``scale`` is that of the
    noise on a sensitivity.

    Given b, or what the first event shows, the points found on two data sets are each within the
    distance of one and the same minimiser: 2 distance apart, under either relation. So that is
    one record's norm under add_remove and the gap under replace_one.
    """
    kind = GammaNorm if first.noise == "gamma_norm" else Gaussian
    if distance is None:
        wanted = _SECOND_SIZE * first.scale / first.strength / (2.0 * scale(1.0))
        # elsewhere a solver may fail in any case, and the largest draw is thousands of usual ones
        certain = perturbed_minimiser.always_converges(spec)
        tilt = first.largest_noise(spec.p) if certain else first.likely_noise(spec.p)
        distance = perturbed_minimiser.provable_distance(spec, first.strength, tilt, wanted)
    move = 2.0 * distance
    second = kind(scale(move) * (1.0 + 1e-12), move, gap=move)
    return PerturbedPlan(first, second, max(0.0, first.strength - spec.penalty.ridge), distance)


def theory_risk(spec: ProblemSpec, strength: float, moment: float) -> float:
    """(added / 2) D^2 + moment / (2 strength) >= the expected excess risk; moment = E |b|^2."""
    added = max(0.0, strength - spec.penalty.ridge)
    return 0.5 * added * spec.constraint.diameter**2 + moment / (2.0 * strength)


def balance_strength(spec: ProblemSpec, scale: float, gamma: bool) -> float:
    """The strength that minimises ``theory_risk`` for noise of this scale."""
    wanted = math.sqrt(noise_moment(spec.p, scale, gamma)) / spec.constraint.diameter
    return max(wanted, spec.penalty.ridge)


def make_event(
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
        delta=0.0 if gamma else DELTA_ROUNDING * delta,
        rank=rank,
        gap=spec.gradient_gap if gamma else None,
    )


class NoisePlanner:
    """From a budget to strength and noise; everything here is public."""

    def __init__(
        self, spec: ProblemSpec, budget: Budget, gamma: bool, second: Callable[[float], float]
    ) -> None:
        self._spec, self._budget, self._gamma, self._second = spec, budget, gamma, second
        self._unit = make_event(spec, 1.0, 1.0, gamma, budget.delta)

    def scale(self, strength: float) -> float:
        """The least noise at this strength, inf where the Jacobian leaves no room for any."""
        left = self._budget.epsilon - self._jacobian(strength)
        sensitivity, relation = self._unit.sensitivity(self._budget.relation), self._budget.relation
        if not left > 0.0:
            return math.inf
        if self._gamma:
            return sensitivity / left
        part = self._spec.lipschitz / sensitivity if sensitivity > 0.0 else 0.0
        return sensitivity / noise_ratio(
            left, self._unit.delta, relation, lambda ratio: self._second(part * ratio)
        )

    def risk(self, strength: float) -> float:
        moment = noise_moment(self._spec.p, self.scale(strength), self._gamma)
        return theory_risk(self._spec, strength, moment)

    def best(self) -> float:
        """The minimiser of ``theory_risk`` over strengths of at least n * ridge."""
        ridge = self._spec.penalty.ridge
        surely = perturbed_minimiser.least_modulus(self._spec)
        least = max(ridge, surely, self._least() * (1.0 + 1e-9))
        # noise as if the Jacobian were free: the strength is above what balances that
        free = self._unit.sensitivity(self._budget.relation) / self._budget.epsilon
        low = math.log(max(least, _SMALLEST * balance_strength(self._spec, free, self._gamma)))
        found = find_minimum(
            lambda t: math.log(self.risk(math.exp(t))), low, low + _LOG_STRENGTH_RANGE, xtol=1e-6
        )
        best = math.exp(found.x)
        enough = ridge > self._least() and ridge >= surely
        return ridge if enough and self.risk(ridge) <= self.risk(best) else best

    def check_strength(self, strength: float) -> float:
        """The strength asked for, the ridge's own if that is more; Unsupported if too weak."""
        whole, least = max(strength, self._spec.penalty.ridge), self._least()
        if not whole > least:
            raise Unsupported(
                f"strength {whole:.6g} spends all of epsilon {self._budget.epsilon:g} on the "
                f"Jacobian; it must exceed {least:.6g}"
            )
        return whole

    def event(self, strength: float) -> PerturbedObjective:
        """Rounded so that the epsilon of both events fits the budget."""
        scale, budget, step = self.scale(strength), self._budget, 1e-14
        while True:
            found = make_event(self._spec, scale, strength, self._gamma, budget.delta)
            # the second event's scale is rounded up, and its mu down
            second = self._second(self._spec.lipschitz / scale)
            if found.epsilon(budget.relation, second) <= budget.epsilon:
                return found
            scale, step = scale * (1.0 + step), 2.0 * step

    def _jacobian(self, strength: float) -> float:
        return replace(self._unit, strength=strength).jacobian

    def _least(self) -> float:
        """The strength whose Jacobian is epsilon."""
        share = min(self._budget.epsilon / self._unit.rank, 700.0)
        return self._unit.curvature / math.expm1(share)


def _noisy_minimiser(
    view: CentralView, planned: PerturbedPlan, gate: Gate, centred: bool
) -> np.ndarray:
    """A minimiser of the perturbed objective a trial plus the second noise, projected: [trials, p].

    What passes the gate first is the sum of gradients at the point found, of which b is a known
    function there; then that point. However it was found, the second noise is added.
    """
    noise = gate.stream(planned.event, view.spec.p)
    paid = gate.stream(planned.second, view.spec.p)
    middle = view.spec.constraint.centre() if centred else np.zeros(view.spec.p)

    def point(b: np.ndarray) -> np.ndarray:
        return view.find_perturbed_minimisers(
            b - planned.added * middle, planned.added, planned.distance
        )

    return view.spec.constraint.project(noise.find(point, view.gradient_sum, 0, paid))
