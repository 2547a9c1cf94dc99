"""The base class of mechanisms, and the classes of their plans and releases."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, Self, final

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.fields import Auto, CheckedFields, Choices, Help, Positive, Range
from dperm_cli.mechanisms.adversary import Adversary, linear_pair
from dperm_cli.mechanisms.shared import noise_law
from dperm_cli.privacy.accounting import calibrate, ledger_totals
from dperm_cli.privacy.budget import Budget, Guarantee
from dperm_cli.privacy.events import Event, kind
from dperm_cli.privacy.gate import Gate

# Least influence of one record's loss over the set: squares of smaller numbers underflow.
LEAST_INFLUENCE = 1e-140

# Largest size of a gradient and of the set: squares and products of larger numbers overflow.
MOST_MAGNITUDE = 1e140

# Fields that several mechanisms have.
CentralNoise = Annotated[
    str, Choices("auto", "gamma", "gaussian"), Help("auto = the smaller; gaussian needs delta > 0")
]
LearningRate = Annotated[
    str,
    Choices("auto", "convex", "strongly_convex"),
    Help("of [BST14, Thm 2.4]; strongly_convex needs ridge > 0"),
]
Output = Annotated[str, Choices("average", "last"), Help("of the iterates, what is released")]
Steps = Annotated[int | Auto, Range(1, 10**6)]
StepSize = Annotated[Positive | Literal["auto", "theory"], Help("theory = least risk bound")]
Strength = Annotated[Positive | Auto, Help("auto = least risk in theory")]


@dataclass(frozen=True)
class Design:
    """What a mechanism decides for a budget; with the guarantee computed from it, a ``Plan``.

    Attributes:
        events: what will be done to the records; the guarantee follows from them.
        noise_scale: standard deviation (or scale) of one noise draw, in the unit that the
            mechanism's docstring names.
        steps: the number of noisy releases.
        settings: other public values that the result rows show, JSON-able.
        certificate: what was proved of a sampler or a minimiser.
        reason: why a release without a guarantee has none.
        inner: the plan of the mechanism inside a combinator, or its plans for several candidates.
        sampler: the sampler that draws from a law, with its certificate.
        space: the public map to another space, and the facts of that space.

    >>> from dperm_cli.privacy.events import Laplace
    >>> made = Design((Laplace(scale=2.0, record_norm=1.0),), noise_scale=2.0, steps=1)
    >>> guarantee_of(made, Budget(1.0, 0.0)).epsilon
    1.0
    """

    events: tuple[Event, ...]
    noise_scale: float
    steps: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    certificate: str | None = None
    reason: str = "no guarantee"
    inner: Plan | tuple[Plan, ...] | None = None
    sampler: Any = None
    space: Any = None


@dataclass(frozen=True, kw_only=True)
class Plan(Design):
    """Everything that is fixed before a record is seen: a design with its guarantee.

    Attributes:
        guarantee: what is certified for the events, computed by ``Mechanism.plan``.
        reserve: the part of delta that the runner reserves for the bounded range of seeded noise,
            as a last event.

    >>> from dperm_cli.mechanisms.gradient.noisy_gd import NoisyGd
    >>> from dperm_cli.problem.problem import bare_spec
    >>> from dperm_cli.sets import make_ball
    >>> plan = NoisyGd(steps=50).plan(bare_spec(1000, 1.0, make_ball(1.0, 5)), Budget(1.0, 1e-6))
    >>> isinstance(plan, Plan), plan.steps, plan.guarantee.within(Budget(1.0, 1e-6))
    (True, 50, True)
    """

    guarantee: Guarantee
    reserve: float = 0.0

    def __repr__(self) -> str:
        found = self.guarantee
        level = "" if found.kind == "none" else f", epsilon {found.epsilon:.4g}"
        level += f", delta {found.delta:.3g}" * bool(found.kind == "approx")
        scale = "" if self.noise_scale is None else f", noise scale {self.noise_scale:.4g}"
        steps = "" if self.steps is None else f", {self.steps} steps"
        return f"Plan({found.kind}{level}{scale}{steps}, events {len(self.events)})"


@dataclass(frozen=True)
class Release:
    """The output of a mechanism: ``theta`` of shape [trials, p], one independent draw in each row.

    ``info`` holds public by-products only (post-processing of released values).

    >>> Release(np.zeros((3, 2))).theta.shape  # three trials of two parameters
    (3, 2)
    """

    theta: np.ndarray
    info: Mapping[str, Any] = field(default_factory=dict)


class Mechanism(CheckedFields, ABC):
    """The base class of mechanisms: a frozen dataclass whose fields are its YAML keys.

    A mechanism defines ``events`` (what it does to the records at a noise scale), ``settings``
    (what else is public) and ``release``. This class computes the noise scale, the guarantee and
    the plan from the events, so that no mechanism states its own guarantee. ``check`` is the one
    method that raises ``Unsupported``, from public facts. ``release`` reaches records through the
    view, and random numbers through ``gate.stream(event, dim)``. It draws ``gate.trials``
    independent outputs.

    Attributes:
        guarantees: the kinds of guarantee it can give, strongest first.
        relations: the relations that it is proved for.
        requires: what the problem must have: ``strong_convexity``, a loss of the ``margin``, one
            that is ``quadratic``, or one that is ``smooth``.
        secure: whether it can run with noise on a grid (``choose_secure_form``). It then sees
            records only through exact sums and certified minimisers (``views.grid.GridView``).
        secure_as_inner: of one around another mechanism: whether it can do so where that one can.
        plan_on_grid: ``plan_on_grid(spec, plan, loss)``, of one that does more than to release
            sums over records: the plan with noise on a grid, and the grid. None for such sums,
            which ``mechanisms.shared.secure_plan`` knows how to put on one.
        trust: ``local`` where it gets a ``LocalView``.
        space: ``kernel`` where it works on a kernel's minimiser.
        features: the finite map of a kernel whose rows it sees.
        on_queries: whether it works on the span of the public queries, in coordinates, where the
            kernel itself would be used.
        by_rows: whether the set may differ from trial to trial.
        by_sums: whether its release and the records meet in sums over records alone, which other
            processes may make (``split=rows``).
        one_pass: whether each record is used once.
        free_of_radius: whether its noise does not grow with the set, so that it needs no radius.
        outermost: whether no other mechanism may run it: several of it do not share a budget.
        added_keys: keys that were added after the first version, with the values that stand for the
            behaviour before.
        inner, sampler, sampling, calibration: fields of some mechanisms; here the values that stand
            for their absence.
        session: answers queries one at a time, where a mechanism has it.
        predict_risk: ``predict_risk(spec, plan)``, about the median excess risk per record of a
            plan, from public facts alone; ``mechanism=auto`` compares it. None gives no prediction.
        point_noise: ``point_noise(spec, plan, theta)``, of one that releases a minimiser: which
            noise the point holds (``shared.point_noise.PointNoise``).

    >>> from dperm_cli.privacy.events import Gaussian
    >>> class NoisySum(Mechanism):
    ...     events = staticmethod(lambda spec, scale, budget: (Gaussian(scale, record_norm=1.0),))
    ...     release = adversary = None
    >>> round(NoisySum().scale(None, Budget(1.0, 1e-6)), 2)
    8.45
    """

    group: ClassVar[str] = "mechanism"
    plugin_kind: ClassVar[str] = "mechanism"
    guarantees: ClassVar[tuple[str, ...]] = ("approx",)
    relations: ClassVar[tuple[str, ...]] = ("replace_one", "add_remove")
    requires: ClassVar[tuple[str, ...]] = ()
    secure: ClassVar[bool] = False
    secure_as_inner: ClassVar[bool] = False
    plan_on_grid: ClassVar[Any] = None
    trust: ClassVar[str] = "central"
    space: ClassVar[str] = "parameters"
    features: ClassVar[str | None] = None
    on_queries: ClassVar[bool] = False
    by_rows: ClassVar[bool] = False
    by_sums: ClassVar[bool] = False
    one_pass: ClassVar[bool] = False
    free_of_radius: ClassVar[bool] = False
    outermost: ClassVar[bool] = False
    added_keys: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    inner: ClassVar[Any] = None
    sampler: ClassVar[Any] = None
    sampling: ClassVar[str] = ""
    calibration: ClassVar[str] = ""
    session: ClassVar[Any] = None
    predict_risk: ClassVar[Any] = None
    point_noise: ClassVar[Any] = None

    @abstractmethod
    def events(self, spec: Any, scale: float, budget: Budget) -> tuple[Event, ...]:
        """What is done to the records at a noise scale, from public facts alone."""

    @abstractmethod
    def release(self, view: Any, plan: Plan, gate: Gate) -> Release:
        """Draw ``gate.trials`` outputs."""

    def adversary(self, budget: Budget) -> Adversary:
        """The pair of data sets and the statistic by which ``dperm audit`` attacks it.

        Here opposite linear losses on a line, told apart by the released number alone. How much
        that number tells is not known, so that the control need not be caught.
        """
        return Adversary(*linear_pair(budget.relation), self, kind="profile", must_catch=False)

    def check(self, spec: Any, budget: Budget) -> None:
        """Raise ``Unsupported`` where there is no plan for the problem or the budget."""
        return

    def settings(self, spec: Any, events: tuple[Event, ...], budget: Budget) -> Mapping[str, Any]:
        """Further public settings to report. Returns JSON-able values."""
        return {}

    def scale(self, spec: Any, budget: Budget) -> float:
        """The least noise whose events keep to the budget."""
        return find_scale(lambda scale: self.events(spec, scale, budget), budget)

    def design(self, spec: Any, budget: Budget) -> Design:
        """Events and settings at the least noise; combinators and samplers have their own."""
        scale = self.scale(spec, budget)
        events = self.events(spec, scale, budget)
        return Design(events, scale, events[0].draws, self.settings(spec, events, budget))

    @final
    def plan(self, spec: Any, budget: Budget) -> Plan:
        """Everything that is fixed before a record is seen, with the guarantee that follows.

        Args:
            spec: public facts of the problem.
            budget: what may be spent.

        Raises:
            Unsupported: from public facts alone.
        """
        if not self.is_unprotected:
            _require_computable(spec)
        self.check(spec, budget)
        if not self.is_unprotected:
            _require_influence(spec)
        made = self.design(spec, budget)
        return Plan(**vars(made), guarantee=guarantee_of(made, budget))

    def describe_answers(self) -> str:
        """What a user's secure answers are made of, of a local mechanism."""
        return "signs"

    def choose_secure_form(self, budget: Budget) -> Mechanism:
        """Itself as it plans for noise on a grid, for one that is ``secure``.

        Where it may choose among several kinds of noise, that is the kind that a grid can have.

        Raises:
            Unsupported: none of them suits the budget.
        """
        return self

    def share_statistics(self, budget: Budget) -> Any:
        """The mechanism by whose one release candidates can be compared at no cost, if any.

        It has ``release_best(view, plan, gate, specs)``: points [trials, p], and which of the
        candidates' public facts each is for, [trials].
        """
        return None

    @property
    def inside(self) -> tuple[Any, ...]:
        """The mechanisms that it may run, each on its own; empty where it runs none."""
        return () if self.inner is None else (self.inner,)

    @property
    def is_unprotected(self) -> bool:
        """Whether the user asked for draws that no guarantee covers."""
        return bool(getattr(self.sampler, "allow_heuristic", False))


