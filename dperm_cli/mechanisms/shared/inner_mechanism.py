"""Helpers of combinators: read, plan and run the mechanism inside another one."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar

from dperm_cli.core import registry
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError, PrivacyError, UnknownKey
from dperm_cli.core.fields import Check, Help, configure
from dperm_cli.core.plugin_classes import is_shipped
from dperm_cli.mechanisms.adversary import Adversary
from dperm_cli.mechanisms.base import Design, Mechanism, Plan, Release
from dperm_cli.mechanisms.shared import released_bound
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Event, Gaussian
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.problem import ProblemSpec

_KEY = "mechanism.inner"


def build_mechanism(inner: Any, key: str = _KEY) -> Any:
    """The mechanism of a name or of a mapping {name: ..., field: ...}; a mechanism stays.

    Errors name keys as the user types them, as in ``mechanism.inner.steps``.
    """
    if isinstance(inner, str):
        inner = {"name": inner}
    if not isinstance(inner, Mapping):
        if not isinstance(inner, Mechanism):
            words = "must be a mechanism, as in noisy_gd or {name: noisy_gd, steps: 50}"
            raise InputError(key, inner, words)
        return inner
    if not isinstance(inner.get("name"), str):
        raise InputError(key, inner, "needs a name, as in {name: noisy_gd, steps: 50}")
    return prefix_error_keys(lambda: _of_mapping(inner, key), key)


Inner = Annotated[
    Any,
    Check(lambda key, value: build_mechanism(value)),
    Help("what runs; mechanism.inner.KEY=VALUE sets keys"),
]


def prefix_error_keys(make: Callable[[], Any], whole: str = _KEY) -> Any:
    """Call ``make()`` and put ``whole`` before the keys of its input errors."""
    try:
        return make()
    except UnknownKey:
        raise
    except InputError as error:
        head, _, tail = error.key.partition(".")
        key = f"{whole}.{tail}" if tail and head == "mechanism" else error.key
        key = whole if key == "mechanism" else key
        suggestions = (error.nearest,) if error.nearest else ()
        raise InputError(key, error.value, error.allowed, suggestions) from None


def _of_mapping(inner: Mapping[str, Any], key: str) -> Any:
    given = {key: value for key, value in inner.items() if key != "name"}
    return configure(registry.load("mechanism", inner["name"]), key, given)


@dataclass(frozen=True)
class Combinator(Mechanism):
    """A mechanism that runs another one: it promises what both of them do.

    ``sampler`` errors and the like stay the inner one's business. ``secure_as_inner`` says that it
    has a secure form where the inner mechanism has one.
    """

    inner: Inner = "noisy_gd"

    guarantees: ClassVar[tuple[str, ...]] = ("pure", "approx")

    def __post_init__(self) -> None:
        """Narrow kinds of guarantee and relations to those that the inner mechanism has too.

        InputError for an inner mechanism that promises nothing.
        """
        super().__post_init__()
        if tuple(self.inner.guarantees) == ("none",):
            known = ", ".join(registry.list_protective())
            words = f"must be a mechanism with a guarantee: {known}"
            raise InputError(_KEY, name_of(self.inner), words)
        if self.inner.outermost:
            words = "has runs of its own and cannot be inside: put it around the other mechanism"
            raise InputError(_KEY, name_of(self.inner), words)
        for what in ("guarantees", "relations"):
            mine, theirs = getattr(type(self), what), getattr(self.inner, what)
            object.__setattr__(self, what, tuple(word for word in mine if word in theirs))
        if self.secure_as_inner:
            self._keep("secure", self.inner.secure)

    def choose_secure_form(self, budget: Budget) -> Combinator:
        """Itself with the inner mechanism's secure form."""
        return replace(self, inner=self.inner.choose_secure_form(budget))

    def adversary(self, budget: Budget) -> Adversary:
        """The inner mechanism's own: what is done to the problem is done before any release."""
        found = self.inner.adversary(budget)
        return replace(found, mechanism=replace(self, inner=found.mechanism))


