"""``dperm describe``: what is known of a problem before any budget is spent."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from dperm_cli.bounds import _registry as bounds
from dperm_cli.bounds._bound import Setting
from dperm_cli.core import checks, registry
from dperm_cli.core.errors import EXIT_OK, InputError, Unsupported
from dperm_cli.core.rng import generator, seed_sequence
from dperm_cli.privacy.budget import Budget
from dperm_cli.problem.optimum import Optimum
from dperm_cli.problem.problem import Problem
from dperm_cli.results import portrait
from dperm_cli.results.schema import canonical_json
from dperm_cli.results.store import atomic_write
from dperm_cli.runner import app, cell, metrics, plan, schema
from dperm_cli.runner.compose import Composer
from dperm_cli.runner.overrides import parse

EPSILONS = (0.1, 1.0, 10.0)
WIDTH_DRAWS = 2000


def describe(arguments: list[str]) -> int:
    """Print the problem's facts (``format=json``: one object) and draw its picture."""
    study = plan.plan(parse(arguments))
    if len({schema.digest(_problem_keys(c.config)) for c in study.cells}) > 1:
        raise InputError("describe", " ".join(arguments), "takes one problem at a time")
    (prepared,) = app.prepare(study.cells[:1])
    epsilons = sorted({c.epsilon for c in study.cells}) if len(study.cells) > 1 else EPSILONS
    with threadpool_limits(1):
        found = facts(prepared, app.optima()(prepared.problem), list(epsilons))
    out = Path(f"outputs/describe-{study.name}" if study.out.endswith(study.name) else study.out)
    for ending, content in portrait.figure(found).items():
        atomic_write(out / f"problem.{ending}", content)
    print(canonical_json(found) if study.format == "json" else portrait.text(found))
    print(f"wrote {out}: problem.pdf, problem.svg, problem.png", file=sys.stderr)
    return EXIT_OK


def facts(prepared: cell.Prepared, optimum: Optimum, epsilons: list[float]) -> dict[str, Any]:
    """Everything that is printed and drawn, as plain JSON-able values.

    Optimum, floor, metrics and losses are facts of the records: for their holder, no release.
    """
    problem, spec = prepared.problem, prepared.problem.spec()
    constraint: Any = problem.constraint
    centre = constraint.centre()
    floor = float(problem.objective(centre))
    width, error = constraint.width(
        generator(seed_sequence(0, "width", constraint.name)), draws=WIDTH_DRAWS
    )
    return {
        "dataset": problem.data.name,
        "task": problem.data.task,
        "preprocessing": "; ".join(problem.data.preprocessing),
        "loss": problem.loss.name,
        "constraint": constraint.name,
        "n": spec.n,
        "p": spec.p,
        "lipschitz": spec.lipschitz_total,
        "smoothness": spec.smoothness,
        "strong_convexity": spec.strong_convexity,
        "radius": constraint.radius,
        "diameter": constraint.diameter,
        "width": width,
        "width_error": error,
        "optimum": optimum.value,
        "optimum_gap": optimum.gap,
        "optimum_seconds": optimum.seconds,
        "floor_excess_risk": floor - optimum.value,
        "floor_excess_risk_per_record": (floor - optimum.value) / spec.n,
        "metrics": metrics.score(problem, optimum.theta),
        "relation": prepared.cell.relation,
        "delta": _delta(prepared),
        "epsilons": epsilons,
        "mechanisms": {name: _mechanism(name, prepared, epsilons) for name in _mechanisms()},
        "losses": _losses(problem, optimum, centre),
    }


def _mechanisms() -> tuple[str, ...]:
    return registry.protective()


def _problem_keys(config: dict[str, Any]) -> dict[str, Any]:
    names = ("dataset", "loss", "constraint", "ridge", "lasso", "privacy", "delta")
    return {name: config[name] for name in names if name in config}


def _delta(prepared: cell.Prepared) -> float:
    return cell.budget_of(prepared, "approx").delta


def _mechanism(name: str, prepared: cell.Prepared, epsilons: list[float]) -> list[dict[str, Any]]:
    """One entry per epsilon: supported with its noise and bounds, or the reason why not."""
    config = Composer().compose({"mechanism": name})["mechanism"]
    mechanism = schema.build_mechanism(config, "tight", prepared.cell.sampler)
    spec = prepared.problem.spec()
    rows = []
    for epsilon in epsilons:
        kind = mechanism.guarantees[0]
        budget = cell.budget_of(prepared, kind)
        budget = Budget(checks.positive("epsilon", epsilon), budget.delta, budget.relation)
        try:
            made = mechanism.plan(spec, budget)
        except Unsupported as reason:
            rows.append({"epsilon": epsilon, "supported": False, "reason": str(reason)})
            continue
        at = Setting(spec, budget, kind, name, made.noise_scale, made.steps, made.settings)
        row = {"epsilon": epsilon, "supported": True, "guarantee": kind}
        rows.append(row | {"noise_scale": made.noise_scale, "steps": made.steps} | bounds.best(at))
    return rows


def _losses(problem: Problem, optimum: Optimum, centre: np.ndarray) -> dict[str, list[float]]:
    """Quantiles over records of the loss at the optimum and at the data-free point."""
    levels = np.linspace(0.0, 1.0, 101)
    points = {"optimum": optimum.theta, "centre": centre}
    return {
        name: [float(q) for q in np.quantile(problem.loss.values(theta, problem.data), levels)]
        for name, theta in points.items()
    }