@dataclass(frozen=True)
class EitherNoise(Mechanism):
    """A mechanism of one release, whose noise has a Gamma norm (pure epsilon) or is Gaussian.

    ``noise=auto`` takes the smaller one, by public facts (``noise_law``). A Gamma norm spends no
    delta, whatever the budget has of it.

    >>> from dperm_cli.mechanisms.perturbation.output_perturbation import OutputPerturbation
    >>> from dperm_cli.problem.problem import bare_spec
    >>> from dperm_cli.sets import make_ball
    >>> specs = [bare_spec(1000, 1.0, make_ball(1.0, p)) for p in (16, 17)]
    >>> [EitherNoise.is_gamma(OutputPerturbation(), one, Budget(1.0, 1e-6)) for one in specs]
    [True, False]
    """

    noise: CentralNoise = "auto"

    guarantees: ClassVar[tuple[str, ...]] = ("pure", "approx")

    def check(self, spec: Any, budget: Budget) -> None:
        """Gaussian noise needs delta > 0."""
        noise_law.list_laws(self.noise, budget)

    def scale(self, spec: Any, budget: Budget) -> float:
        """The least noise, of the law that is taken."""
        spent = replace(budget, delta=0.0) if self.is_gamma(spec, budget) else budget
        return super().scale(spec, spent)

    def fix_noise(self, budget: Budget) -> Self:
        """With one law, for audits: Gaussian where there is a delta, unless gamma was asked for."""
        laws = noise_law.list_laws(self.noise, budget)
        return replace(self, noise="gamma" if laws[-1] else "gaussian")

    def is_gamma(self, spec: Any, budget: Budget) -> bool:
        """Whether the noise has a Gamma norm: asked for, or the smaller."""
        laws = noise_law.list_laws(self.noise, budget)
        return laws[0] and (len(laws) == 1 or noise_law.is_gamma_smaller(spec.p, budget))


