"""One cell: problem -> optimum -> plan -> checked guarantee -> releases -> rows."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dperm_cli import __version__
from dperm_cli.bounds import all_bounds as bounds
from dperm_cli.bounds.base import Setting
from dperm_cli.core.digests import hash_facts
from dperm_cli.core.errors import DpermError, InputError, Unsupported, describe_error
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.kernels.shared.kernel_problem import KernelProblem, KernelSpec
from dperm_cli.mechanisms.base import Plan
from dperm_cli.mechanisms.shared.secure_plan import secure_channel_plan, secure_plan
from dperm_cli.privacy.accounting import ledger_totals
from dperm_cli.privacy.budget import Budget, Guarantee
from dperm_cli.privacy.gate import Gate
from dperm_cli.privacy.secure_grid import Grid
from dperm_cli.problem import population
from dperm_cli.problem.data import Data
from dperm_cli.problem.exposed_records import count_exposed_records
from dperm_cli.problem.problem import Problem, ProblemSpec
from dperm_cli.results.ledger import release_log
from dperm_cli.runner.cells import kernel_cells, metrics, optimum_cache
from dperm_cli.runner.cells.cell_budget import (
    check,
    delta_of,
    drop_reserve,
    kind_of,
    plan_with_reserve,
)
from dperm_cli.runner.cells.record_digest import name_record
from dperm_cli.runner.compose import cell_schema
from dperm_cli.solvers.optimum import Optimum
from dperm_cli.views.central import GridView
from dperm_cli.views.choose import open_view


@dataclass(frozen=True)
class Prepared:
    """A validated cell with its data, ready to run.

    ``released`` is the problem as the mechanism sees it: under add_remove with a declared
    population, records of zeros fill it up, so that nothing there depends on how many there are.
    ``key`` names the record, ``noise_name`` the noise: data and files are in both names, since
    noise of two versions must not cancel. ``data`` are the records as they were loaded; with a
    kernel, ``problem`` has psi(x) for rows, and ``kernel`` is the kernel's own problem.
    """

    cell: cell_schema.Cell
    problem: Problem
    released: Problem
    key: str
    noise_name: str
    data: Data
    kernel: KernelProblem | None = None

    @property
    def population(self) -> int:
        """The n of the mechanism's formulas."""
        return self.released.data.n

    @property
    def target(self) -> Problem | KernelProblem:
        """What the certified optimum is of."""
        return self.problem if self.kernel is None else self.kernel

    @property
    def spec(self) -> ProblemSpec | KernelSpec:
        """The public facts that the mechanism plans with; Unsupported where it has no use for such
        a problem."""
        if kernel_cells.space_of(self.cell.mechanism) != "kernel":
            if self.cell.kernel is None and self.cell.mechanism.features is not None:
                name = self.cell.mechanism_name
                raise Unsupported(f"{name} needs a kernel that is a function of x - z: set "
                                  "kernel=rbf or laplacian")  # fmt: skip
            return self.released.spec()
        if self.kernel is None:
            raise Unsupported(
                f"{self.cell.mechanism_name} works on a kernel's minimiser: set kernel=linear, "
                "polynomial, rbf or another, and ridge above 0"
            )
        spec = self.kernel.spec()
        # a declared population stands for the number of records there too
        return spec if spec.n == self.population else replace(spec, n=self.population)


def prepare(cell: cell_schema.Cell, data: Data) -> Prepared:
    """Join a cell to its data; the key names the record."""
    own = None
    if cell.kernel is None:
        constraint = cell.constraint(cell.loss.dimension(data.facts()))
        problem = Problem(data, cell.loss, constraint, cell.ridge, cell.lasso)
        read = [repr(constraint)] if cell_schema.names_file(cell.constraint_config) else []
    else:
        made = kernel_cells.prepare(cell, data)
        problem, own = made.problem, made.kernel
        read = [problem.data.fingerprint, "" if own is None else own.points_name]
    plugins = cell.dataset, cell.loss, problem.constraint, cell.kernel, cell.mechanism
    key = name_record(
        [cell.config, data.identity, *read], Prepared, optimum_cache.make_solver, *plugins
    )
    released = problem
    if cell.population is not None:
        if data.task == "location":
            allowed = "cannot be declared for location data: a record of zeros is not nothing there"
            raise InputError("privacy.population", cell.population, allowed)
        if cell.population < data.n:
            allowed = f"must be at least the number of training records of {data.name}"
            raise InputError("privacy.population", cell.population, allowed)
        released = kernel_cells.pad_problem(problem, cell.population)
    named = data.identity if _uses_record_names(cell) else data.fingerprint
    name = hash_facts([cell.identity(), named, *read])
    return Prepared(cell, problem, released, key, name, data, own)


