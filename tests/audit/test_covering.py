"""Covering designs: every pair of values meets in some row, and what cannot be is told."""

from __future__ import annotations

import itertools

from dperm_cli.audit.covering import FULL, cover

FACTORS = {"a": (0, 1, 2, 3), "b": ("x", "y", "z"), "c": (False, True), "d": (1, 2, 3)}


def pairs_of(rows):
    return {
        ((one, row[one]), (other, row[other]))
        for row in rows
        for one, other in itertools.combinations(FACTORS, 2)
    }


def all_pairs():
    return {
        ((one, v), (other, w))
        for one, other in itertools.combinations(FACTORS, 2)
        for v in FACTORS[one]
        for w in FACTORS[other]
    }


def test_every_pair_of_values_meets_in_far_fewer_rows_than_there_are():
    design = cover(FACTORS, lambda row: None)
    assert pairs_of(design.rows) == all_pairs()
    assert not design.missing
    assert len(design.rows) <= 20 < 4 * 3 * 2 * 3


def test_it_is_the_same_every_time():
    assert cover(FACTORS, lambda row: None) == cover(FACTORS, lambda row: None)


def test_what_no_row_can_have_is_missing_with_the_reason():
    def against(row):
        return "three is too much" if row["a"] == 3 else None

    design = cover(FACTORS, against)
    assert all(row["a"] != 3 for row in design.rows)
    assert ((("a", 3),), "three is too much") in design.missing
    wanted = {pair for pair in all_pairs() if ("a", 3) not in pair}
    assert pairs_of(design.rows) == wanted


def test_a_pair_that_cannot_meet_is_missing_and_its_values_are_not():
    def against(row):
        return "not together" if row["a"] == 1 and row["b"] == "y" else None

    design = cover(FACTORS, against)
    assert [target for target, _ in design.missing] == [(("a", 1), ("b", "y"))]
    assert any(row["a"] == 1 for row in design.rows)
    assert any(row["b"] == "y" for row in design.rows)


def test_a_design_of_few_rows_says_what_it_left_out():
    design = cover(FACTORS, lambda row: None, most=5)
    assert len(design.rows) == 5
    assert {reason for _, reason in design.missing} == {FULL}
