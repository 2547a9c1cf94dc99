"""Two studies compared, on rows whose differences are known."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from dperm_cli.results.records.schema import COLUMNS
from dperm_cli.results.tables import comparison as module
from dperm_cli.results.tables.comparison import compare, format_comparison

BASE = {column.name: None for column in COLUMNS} | {
    "status": "ok", "dataset": "d", "task": "binary", "n": 100, "p": 3, "loss": "logistic",
    "constraint": "l2_ball", "constraint_radius": 1.0, "ridge": 0.0, "lasso": 0.0,
    "mechanism": "noisy_gd", "calibration": "tight", "epsilon": 1.0, "delta": 1e-5,
    "guarantee": "approx", "relation": "replace_one", "epsilon_accounted": 1.0,
    "delta_accounted": 1e-5, "accountant": "analytic", "noise": "research",
    "arithmetic": "float64", "population_source": "public", "unsafe_scaling": False,
    "optimum_gap": 0.0, "floor_excess_risk": 10.0, "seconds": 0.01, "data_fingerprint": "abc",
}  # fmt: skip


def cell(name, risks=(1.0, 2.0, 3.0), config=None, **more):
    """A cell's records."""
    return [
        {**BASE, "cell": name, "trial": place, "excess_risk": risk,
         "overrides": json.dumps(config or {}), **more}
        for place, risk in enumerate(risks)
    ]  # fmt: skip


def normal(seed, size=10, shift=0.0):
    return list(10.0 + shift + np.random.default_rng(seed).standard_normal(size))


def only(a, b):
    found = compare(a, b)
    (pair,) = found.pairs
    assert found.only_a == found.only_b == ()
    return pair


def test_the_same_records_are_identical():
    pair = only(cell("a"), cell("a"))
    assert pair.verdict == "identical"
    assert not pair.weaker
    assert pair.privacy == pair.settings == ()
    assert pair.time == 1.0
    assert "1 cells in both: risk 1 identical" in format_comparison(
        compare(cell("a"), cell("a")), "A", "B"
    )


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("guarantee", "pure", "approx"),
        ("guarantee", "approx", "none"),
        ("guarantee", "local", "pure"),
        ("relation", "replace_one", "add_remove"),
        ("epsilon_accounted", 1.0, 1.01),
        ("epsilon_accounted", 1.0, None),
        ("delta_accounted", 0.0, 1e-9),
        ("delta_accounted", 1e-5, 1e-4),
        ("noise", "secure", "research"),
        ("population_source", "public", "from the data"),
        ("unsafe_scaling", False, True),
    ],
)
def test_a_weaker_guarantee_is_one_and_its_reverse_is_not(name, before, after):
    a, b = cell("a", **{name: before}), cell("b", **{name: after})
    weaker = only(a, b)
    assert weaker.weaker
    assert [change.name for change in weaker.privacy] == [name]
    back = only(b, a)
    assert not back.weaker
    assert [change.name for change in back.privacy] == [name]
    shown = format_comparison(compare(a, b), "A", "B")
    assert shown.startswith("WEAKER GUARANTEE:\n  d logistic, noisy_gd tight epsilon 1: " + name)
    assert "WEAKER" not in format_comparison(compare(b, a), "A", "B")


def test_another_accountant_or_last_bits_of_epsilon_are_not_weaker():
    assert not only(cell("a"), cell("b", accountant="other")).weaker
    assert only(cell("a"), cell("b", epsilon_accounted=1.0 + 1e-12)).privacy == ()


def test_another_delta_is_joined_and_told():
    pair = only(cell("a"), cell("b", delta=1e-3, delta_accounted=1e-3))
    assert pair.weaker
    assert {change.name for change in pair.privacy} == {"delta", "delta_accounted"}
    # with a partner of its own delta, that one is taken
    both = [*cell("b", delta=1e-3, delta_accounted=1e-3), *cell("c")]
    found = compare(cell("a"), both)
    assert [pair.after["cell"] for pair in found.pairs] == ["c"]
    assert len(found.only_b) == 1


@pytest.mark.parametrize(("shift", "said"), [(5.0, "worse"), (-5.0, "better"), (0.0, "same")])
def test_risks(shift, said):
    pair = only(cell("a", normal(1)), cell("b", normal(2, shift=shift)))
    assert pair.verdict == said
    assert pair.p is not None
    assert (pair.p < 1e-4) == (said != "same")


def test_a_trial_that_is_not_a_number_counts_as_infinitely_bad():
    pair = only(cell("a", normal(1)), cell("b", [math.nan] * 10))
    assert pair.verdict == "worse"


