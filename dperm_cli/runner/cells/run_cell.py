"""One cell: problem -> optimum -> plan -> checked guarantee -> releases -> rows."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from dperm_cli import __version__
from dperm_cli.bounds import all_bounds as bounds
from dperm_cli.bounds.base import Setting, find_gaussian_mu
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.digests import hash_facts
from dperm_cli.core.errors import DpermError, Unsupported, describe_error
from dperm_cli.core.foreign_errors import hide_words
from dperm_cli.core.plugin_files import quiet_stdout
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.kernels.shared.kernel_problem import KernelSpec
from dperm_cli.mechanisms.base import Plan
from dperm_cli.mechanisms.shared.released_bound import move_bounds
from dperm_cli.mechanisms.shared.secure_plan import (
    make_secure_plan,
    require_secure,
    secure_channel_plan,
)
from dperm_cli.privacy.accounting import ledger_totals
from dperm_cli.privacy.budget import Budget, Guarantee
from dperm_cli.privacy.gate import Gate
from dperm_cli.privacy.secure_grid import Grid
from dperm_cli.problem.problem import Problem
from dperm_cli.results.ledger.release_log_lines import new_name
from dperm_cli.runner.cells import kernel_cells, metrics, plugin_columns
from dperm_cli.runner.cells.cell_budget import (
    check,
    drop_reserve,
    plan_with_reserve,
)
from dperm_cli.runner.cells.outside_plan import copy_plan, describe_plan, watch_plans
from dperm_cli.runner.cells.outside_release import (
    check_drawn,
    close_view,
    lock_records,
    read_points,
)
from dperm_cli.runner.cells.prepared_cell import (
    Prepared,
    find_budget,
    make_feature_rows,
    uses_record_names,
)
from dperm_cli.runner.cells.trial_rows import make_trial_rows
from dperm_cli.runner.compose import cell_schema, public_radius
from dperm_cli.solvers.optimum import Optimum
from dperm_cli.views.choose import open_view
from dperm_cli.views.grid import GridView

# Columns of a record that are called what they are called where they come from.
_FROM_DATA = ("task", "n", "row_bound", "target_bound")
_FROM_CELL = (
    "ridge", "lasso", "calibration", "privacy", "relation", "delta", "information", "noise", "seed",
    "trials",
)  # fmt: skip


def run(
    prepared: Prepared, optimum_of: Callable[[Any], Optimum], debug: bool = False
) -> list[dict[str, Any]]:
    """The rows of one cell: one per trial, or one that says why there are none."""
    with quiet_stdout() if prepared.plugins else contextlib.nullcontext():
        return _run(prepared, optimum_of, debug)


def _run(
    prepared: Prepared, optimum_of: Callable[[Any], Optimum], debug: bool
) -> list[dict[str, Any]]:
    hidden = prepared.plugins is not None and not debug
    common = make_common_columns(prepared)
    try:
        with hide_words(hidden, keep=(Unsupported,)):
            budget, kind = find_budget(prepared)
            common |= {"delta": budget.delta}
            _ = prepared.spec  # raises Unsupported before anything slow is computed
        with hide_words(hidden):
            prepared = make_feature_rows(prepared)
        shared = (prepared.data, prepared.problem.data) if prepared.plugins else ()
        watched = watch_plans(prepared.plugins, lambda: list_plans(prepared, budget))
        with lock_records(*shared), watched:
            with hide_words(hidden):
                optimum = optimum_of(prepared.target)
            start = time.perf_counter()
            with hide_words(hidden, keep=(Unsupported,)):  # a plan sees public facts alone
                plan, grid = plan_of(prepared, budget)
                guarantee = check(plan, budget, kind, prepared.cell.mechanism.is_unprotected)
            with hide_words(hidden):
                planned = Planned(budget, kind, plan, grid, guarantee)
                return _release(prepared, planned, common, optimum, start)
    except Unsupported as reason:
        return [common | {"status": "unsupported", "reason": str(reason)}]
    except DpermError as error:
        return [common | {"status": "failed", "reason": str(error)}]
    except (Exception, SystemExit) as error:
        if debug:
            raise
        return [common | {"status": "failed", "reason": describe_error(error)[:500]}]


def make_failed_rows(prepared: Prepared, reason: str) -> list[dict[str, Any]]:
    """The rows of a cell that could not be run at all."""
    return [make_common_columns(prepared) | {"status": "failed", "reason": reason}]


@dataclass(frozen=True)
class Planned:
    """A checked plan, and the budget that it keeps to."""

    budget: Budget
    kind: str
    plan: Plan
    grid: Grid | None
    guarantee: Guarantee


def _release(
    prepared: Prepared,
    planned: Planned,
    common: dict[str, Any],
    optimum: Optimum,
    start: float,
) -> list[dict[str, Any]]:
    cell, problem = prepared.cell, prepared.problem
    spec: Any = prepared.spec
    budget, kind, plan, grid = planned.budget, planned.kind, planned.plan, planned.grid
    guarantee = planned.guarantee
    view, plan_of_release, gate = open_release(prepared, plan, budget, grid)
    with close_view(view, prepared.plugins is not None):
        released = cell.mechanism.release(view, plan_of_release, gate.fix())
    check_drawn(cell.mechanism, gate)
    if cell.noise == "secure":
        common = common | {"release": new_name()}
    seconds = (time.perf_counter() - start) / cell.trials
    held = problem.constraint if cell.kernel is None else None
    theta = read_points(cell.mechanism, released, cell.trials, held)
    if not np.all(np.isfinite(theta)):
        raise FloatingPointError("the released point is not finite")
    common = common | plan_columns(plan, guarantee) | describe_optimum(problem, optimum)
    if common["epsilon"] is None:
        common["epsilon"] = guarantee.epsilon  # what the information asked for implies
    if cell.kernel is not None:
        kernel_cells.remember(problem, theta)
    # a declared population weighs the regulariser, so that bounds are about another objective
    weighs_more = cell.population is not None and not prepared.problem.spec().regulariser.vanishes
    # bounds are about private releases
    if guarantee.kind != "none" and not problem.data.blocks and not weighs_more:
        if math.isinf(budget.epsilon):
            budget = replace(budget, epsilon=guarantee.epsilon)
        common |= bounds.choose_best_bounds(
            Setting(
                spec=spec, budget=budget, kind=kind, mechanism=cell.mechanism_name,
                noise_scale=plan.noise_scale, steps=plan.steps, settings=plan.settings,
                mu=find_gaussian_mu(plan.events, budget.relation),
            )
        )  # fmt: skip
    for name, free in describe_radius(prepared).items():  # what a private choice cost stays
        common["settings"][name] = free | common["settings"].get(name, {})
    common["plugins"] = plugin_columns.add_uses(common, plan.events)
    common["seconds"] = seconds
    common["arithmetic"] = describe_arithmetic(cell, kind, grid)
    shown = move_bounds(released.info, None if weighs_more else 0.0)
    rows = make_trial_rows(cell, problem, optimum, theta, common, shown)
    if isinstance(spec, KernelSpec) or cell.mechanism.on_queries:
        answers = released.info.get("answers")
        errors = kernel_cells.answer_errors(
            prepared.kernel, theta if answers is None else None, answers
        )
        rows = [row | error for row, error in zip(rows, errors, strict=True)]
    return rows


def plan_of(prepared: Prepared, budget: Budget) -> tuple[Plan, Grid | None]:
    """The plan of a run, and the grid that its noise lies on, if any; Unsupported without one."""
    cell = prepared.cell
    spec: Any = prepared.spec
    if cell.noise != "secure":
        return copy_plan(plan_with_reserve(cell.mechanism, spec, budget)), None
    if budget.trust != "local":
        require_secure(cell.mechanism)
    require_own_rows(prepared)
    if budget.trust == "local":
        return secure_channel_plan(copy_plan(cell.mechanism.plan(spec, budget))), None
    plan, grid = make_secure_plan(cell.mechanism, spec, budget, prepared.problem.loss)
    return copy_plan(plan), grid


def require_own_rows(prepared: Prepared) -> None:
    """``Unsupported`` for secure noise on features of a kernel that are made of many rows at once.

    The last bits of such a row follow from others'.
    """
    if prepared.cell.kernel is not None and not prepared.rows_alone:
        own = "gram_alone" if not prepared.cell.kernel.maps_alone else "apply_alone"
        raise Unsupported(
            f"kernel={prepared.cell.kernel.name} makes the features of many rows at once (it has "
            f"no {own}), which has no secure form: use kernel.features=fourier with a kernel that "
            "is a function of x - z, one of dperm's own kernels, or noise=research"
        )


def list_plans(prepared: Prepared, budget: Budget) -> list[str]:
    """What the plan is, and what plans for one more record and another epsilon are, in words."""
    spec: Any = prepared.spec
    other = replace(budget, epsilon=1.25 * budget.epsilon)
    asked = (spec, budget), (replace(spec, n=spec.n + 1), budget), (spec, other)
    return [describe_plan(prepared.cell.mechanism, *one) for one in asked]


def describe_arithmetic(cell: cell_schema.Cell, kind: str, grid: Grid | None) -> str:
    """The arithmetic of values and noise: ``float64``, a grid, ``signs``, or that of directions."""
    if grid is not None:
        return str(grid)
    if cell.noise == "secure" and kind == "local":
        return cell.mechanism.describe_answers()
    return "float64"


def open_release(
    prepared: Prepared, plan: Plan, budget: Budget, grid: Grid | None
) -> tuple[Any, Plan, Gate]:
    """The arguments of ``Mechanism.release``: a view of the records, the plan, the noise gate.

    The plan is a copy: what the mechanism does to it changes neither the gate's nor the record's.
    """
    cell, allowed = prepared.cell, (plan.events, budget.relation)
    if grid is not None:
        gate = Gate.secure(cell.trials, grid, allowed)
        return GridView(prepared.padded_problem, grid), copy_plan(plan), gate
    # what is decided here follows what was declared, and not how many records there are
    own = prepared.kernel if cell.population is None else None
    view = open_view(cell.mechanism, prepared.viewed_problem, own)
    if cell.noise == "secure":
        return view, copy_plan(plan), Gate.secure(cell.trials, None, allowed)
    name, seed = prepared.noise_name, cell.seed or 0
    if any(event.by_record_names for event in plan.events) and not uses_record_names(cell):
        name = hash_facts([name, prepared.data.identity])  # what auto chose divides records so
    seeds = [seed_sequence(seed, "noise", name, trial) for trial in range(cell.trials)]
    return view, drop_reserve(copy_plan(plan)), Gate(seeds, plan=allowed)


def _population_source(cell: cell_schema.Cell) -> str:
    """How the n of the mechanism's formulas became known."""
    if cell.relation == "replace_one":
        return "public"
    return "from the data" if cell.population is None else "declared"


