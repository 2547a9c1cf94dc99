"""Which noise the mechanism inside a combinator adds, after the combinator's split of a budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from dperm_cli.mechanisms.base import Design, EitherNoise, Mechanism, Plan
from dperm_cli.mechanisms.shared import noise_law, perturbed_objective
from dperm_cli.mechanisms.shared.perturbed_objective import PerturbedMechanism
from dperm_cli.privacy.budget import Budget
from dperm_cli.problem.problem import ProblemSpec


def choose_design(
    inner: Mechanism, spec: ProblemSpec, budget: Budget, design: Callable[[Any], Design]
) -> Design:
    """The design with the least noise inside, among those of the laws that may be taken there.

    Args:
        inner: the mechanism inside; one that has no such choice is designed with as it is.
        spec: public facts of the problem.
        budget: of the whole.
        design: both stages for an inner mechanism, with the split that suits it.
    """
    laws = _list_laws(inner, spec, budget)
    if len(laws) < 2:
        return design(inner)
    open_choice: Any = inner
    return noise_law.choose_least(
        laws,
        lambda gamma: design(replace(open_choice, noise="gamma" if gamma else "gaussian")),
        lambda made: _find_moment(made, spec.p),
    )


def _list_laws(inner: Mechanism, spec: ProblemSpec, budget: Budget) -> tuple[bool, ...]:
    """Whether the inner noise may be of a Gamma norm, for each law; empty without a choice."""
    if isinstance(inner, PerturbedMechanism):
        return perturbed_objective.list_laws(inner.noise, budget, spec)
    return noise_law.list_laws(inner.noise, budget) if isinstance(inner, EitherNoise) else ()


def _find_moment(made: Design, p: int) -> float:
    """E |b|^2 of one run of the inner mechanism."""
    run, scale = cast(Plan, made.inner), cast(float, made.noise_scale)
    return noise_law.noise_moment(p, scale, run.settings["noise"] == "gamma")
