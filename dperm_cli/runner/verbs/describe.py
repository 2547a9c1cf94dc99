"""``dperm describe``: what is known of a problem before any budget is spent."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from dperm_cli.bounds import all_bounds as bounds
from dperm_cli.bounds.base import Setting, find_gaussian_mu
from dperm_cli.core import checks, registry
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.digests import hash_facts
from dperm_cli.core.errors import EXIT_OK, InputError, Unsupported
from dperm_cli.core.files import write_files
from dperm_cli.core.memory_limits import hold_memory_to
from dperm_cli.core.seeds import generator, seed_sequence
from dperm_cli.mechanisms.base import Plan
from dperm_cli.problem.problem import Problem
from dperm_cli.results.charts import problem_portrait
from dperm_cli.results.records.schema import canonical_json
from dperm_cli.results.tables import problem_text
from dperm_cli.runner.cells import metrics, prepared_cell, run_cell
from dperm_cli.runner.cells.optimum_cache import make_solver
from dperm_cli.runner.cells.prepared_cell import Prepared
from dperm_cli.runner.compose import cell_schema, fitting_mechanism, plugin_objects, study_plan
from dperm_cli.runner.compose.command_line import Request, parse
from dperm_cli.runner.sweep.progress import open_step_meter
from dperm_cli.runner.verbs import run
from dperm_cli.solvers.optimum import Optimum

EPSILONS = (0.1, 1.0, 10.0)
WIDTH_DRAWS = 2000
# what a plan that was chosen says of the choice
CHOICE_KEYS = ("chosen", "runner_up", "predicted", "refused", "reason")


def describe(arguments: list[str]) -> int:
    """Print the problem's facts (``format=json``: one object) and draw its picture."""
    request = parse(arguments)
    study_plan.check_levels(request)
    study = study_plan.plan_study(request)
    out = Path(f"outputs/describe-{study.name}" if study.out.endswith(study.name) else study.out)
    checks.folder("out", str(out))
    made = describe_study(study, [request], " ".join(arguments))
    run.warn_of_columns([made.prepared])
    run.warn_of_records([made.prepared])
    found = made.facts
    drawn = problem_portrait.draw_figure(found)
    write_files(out, {f"problem.{ending}": content for ending, content in drawn.items()})
    as_json = study.keys.format == "json"
    print(canonical_json(found) if as_json else problem_text.format_problem(found))
    if not made.is_supported:
        fitting_mechanism.print_advice("every mechanism", made.find_fitting())
    return EXIT_OK


@dataclass(frozen=True)
class DescribedProblem:
    """What is known of a problem.

    Attributes:
        facts: All that is printed and drawn, JSON-able.
        prepared: The cell that stands for the problem.
    """

    facts: dict[str, Any]
    prepared: Prepared

    @property
    def is_supported(self) -> bool:
        """Whether some mechanism has a plan."""
        return any(row["supported"] for row in self._outlooks)

    def find_fitting(self) -> str | None:
        """A mechanism that has a plan, where none of those asked about has."""
        cell = replace(self.prepared.cell, epsilon=self._outlooks[0]["epsilon"])
        return fitting_mechanism.find_for_cell(replace(self.prepared, cell=cell))

    @property
    def _outlooks(self) -> list[dict[str, Any]]:
        return [row for rows in self.facts["mechanisms"].values() for row in rows]


def describe_study(
    study: study_plan.Study, requests: Sequence[Request], words: str = "..."
) -> DescribedProblem:
    """What is known of the problem of a study's cells before any budget is spent.

    Args:
        study: Cells of one problem.
        requests: What they were made from: the mechanisms and epsilons that were typed.
        words: What was typed, for an error.

    Raises:
        InputError: The cells are of several problems.
    """
    if len({hash_facts(_problem_keys(c.config)) for c in study.cells}) > 1:
        raise InputError("describe", words, "takes one problem at a time")
    with hold_memory_to(study.keys.memory):
        (prepared,) = run.prepare(study.cells[:1], study.keys.data_storage)
    typed = {one.key.partition(".")[0] for request in requests for one in request.settings}
    epsilons = {c.epsilon for c in study.cells} if "epsilon" in typed else EPSILONS
    if prepared.cell.information is not None:
        epsilons = {_find_implied_epsilon(prepared)}
    if "mechanism" in typed:
        for request in requests:
            study_plan.check_sampler(request, study.cells)
    asked = _list_requested(study.cells) if "mechanism" in typed else _list_all(prepared.cell)
    with threadpool_limits(1), open_step_meter("describe"):
        prepared = prepared_cell.make_feature_rows(prepared)
        found = collect_facts(prepared, make_solver()(prepared.target), sorted(epsilons), asked)
    return DescribedProblem(found, prepared)