def _uses_record_names(cell: cell_schema.Cell) -> bool:
    """Whether batches are named by the records as they were read: two files of equal rows may then
    differ in them, and must not share their noise."""
    mechanism = cell.mechanism
    while mechanism.inner is not None:
        mechanism = mechanism.inner
    return cell.relation == "add_remove" and mechanism.one_pass


def run(
    prepared: Prepared, optimum_of: Callable[[Any], Optimum], debug: bool = False
) -> list[dict[str, Any]]:
    """The rows of one cell: one per trial, or one that says why there are none."""
    common = _common(prepared)
    try:
        budget, kind = find_budget(prepared)
        common |= {"delta": budget.delta}
        _ = prepared.spec  # raises Unsupported before anything slow is computed
        prepared = make_feature_rows(prepared)
        return _release(prepared, budget, kind, common, optimum_of(prepared.target))
    except Unsupported as reason:
        return [common | {"status": "unsupported", "reason": str(reason)}]
    except DpermError as error:
        return [common | {"status": "failed", "reason": str(error)}]
    except Exception as error:
        if debug:
            raise
        text = describe_error(error)
        return [common | {"status": "failed", "reason": text[:500]}]


def make_feature_rows(prepared: Prepared) -> Prepared:
    """The same with the rows of its features made, where it has a kernel."""
    cell = prepared.cell
    if cell.kernel is None:
        return prepared
    made = kernel_cells.make_feature_rows(
        cell, kernel_cells.KernelCell(prepared.problem, prepared.kernel)
    )
    released = made.problem
    if cell.population is not None:
        released = kernel_cells.pad_problem(made.problem, cell.population)
    return replace(prepared, problem=made.problem, released=released, kernel=made.kernel)


def make_failed_rows(prepared: Prepared, reason: str) -> list[dict[str, Any]]:
    """The rows of a cell that could not be run at all."""
    return [_common(prepared) | {"status": "failed", "reason": reason}]


def find_budget(prepared: Prepared) -> tuple[Budget, str]:
    """The budget in force and its kind; Unsupported when the mechanism has no such guarantee."""
    cell = prepared.cell
    name, mechanism = cell.mechanism_name, cell.mechanism
    kind = kind_of(name, mechanism, cell.privacy, cell.delta, cell.relation)
    return budget_of(prepared, kind), kind


def budget_of(prepared: Prepared, kind: str) -> Budget:
    """The cell's budget for one kind of guarantee; ``delta=auto`` is 1/n^2."""
    cell, n = prepared.cell, prepared.population
    if kind == "local":
        return Budget(cell.epsilon, 0.0, cell.relation, "local", cell.information)
    if kind == "pure":
        return Budget(cell.epsilon, 0.0, cell.relation)
    return Budget(cell.epsilon, delta_of(cell.delta, n), cell.relation)


