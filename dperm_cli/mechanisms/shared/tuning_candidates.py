"""Public candidates of a private choice, put in force: radii, ridges and scalings of columns.

The rows of a choice among scalings hold the columns of every candidate side by side. A candidate is
the problem of its own columns; its parameters are those of all columns with zeros at the others.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dperm_cli.core.candidate_lists import RADIUS, RIDGE, SCALING
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.fields import CheckedFields, fields_of
from dperm_cli.problem.problem import ProblemSpec, make_spec
from dperm_cli.problem.public_facts import Block
from dperm_cli.problem.regulariser import Regulariser

# the value of every key that a choice is made of
Choice = Mapping[str, Any]


def list_choices(candidates: Mapping[str, list[Any]]) -> list[dict[str, Any]]:
    """Every combination, as values by key; one without any where there are no candidates."""
    combined = itertools.product(*candidates.values())
    return [dict(zip(candidates, values, strict=True)) for values in combined]


def find_block(spec: Any, choice: Choice) -> Block | None:
    """The columns of the choice's scaling; None where it names none.

    Args:
        spec: what has the ``blocks`` of the rows: public facts, a spec or the data.
        choice: a candidate.

    Raises:
        Unsupported: the rows do not hold this scaling's columns.
    """
    if SCALING not in choice:
        return None
    found = next((block for block in spec.blocks if block.name == choice[SCALING]), None)
    if found is None:
        words = "the rows were not made under it: name the candidates in tune="
        raise Unsupported(f"no candidate {SCALING}={choice[SCALING]}: {words}")
    return found


def take_coordinates(spec: ProblemSpec, block: Block) -> slice:
    """The parameters that belong to a block's columns."""
    each = spec.p // spec.bounds.columns  # parameters of a column: one, or one for each class
    return slice(block.start * each, block.stop * each)


def embed_points(points: np.ndarray, spec: ProblemSpec, choice: Choice) -> np.ndarray:
    """Points [m, any] of a choice's columns among all parameters [m, p], zeros elsewhere."""
    block = find_block(spec, choice)
    if block is None:
        return points
    found = np.zeros((len(points), spec.p))
    found[:, take_coordinates(spec, block)] = points
    return found


def restrict_set(spec: ProblemSpec, block: Block | None) -> Any:
    """The set's points that are zero but at a block's parameters, as a set of these.

    ``Unsupported`` for another set than the ball of a norm that has the same form in any dimension.
    """
    constraint = spec.constraint
    if block is None:
        return constraint
    if constraint.norm_power is None:
        raise Unsupported(f"no candidates for {SCALING}: {constraint.name} is no ball of a norm "
                          "about the origin; take constraint=l2_ball")  # fmt: skip
    own = take_coordinates(spec, block)
    return dataclasses.replace(constraint, p=own.stop - own.start)


def change_set(constraint: Any, choice: Choice) -> Any:
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


def change_facts(spec: ProblemSpec, choice: Choice) -> ProblemSpec:
    """The public facts of the problem on the set, with the ridge and the columns of a choice."""
    block = find_block(spec, choice)
    constraint = change_set(restrict_set(spec, block), choice)
    regulariser = Regulariser(choice.get(RIDGE, spec.ridge), spec.lasso)
    if spec.form is None:
        total = spec.lipschitz + regulariser.lipschitz(constraint.radius, constraint.p)
        return dataclasses.replace(
            spec, constraint=constraint, regulariser=regulariser, lipschitz_total=total,
            strong_convexity=regulariser.strong_convexity,
        )  # fmt: skip
    bounds = dataclasses.replace(spec.bounds, radius=constraint.radius)
    if block is not None:
        bounds = dataclasses.replace(bounds, row=block.row_bound, columns=block.width)
    found = make_spec(spec.n, spec.form, constraint, regulariser, spec.task, bounds)
    kept = {"entry_bound": spec.entry_bound}
    if block is None:
        kept |= {name: getattr(spec, name) for name in ("phi", "phi_row_bound", "blocks")}
    return dataclasses.replace(found, **kept)


def list_views(view: Any, choices: Sequence[Choice]) -> list[Any]:
    """The views of the problem on the set, with the ridge and the columns of each choice.

    Choices of one scaling share its rows.
    """
    shown: dict[Block | None, Any] = {None: view}
    found = []
    for choice in choices:
        block = find_block(view.spec, choice)
        if block not in shown:
            assert block is not None
            columns = slice(block.start, block.stop)
            near = restrict_set(view.spec, block)
            shown[block] = view.take_columns(columns, block.row_bound, near)
        own = shown[block]
        constraint = change_set(own.spec.constraint, choice)
        found.append(own.replace_set(constraint=constraint, ridge=choice.get(RIDGE)))
    return found