def plan_columns(plan: Plan, guarantee: Guarantee) -> dict[str, Any]:
    """What a record says of a plan and of what it guarantees."""
    local, nothing = guarantee.kind == "local", guarantee.kind == "none"
    facts = plan.settings["inner"] if "chosen" in plan.settings else plan.settings
    return {
        "information_accounted": guarantee.information if local else None,
        "channel": facts.get("channel") if local else None,
        "channel_multiplier": facts.get("multiplier") if local else None,
        "guarantee": guarantee.kind,
        "epsilon_accounted": None if nothing else guarantee.epsilon,
        "delta_accounted": None if nothing else guarantee.delta,
        "accountant": guarantee.source,
        "certificate": guarantee.certificate,
        "noise_scale": plan.noise_scale,
        "steps": plan.steps,
        "settings": dict(plan.settings),
        "events": [ledger_totals.to_dict(event) for event in plan.events],
    }


def describe_radius(prepared: Prepared) -> dict[str, Any]:
    """What a row says of ``constraint.radius=auto``; nothing where the radius was given."""
    found = prepared.cell.find_radius(prepared.data.facts())
    if found is None:
        return {}
    chosen = {public_radius.KEY: found.value}
    return {"tuning": {"chosen": chosen, "epsilon": 0.0, "candidates": 1, "reason": found.reason}}


