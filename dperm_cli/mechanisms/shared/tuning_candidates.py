"""Public candidates of a private choice, put in force: radii of the set and ridges."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Any

from dperm_cli.core.candidate_lists import RADIUS, RIDGE
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.fields import CheckedFields, fields_of
from dperm_cli.problem.problem import ProblemSpec, make_spec
from dperm_cli.problem.regulariser import Regulariser


def list_choices(candidates: Mapping[str, list[float]]) -> list[dict[str, float]]:
    """Every combination, as values by key; one without any where there are no candidates."""
    combined = itertools.product(*candidates.values())
    return [dict(zip(candidates, values, strict=True)) for values in combined]


def change_set(constraint: Any, choice: Mapping[str, float]) -> Any:
    """The set with the radius of a choice, which lies inside the one at hand.

    ``Unsupported`` for a set without a radius, or one that is not symmetric about the origin.
    """
    if RADIUS not in choice:
        return constraint
    kind = type(constraint)
    fields = fields_of(kind).values() if issubclass(kind, CheckedFields) else ()
    name = next((field.name for field in fields if field.key == RADIUS), None)
    if name is None or not constraint.symmetric:
        raise Unsupported(f"no candidates for {RADIUS}: {constraint.name} is no ball about the "
                          "origin; take constraint=l2_ball")  # fmt: skip
    radius, most = choice[RADIUS], constraint.size
    if radius > most:
        raise Unsupported(f"the candidate {RADIUS}={radius:g} is beyond the set's own, {most:g}: "
                          "set constraint.radius to the largest candidate")  # fmt: skip
    return dataclasses.replace(constraint, **{name: radius})  # type: ignore[type-var]


def change_facts(spec: ProblemSpec, choice: Mapping[str, float]) -> ProblemSpec:
    """The public facts of the problem on the set and with the ridge of a choice."""
    constraint = change_set(spec.constraint, choice)
    regulariser = Regulariser(choice.get(RIDGE, spec.ridge), spec.lasso)
    if spec.form is None:
        total = spec.lipschitz + regulariser.lipschitz(constraint.radius, constraint.p)
        return dataclasses.replace(
            spec, constraint=constraint, regulariser=regulariser, lipschitz_total=total,
            strong_convexity=regulariser.strong_convexity,
        )  # fmt: skip
    bounds = dataclasses.replace(spec.bounds, radius=constraint.radius)
    found = make_spec(spec.n, spec.form, constraint, regulariser, spec.task, bounds)
    return dataclasses.replace(
        found, entry_bound=spec.entry_bound, phi=spec.phi, phi_row_bound=spec.phi_row_bound
    )


def change_view(view: Any, choice: Mapping[str, float]) -> Any:
    """The view of the problem on the set and with the ridge of a choice."""
    constraint = change_set(view.spec.constraint, choice)
    return view.replace_set(constraint=constraint, ridge=choice.get(RIDGE))
