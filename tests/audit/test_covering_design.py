"""A covering design has every pair of values that can stand together, and says which cannot."""

from __future__ import annotations

import itertools

import pytest

from dperm_cli.audit.covering_design import FULL, cover

FACTORS = {
    "p": (3, 1, 8, 20),
    "loss": ("logistic", "hinge", "squared", "absolute"),
    "radius": (10.0, 1.0, 1e12),
    "relation": ("replace_one", "add_remove"),
    "delta": (1e-5, 0.0),
}


def pairs_of(rows):
    return {
        ((a, row[a]), (b, row[b])) for row in rows for a, b in itertools.combinations(FACTORS, 2)
    }


def all_pairs():
    return {
        ((a, v), (b, w))
        for a, b in itertools.combinations(FACTORS, 2)
        for v in FACTORS[a]
        for w in FACTORS[b]
    }


def test_every_two_values_meet_in_few_rows():
    found = cover(FACTORS, lambda row: None)
    assert pairs_of(found.rows) == all_pairs()
    assert not found.missing
    assert 16 <= len(found.rows) <= 24  # 192 in the full grid
    assert found == cover(FACTORS, lambda row: None)


def test_strength_one_has_every_value():
    found = cover(FACTORS, lambda row: None, strength=1)
    assert len(found.rows) == 4
    for name, values in FACTORS.items():
        assert {row[name] for row in found.rows} == set(values)


def test_strength_one_has_nothing_demanding_beside_what_it_is_for():
    """The row of the last p and loss has the first value of every factor that is covered."""
    found = cover(FACTORS, lambda row: None, strength=1, first=({"delta": 0.0},))
    assert found.rows[0] == {name: values[0] for name, values in FACTORS.items()} | {"delta": 0.0}
    assert [row["delta"] for row in found.rows] == [0.0] + [1e-5] * 3
    assert [row["relation"] for row in found.rows].count("add_remove") == 1
    assert len({row["radius"] for row in found.rows}) == 3


def test_strength_one_asks_the_dear_question_of_few_rows():
    """What only the dear question refuses is found, and left out with its reason."""
    asked = []

    def reason_against(row):
        asked.append(row)
        return "too large" if row["p"] == 8 and row["radius"] == 1e12 else likely(row)

    def likely(row):
        return "no kinks" if row["loss"] == "hinge" else None

    found = cover(FACTORS, reason_against, strength=1, likely=likely)
    assert found.missing == (((("loss", "hinge"),), "no kinks"),)
    for name, values in FACTORS.items():
        assert {row[name] for row in found.rows} == set(values) - {"hinge"}
    assert len(asked) <= 2 * len(found.rows)
    assert [row for row in found.rows if reason_against(row) is not None] == []

    refused = cover(FACTORS, lambda row: "never" if row["p"] == 8 else None, 1, likely=likely)
    assert set(refused.missing) == {((("p", 8),), "never"), ((("loss", "hinge"),), "no kinks")}
    assert 8 not in {row["p"] for row in refused.rows}


def test_what_cannot_be_is_missing_and_nothing_else():
    def reason_against(row):
        if row["loss"] == "hinge":
            return "no kinks"
        if row["relation"] == "add_remove" and row["delta"] == 0.0:
            return "not both"
        return None

    found = cover(FACTORS, reason_against)
    assert all(reason_against(row) is None for row in found.rows)
    assert set(found.missing) == {
        ((("loss", "hinge"),), "no kinks"),
        ((("relation", "add_remove"), ("delta", 0.0)), "not both"),
    }
    possible = {
        pair
        for pair in all_pairs()
        if ("loss", "hinge") not in pair
        and set(pair) != {("relation", "add_remove"), ("delta", 0.0)}
    }
    assert pairs_of(found.rows) == possible


def test_a_cheaper_question_gives_no_impossible_row():
    def reason_against(row):
        return "too much" if row["p"] == 20 and row["radius"] == 1e12 else None

    found = cover(FACTORS, reason_against, soon=lambda row: None)
    assert all(reason_against(row) is None for row in found.rows)
    assert [target for target, _ in found.missing] == [(("p", 20), ("radius", 1e12))]


def test_given_settings_come_first():
    given = {"p": 430, "loss": "hinge"}
    found = cover(FACTORS, lambda row: None, first=(given,))
    assert found.rows[0]["p"] == 430
    assert found.rows[0]["loss"] == "hinge"
    assert pairs_of(found.rows[1:]) | pairs_of(found.rows[:1]) >= all_pairs()


@pytest.mark.parametrize("most", [1, 6])
def test_a_full_design_says_what_it_leaves_out(most):
    found = cover(FACTORS, lambda row: None, most=most)
    assert len(found.rows) == most
    left = {target for target, reason in found.missing if reason == FULL}
    assert left == all_pairs() - pairs_of(found.rows)
