"""What every risk bound has: its theorem, what it bounds, and when it applies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from dperm_cli.privacy.budget import Budget
from dperm_cli.problem.problem import ProblemSpec

# what a bound is about; records hold the first alone
QUANTITIES = ("excess_risk", "excess_risk_of_method", "population_risk", "steps")


@dataclass(frozen=True)
class Setting:
    """What a bound is evaluated at: a problem's public facts, a budget and a mechanism's plan.

    ``kind`` is the guarantee in force (``pure`` or ``approx``); ``settings`` are the plan's.
    """

    spec: ProblemSpec
    budget: Budget
    kind: str
    mechanism: str
    noise_scale: float
    steps: int
    settings: Mapping[str, Any]


class Bound(Protocol):
    """A bound on the expected excess risk (the sum over records), unless ``quantity`` says else.

    ``kind`` is ``upper`` or ``lower``; ``constant`` is ``explicit`` when ``value`` is the bound
    itself and ``order`` when the theorem leaves a constant open (``value`` then takes it as one).
    """

    @property
    def id(self) -> str: ...

    @property
    def paper(self) -> str: ...

    @property
    def statement(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def constant(self) -> str: ...

    @property
    def quantity(self) -> str: ...

    def applies(self, at: Setting) -> str | None:
        """None, or why the bound says nothing here."""
        ...

    def value(self, at: Setting) -> float: ...


@dataclass(frozen=True)
class Theorem:
    """A bound made of its formula and of the check of its assumptions."""

    id: str
    statement: str
    kind: str
    constant: str
    covers: Callable[[Setting], str | None]
    formula: Callable[[Setting], float]
    quantity: str = "excess_risk"
    paper: str = "BST14"

    def applies(self, at: Setting) -> str | None:
        """None, or why the theorem says nothing here."""
        return self.covers(at)

    def value(self, at: Setting) -> float:
        """The bound where it applies; an open constant is taken as one."""
        return self.formula(at)


def find_reason(*reasons: str | None) -> str | None:
    """The first reason that is not None."""
    return next((reason for reason in reasons if reason), None)


def check_mechanism(at: Setting, *mechanisms: str) -> str | None:
    """A reason unless the setting's mechanism is one of these."""
    return None if at.mechanism in mechanisms else f"is about {' or '.join(mechanisms)}"


def check_guarantee(at: Setting, kind: str) -> str | None:
    """A reason unless the guarantee in force is of this kind."""
    if kind == "approx" and not at.budget.delta > 0:
        return "is for delta > 0"
    words = {"pure": "pure epsilon", "approx": "(epsilon, delta)"}[kind]
    return None if at.kind == kind else f"is for {words} guarantees"


def check_settings(at: Setting, *names: str) -> str | None:
    """A reason unless the plan's settings hold these numbers."""
    for name in names:
        if not isinstance(at.settings.get(name), int | float):
            return f"needs the plan's {name}"
    return None


def check_strong_convexity(at: Setting) -> str | None:
    """A reason unless every record's loss is strongly convex."""
    return None if at.spec.strong_convexity > 0 else "needs strongly convex losses (ridge > 0)"


def check_smoothness(at: Setting) -> str | None:
    """A reason unless every record's loss has a Lipschitz gradient."""
    return (
        None
        if at.spec.smoothness is not None and at.spec.regulariser.smooth
        else ("needs smooth losses")
    )


def risk_range(at: Setting) -> float:
    """What no point's excess risk exceeds: n times the range of one record's loss on the set."""
    spec = at.spec
    radius = spec.constraint.radius
    regular = spec.ridge * radius**2 / 2.0 + spec.lasso * spec.p**0.5 * radius
    return spec.n * (spec.variation + regular)