def _release(
    prepared: Prepared, budget: Budget, kind: str, common: dict[str, Any], optimum: Optimum
) -> list[dict[str, Any]]:
    cell, problem = prepared.cell, prepared.problem
    spec: Any = prepared.spec
    start = time.perf_counter()
    plan, grid = plan_of(prepared, budget)
    guarantee, accountant = check(plan, budget, kind, cell.mechanism.is_unprotected)
    released = cell.mechanism.release(*open_release(prepared, plan, budget, grid))
    if cell.noise == "secure":
        common = common | {"release": release_log.new_name()}
    seconds = (time.perf_counter() - start) / cell.trials
    theta = np.asarray(released.theta)
    if not np.all(np.isfinite(theta)):
        raise FloatingPointError("the released point is not finite")
    common = common | plan_columns(plan, guarantee, accountant) | _optimum_columns(problem, optimum)
    if common["epsilon"] is None:
        common["epsilon"] = guarantee.epsilon  # what the information asked for implies
    if cell.kernel is not None:
        kernel_cells.remember(problem, theta)
    if guarantee.kind != "none":  # bounds are about private releases
        if math.isinf(budget.epsilon):
            budget = replace(budget, epsilon=guarantee.epsilon)
        common |= bounds.choose_best_bounds(_setting(cell, spec, budget, kind, plan))
    common["seconds"] = seconds
    common["arithmetic"] = _arithmetic(cell, kind, grid)
    rows = _trials(cell, problem, optimum, theta, common)
    rows = [row | _add_settings(row, released.info.get("settings", {})) for row in rows]
    if isinstance(spec, KernelSpec):
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
        return plan_with_reserve(cell.mechanism, spec, budget), None
    plan = cell.mechanism.plan(spec, budget)
    if budget.trust == "local":
        return secure_channel_plan(plan), None
    return secure_plan(cell.mechanism, plan, spec, prepared.problem.loss)


