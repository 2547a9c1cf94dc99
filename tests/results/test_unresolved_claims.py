"""A claim is not decided by an excess risk that its optimum's gap may change."""

from __future__ import annotations

import pytest

from dperm_cli.results.claims.claims import CONFIRMED, REFUTED, UNDECIDED
from tests.results.test_claims import NS, power, row, verdict

AGAINST = {"where": {"mechanism": "a"}, "against": {"mechanism": "b"}}


def pair(mine, other, gap, other_gap=None):
    """A row of each mechanism, with the gaps of their optima."""
    gaps = gap, gap if other_gap is None else other_gap
    return [
        row(risk=risk, mechanism=name, optimum_gap=one)
        for risk, name, one in zip((mine, other), "ab", gaps, strict=True)
    ]


@pytest.mark.parametrize(("gap", "said"), [(0.0, REFUTED), (0.01, REFUTED), (0.1, UNDECIDED)])
def test_a_ratio(gap, said):
    fields = {"kind": "ratio", "expect": 0.7, "sense": "at_most", **AGAINST}
    found = verdict(pair(9.0, 10.0, gap * 9.0), **fields)
    assert found.verdict == said
    assert ("the optimum is known to 0.9 only" in found.findings[0].measured) == (gap == 0.1)


def test_risks_below_an_optimum_that_was_not_found():
    fields = {"kind": "ratio", "expect": 0.7, "sense": "at_most", **AGAINST}
    assert verdict(pair(-14.3, -15.8, 66.8), **fields).verdict == UNDECIDED


def test_an_order_over_one_optimum_does_not_depend_on_its_gap():
    fields = {"kind": "order", **AGAINST}
    assert verdict(pair(1.0, 2.0, 50.0), **fields).verdict == CONFIRMED
    assert verdict(pair(2.0, 1.0, 50.0), **fields).verdict == REFUTED
    assert verdict(pair(1.0, 2.0, 50.0), **fields, tolerance=0.1).verdict == UNDECIDED
    assert verdict(pair(1.0, 2.0, 50.0, 0.0), **fields).verdict == UNDECIDED


@pytest.mark.parametrize(("gap", "said"), [(0.0, CONFIRMED), (0.5, CONFIRMED), (1.5, REFUTED)])
def test_an_upper_bound_holds_of_the_risk_and_the_gap_together(gap, said):
    rows = [row(risk=1.0, optimum_gap=gap, bound_upper=2.0)]
    assert verdict(rows, kind="below_bound", bound="bound_upper").verdict == said
    rows = [row(risk=3.0, optimum_gap=gap, bound_lower=2.0)]
    assert verdict(rows, kind="above_bound", bound="bound_lower").verdict == CONFIRMED


def test_a_value():
    fields = {"kind": "value", "expect": 1.0, "tolerance": 0.2}
    assert verdict([row(risk=1.0, optimum_gap=0.005)], **fields).verdict == CONFIRMED
    assert verdict([row(risk=1.0, optimum_gap=0.1)], **fields).verdict == UNDECIDED
    per_record = {**fields, "quantity": "excess_risk_per_record"}
    rows = [row(excess_risk_per_record=1.0, optimum_gap=0.5)]
    assert verdict(rows, **per_record).verdict == CONFIRMED


def test_no_slope_is_fitted_on_places_that_are_not_resolved():
    wide = [{**one, "optimum_gap": one["excess_risk"]} for one in power(0.5)]
    found = verdict(wide, expect=0.5, tolerance=0.1)
    assert found.verdict == UNDECIDED
    assert f"0 of {len(NS)} points" in found.findings[0].measured
    fine = [{**one, "optimum_gap": 1e-3 * one["excess_risk"]} for one in power(0.5)]
    assert verdict(fine, expect=0.5, tolerance=0.1).verdict == CONFIRMED
    some = [{**one, "optimum_gap": one["excess_risk"] * (one["n"] > 1600)} for one in fine]
    assert "on 5 points" in verdict(some, expect=0.5, tolerance=0.1).findings[0].measured
