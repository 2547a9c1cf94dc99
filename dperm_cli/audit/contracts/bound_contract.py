"""What every risk bound promises: where it applies it is a number that can bound a risk."""

from __future__ import annotations

import contextlib
import itertools
import math
from functools import cache
from typing import Any

from dperm_cli.audit.contracts.promises import count_tried, promise, require
from dperm_cli.bounds.base import QUANTITIES, Bound, Setting, find_gaussian_mu, risk_range
from dperm_cli.core import plugin_sources, registry
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.privacy.budget import Budget
from dperm_cli.problem.problem import bare_spec
from dperm_cli.problem.regulariser import Regulariser
from dperm_cli.sets import make_ball

_MECHANISMS = (
    "noisy_gd", "output_perturbation", "objective_perturbation", "one_pass_sgd", "localization",
)  # fmt: skip
_BUDGETS = (Budget(0.1, 0.0), Budget(1.0, 1e-6), Budget(10.0, 1e-6))


@dataclass(frozen=True)
class Subject:
    """A bound."""

    bound: Bound


def make_subject(made: Any, others: Any = None) -> Subject:
    """The bound to be checked."""
    return Subject(made)


def _settings() -> tuple[Setting, ...]:
    """What bounds are evaluated at: plans of quick mechanisms, and of those from outside."""
    shipped = (registry.load("mechanism", name) for name in _MECHANISMS)
    return _make_settings((*shipped, *plugin_sources.classes("mechanism").values()))


@cache
def _make_settings(mechanisms: tuple[Any, ...]) -> tuple[Setting, ...]:
    found = []
    for n, p, ridge in itertools.product((50, 5000), (1, 10), (0.0, 0.1)):
        body, regulariser = make_ball(1.0, p), Regulariser(ridge)
        spec = bare_spec(n, 1.0, body, regulariser=regulariser, smoothness=0.25)
        for budget, made in itertools.product(_BUDGETS, mechanisms):
            with contextlib.suppress(Unsupported):
                plan = made().plan(spec, budget)
                mu = find_gaussian_mu(plan.events, budget.relation)
                facts = (plan.noise_scale, plan.steps, plan.settings, mu)
                name = registry.find_name(made)
                found.append(Setting(spec, budget, plan.guarantee.kind, name, *facts))
    return tuple(found)


@promise(
    "it says what it is a bound on, and of which kind",
    mend="kind is upper or lower, constant explicit or order, quantity one of "
    "dperm_cli.bounds.base.QUANTITIES; upper_bound and lower_bound set them",
)
def check_declaration(subject: Subject) -> str:
    made = subject.bound
    require(made.kind in ("upper", "lower"), f"kind is {made.kind!r}")
    require(made.constant in ("explicit", "order"), f"constant is {made.constant!r}")
    require(made.quantity in QUANTITIES, f"quantity is {made.quantity!r}")
    return f"{made.kind}, {made.constant}, {made.quantity}"


@promise(
    "each condition holds, or gives a reason of one line",
    mend="a condition returns None, or a short text that says why the bound does not apply",
)
def check_conditions(subject: Subject) -> str:
    count = 0
    for at in _settings():
        reason = subject.bound.applies(at)
        require(
            reason is None or (isinstance(reason, str) and reason and "\n" not in reason),
            f"a condition gave {reason!r}",
        )
        count += 1
    return f"{count} settings"


@promise(
    "where it applies its value is a finite number, not negative; a lower bound on a risk is "
    "no larger than any risk can be",
    mend="check the formula's units (risks are sums over records), and give a condition for "
    "where it does not hold",
)
def check_value(subject: Subject) -> str:
    made, count = subject.bound, 0
    for at in _settings():
        if made.applies(at) is not None:
            continue
        value = float(made.value(at))
        words = f"n = {at.spec.n}, p = {at.spec.p}, epsilon = {at.budget.epsilon:g}"
        require(math.isfinite(value) and value >= 0.0, f"its value is {value} at {words}")
        of_risk = made.quantity == "excess_risk" and made.constant == "explicit"
        if made.kind == "lower" and of_risk:
            most = risk_range(at)
            require(
                value <= most * (1 + 1e-9),
                f"its value {value:.4g} at {words} is above the "
                f"largest risk that there is, {most:.4g}",
            )
        count += 1
    return count_tried(count, "settings", "it applies to none of the settings that were tried")
