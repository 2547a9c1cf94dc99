"""``dperm account shuffled=true`` and ``epsilon_shuffled=``."""

from __future__ import annotations

import pytest

from dperm_cli.privacy.accounting.shuffling import amplify, delta_of, find_local_epsilon

LOCAL = ("account", "mechanism=local_sgd", "n=2000", "figure=false")


def test_the_epsilon_of_shuffled_answers_stands_beside_the_local_one(dperm):
    done = dperm(*LOCAL, "epsilon=1,2", "delta=1e-6", "shuffled=true", "format=json")
    assert done.code == 0, done.err
    for row, local in zip(done.rows, (1.0, 2.0), strict=True):
        assert row["epsilon_accounted"] == pytest.approx(local, rel=1e-12)
        assert row["epsilon_shuffled"] == amplify(row["epsilon_accounted"], 2000, 1e-6)
        assert (row["delta"], row["delta_shuffled"]) == (0.0, 1e-6)
        assert row["shuffled"] == "yes: replace_one, 2000 users in random order"
    assert "shuffled" not in dperm(*LOCAL, "format=json").out


def test_the_table_says_what_trust_is_left(dperm):
    done = dperm(*LOCAL, "shuffled=true")
    assert "if a trusted shuffler asks the users in a random order" in done.out
    assert "Who sees answers before it knows what `certified` says" in done.out
    assert "2.5e-07" in done.out or "2.5e-7" in done.out  # delta is 1/n^2


def test_a_local_epsilon_is_found_for_an_epsilon_of_shuffled_answers(dperm):
    done = dperm(*LOCAL, "epsilon_shuffled=0.5,1", "delta=1e-6", "format=json")
    assert done.code == 0, done.err
    for row, shuffled in zip(done.rows, (0.5, 1.0), strict=True):
        assert row["epsilon"] == find_local_epsilon(shuffled, 1e-6, 2000)
        assert row["epsilon_accounted"] <= row["epsilon"]
        assert row["epsilon_shuffled"] == shuffled
        assert delta_of(row["epsilon_accounted"], 2000, shuffled) <= 1e-6


def test_what_cannot_be_shuffled_is_told(dperm):
    done = dperm("account", "mechanism=noisy_gd", "shuffled=true", "format=json", "figure=false")
    (row,) = done.rows
    assert row["shuffled"] == "no: it reads records; there are no answers of users"
    assert row["epsilon_shuffled"] is None
    done = dperm(*LOCAL, "mechanism.answers=3", "shuffled=true", "format=json")
    assert "a user answers 3 times" in done.rows[0]["shuffled"]
    done = dperm(*LOCAL, "epsilon=500", "shuffled=true", "format=json")
    assert done.rows[0]["shuffled"] == "no: a local epsilon above 100"
    done = dperm(*LOCAL, "mechanism.answers=3", "epsilon_shuffled=1", "format=json")
    (row,) = done.rows
    assert row["status"] == "unsupported"
    assert row["reason"].startswith("epsilon_shuffled=1: a user answers 3 times")
    done = dperm("account", "mechanism=noisy_gd", "epsilon_shuffled=1", "format=json")
    assert (
        done.rows[0]["reason"] == "epsilon_shuffled is for answers of users, and it reads records"
    )


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("epsilon_shuffled=1", "epsilon=2"), "epsilon_shuffled=1: cannot stand beside epsilon"),
        (("epsilon_shuffled=1", "noise_scale=2"), "epsilon_shuffled=1: cannot stand beside noise"),
        (("epsilon_shuffled=1", "shuffled=false"), "shuffled=false: cannot stand beside"),
        (("epsilon_shuffled=-1",), "epsilon_shuffled=-1: must be"),
        (("epsilon_shuffled=200",), "epsilon_shuffled=200.0: must be at most 100"),
        (("shuffled=true", "delta=0"), "delta=0.0: must be at least 1e-200"),
        (("epsilon_shuffled=1", "delta=0"), "delta=0.0: must be at least 1e-200"),
        (("shuffled=maybe",), "shuffled=maybe: must be true or false"),
        (("shufled=true",), "shufled: unknown key"),
    ],
)
def test_bad_input_is_one_line(dperm, words, line):
    done = dperm(*LOCAL, *words)
    assert (done.code, done.out) == (2, "")
    (told,) = done.err.strip().splitlines()
    assert told.startswith(f"dperm: {line}")
