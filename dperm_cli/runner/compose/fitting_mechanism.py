"""Find a mechanism that can do what was asked, to suggest it in place of one that cannot."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from dperm_cli.core import registry
from dperm_cli.core.errors import DpermError, Unsupported
from dperm_cli.mechanisms.combinators.private_selection import PrivateSelection
from dperm_cli.mechanisms.shared.secure_plan import make_secure_plan, secure_channel_plan
from dperm_cli.runner.cells import kernel_cells, prepared_cell, run_cell
from dperm_cli.runner.cells.prepared_cell import Prepared
from dperm_cli.runner.compose import plugin_objects
from dperm_cli.runner.compose.composer import Composer

# Asked in this order, so that a plan is found early and without a search; then all others.
FIRST = ("noisy_gd", "output_perturbation", "objective_perturbation", "frank_wolfe", "one_pass_sgd")
LAST = ("local_mirror_descent", "local_sgd")
AUTO = "auto"  # has a plan where another one has: that one is named


def print_advice(what: str, found: str | None) -> None:
    """Say on stderr that ``what`` (`every cell`) is unsupported, and which mechanism would fit."""
    advice = f"; mechanism={found} has a plan for what was asked"
    if found is None:
        advice = ", and no mechanism is known that gives what was asked for"
    print(f"dperm: {what} is unsupported{advice}", file=sys.stderr)


def find_for_cell(prepared: Prepared) -> str | None:
    """A mechanism that plans this cell's problem, guarantee, relation, choice and noise, or None.

    Plans see public facts only, and so does the answer.
    """
    one = prepared.cell
    choice = one.mechanism if isinstance(one.mechanism, PrivateSelection) else None

    def plans(name: str, mechanism: Any) -> None:
        mechanism = mechanism if choice is None else replace(choice, inner=mechanism)
        asked = replace(prepared, cell=replace(one, mechanism=mechanism, mechanism_name=name))
        if one.kernel is not None:  # its map follows from the mechanism; a plan needs no row of it
            asked = prepared_cell.prepare(asked.cell, prepared.data)
            alone = kernel_cells.maps_alone(asked.cell, asked.problem)
            asked = replace(asked, rows_alone=alone)
        spec: Any = asked.spec
        budget, kind = prepared_cell.find_budget(asked)
        if one.noise == "secure":
            run_cell.require_own_rows(asked)
        if one.noise != "secure":
            run_cell.plan_with_reserve(mechanism, spec, budget)
        elif kind == "local":
            secure_channel_plan(mechanism.plan(spec, budget))
        else:
            make_secure_plan(mechanism, spec, budget, asked.problem.loss)

    return find_first(plans, one.calibration, one.sampler)


def find_first(
    plans: Callable[[str, Any], None], calibration: str, sampler: Any = None
) -> str | None:
    """The first mechanism, as it is shipped, for which ``plans`` raises nothing."""
    middle = [name for name in registry.list_protective() if name not in (*FIRST, *LAST, AUTO)]
    for name, mechanism in build_shipped((*FIRST, *middle, *LAST), calibration, sampler):
        try:
            plans(name, mechanism)
        except (Unsupported, DpermError, ArithmeticError, ValueError):
            continue
        return name
    return None


def build_shipped(
    names: Iterable[str],
    calibration: str,
    sampler: Any = None,
    demands: Mapping[str, bool] | None = None,
) -> Iterator[tuple[str, Any]]:
    """Mechanisms with the settings that they are shipped with, each with its name."""
    composer = Composer()
    for name in names:
        config = composer.compose({"mechanism": name})["mechanism"]
        yield name, plugin_objects.build_mechanism(config, calibration, sampler, demands or {})
