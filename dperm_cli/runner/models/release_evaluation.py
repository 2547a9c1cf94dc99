"""Metrics of a released model on records that it was not fitted to, from the same budget.

Fit and evaluation are about different records, told apart by their place in the table. So together
they cost what the dearer of the two costs (docs/proofs/_evaluation.md), and the evaluation takes as
much as the fit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dperm_cli.core import registry
from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.datasets.shared.table_schema import TableSchema
from dperm_cli.mechanisms.base import Plan
from dperm_cli.privacy.accounting.budget_filter import spend_of
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.intervals.coefficients import NoiseOnPoint
from dperm_cli.privacy.metrics.coefficients import FitFacts
from dperm_cli.privacy.metrics.joint_plan import (
    MetricsPlan,
    plan_metrics,
    release_metrics,
)
from dperm_cli.runner.cells.prepared_cell import Prepared
from dperm_cli.runner.cells.run_cell import Planned
from dperm_cli.runner.cells.single_release import SingleRelease, name_mechanism
from dperm_cli.runner.models.evaluated_release import EvaluatedRelease
from dperm_cli.runner.models.held_out_records import find_reach, make_held_out
from dperm_cli.runner.models.metric_choice import MetricChoice

INSIDE = 1.0 - 1e-6  # of the gauge of a set: a point beyond it may be held by the boundary


def check_evaluation(prepared: Prepared, choice: MetricChoice, schema: TableSchema) -> None:
    """InputError where the metrics of a cell's model cannot be released."""
    cell = prepared.cell
    if cell.relation != "replace_one":
        allowed = "needs a public number of held-out records: privacy.relation=replace_one"
        raise InputError("evaluate", cell.relation, allowed)
    if cell.kernel is not None:
        raise InputError("evaluate", cell.kernel.name, "is not for models with a kernel")
    choice.build(schema, cell.loss.chances is not None)
    if "coefficients" in choice.names:
        _check_coefficients(prepared)
    if not len(_list_labels(prepared)):
        raise InputError("evaluate", 0, "holds out no record: take a larger share")


def _check_coefficients(prepared: Prepared) -> None:
    """InputError where coefficients have no intervals: the loss or a penalty does not suit."""
    loss, lasso = prepared.cell.loss, prepared.cell.lasso
    if not (loss.quadratic if prepared.data.task == "regression" else loss.chances):
        allowed = "is for loss=logistic and loss=squared"
        raise InputError("metrics", "coefficients", allowed)
    if lasso:
        raise InputError("metrics", "coefficients", "is for models without lasso")


def find_maker(prepared: Prepared, plan: Plan) -> Any:
    """The class of the mechanism that a plan is of, whichever ``auto`` chose."""
    return registry.load("mechanism", name_mechanism(prepared, plan))


def describe_fit(prepared: Prepared, single: SingleRelease) -> FitFacts:
    """What is public of the released point, for intervals of its coefficients."""
    spec: Any = prepared.spec
    noise = find_maker(prepared, single.plan)().point_noise(spec, single.plan, single.theta)
    return FitFacts(
        single.theta,
        spec.n,
        float(prepared.cell.loss.smoothness) * spec.row_bound**2,
        noise.strength,
        NoiseOnPoint(noise.on_gradient, noise.on_point),
        bool(spec.constraint.gauge(single.theta) < INSIDE),
    )


def _list_labels(prepared: Prepared) -> np.ndarray:
    """Labels of the held-out records: an empty array where none is held out."""
    labels = prepared.data.y_test
    return np.empty(0) if labels is None else labels


def plan_evaluation(
    prepared: Prepared, planned: Planned, choice: MetricChoice, schema: TableSchema
) -> MetricsPlan:
    """The evaluation's plan: Gaussian where the fit is, as hard to tell apart; else of its epsilon.

    Raises:
        Unsupported: there is so little noise that no grid can hold it.
    """
    guarantee, records = planned.guarantee, len(_list_labels(prepared))
    metrics = choice.build(schema, prepared.cell.loss.chances is not None)
    if "coefficients" in choice.names and find_maker(prepared, planned.plan).point_noise is None:
        name = name_mechanism(prepared, planned.plan)
        raise Unsupported(
            f"metrics=coefficients: it is not known what noise a point of {name} holds; set "
            "mechanism=output_perturbation, objective_perturbation or sufficient_statistics"
        )
    mu = spend_of(planned.plan.events, guarantee).mu
    budget = Budget(guarantee.epsilon, 0.0, guarantee.relation)
    return plan_metrics(metrics, records, budget, mu=mu)


def evaluate_release(
    prepared: Prepared,
    plan: MetricsPlan,
    single: SingleRelease,
    choice: MetricChoice,
    schema: TableSchema,
) -> EvaluatedRelease:
    """Add up what the metrics need of the held-out records, with noise from the gate."""
    data, theta, chances = prepared.data, single.theta, prepared.cell.loss.chances
    bent = "coefficients" in choice.names
    held = make_held_out(data, theta, prepared.cell.loss, choice.find_places(schema), bent)
    found = release_metrics(plan, held, plan.open_secure_gate())
    facts: dict[str, Any] = {"fit": describe_fit(prepared, single)} if bent else {}
    bounds, reach = schema.target.model_bounds, find_reach(data, theta)
    if bounds is not None:
        facts["unit"] = 0.5 * (bounds[1] - bounds[0])
    if data.task == "binary" and chances is not None:
        facts["chance_of_score"] = lambda score: float(chances(np.array([score * reach]))[0])
    return EvaluatedRelease(found, single.guarantee, facts)