@dataclass(frozen=True)
class ChangedProblem(Combinator):
    """The inner mechanism on another problem, which public facts make of the one at hand.

    Events, noise scale and guarantee are the inner mechanism's there.
    """

    inner: Inner = "objective_perturbation"

    @property
    def is_unprotected(self) -> bool:
        """Whether the user asked the inner mechanism for a release without a guarantee."""
        return self.inner.is_unprotected

    @abstractmethod
    def change_facts(self, spec: Any, budget: Budget) -> ProblemSpec:
        """The public facts of the inner mechanism's problem."""

    def events(self, spec: Any, scale: float, budget: Budget) -> tuple[Event, ...]:
        """The inner mechanism's, on its problem."""
        return self.inner.events(self.change_facts(spec, budget), scale, budget)


def describe_inner(inner: Any, plan: Plan) -> dict[str, Any]:
    """What a combinator's settings say of the inner mechanism: its plan's settings and its name."""
    return {**plan.settings, "name": name_of(inner)}


def name_of(mechanism: Any) -> str:
    """A mechanism's name on the command line."""
    return registry.find_name(type(mechanism))


def list_mechanisms(mechanism: Mechanism) -> Iterator[Mechanism]:
    """A mechanism and all that it may run, at any depth."""
    yield mechanism
    for one in mechanism.inside:
        yield from list_mechanisms(one)


def release_inside(
    mechanism: Mechanism, view: Any, plan: Plan, gate: Gate, added_risk: float | None = None
) -> Release:
    """The release of a mechanism inside another one, which may draw noise of its own.

    Args:
        mechanism: the mechanism inside.
        view: of the problem that it works on.
        plan: its own.
        gate: for its events.
        added_risk: by how much, at most, the excess risk of its point is larger in the whole
            problem than in the one that it works on. None where that is not known: bounds that the
            release shows are then about another problem, and are left out.

    Raises:
        PrivacyError: The mechanism is from outside, and asked for no event of its plan.
    """
    before = gate.events_to_come
    found = mechanism.release(view, plan, gate)
    if not is_shipped(type(mechanism)) and 0 < before == gate.events_to_come:
        allowed = "released without asking the gate for any event of its plan: no noise was drawn"
        raise PrivacyError(f"{type(mechanism).__name__} {allowed}")
    return replace(found, info=released_bound.move_bounds(found.info, added_risk))


def inner_plan(whole: Plan, events: Sequence[Event]) -> Plan:
    """The inner mechanism's plan, with the events that the combinator's plan holds for it."""
    assert isinstance(whole.inner, Plan)
    return replace(whole.inner, events=tuple(events), noise_scale=whole.noise_scale)


def wrap_plan(found: Plan, settings: Mapping[str, Any], space: Any = None) -> Design:
    """The design of a combinator that adds no event to its inner mechanism's plan."""
    return Design(
        found.events, found.noise_scale, found.steps, settings,
        certificate=found.guarantee.certificate, reason=found.guarantee.source,
        inner=found, space=space,
    )  # fmt: skip


def gdp_budget(mu: float, budget: Budget) -> Budget:
    """A budget (epsilon', delta') that a mu-GDP mechanism meets exactly, at the same delta.

    Where epsilon' would be near 0, a smaller delta' describes the same mu.
    """
    delta = budget.delta
    while True:
        event = Gaussian(1.0 / mu, 1.0)
        epsilon = account((event,), delta=delta, relation="add_remove").epsilon
        if epsilon > 0.05 * mu:
            return replace(budget, epsilon=epsilon, delta=delta)
        delta *= 0.1


def split_mu(budget: Budget, parts: int) -> Budget:
    """The budget of one of ``parts`` equal parts: mu / sqrt(parts) of mu(epsilon, delta), or
    epsilon / parts at delta = 0."""
    if budget.delta == 0.0:
        return replace(budget, epsilon=budget.epsilon / parts)
    mu = calibrate.mu(budget.epsilon, budget.delta)
    return gdp_budget(mu / math.sqrt(parts), budget)


def split_basic(budget: Budget, parts: int) -> Budget:
    """Basic composition: each part gets (epsilon / parts, delta / parts)."""
    return replace(budget, epsilon=budget.epsilon / parts, delta=budget.delta / parts)
