"""Weighted slopes, bootstrap intervals and power, against numbers known beforehand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dperm_cli.results.charts.curve_points import Point, PointSelection, points
from dperm_cli.results.claims import intervals
from dperm_cli.results.claims.claims import (
    CONFIRMED,
    NOT_JUDGED,
    REFUSED,
    REFUTED,
    UNDECIDED,
    parse,
)
from dperm_cli.results.claims.judge import judge
from tests.results.test_claims import NS, power, row

X, Y = (0.25, 0.5, 1.0, 2.0, 4.0), (24.0, 13.2, 7.1, 4.3, 2.5)
S = (0.01, 0.01, 0.01, 0.02, 0.02)


def one_claim(**fields):
    given = {"id": "c", "text": "t", "theorem": "x", "kind": "slope", "axis": "n", **fields}
    return parse([given])[0]


def points_of(*groups, statistic="mean"):
    """A point for each group of trials."""
    mean = np.mean if statistic == "mean" else np.median
    return [
        Point(float(n), float(mean(values)), 0, 0, 0, len(values), statistic=statistic,
              families=((tuple(values),),))
        for n, values in zip(NS, groups, strict=False)
    ]  # fmt: skip


def test_a_weighted_slope_with_more_spread_than_its_errors():
    found = intervals.fit_weighted(X, Y, S)
    assert found.slope == pytest.approx(-0.815886, abs=1e-6)
    assert found.half == pytest.approx(0.061621, abs=1e-6)
    assert found.spread == pytest.approx(0.00155495, rel=1e-5)
    # the order of the places does not matter
    back = intervals.fit_weighted(X[::-1], Y[::-1], S[::-1])
    assert (back.slope, back.half) == pytest.approx((found.slope, found.half))


def test_errors_that_explain_the_residuals_leave_no_spread():
    wide = [1.0] * 5
    found = intervals.fit_weighted(X, Y, wide)
    u = np.log(X)
    assert found.spread == 0.0
    assert found.slope == pytest.approx(np.polyfit(u, np.log(Y), 1)[0])
    assert found.half == pytest.approx(1.959964 / math.sqrt(np.sum((u - u.mean()) ** 2)))


def test_places_with_smaller_errors_weigh_more():
    x, y = (1.0, 2.0, 4.0, 8.0), (1.0, 2.0, 4.0, 80.0)
    found = intervals.fit_weighted(x, y, (0.01, 0.01, 0.01, 50.0))
    assert found.slope == pytest.approx(1.0, abs=1e-3)


@pytest.mark.stat
def test_intervals_of_slopes_have_their_level():
    """300 lines with known errors, and with twice that scatter: 95 % is 285, its sd 3.8."""
    rng, inside = np.random.default_rng(0), {1.0: 0, 2.0: 0}
    x, errors = np.array(NS, dtype=float), np.full(len(NS), 0.1)
    for factor in inside:
        for _ in range(300):
            y = np.exp(-0.5 * np.log(x) + factor * errors * rng.standard_normal(len(x)))
            found = intervals.fit_weighted(x, y, errors)
            inside[factor] += abs(found.slope + 0.5) <= found.half
    assert all(270 <= count <= 298 for count in inside.values())


def test_a_curve_confirms_no_slope():
    """Slope 1 on average, but local slopes from 0.75 to 1.25, outside 1 +- 0.15."""
    u = np.log(NS)
    bent = [row(n, math.exp(z + 0.09 * (z - u.mean()) ** 2)) for n, z in zip(NS, u, strict=True)]
    line = intervals.fit_points(points(bent, PointSelection(axis="n"))[""])
    assert line.bend == pytest.approx(0.09, rel=1e-6)
    assert line.is_curved
    assert abs(line.slope - 1.0) + line.half < 0.15
    assert judge(one_claim(expect=1.0), bent, "full").verdict == UNDECIDED
    assert judge(one_claim(expect=1.0, tolerance=0.5), bent, "full").verdict == CONFIRMED


def test_the_error_of_a_logarithm_is_that_of_its_bootstrap():
    trials = np.random.default_rng(0).lognormal(0.0, 0.5, 400)
    (point,) = points_of(trials)
    expected = np.std(trials) / math.sqrt(400) / np.mean(trials)
    assert intervals.log_error(point) == pytest.approx(expected, rel=0.1)
    (same,) = points_of([3.0] * 5)
    assert intervals.log_error(same) == intervals.LEAST_ERROR


@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_draws_of_a_statistic(statistic):
    trials = np.arange(1.0, 8.0)
    (point,) = points_of(trials, statistic=statistic)
    drawn = intervals.draw_statistics(point)
    assert drawn.shape == (intervals.DRAWS,)
    assert np.median(drawn) == pytest.approx(4.0, abs=0.2)
    assert drawn.min() >= 1.0
    assert drawn.max() <= 7.0


def test_the_largest_of_a_family_is_taken_in_every_draw():
    """Two members with the same mean: the larger of both draws is above either on average."""
    members = (1.0, 2.0, 3.0, 4.0), (4.0, 3.0, 2.0, 1.0)
    rows = [
        row(100, risk, config={"signal": signal}, trial=trial)
        for signal, risks in enumerate(members)
        for trial, risk in enumerate(risks)
    ]
    chosen = PointSelection(axis="n", statistic="mean", worst=("dataset.signal",))
    (found,) = points(rows, chosen)[""]
    drawn = intervals.draw_statistics(found)
    single = intervals.draw_statistics(points_of(members[0])[0])
    assert found.families == (members,)
    # the same trials are drawn on both sides, so that the other mean is 5 minus the one
    assert drawn == pytest.approx(np.maximum(single, 5.0 - single))


def test_a_comparison_is_paired():
    """b = 1.1 a in every trial: the ratio is known, however much the trials scatter."""
    trials = np.random.default_rng(1).lognormal(0.0, 1.0, 20)
    rows = [row(100, risk * f, mechanism=name, trial=t) for t, risk in enumerate(trials)
            for name, f in (("a", 1.0), ("b", 1.1))]  # fmt: skip
    sides = {"where": {"mechanism": "b"}, "against": {"mechanism": "a"}, "statistic": "mean"}
    claim = one_claim(kind="ratio", expect=1.1, tolerance=1e-6, **sides)
    assert judge(claim, rows, "full").verdict == CONFIRMED
    assert judge(one_claim(kind="order", **sides), rows, "full").verdict == REFUTED


def test_an_order_within_its_noise_is_undecided():
    rng = np.random.default_rng(2)
    rows = [row(100, risk, mechanism=name, trial=t) for name in "ab"
            for t, risk in enumerate(rng.lognormal(0.0, 1.0, 10))]  # fmt: skip
    claim = one_claim(
        kind="order", where={"mechanism": "a"}, against={"mechanism": "b"}, statistic="mean"
    )
    assert judge(claim, rows, "full").verdict == UNDECIDED


def test_one_contradiction_among_many_places_has_to_be_rare_among_as_many():
    """28 bounds at the true mean: one of them lies below an interval in half of all runs."""
    rng = np.random.default_rng(5)
    fields = {"kind": "below_bound", "bound": "bound_upper", "statistic": "mean"}
    found = []
    for _ in range(40):
        rows = [row(n, risk, trial=t, bound_upper=1.0) for n in range(100, 128)
                for t, risk in enumerate(rng.normal(1.0, 0.2, 30))]  # fmt: skip
        found.append(judge(one_claim(**fields), rows, "full").verdict)
    assert found.count(REFUTED) <= 8
    # and a real one is found among them
    rows = [
        row(n, risk * (2.0 if n == 110 else 1.0), trial=t, bound_upper=1.0)
        for n in range(100, 128)
        for t, risk in enumerate(rng.normal(0.8, 0.2, 30))
    ]
    assert judge(one_claim(**fields), rows, "full").verdict == REFUTED


@pytest.mark.parametrize(
    ("found", "band", "holds"),
    [((1, 2), (0, 3), True), ((1, 2), (1, 2), True), ((1, 2), (1.5, 3), None),
     ((1, 2), (2.5, 3), False), ((1, 2), (-math.inf, 0.5), False), ((1, 2), (2, 3), None)],
)  # fmt: skip
def test_what_an_interval_decides(found, band, holds):
    assert intervals.decide(found, band) is holds


def test_power_of_a_slope_at_twice_its_band():
    """Errors of 1 % on six places refute an excess of 0.15 always, those of 60 % seldom."""
    sharp = points_of(*([1.0, 1.0] for _ in NS))
    assert intervals.slope_power(sharp, 0.5, 0.15) == 1.0
    assert intervals.slope_power(sharp, 0.5, 0.0) < 0.1
    noisy = points_of(*(np.random.default_rng(n).lognormal(0.0, 1.5, 6) for n in NS))
    assert intervals.slope_power(noisy, 0.5, 0.15) < 0.5


def test_power_of_a_ratio_by_hand():
    drawn = np.exp(0.1 * np.random.default_rng(0).standard_normal(100_000))
    # Phi(0.28 / 0.1 - 1.96) = Phi(0.84) = 0.8
    assert intervals.ratio_power(drawn, 0.28) == pytest.approx(0.8, abs=0.005)
    assert intervals.ratio_power(np.full(5, 2.0), 0.1) == 1.0
    assert intervals.ratio_power(np.array([1.0, math.inf]), 0.1) == 0.0


def test_small_size_judges_only_what_it_could_refute():
    rng = np.random.default_rng(3)
    noisy = power(0.5, 1.0, rng, trials=4)
    assert judge(one_claim(expect=0.5), noisy, "full").verdict != NOT_JUDGED
    found = judge(one_claim(expect=0.5), noisy, "small")
    assert found.verdict == NOT_JUDGED
    assert found.note.startswith("power 0.")
    # with enough of it, a small size can refute
    assert judge(one_claim(expect=0.5), power(1.0), "small").verdict == REFUTED
    assert judge(one_claim(expect=0.5), power(0.5), "small").verdict == CONFIRMED


def test_a_claim_about_a_theorem_refuses_tuned_defaults():
    rows = power(0.5, mechanism="a")
    tuned = {"find_tuned": lambda row: "mechanism.steps=auto of a"}
    found = judge(one_claim(expect=0.5, parameters="theorem"), rows, "full", **tuned)
    assert (found.verdict, found.fault) == (REFUSED, False)
    assert found.note == "is about a theorem, and ran with mechanism.steps=auto of a"
    assert judge(one_claim(expect=0.5), rows, "full", **tuned).verdict == CONFIRMED
    theorem = one_claim(expect=0.5, parameters="theorem")
    assert judge(theorem, rows, "full", find_tuned=lambda row: None).verdict == CONFIRMED


def test_kind_data_confirm_no_rate():
    at_most = one_claim(expect=-0.5, sense="at_most", instance="kind")
    assert judge(at_most, power(-1.2), "full").verdict == UNDECIDED
    assert judge(at_most, power(0.5), "full").verdict == REFUTED
    exact = one_claim(expect=-0.5, instance="kind")
    assert judge(exact, power(-0.5), "full").verdict == CONFIRMED


def test_places_that_were_set_beforehand():
    rows = [*power(0.5), row(6400, 1.0), row(12800, 1.0)]
    assert judge(one_claim(expect=0.5, within=[100, 3200]), rows, "full").verdict == CONFIRMED
