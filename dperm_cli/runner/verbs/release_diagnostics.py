"""What the holder of the records may want to know of a release, and nobody else may see."""

from __future__ import annotations

from typing import Any

from dperm_cli.core.errors import describe_error
from dperm_cli.datasets.shared.invalid_records import count_zero_rows
from dperm_cli.runner.cells import metrics
from dperm_cli.runner.cells.prepared_cell import Prepared, make_feature_rows
from dperm_cli.runner.cells.single_release import SingleRelease
from dperm_cli.solvers import optimum

SECONDS = 20.0  # for the optimum without noise
WARNING = (
    "Most records are the zero record: a label or a cell of them cannot be used, and the figures "
    "say nothing. Compare classes, words and bounds of the schema with the table."
)


def find_diagnostics(prepared: Prepared, single: SingleRelease) -> dict[str, Any]:
    """Exact figures of a release: how far it is from the best point, and how well it predicts.

    They are computed after the release and change nothing of it; what goes wrong here is written
    down, and no more.

    Args:
        prepared: the cell with its records.
        single: the release.
    """
    try:
        problem = make_feature_rows(prepared).problem
        best = optimum.solve(problem, relative_gap=1e-4, seconds=SECONDS)
        excess = float(problem.objective(single.theta)) - best.value
        references = metrics.score_references(problem, best.theta)
        scored = metrics.score(problem, single.theta)
        zero = _count_zero_records(prepared.data.x)
    except Exception as error:
        return {"error": describe_error(error)[:300]}
    return {
        "records": int(problem.data.n),
        **zero,
        "optimum": best.value,
        "optimum_gap": best.gap,
        "excess_risk": excess,
        "excess_risk_per_record": excess / problem.data.n,
        "metric": scored["metric"],
        "metric_on_training_records": scored["train_metric"],
        "metric_of_the_optimum": references["optimum_metric"],
        "baseline": references["baseline"],
        "metric_of_the_baseline": references["baseline_metric"],
    }


def _count_zero_records(x: Any) -> dict[str, Any]:
    """How many rows [n, p] are zero, with a word on what to look at where most are."""
    zero = count_zero_rows(x)
    found: dict[str, Any] = {"zero_records": zero}
    return found | {"warning": WARNING} if 2 * zero > x.shape[0] else found