def collect_facts(
    prepared: Prepared,
    optimum: Optimum,
    epsilons: list[float],
    mechanisms: Mapping[str, tuple[str, Any]],
) -> dict[str, Any]:
    """Everything that is printed and drawn, as plain JSON-able values.

    ``mechanisms`` has a name and a mechanism for every label they are shown under.

    Optimum, floor, metrics and losses are facts of the records: for their holder, no release.
    """
    problem, spec = prepared.problem, prepared.problem.spec()
    constraint: Any = problem.constraint
    kernel, names = prepared.cell.kernel, prepared.cell.names
    centre = constraint.centre()
    floor = float(problem.objective(centre))
    width, error = constraint.width(
        generator(seed_sequence(0, "width", constraint.name)), draws=WIDTH_DRAWS
    )
    return {
        "dataset": names.get("dataset", problem.data.name),
        "task": problem.data.task,
        "preprocessing": "; ".join(problem.data.preprocessing),
        "loss": names.get("loss", problem.loss.name),
        "constraint": names.get("constraint", constraint.name),
        "kernel": None if kernel is None else kernel.name,
        "n": spec.n,
        "p": spec.p,
        "lipschitz": spec.lipschitz_total,
        "smoothness": spec.smoothness,
        "strong_convexity": spec.strong_convexity,
        "radius": constraint.radius,
        **run_cell.describe_radius(prepared),
        "diameter": constraint.diameter,
        "width": width,
        "width_error": error,
        "optimum": optimum.value,
        "optimum_gap": optimum.gap,
        "optimum_seconds": optimum.seconds,
        "floor_excess_risk": floor - optimum.value,
        "floor_excess_risk_per_record": (floor - optimum.value) / spec.n,
        "metrics": metrics.score(problem, optimum.theta),
        "references": metrics.score_references(problem, optimum.theta),
        "relation": prepared.cell.relation,
        "delta": _delta(prepared),
        "epsilons": epsilons,
        "mechanisms": {
            label: [_outlook(name, made, prepared, epsilon) for epsilon in epsilons]
            for label, (name, made) in mechanisms.items()
        },
        "losses": _losses(problem, optimum, centre),
    }


def _list_all(like: cell_schema.Cell) -> dict[str, tuple[str, Any]]:
    """All mechanisms that promise something, as they are shipped."""
    shipped = fitting_mechanism.build_shipped(
        registry.list_protective(), like.calibration, like.sampler,
        plugin_objects.list_demands(like.noise, like.privacy),
    )  # fmt: skip
    return {name: (name, made) for name, made in shipped}


def _list_requested(cells: Iterable[cell_schema.Cell]) -> dict[str, tuple[str, Any]]:
    """The mechanisms of the cells; variants of one name are told apart by number."""
    found: dict[str, tuple[str, Any]] = {}
    seen: list[Any] = []
    alike: dict[str, int] = {}
    for one in cells:
        variant = (one.config["mechanism"], one.calibration, one.config.get("sampler"))
        if variant not in seen:
            seen.append(variant)
            name = one.name_of("mechanism")
            alike[name] = alike.get(name, 0) + 1
            label = f"{name} ({alike[name]})" if alike[name] > 1 else name
            found[label] = (one.mechanism_name, one.mechanism)
    return found


def _problem_keys(config: dict[str, Any]) -> dict[str, Any]:
    names = ("dataset", "loss", "constraint", "ridge", "lasso", "kernel", "privacy", "delta")
    return {name: config[name] for name in names if name in config}


def _delta(prepared: Prepared) -> float:
    """What a run has for delta where its guarantee is not pure."""
    kind = prepared.cell.privacy
    return prepared_cell.budget_of(prepared, kind if kind in ("pure", "local") else "approx").delta


def _find_implied_epsilon(prepared: Prepared) -> float:
    """The local epsilon of the information asked for."""
    try:
        budget = prepared_cell.budget_of(prepared, "local")
        made = prepared.cell.mechanism.plan(prepared.spec, budget)
    except Unsupported as reason:
        raise InputError("information", prepared.cell.information, str(reason)) from None
    return made.guarantee.epsilon


def _outlook(name: str, mechanism: Any, prepared: Prepared, epsilon: float) -> dict[str, Any]:
    """Supported with its noise and bounds, as a run would have them, or the reason why not."""
    one = prepared.cell
    try:
        asked = replace(prepared, cell=replace(one, mechanism=mechanism, mechanism_name=name))
        spec: Any = asked.spec
        budget, kind = prepared_cell.find_budget(asked)
        budget = replace(budget, epsilon=epsilon)
        made = run_cell.plan_with_reserve(mechanism, spec, budget)
    except Unsupported as reason:
        return {"epsilon": epsilon, "supported": False, "reason": str(reason)}
    given = made.guarantee.kind
    row = {"epsilon": epsilon, "supported": True, "guarantee": given}
    row |= {"noise_scale": made.noise_scale, "steps": made.steps}
    row |= {key: made.settings[key] for key in CHOICE_KEYS if key in made.settings}
    row |= _predict_risk(mechanism, spec, made)
    if given == "none":  # bounds are about private releases
        return row
    mu = find_gaussian_mu(made.events, budget.relation)
    at = Setting(spec, budget, kind, name, made.noise_scale, made.steps, made.settings, mu)
    return row | bounds.choose_best_bounds(at)


def _predict_risk(mechanism: Any, spec: Any, made: Plan) -> dict[str, float]:
    """The excess risk per record that public facts foresee of a plan, where they do."""
    if "predicted" in made.settings:
        risk = made.settings["predicted"][made.settings["chosen"]]
    elif mechanism.predict_risk is None:
        return {}
    else:
        try:
            risk = mechanism.predict_risk(spec, made)
        except Unsupported:
            return {}
    return {"predicted_risk_per_record": risk} if risk < math.inf else {}


def _losses(problem: Problem, optimum: Optimum, centre: np.ndarray) -> dict[str, list[float]]:
    """Quantiles over records of the loss at the optimum and at the data-free point."""
    levels = np.linspace(0.0, 1.0, 101)
    points = {"optimum": optimum.theta, "centre": centre}
    return {
        name: [float(q) for q in np.quantile(problem.loss.values(theta, problem.data), levels)]
        for name, theta in points.items()
    }
