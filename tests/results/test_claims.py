"""Verdicts on synthetic rows whose slopes, ratios and bounds are known."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dperm_cli.core.errors import InputError
from dperm_cli.core.package_paths import find_shipped
from dperm_cli.results.charts.curve_points import NotComparable, PointSelection, extend_row, points
from dperm_cli.results.claims.claims import (
    CONFIRMED,
    NO_DATA,
    NOT_JUDGED,
    REFUTED,
    UNDECIDED,
    Finding,
    Verdict,
    parse,
)
from dperm_cli.results.claims.experiment_tables import verdicts_text
from dperm_cli.results.claims.intervals import draw_statistics, log_log
from dperm_cli.results.claims.judge import judge

NS = (100, 200, 400, 800, 1600, 3200)
EXPERIMENTS = Path(find_shipped("experiments"))


def row(n=100, risk=1.0, cell=None, mechanism="a", floor=1e9, trial=0, config=None, **more):
    config = {"dataset": {"name": "d", **(config or {})}, "mechanism": {"name": mechanism}}
    made = {
        "cell": cell or f"{mechanism}-{n}-{json.dumps(config)}-{more.get('epsilon', 1.0)}",
        "trial": trial, "status": "ok", "mechanism": mechanism, "n": n, "epsilon": 1.0,
        "excess_risk": risk, "floor_excess_risk": floor, "overrides": json.dumps(config),
    }  # fmt: skip
    return extend_row(made | more, ["part"])


def power(slope, noise=0.0, rng=None, trials=1, **more):
    """Rows of n^slope with log-normal noise."""
    return [
        row(
            n, n**slope * (np.exp(noise * rng.standard_normal()) if noise else 1.0), trial=t, **more
        )
        for n in NS
        for t in range(trials)
    ]


def claim(**fields):
    given = {"id": "c", "text": "t", "theorem": "x", "kind": "slope", "axis": "n", **fields}
    return parse([given])[0]


def verdict(rows, size="full", absent=None, **fields):
    return judge(claim(**fields), rows, size, absent)


def test_slopes_by_hand():
    fit = log_log([1, 2, 4, 8], [3, 12, 48, 192])
    assert fit.slope == pytest.approx(2.0)
    assert fit.half == pytest.approx(0.0, abs=1e-12)
    # residuals 1, -2, 1 on logs 0, 1, 2: slope 0, variance 6, t(1) = 12.706
    fit = log_log(np.exp([0.0, 1.0, 2.0]), np.exp([1.0, -2.0, 1.0]))
    assert fit.slope == pytest.approx(0.0)
    assert fit.half == pytest.approx(12.7062047 * np.sqrt(6.0 / 2.0), rel=1e-6)


@pytest.mark.stat
def test_slope_verdicts_have_their_level_and_their_power():
    """Of 150 draws a true slope is all but never refuted, and one off by 0.5 always is.

    A rate of 2.5 % (the interval's one-sided one, at the edge of the band) passes 12 of 150 with
    probability below 1e-3.
    """
    rng = np.random.default_rng(0)
    right = [verdict(power(0.5, 0.05, rng), expect=0.5).verdict for _ in range(150)]
    wrong = [verdict(power(1.0, 0.05, rng), expect=0.5).verdict for _ in range(150)]
    edge = [verdict(power(0.65, 0.05, rng), expect=0.5).verdict for _ in range(150)]
    assert right.count(REFUTED) == 0
    assert right.count(CONFIRMED) > 142
    assert wrong.count(REFUTED) > 147
    assert edge.count(REFUTED) < 12
    assert edge.count(CONFIRMED) < 12


def test_a_slope_that_is_too_uncertain_decides_nothing():
    rows = [row(n, risk) for n, risk in zip(NS, (1, 30, 1, 30, 1, 30), strict=True)]
    assert verdict(rows, expect=0.0).verdict == UNDECIDED
    assert verdict(power(0.5)[:3], expect=0.5).verdict == UNDECIDED


def test_an_interval_that_reaches_out_of_the_band_is_undecided():
    rows = [row(n, 1e6 * r * n**-2.0) for n, r in zip(NS, (1, 3, 1, 3, 1, 3), strict=True)]
    assert verdict(rows, expect=-0.5, sense="at_most").verdict == CONFIRMED
    assert verdict(rows, expect=-1.9, sense="at_most").verdict == UNDECIDED
    assert verdict(rows, expect=-1.9).verdict == UNDECIDED
    assert verdict(rows, expect=-0.5, sense="at_least").verdict == REFUTED
    assert verdict(rows, expect=-3.0, sense="at_least").verdict == CONFIRMED


def test_what_rounding_leaves_of_no_risk_is_no_point():
    rows = [*power(-0.5, floor=1e3), row(6400, 1e-17, floor=1e3), row(12800, 0.0, floor=1e3)]
    assert verdict(rows, expect=-0.5, tolerance=0.02).verdict == CONFIRMED
    rows = [*power(-0.5, floor=1e3), row(6400, 1e-8, floor=1e3)]
    assert verdict(rows, expect=-0.5, tolerance=0.02, sense="at_least").verdict != CONFIRMED


def test_senses_of_a_slope():
    assert verdict(power(-1.0), expect=0.0, sense="at_most").verdict == CONFIRMED
    assert verdict(power(-1.0), expect=0.0, sense="at_least").verdict == REFUTED
    assert verdict(power(1.0), expect=0.0, sense="at_most").verdict == REFUTED


def test_saturated_points_are_left_out():
    rows = [*power(0.5), row(6400, 1.0, floor=1.5), row(12800, 1.0, floor=1.0)]
    assert verdict(rows, expect=0.5).verdict == CONFIRMED
    rows = [*power(0.5), row(6400, 1.0), row(12800, 1.0)]
    assert verdict(rows, expect=0.5).verdict == UNDECIDED


def test_the_worst_of_a_family_and_the_best_of_those():
    rows = [
        row(100, risk, config={"signal": signal, "width": width}, floor=10.0 * signal)
        for signal, width, risk in ((1, 1, 5.0), (2, 1, 7.0), (1, 2, 6.0), (2, 2, 3.0))
    ]
    worst = points(
        rows, PointSelection(axis="n", worst=("dataset.signal",), best=("dataset.width",))
    )
    assert [p.value for p in worst[""]] == [6.0]
    assert worst[""][0].floor == 20.0
    with pytest.raises(NotComparable, match=r"dataset\.signal"):
        points(rows, PointSelection(axis="n", best=("dataset.width",)))


def test_of_accuracy_the_worst_is_the_smallest_and_the_best_the_largest():
    shown = {"quantity": "test_metric", "worst": ("dataset.signal",), "best": ("dataset.width",)}
    values = ((1, 1, 0.5), (2, 1, 0.7), (1, 2, 0.6), (2, 2, 0.3))

    def find(metric):
        return points(
            [
                row(config={"signal": signal, "width": width}, test_metric=value, metric=metric)
                for signal, width, value in values
            ],
            PointSelection(axis="n", **shown),
        )[""][0]

    assert (find("accuracy").value, find("residual_norm").value) == (0.5, 0.6)
    assert set(draw_statistics(find("accuracy"))) == {0.5}
    assert set(draw_statistics(find("residual_norm"))) == {0.6}


def test_medians_of_pooled_trials():
    rows = [
        row(100, risk, config={"seed": seed}, trial=trial)
        for seed, risks in enumerate(((1.0, 2.0), (3.0, 10.0)))
        for trial, risk in enumerate(risks)
    ]
    found = points(rows, PointSelection(axis="n", pool=("dataset.seed",)))[""][0]
    assert (found.value, found.trials) == (2.5, 4)


def test_ratio_and_order_compare_place_by_place():
    rows = [*power(0.5, mechanism="a"), *(row(n, 3.0 * n**0.5, mechanism="b") for n in NS)]
    sides = {"where": {"mechanism": "b"}, "against": {"mechanism": "a"}}
    assert verdict(rows, kind="ratio", expect=3.0, tolerance=0.01, **sides).verdict == CONFIRMED
    assert verdict(rows, kind="ratio", expect=2.0, sense="at_most", **sides).verdict == REFUTED
    assert verdict(rows, kind="order", **sides).verdict == REFUTED
    flipped = {"where": {"mechanism": "a"}, "against": {"mechanism": "b"}}
    found = verdict(rows, kind="order", **flipped)
    assert found.verdict == CONFIRMED
    assert len(found.findings) == len(NS)


def test_another_mechanism_is_not_asked_for_the_settings_of_the_first():
    asked = {"where": {"mechanism": "a", "mechanism.steps": "theory", "dataset.n": 5}}
    other = claim(kind="order", against={"mechanism": "b"}, **asked)
    assert other.select(other.against).where == {"mechanism": "b", "dataset.n": 5}
    settled = claim(kind="order", against={"mechanism": "b", "mechanism.steps": 3}, **asked)
    assert settled.select(settled.against).where["mechanism.steps"] == 3
    same = claim(kind="order", against={"mechanism": "a", "epsilon": 1.0}, **asked)
    assert same.select(same.against).where["mechanism.steps"] == "theory"


@pytest.mark.parametrize(
    "folder", sorted(EXPERIMENTS.glob("*/verdicts.json")), ids=lambda path: path.parent.name
)
def test_every_kept_verdict_is_of_cells_that_ran(folder):
    """A claim whose rows or rivals select nothing would wait for a run for ever."""
    text = folder.read_text()
    assert len(json.loads(text)) > 0
    assert "no cell of it ran" not in text


def test_explicit_bounds_need_no_fit():
    rows = [row(n, 2.0 + t, trial=t, bound_upper=3.5, bound_lower=4.0) for n in NS for t in (0, 1)]
    fields = {"statistic": "mean"}
    assert verdict(rows, kind="below_bound", bound="bound_upper", **fields).verdict == CONFIRMED
    assert verdict(rows, kind="above_bound", bound="bound_lower", **fields).verdict == REFUTED
    # a bound inside the interval of the mean decides nothing
    near = [{**r, "bound_lower": 2.6} for r in rows]
    assert verdict(near, kind="above_bound", bound="bound_lower", **fields).verdict == UNDECIDED


def test_order_bounds_are_fitted_on_the_first_third_and_held_on_the_rest():
    fields = {"kind": "below_bound", "bound": "order_upper"}
    rows = [row(n, 7.0 * n, order_upper=float(n)) for n in NS]
    assert verdict(rows, **fields).verdict == CONFIRMED
    rows = [row(n, n**1.2, order_upper=float(n)) for n in NS]
    assert verdict(rows, **fields).verdict == REFUTED
    above = {"kind": "above_bound", "bound": "order_lower"}
    rows = [row(n, n**0.8, order_lower=float(n)) for n in NS]
    assert verdict(rows, **above).verdict == REFUTED
    # a tenth above the constant, with trials a tenth off on either side
    rows = [row(n, n * (1.0 if n <= 200 else 1.1) * (1 + s), trial=t, order_upper=float(n))
            for n in NS for t, s in enumerate((-.1, .1) if n <= 200 else (.1, -.1))]  # fmt: skip
    assert verdict(rows, statistic="mean", **fields).verdict == UNDECIDED
    assert verdict(rows, statistic="mean", tolerance=0.5, **fields).verdict == CONFIRMED


def test_values_at_places():
    rows = [row(100, 5.0, epsilon=1.0), row(100, 6.0, epsilon=2.0)]
    values = [{"at": {"epsilon": 1}, "expect": 5.001}, {"at": {"epsilon": 2}, "expect": 6}]
    assert verdict(rows, kind="value", values=values).verdict == CONFIRMED
    values[1]["expect"] = 6.1
    assert verdict(rows, kind="value", values=values).verdict == REFUTED


def test_what_is_expected_to_fail():
    fields = {"expect": 0.0, "expected": "fails", "reason": "it grows"}
    found = verdict(power(1.0), **fields)
    assert (found.verdict, found.is_as_filed, found.fault) == (REFUTED, True, False)
    assert found.note == "does not hold, as filed"
    found = verdict(power(0.0), **fields)
    assert (found.verdict, found.is_as_filed, found.fault) == (CONFIRMED, False, True)
    # undecided is no failure, and does not come out as filed either
    rows = [row(n, risk) for n, risk in zip(NS, (1, 30, 1, 30, 1, 30), strict=True)]
    found = verdict(rows, **fields)
    assert (found.verdict, found.is_as_filed, found.fault) == (UNDECIDED, False, False)


def test_what_is_not_judged():
    rows = power(5.0)
    assert verdict(rows, size="small", expect=0.5, sizes=["full"]).verdict == NOT_JUDGED
    lacking = {"part": "data: covtype is not here"}
    assert verdict(rows, absent=lacking, part="part", expect=0.5).verdict == NO_DATA
    assert verdict(rows, absent={"part": "needs x"}, part="part", expect=0.5).verdict == NOT_JUDGED
    assert verdict(rows, where={"mechanism": "none such"}, expect=0.5).verdict == NOT_JUDGED
    unsupported = [{**r, "status": "unsupported"} for r in rows]
    assert verdict(unsupported, expect=0.5).verdict == NOT_JUDGED


def test_one_curve_that_contradicts_decides():
    rows = [*power(0.5, mechanism="a"), *power(1.5, mechanism="b")]
    found = verdict(rows, expect=0.5, group=["mechanism"])
    assert found.verdict == REFUTED
    assert {f.label: f.holds for f in found.findings} == {"a": True, "b": False}


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"kind": "slop"}, "claims.c.kind"),
        ({"expect": float("nan")}, "claims.c.expect"),
        ({"expect": "half"}, "claims.c.expect"),
        ({"axis": None}, "claims.c.axis"),
        ({"expect": 1, "tolerence": 1}, "claims.c.tolerence"),
        ({"expect": 1, "sizes": ["big"]}, "claims.c.sizes"),
        ({"expect": 1, "expected": "fails"}, "claims.c.reason"),
        ({"expect": 1, "where": ["a"]}, "claims.c.where"),
        ({"kind": "ratio", "expect": 1}, "claims.c.against"),
        ({"kind": "below_bound"}, "claims.c.bound"),
        ({"kind": "value", "values": [{"at": 1}]}, "claims.c.values"),
        ({"text": ""}, "claims.c.text"),
        ({"expect": 1, "known": "some"}, "claims.c.known"),
        ({"expect": 1, "filed": {"date": "yesterday", "commit": "abcdef0"}}, "claims.c.filed"),
        ({"expect": 1, "filed": {"date": "2026-11-21"}}, "claims.c.filed"),
        ({"expect": 1, "parameters": "best"}, "claims.c.parameters"),
        ({"expect": 1, "refiled": "yes"}, "claims.c.refiled"),
        ({"expect": 1, "within": [4, 2]}, "claims.c.within"),
    ],
)
def test_bad_claims_are_named(fields, key):
    with pytest.raises(InputError) as caught:
        claim(**fields)
    assert caught.value.key == key


def test_claims_have_different_ids():
    entry = {"id": "c", "text": "t", "theorem": "x", "kind": "slope", "axis": "n", "expect": 1}
    with pytest.raises(InputError, match="twice"):
        parse([entry, entry])


def test_the_data_free_floor_by_hand():
    rows = [row(100, 2.0, floor=2.5), row(200, 2.6, floor=2.5), row(400, 2.4, floor=None)]
    fields = {"kind": "below_floor"}
    assert verdict(rows[:1], **fields).verdict == CONFIRMED
    found = verdict(rows[:2], **fields)
    assert found.verdict == REFUTED
    assert [f.holds for f in found.findings] == [True, False]
    assert found.findings[1].measured == "2.6, floor 2.5"
    # a tolerance is relative; without a floor nothing is said
    assert verdict(rows[:2], tolerance=0.05, **fields).verdict == CONFIRMED
    assert verdict([rows[0], rows[2]], **fields).verdict == UNDECIDED


def test_a_floor_goes_with_a_risk_per_record():
    mine = [{**r, "excess_risk_per_record": r["excess_risk"] / r["n"]}
            for r in (row(100, 2.0, floor=2.5), row(200, 2.6, floor=2.5))]  # fmt: skip
    found = verdict(mine, kind="below_floor", quantity="excess_risk_per_record")
    assert [f.holds for f in found.findings] == [True, False]


def test_a_ratio_to_the_best_of_several():
    rows = [row(100, risk, mechanism=name) for name, risk in (("a", 3.0), ("b", 2.0), ("c", 1.6))]
    fields = {"kind": "ratio", "where": {"mechanism": "a"}, "best": ["mechanism"],
              "against": {"mechanism": ["a", "b", "c"]}, "sense": "at_most"}  # fmt: skip
    assert verdict(rows, expect=1.9, **fields).verdict == CONFIRMED
    found = verdict(rows, expect=1.8, **fields)
    assert found.verdict == REFUTED
    assert found.findings[0].measured == "1.875, at most 1.8 expected"


def collapsing(*factors, slope=-0.5):
    """A curve of c n^slope for each factor c."""
    return [
        row(n, factor * n**slope, mechanism=f"m{place}")
        for place, factor in enumerate(factors)
        for n in NS
    ]


def test_curves_collapse_onto_one_line():
    fields = {"kind": "collapse", "group": "mechanism", "expect": -0.5}
    assert verdict(collapsing(1.0, 1.19 / 0.84), **fields).verdict == CONFIRMED
    found = verdict(collapsing(1.0, 1.21 / 0.82), **fields)
    assert found.verdict == REFUTED
    assert [f.holds for f in found.findings] == [False, False]
    # a middle curve lies on the line that the others leave
    found = verdict(collapsing(1.0, 1.5**2, 1.5), **fields)
    assert [f.holds for f in found.findings] == [False, False, True]
    assert found.findings[2].measured == "1 to 1 times 1.5 x^-0.5"
    # curves that agree with each other and not with the slope
    assert verdict(collapsing(1.0, 1.0, slope=-0.8), **fields).verdict == REFUTED
    steep = {**fields, "expect": -0.8}
    assert verdict(collapsing(1.0, 1.0, slope=-0.8), **steep).verdict == CONFIRMED
    assert verdict(collapsing(1.0), **fields).verdict == UNDECIDED


def test_points_without_a_logarithm_decide_no_collapse():
    fields = {"kind": "collapse", "group": "mechanism", "expect": -0.5}
    gone = [row(n, -1e-9, mechanism="none") for n in NS]
    found = verdict([*collapsing(1.0), *gone], **fields)
    assert found.verdict == UNDECIDED
    assert [(f.label, f.holds) for f in found.findings] == [("m0", True), ("none", None)]
    assert found.findings[1].measured == "no point is above 0"


@pytest.mark.parametrize(
    ("fields", "allowed"),
    [
        ({"kind": "slope", "expect": 1.0}, "tolerance 0.15"),
        ({"kind": "value", "expect": 3.0}, "tolerance 0.001 of what is expected"),
        ({"kind": "value", "expect": 0.0}, "tolerance 0.001"),
        ({"kind": "value", "expect": 3.0, "tolerance": 0}, ""),
        ({"kind": "value", "values": [{"at": {"n": 1}, "expect": 2}]},
         "tolerance 0.001 of what is expected"),
        ({"kind": "ratio", "against": {"n": 1}, "expect": 1.0, "tolerance": 0.08},
         "tolerance 0.08 of what is expected"),
        ({"kind": "ratio", "against": {"n": 1}, "expect": 1.0}, ""),
        ({"kind": "order", "against": {"n": 1}, "tolerance": 0.05}, "up to a factor 1 + 0.05"),
        ({"kind": "order", "against": {"n": 1}}, ""),
        ({"kind": "below_floor", "tolerance": 0.05}, "up to a factor 1 + 0.05"),
        ({"kind": "below_bound", "bound": "order_upper", "tolerance": 0.5},
         "up to a factor 1 + 0.5"),
        # an explicit bound has its standard errors, whatever the tolerance
        ({"kind": "below_bound", "bound": "bound_upper", "tolerance": 0.5}, ""),
        ({"kind": "collapse", "expect": 1.0}, "up to a factor 1 + 0.2"),
    ],
)  # fmt: skip
def test_a_verdict_says_what_its_tolerance_allows(fields, allowed):
    found = Verdict(claim(**fields), CONFIRMED, (Finding("", True, "3"),))
    first = verdicts_text([found]).splitlines()[0]
    assert first.endswith(f"t [x] ({allowed})" if allowed else "t [x]")
    assert found.plain()["allowed"] == allowed
    # without a finding it decided nothing
    unseen = Verdict(found.claim, NOT_JUDGED, note="runs at size=full")
    assert verdicts_text([unseen]).endswith("t [x] (runs at size=full)\n")


def test_what_a_collapse_needs():
    with pytest.raises(InputError, match="expect"):
        claim(kind="collapse")


def test_records_in_the_channels_unit():
    told = {"p": 8, "information_accounted": 0.5, "channel_multiplier": 4.0}
    assert row(n=100, channel="l_inf", **told)["records_told"] == pytest.approx(
        100 * 0.5 / (8 * np.log(16.0))
    )
    assert row(n=100, channel="l_1", **told)["records_told"] == pytest.approx(100 / (8 * 16.0))
    assert row(n=100, channel="l_1", **told)["records_told_cor2"] == pytest.approx(100 * 0.5 / 64)
    assert row(n=100, channel="l_inf", **told)["records_told_cor2"] is None
    assert row(n=100, channel="l_2", **told)["records_told"] is None
    assert row(n=100)["records_told"] is None
    assert row(settings='{"step": 0.5}')["settings.step"] == 0.5
