"""The class of risk bounds (``Bound``), their conditions, and where they are evaluated."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import Any, ClassVar

from dperm_cli.core.dataclass import dataclass
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events.base import Event, PrivacyLoss
from dperm_cli.problem.problem import ProblemSpec

# the quantities that a bound may be about
QUANTITIES = (
    "excess_risk", "excess_risk_of_method", "gaussian_excess_risk", "population_risk", "steps",
)  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """What a bound is evaluated at: a problem's public facts, a budget and a mechanism's plan.

    Attributes:
        spec: the public facts of the problem.
        budget: what the release may spend.
        kind: the kind of guarantee, ``pure`` or ``approx``.
        mechanism: the mechanism's name.
        noise_scale: the plan's noise scale, in the mechanism's unit.
        steps: the plan's number of steps.
        settings: the plan's settings.
        mu: of the Gaussian privacy of all the plan's events; 0 where others are among them.

    >>> from dperm_cli.problem.problem import bare_spec
    >>> from dperm_cli.sets import make_ball
    >>> spec = bare_spec(100, 1.0, make_ball(1.0, 3))
    >>> at = Setting(spec, Budget(1.0, 0.0), "pure", "exponential", 1.0, 1, {})
    >>> lipschitz_times_diameter(at), risk_range(at)
    (2.0, 200.0)
    """

    spec: ProblemSpec
    budget: Budget
    kind: str
    mechanism: str
    noise_scale: float
    steps: int
    settings: Mapping[str, Any]
    mu: float = 0.0

    def find_chosen(self) -> Setting:
        """The same for the mechanism that this one has chosen, if it does choose."""
        if "chosen" not in self.settings:
            return self
        return replace(self, mechanism=self.settings["chosen"], settings=self.settings["inner"])


def find_gaussian_mu(events: Iterable[Event], relation: str) -> float:
    """The mu for which these events together are mu-Gaussian private.

    Args:
        events: of a plan.
        relation: the neighbouring relation.

    Returns:
        mu, or 0 where an event has another privacy loss than a Gaussian one.
    """
    losses = [event.loss(relation) for event in events]
    if any(loss != PrivacyLoss(mu2=loss.mu2) for loss in losses):
        return 0.0
    return math.sqrt(math.fsum(loss.mu2 for loss in losses))


Condition = Callable[[Setting], "str | None"]
Formula = Callable[[Setting], float]


@dataclass(frozen=True)
class Bound:
    """A bound on the expected excess risk (summed over records), or on another ``quantity``.

    Attributes:
        id: The name that result rows give it.
        kind: ``upper`` or ``lower``.
        constant: ``explicit`` when ``value`` is the bound itself, ``order`` when the theorem leaves
            a constant open (``value`` then takes it as one).
        conditions: Each returns None if it holds, else the reason why the bound does not apply.
        value: The formula; its docstring is the statement.
        quantity: One of ``QUANTITIES``.

    >>> from dperm_cli.problem.problem import bare_spec
    >>> from dperm_cli.sets import make_ball
    >>> spec, budget = bare_spec(100, 1.0, make_ball(1.0, 3)), Budget(1.0, 0.0)
    >>> simple = Bound("simple", "upper", "explicit", (check_mechanism("noisy_gd"),), risk_range)
    >>> simple.applies(Setting(spec, budget, "pure", "exponential", 1.0, 1, {}))
    'is about noisy_gd'
    """

    plugin_kind: ClassVar[str] = "bound"

    id: str
    kind: str
    constant: str
    conditions: tuple[Condition, ...]
    value: Formula
    quantity: str = "excess_risk"

    def applies(self, at: Setting) -> str | None:
        """None if the bound applies at this setting, else the first reason why it does not."""
        return next((reason for check in self.conditions if (reason := check(at))), None)


def bound(
    id: str, *conditions: Condition, kind: str, constant: str, quantity: str = "excess_risk"
) -> Callable[[Formula], Bound]:
    """A decorator that makes a ``Bound`` of its formula; the arguments are fields of ``Bound``.

    >>> @bound("simple", check_guarantee("pure"), kind="upper", constant="explicit")
    ... def simple(at):
    ...     return risk_range(at)
    >>> simple.id, simple.kind, simple.quantity
    ('simple', 'upper', 'excess_risk')
    """
    return lambda formula: Bound(id, kind, constant, conditions, formula, quantity)


upper_bound = partial(bound, kind="upper", constant="explicit")
upper_order = partial(bound, kind="upper", constant="order")
lower_bound = partial(bound, kind="lower", constant="explicit")
lower_order = partial(bound, kind="lower", constant="order")


def list_bounds(*modules: ModuleType) -> tuple[Bound, ...]:
    """All bounds that these modules define, in the order of their source text."""
    return tuple(b for module in modules for b in vars(module).values() if isinstance(b, Bound))


def find_least(bounds: Iterable[Bound], at: Setting) -> float | None:
    """The least value of the bounds that apply; None where none does."""
    return min((bound.value(at) for bound in bounds if bound.applies(at) is None), default=None)


def check(holds: Callable[[Setting], bool], reason: str) -> Condition:
    """A condition: None where ``holds`` is true, else ``reason``."""
    return lambda at: None if holds(at) else reason


def check_mechanism(*mechanisms: str) -> Condition:
    """The condition that the setting's mechanism is one of these."""
    return check(lambda at: at.mechanism in mechanisms, f"is about {' or '.join(mechanisms)}")


def check_guarantee(kind: str) -> Condition:
    """The condition that the guarantee in force is of this kind."""
    words = {"pure": "pure epsilon", "approx": "(epsilon, delta)"}[kind]

    def condition(at: Setting) -> str | None:
        if kind == "approx" and not at.budget.delta > 0:
            return "is for delta > 0"
        return None if at.kind == kind else f"is for {words} guarantees"

    return condition


def check_settings(*names: str) -> Condition:
    """The condition that the plan's settings hold these numbers."""

    def condition(at: Setting) -> str | None:
        missing = (n for n in names if not isinstance(at.settings.get(n), int | float))
        return next((f"needs the plan's {name}" for name in missing), None)

    return condition


check_strong_convexity = check(
    lambda at: at.spec.strong_convexity > 0, "needs strongly convex losses (ridge > 0)"
)
check_smoothness = check(
    lambda at: at.spec.smoothness is not None and at.spec.regulariser.smooth, "needs smooth losses"
)
check_unregularised = check(
    lambda at: at.spec.regulariser.vanishes, "is for losses without a regulariser"
)


def lipschitz_times_diameter(at: Setting) -> float:
    """L |C|, where L includes the slope of the regulariser."""
    return at.spec.lipschitz_total * at.spec.constraint.diameter


def risk_range(at: Setting) -> float:
    """An upper bound on every excess risk: n times the range of one record's loss on the set."""
    spec = at.spec
    radius = spec.constraint.radius
    regular = spec.ridge * radius**2 / 2.0 + spec.lasso * spec.p**0.5 * radius
    return spec.n * (spec.variation + regular)