def _add_settings(row: dict[str, Any], released: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """The plan's settings with those that the trial released on its way, [trials] each."""
    if not released:
        return {}
    own = {name: float(values[row["trial"]]) for name, values in released.items()}
    return {"settings": row["settings"] | own}


def _arithmetic(cell: cell_schema.Cell, kind: str, grid: Grid | None) -> str:
    """The arithmetic of values and noise: ``float64``, a grid, or ``signs``."""
    if grid is not None:
        return str(grid)
    return "signs" if cell.noise == "secure" and kind == "local" else "float64"


def open_release(
    prepared: Prepared, plan: Plan, budget: Budget, grid: Grid | None
) -> tuple[Any, Plan, Gate]:
    """The arguments of ``Mechanism.release``: a view of the records, the plan, the noise gate."""
    cell, allowed = prepared.cell, (plan.events, budget.relation)
    if grid is not None:
        gate = Gate.secure(cell.trials, grid, allowed)
        return GridView(prepared.released, grid), plan, gate
    on_kernel = kernel_cells.space_of(cell.mechanism) == "kernel"
    problem = prepared.kernel if on_kernel else prepared.released
    # what is decided here follows what was declared, and not how many records there are
    own = prepared.kernel if cell.population is None else None
    view = open_view(cell.mechanism, problem, own)
    if cell.noise == "secure":
        return view, plan, Gate.secure_channels(cell.trials, allowed)
    name, seed = prepared.noise_name, cell.seed or 0
    seeds = [seed_sequence(seed, "noise", name, trial) for trial in range(cell.trials)]
    return view, drop_reserve(plan), Gate(seeds, plan=allowed)


def _population_source(cell: cell_schema.Cell) -> str:
    """How the n of the mechanism's formulas became known."""
    if cell.relation == "replace_one":
        return "public"
    return "from the data" if cell.population is None else "declared"


def _trials(
    cell: cell_schema.Cell,
    problem: Problem,
    optimum: Optimum,
    theta: np.ndarray,
    common: dict[str, Any],
) -> list[dict[str, Any]]:
    # one trial at a time: a row must not depend on the number of trials
    rows = []
    for trial, point in enumerate(theta):
        excess = float(problem.objective(point)) - optimum.value
        rows.append(
            common
            | metrics.score(problem, point)
            | _score_point(cell, problem, point)
            | _diagnose(cell, point, common)
            | {
                "status": "ok",
                "trial": trial,
                "excess_risk": excess,
                "excess_risk_per_record": excess / problem.data.n,
                "theta": point,
            }
        )
    return rows


def _score_point(cell: cell_schema.Cell, problem: Problem, point: np.ndarray) -> dict[str, Any]:
    """Population excess risk of a point, and how many records it exposes."""
    known = population.excess_risk(
        cell.dataset, problem.data, problem.loss, point, problem.constraint
    )
    risk, error = (None, None) if known is None else known
    return {
        "population_excess_risk": risk,
        "population_excess_risk_error": error,
        "records_exposed": count_exposed_records(problem.loss, problem.data, point),
    }


def _diagnose(cell: cell_schema.Cell, point: np.ndarray, common: dict[str, Any]) -> dict[str, Any]:
    """Columns from the data set's own attack on the point; empty for data sets without one."""
    diagnose = getattr(cell.dataset, "diagnose", None)
    return diagnose(point, common["epsilon"], common["delta"]) if diagnose else {}


def _setting(
    cell: cell_schema.Cell, spec: ProblemSpec, budget: Budget, kind: str, plan: Plan
) -> Setting:
    return Setting(
        spec=spec,
        budget=budget,
        kind=kind,
        mechanism=cell.mechanism_name,
        noise_scale=plan.noise_scale,
        steps=plan.steps,
        settings=plan.settings,
    )


def plan_columns(plan: Plan, guarantee: Guarantee, accountant: str) -> dict[str, Any]:
    return _channel_columns(plan, guarantee) | {
        "guarantee": guarantee.kind,
        "epsilon_accounted": None if guarantee.kind == "none" else guarantee.epsilon,
        "delta_accounted": None if guarantee.kind == "none" else guarantee.delta,
        "accountant": accountant,
        "certificate": guarantee.certificate,
        "noise_scale": plan.noise_scale,
        "steps": plan.steps,
        "settings": dict(plan.settings),
        "events": [ledger_totals.to_dict(event) for event in plan.events],
    }


def _channel_columns(plan: Plan, guarantee: Guarantee) -> dict[str, Any]:
    """What a local guarantee says beside its epsilon."""
    if guarantee.kind != "local":
        return {}
    return {
        "information_accounted": guarantee.information,
        "channel": plan.settings.get("channel"),
        "channel_multiplier": plan.settings.get("multiplier"),
    }


def _optimum_columns(problem: Problem, optimum: Optimum) -> dict[str, Any]:
    floor = float(problem.objective(problem.constraint.centre()))
    return {
        "optimum": optimum.value,
        "optimum_gap": optimum.gap,
        "floor_risk": floor,
        "floor_excess_risk": floor - optimum.value,
        "seconds_optimum": optimum.seconds,
    }


def _kernel_words(prepared: Prepared) -> list[str]:
    return kernel_cells.describe_kernel(prepared.cell, prepared.problem, prepared.kernel)


def _common(prepared: Prepared) -> dict[str, Any]:
    cell, data, spec = prepared.cell, prepared.data, prepared.problem.spec()
    return {
        "cell": prepared.key,
        "status": "ok",
        "dataset": data.name,
        "task": data.task,
        "n": data.n,
        "population": prepared.population,
        "population_source": _population_source(cell),
        "p": spec.p,
        "row_bound": data.row_bound,
        "target_bound": data.target_bound,
        "preprocessing": "; ".join([*data.preprocessing, *_kernel_words(prepared)]),
        "unsafe_scaling": data.data_dependent,
        "loss": cell.loss.name,
        "constraint": spec.constraint.name,
        "constraint_radius": spec.constraint.size,
        "radius": spec.constraint.radius,
        "diameter": spec.constraint.diameter,
        "ridge": cell.ridge,
        "lasso": cell.lasso,
        "lipschitz": spec.lipschitz_total,
        "smoothness": spec.smoothness,
        "mechanism": cell.mechanism_name,
        "calibration": cell.calibration,
        "privacy": cell.privacy,
        "relation": cell.relation,
        "epsilon": cell.epsilon if math.isfinite(cell.epsilon) else None,
        "delta": cell.delta,
        "information": cell.information,
        "arithmetic": "float64" if cell.noise == "research" else None,
        "noise": cell.noise,
        "seed": cell.seed,
        "trials": cell.trials,
        "overrides": cell.config,
        "data_fingerprint": data.fingerprint,
        "version": __version__,
    }
