"""The summary: numbers by hand, nulls, saturation, JSON."""

from __future__ import annotations

import json
import math

import pytest

from dperm_cli.results.records.schema import normalise
from dperm_cli.results.records.summary import SUMMARY_NAMES, is_saturated, summarise
from tests.results.conftest import refused, trial_rows

PROMISED = {
    "dataset", "n", "p", "loss", "constraint", "mechanism", "calibration", "relation",
    "guarantee", "epsilon", "delta", "epsilon_accounted", "noise_scale", "steps", "trials",
    "excess_risk_median", "excess_risk_q05", "excess_risk_q95", "excess_risk_per_record_median",
    "floor_excess_risk", "optimum_gap", "bound_upper", "bound_lower", "bound_upper_id",
    "bound_constant", "bound_factor", "train_metric", "test_metric", "metric", "seconds",
    "status", "reason",
}  # fmt: skip


def one(rows):
    (found,) = summarise(normalise(row) for row in rows)
    return found


def test_quantiles_by_hand():
    """Of 0, 10, ..., 100 the 5 % quantile is at position 0.5 of the order statistics."""
    found = one(trial_rows(risks=tuple(10.0 * i for i in (3, 1, 0, 2, 9, 4, 10, 6, 5, 8, 7))))
    assert found["trials"] == 11
    assert found["excess_risk_median"] == 50.0
    assert found["excess_risk_q05"] == pytest.approx(5.0)
    assert found["excess_risk_q95"] == pytest.approx(95.0)
    assert found["excess_risk_per_record_median"] == pytest.approx(0.5)
    assert found["floor_excess_risk_per_record"] == pytest.approx(0.8)


def test_even_medians_and_metrics():
    rows = trial_rows(risks=(1.0, 2.0))
    rows[0]["train_metric"], rows[1]["train_metric"] = 0.5, 0.7
    rows[0]["seconds"], rows[1]["seconds"] = 1.0, 2.0
    found = one(rows)
    assert found["excess_risk_median"] == 1.5
    assert found["train_metric"] == pytest.approx(0.6)
    assert found["seconds"] == 1.5
    assert found["seconds_optimum"] == 0.1


def test_null_stays_null_and_every_promised_key_is_there():
    found = one(trial_rows())
    assert tuple(found) == SUMMARY_NAMES
    assert set(found) >= PROMISED
    assert found["test_metric"] is None
    assert found["bound_upper"] is None
    assert found["reason"] is None


def test_a_refused_cell_is_one_row_without_numbers():
    found = one([refused("u")])
    assert (found["status"], found["reason"]) == ("unsupported", "no pure guarantee")
    assert found["trials"] == 0
    assert found["excess_risk_median"] is None
    assert found["seconds"] is None


def test_cells_keep_their_order():
    rows = [*trial_rows("z"), refused("m", "failed"), *trial_rows("a")]
    assert [row["cell"] for row in summarise(map(normalise, rows))] == ["z", "m", "a"]


def test_a_trial_that_is_no_number_is_the_worst_not_a_missing_one():
    found = one(trial_rows(risks=(1.0, math.nan, 3.0)))
    assert found["excess_risk_median"] == 3.0
    assert found["excess_risk_q95"] is None
    assert one(trial_rows(risks=(math.nan, math.inf, 1.0)))["excess_risk_median"] is None


def test_the_summary_is_strict_json():
    rows = [*trial_rows(risks=(math.inf, math.nan, 1.0), epsilon_accounted=math.inf), refused("u")]
    text = json.dumps(summarise(map(normalise, rows)), allow_nan=False)
    assert json.loads(text)[0]["epsilon_accounted"] is None


@pytest.mark.parametrize(
    ("risk", "floor", "expected"),
    [(39.9, 80.0, False), (40.0, 80.0, True), (500.0, 80.0, True), (None, 1.0, None)],
)
def test_saturation_is_within_a_factor_two_of_the_floor(risk, floor, expected):
    assert is_saturated(risk, floor) is expected
    if risk is not None:
        assert one(trial_rows(risks=(risk,), floor_excess_risk=floor))["saturated"] is expected
