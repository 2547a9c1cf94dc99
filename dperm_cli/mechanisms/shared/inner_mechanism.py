"""Helpers of combinators: read, plan and run the mechanism inside another one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from dperm_cli.core import registry
from dperm_cli.core.errors import InputError, UnknownKey
from dperm_cli.core.fields import Check, Help, configure
from dperm_cli.mechanisms.base import Design, Mechanism, Plan
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Event, Gaussian

_KEY = "mechanism.inner"


def build_mechanism(inner: Any) -> Any:
    """The mechanism of a name or of a mapping {name: ..., field: ...}; a mechanism stays.

    Errors name keys as the user types them, as in ``mechanism.inner.steps``.
    """
    if isinstance(inner, str):
        inner = {"name": inner}
    if not isinstance(inner, Mapping):
        if not isinstance(inner, Mechanism):
            words = "must be a mechanism, as in noisy_gd or {name: noisy_gd, steps: 50}"
            raise InputError(_KEY, inner, words)
        return inner
    if not isinstance(inner.get("name"), str):
        raise InputError(_KEY, inner, "needs a name, as in {name: noisy_gd, steps: 50}")
    return prefix_error_keys(lambda: _of_mapping(inner))


Inner = Annotated[
    Any,
    Check(lambda key, value: build_mechanism(value)),
    Help("what runs; mechanism.inner.KEY=VALUE sets keys"),
]


def prefix_error_keys(make: Callable[[], Any]) -> Any:
    """Call ``make()`` and put ``mechanism.inner`` before the keys of its input errors."""
    try:
        return make()
    except UnknownKey:
        raise
    except InputError as error:
        head, _, tail = error.key.partition(".")
        key = f"{_KEY}.{tail}" if tail and head == "mechanism" else error.key
        key = _KEY if key == "mechanism" else key
        raise InputError(key, error.value, error.allowed, list_suggestions(error)) from None


def list_suggestions(error: InputError) -> tuple[str, ...]:
    """The suggestions of an error, to be passed on to the error that replaces it."""
    return (error.nearest,) if error.nearest else ()


def _of_mapping(inner: Mapping[str, Any]) -> Any:
    given = {key: value for key, value in inner.items() if key != "name"}
    return configure(registry.load("mechanism", inner["name"]), _KEY, given)


def build_inner(outer: Any) -> None:
    """Narrow what a frozen combinator can promise to what its inner mechanism does.

    Called from ``__post_init__``, when the fields are checked. The instance then offers the kinds
    of guarantee and the relations that both have; ``sampler`` errors and the like stay the inner
    one's business. InputError for an inner mechanism that promises nothing.
    """
    inner = outer.inner
    if tuple(inner.guarantees) == ("none",):
        known = ", ".join(registry.list_protective())
        raise InputError(_KEY, name_of(inner), f"must be a mechanism with a guarantee: {known}")
    for what in ("guarantees", "relations"):
        mine, theirs = getattr(type(outer), what), getattr(inner, what)
        object.__setattr__(outer, what, tuple(word for word in mine if word in theirs))


def describe_inner(inner: Any, plan: Plan) -> dict[str, Any]:
    """What a combinator's settings say of the inner mechanism: its plan's settings and its name."""
    return {**plan.settings, "name": name_of(inner)}


def name_of(mechanism: Any) -> str:
    """A mechanism's name on the command line."""
    return type(mechanism).__module__.rpartition(".")[2]


def inner_plan(whole: Plan, events: Sequence[Event], scale: float) -> Plan:
    """The inner mechanism's plan, with the events that the combinator's plan holds for it."""
    assert whole.inner is not None
    return replace(whole.inner, events=tuple(events), noise_scale=scale)


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
