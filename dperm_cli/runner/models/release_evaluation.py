"""The accuracy of a released model on records that it was not fitted to, from the same budget.

Fit and evaluation are about different records, told apart by their place in the table. So together
they cost what the dearer of the two costs (docs/proofs/_evaluation.md), and the evaluation takes as
much as the fit.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from dperm_cli.core.errors import InputError
from dperm_cli.privacy.accounting import ledger_totals
from dperm_cli.privacy.accounting.attack_risk import find_attack_risk
from dperm_cli.privacy.accounting.budget_filter import spend_of
from dperm_cli.privacy.budget import Budget, Guarantee
from dperm_cli.privacy.events import Gaussian
from dperm_cli.privacy.private_accuracy import (
    AccuracyPlan,
    PrivateAccuracy,
    plan_accuracy,
    release_accuracy,
)
from dperm_cli.runner.cells.run_cell import Planned, Prepared
from dperm_cli.runner.cells.single_release import SingleRelease

FILE = "evaluation.json"
LEVEL = 0.95
NOTE = (
    "Counted on records that the model was not fitted to. Fit and evaluation are about different "
    "records: together they cost the larger of the two epsilons, and not their sum. The interval "
    "for the population counts noise and sampling, the one for these records noise alone."
)


@dataclass(frozen=True)
class EvaluatedRelease:
    """What an evaluation found.

    Attributes:
        found: the noisy count of right predictions, with its plan.
        guarantee: of the fit, which the evaluation keeps to as well.
    """

    found: PrivateAccuracy
    guarantee: Guarantee

    def summarise(self) -> dict[str, Any]:
        """What is printed."""
        low, high = self.found.find_population_interval(1.0 - LEVEL)
        return {
            "accuracy": round(self.found.estimate, 6),
            "accuracy_interval": f"[{low:.4f}, {high:.4f}]",
        }

    def write(self) -> bytes:
        """The file beside the model."""
        found, plan = self.found, self.found.plan
        facts = {
            "note": NOTE,
            "metric": "accuracy",
            "level_of_intervals": LEVEL,
            "estimate": found.estimate,
            "interval_for_the_population": found.find_population_interval(1.0 - LEVEL),
            "interval_for_these_records": found.find_interval_on_records(1.0 - LEVEL),
            "records": plan.records,
            "noisy_count_of_right_predictions": found.right,
            "relation": plan.relation,
            "membership_advantage": find_attack_risk([plan.event], self.guarantee).advantage,
            "event": ledger_totals.to_dict(plan.event),
        }
        return (json.dumps(facts, indent=2, allow_nan=False) + "\n").encode()


def check_evaluation(prepared: Prepared) -> None:
    """InputError where the accuracy of a cell's model cannot be released."""
    cell = prepared.cell
    if cell.dataset.task == "regression":
        allowed = "counts right predictions of labels: leave it out for a number"
        raise InputError("evaluate", cell.dataset.task, allowed)
    if cell.relation != "replace_one":
        allowed = "needs a public number of held-out records: privacy.relation=replace_one"
        raise InputError("evaluate", cell.relation, allowed)
    if cell.kernel is not None:
        raise InputError("evaluate", cell.kernel.name, "is not for models with a kernel")
    if not len(_list_labels(prepared)):
        raise InputError("evaluate", 0, "holds out no record: take a larger share")


def _list_labels(prepared: Prepared) -> np.ndarray:
    """Labels of the held-out records: an empty array where none is held out."""
    labels = prepared.data.y_test
    return np.empty(0) if labels is None else labels


def plan_evaluation(prepared: Prepared, planned: Planned) -> AccuracyPlan:
    """The evaluation's plan: Gaussian where the fit is, as hard to tell apart; else of its epsilon.

    Raises:
        Unsupported: there is so little noise that no grid can hold it.
    """
    guarantee, records = planned.guarantee, len(_list_labels(prepared))
    mu = spend_of(planned.plan.events, guarantee).mu
    if not mu:
        return plan_accuracy(records, Budget(guarantee.epsilon, 0.0, guarantee.relation))
    event = Gaussian(1.0 / mu, 1.0, gap=1.0, relation=guarantee.relation)
    return AccuracyPlan(event, guarantee.relation, records)


def evaluate_release(
    prepared: Prepared, plan: AccuracyPlan, single: SingleRelease
) -> EvaluatedRelease:
    """Count the right predictions on the held-out records, with noise from the gate."""
    data = prepared.data
    theta = single.theta
    if data.task == "multiclass":
        values = np.asarray(data.x_test @ theta.reshape(-1, data.classes))
        predicted = np.argmax(values, axis=1).astype(float)
    else:
        predicted = np.where(np.asarray(data.x_test @ theta) >= 0.0, 1.0, -1.0)
    counted = release_accuracy(plan, predicted, _list_labels(prepared), plan.open_secure_gate())
    return EvaluatedRelease(counted, single.guarantee)