def test_few_trials_decide_nothing_and_the_solvers_gap_is_no_change():
    assert only(cell("a"), cell("b", (7.0, 8.0, 9.0))).verdict == "unclear"
    a, b = cell("a", [0.0] * 10, optimum_gap=1e-3), cell("b", [1e-3] * 10, optimum_gap=1e-3)
    assert only(a, b).verdict == "same"
    b = cell("b", [3e-3] * 10, optimum_gap=1e-3)
    assert only(a, b).verdict == "worse"


def test_noise_is_not_called_a_change():
    """40 comparisons of 20 equal cells: each is wrong with at most 5 %, 8 wrong are 1 in 1000.

    Without Holm's levels about 26 of them would be.
    """
    wrong, single = 0, 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        sides = [
            [r for i in range(20)
             for r in cell(f"{s}{i}", rng.standard_normal(10) + 9.0, epsilon=1.0 + i)]
            for s in "ab"
        ]  # fmt: skip
        found = compare(*sides)
        assert len(found.pairs) == 20
        wrong += any(pair.verdict in ("better", "worse") for pair in found.pairs)
        single += any((pair.p or 1.0) < module.LEVEL for pair in found.pairs)
    assert wrong < 8
    assert single > 15


def test_holm_by_hand():
    # levels 0.05/4, /3, /2, /1
    levels = {"a": 0.01, "b": 0.016, "c": 0.03, "d": 0.04}
    assert module.adjust_by_holm(levels) == {"a", "b"}
    assert module.adjust_by_holm({}) == set()


def test_cells_alike_in_their_columns_are_joined_by_their_settings():
    def study(prefix, *steps, extra=None):
        rows = []
        for count in steps:
            config = {"mechanism": {"steps": count, **(extra or {})}, "trials": len(prefix)}
            rows += cell(f"{prefix}{count}", config=config)
        return rows

    found = compare(study("a", 1, 2, 3), study("b", 2, 3, 4, extra={"new": "auto"}))
    assert [(p.before["cell"], p.after["cell"]) for p in found.pairs] == [
        ("a2", "b2"), ("a3", "b3"),
    ]  # fmt: skip
    assert (len(found.only_a), len(found.only_b)) == (1, 1)
    # alone, another setting is what is compared
    pair = only(study("a", 1), study("b", 4))
    assert [change.text for change in pair.settings] == ["mechanism.steps 1 -> 4"]


def test_other_data_are_told():
    pair = only(cell("a"), cell("b", data_fingerprint="def"))
    assert [change.text for change in pair.settings] == ["data_fingerprint abc -> def"]


def test_cells_that_only_one_has_and_those_that_no_longer_run():
    refused = [{**row, "trial": None} for row in cell("b", (None,), status="unsupported")]
    pair = only(cell("a"), refused)
    assert [change.text for change in pair.privacy] == ["status ok -> unsupported"]
    assert pair.verdict == "none"
    found = compare([*cell("a"), *cell("c", epsilon=2.0)], cell("b", mechanism="exponential"))
    assert found.pairs == ()
    assert found.only_a[1] == "d logistic, noisy_gd tight epsilon 2"
    assert "only in B:\n  d logistic, exponential tight epsilon 1" in format_comparison(
        found, "A", "B"
    )


def test_times():
    found = compare(cell("a"), cell("b", seconds=0.05))
    assert found.pairs[0].time == pytest.approx(5.0)
    shown = format_comparison(found, "A", "B")
    assert "0.01 s -> 0.05 s a trial" in shown
    assert "5.00 times that in A" in shown
    # a microsecond is not compared with another
    assert only(cell("a", seconds=1e-6), cell("b", seconds=1e-4)).time is None


def test_cells_that_differ_in_the_seed_alone_are_told_apart():
    seeds = [row for seed in (0, 1) for row in cell(f"s{seed}", seed=seed)]
    found = compare(seeds, cell("other", epsilon=2.0))
    assert [words.rpartition(", ")[2] for words in found.only_a] == ["seed 0", "seed 1"]
    assert "seed" not in found.only_b[0]
    assert [pair.label for pair in compare(seeds, seeds).pairs] == list(found.only_a)


def test_the_settings_that_tell_cells_apart_are_in_their_labels():
    steps = [row for k in (2, 3) for row in cell(f"s{k}", config={"mechanism": {"steps": k}})]
    found = compare(steps, [])
    assert [words.rpartition(", ")[2] for words in found.only_a] == [
        "mechanism.steps 2", "mechanism.steps 3",
    ]  # fmt: skip