def describe_optimum(problem: Problem, optimum: Optimum) -> dict[str, Any]:
    floor = float(problem.objective(problem.constraint.centre()))
    return {
        "optimum": optimum.value,
        "optimum_gap": optimum.gap,
        "floor_risk": floor,
        "floor_excess_risk": floor - optimum.value,
        **metrics.score_references(problem, optimum.theta),
        "seconds_optimum": optimum.seconds,
    }


def make_common_columns(prepared: Prepared) -> dict[str, Any]:
    cell, data, spec = prepared.cell, prepared.data, prepared.problem.spec()
    mapped = kernel_cells.describe_kernel(cell, prepared.problem, prepared.kernel)
    return {
        "cell": prepared.key,
        "status": "ok",
        **{name: getattr(data, name) for name in _FROM_DATA},
        **{name: getattr(cell, name) for name in _FROM_CELL},
        "dataset": data.name,
        "population": prepared.population,
        "population_source": _population_source(cell),
        "p": spec.p,
        "preprocessing": "; ".join([*data.preprocessing, *mapped]),
        "unsafe_scaling": data.data_dependent,
        "loss": cell.loss.name,
        "constraint": spec.constraint.name,
        "constraint_radius": spec.constraint.size,
        "radius": spec.constraint.radius,
        "diameter": spec.constraint.diameter,
        "lipschitz": spec.lipschitz_total,
        "smoothness": spec.smoothness,
        "mechanism": cell.mechanism_name,
        "epsilon": cell.epsilon if math.isfinite(cell.epsilon) else None,
        "arithmetic": "float64" if cell.noise == "research" else None,
        "overrides": cell.config,
        "data_fingerprint": data.fingerprint,
        "plugins": prepared.plugins,
        "version": __version__,
    }