def find_scale(events_at: Callable[[float], tuple[Event, ...]], budget: Budget) -> float:
    """The least noise scale whose events, ``events_at(scale)``, keep to the budget."""
    return calibrate.scale_for(
        events_at, epsilon=budget.epsilon, delta=budget.delta, relation=budget.relation
    )


def _require_computable(spec: Any) -> None:
    """``Unsupported`` where the arithmetic of plans would leave float64."""
    on_set = spec.space == "parameters"
    gradient = float(spec.lipschitz_total if on_set else spec.lipschitz)
    size = float(spec.constraint.diameter if on_set else spec.radius)
    # a loss without a bound on its gradients is refused by the mechanism itself
    if not size <= MOST_MAGNITUDE or MOST_MAGNITUDE < gradient < math.inf:
        raise Unsupported(
            f"a set of diameter {size:.3g} and gradients of up to {gradient:.3g} are beyond what "
            f"can be computed with: at most {MOST_MAGNITUDE:g} each. Check the set's radius, "
            "row_bound, the bounds of the targets and the ridge"
        )


def _require_influence(spec: Any) -> None:
    """``Unsupported`` where no record moves the objective, or too little for float64 to tell."""
    moves = float(spec.lipschitz)
    if spec.space == "parameters":
        moves = min(moves, moves * spec.constraint.diameter)
    if not moves >= LEAST_INFLUENCE:
        raise Unsupported(
            f"one record moves the loss by at most {moves:.3g} on this set (from its gradient "
            "bound and the set's diameter): there is nothing to protect or to learn; any point of "
            "the set is as good. Check row_bound, the bounds of the targets and the set"
        )


def guarantee_of(made: Design, budget: Budget) -> Guarantee:
    """The guarantee of a design's events at the budget's delta."""
    found = kind(made.events)
    if found == "none":
        return Guarantee(
            "none", math.inf, 1.0, budget.relation, made.reason, certificate=made.certificate
        )
    if found != "local":
        found = "approx" if budget.delta > 0.0 else "pure"
    return ledger_totals.find_guarantee(made.events, found, budget, made.certificate)
