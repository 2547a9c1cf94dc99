"""The rows of a cell's trials: risks, metrics and what else is known of each released point."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dperm_cli.mechanisms.shared import released_bound
from dperm_cli.problem import population
from dperm_cli.problem.exposed_records import count_exposed_records
from dperm_cli.problem.problem import Problem
from dperm_cli.runner.cells import metrics
from dperm_cli.runner.compose import cell_schema
from dperm_cli.solvers.optimum import Optimum


def make_trial_rows(
    cell: cell_schema.Cell,
    problem: Problem,
    optimum: Optimum,
    theta: np.ndarray,
    common: dict[str, Any],
    released: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """A row for each trial.

    Args:
        cell: what was asked for.
        problem: the problem, with its records.
        optimum: the certified optimum.
        theta: the released points, [trials, p].
        common: the columns that all trials share.
        released: what came out on the way: ``settings`` and bounds, [trials] each, and the
            candidates ``chosen``.

    Returns:
        The rows, which do not depend on the number of trials.
    """
    # one trial at a time: a row must not depend on the number of trials
    rows, diagnose = [], getattr(cell.dataset, "diagnose", lambda *_: {})
    risks = population.find_excess_risks(
        cell.dataset, problem.data, problem.loss, theta, problem.constraint
    )
    values = problem.evaluate_apart(theta)
    for trial, point in enumerate(theta):
        excess = float(values[trial]) - optimum.value
        own: dict[str, Any] = {
            name: float(values[trial]) for name, values in released.get("settings", {}).items()
        }
        shown = {
            name: float(released[name][trial])
            for name in released_bound.COLUMNS
            if name in released
        }
        if "chosen" in released:
            tuning = common["settings"]["tuning"]
            own["tuning"] = tuning | {
                "chosen": tuning.get("chosen", {}) | released["chosen"][trial]
            }
        rows.append(
            common
            | shown
            | metrics.score(problem, point)
            | _score_point(problem, point, risks[trial])
            | diagnose(point, common["epsilon"], common["delta"])  # the data set's own attack
            | {
                "status": "ok",
                "settings": common["settings"] | own if own else common["settings"],
                "trial": trial,
                "excess_risk": excess,
                "excess_risk_per_record": excess / problem.data.n,
                "theta": point,
            }
        )
    return rows


def _score_point(
    problem: Problem, point: np.ndarray, known: tuple[float, float] | None
) -> dict[str, Any]:
    """Population excess risk of a point, and how many records it exposes."""
    risk, error = (None, None) if known is None else known
    return {
        "population_excess_risk": risk,
        "population_excess_risk_error": error,
        "records_exposed": count_exposed_records(problem.loss, problem.data, point),
    }
