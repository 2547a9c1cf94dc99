"""The printed table says how a radius was found, and what a private choice cost and was."""

from __future__ import annotations

SQUARED = ("dataset=sparse_regression", "dataset.n=300", "dataset.p=4", "dataset.nonzeros=2")
RUN = ("run", "mechanism=sufficient_statistics", "trials=2", "out=here")


def test_a_radius_by_the_public_rule_comes_with_its_reason(dperm):
    done = dperm(*RUN, *SQUARED, "constraint.radius=auto")
    assert done.code == 0, done.err
    told = " ".join(done.out.split())
    assert "constraint.radius=auto is " in told
    assert "needs no radius" in told


def test_a_private_choice_comes_with_its_cost_and_what_the_first_trial_chose(dperm):
    done = dperm(*RUN, *SQUARED, "tune={constraint.radius: [1, 10]}")
    assert done.code == 0, done.err
    told = " ".join(done.out.split())
    assert "chose among 2 candidates by free validation, which cost nothing" in told
    assert "in the first trial: constraint.radius 1" in told


def test_what_was_paid_for_a_choice_is_a_part_of_epsilon(dperm):
    words = ("dataset=synthetic_logistic", "dataset.n=300", "dataset.p=4", "trials=2", "out=here")
    done = dperm("run", "mechanism=noisy_gd", *words, "tune={ridge: [0, 0.1]}")
    told = " ".join(done.out.split())
    cost = told.partition("by private selection, which cost ")[2].partition(" of it")[0]
    assert 0 < float(cost) < 1


def test_a_radius_by_the_rule_does_not_hide_what_a_choice_cost(dperm):
    words = ("dataset=synthetic_logistic", "dataset.n=300", "dataset.p=4", "trials=2", "out=here")
    choice = "tune={ridge: [0.01, 0.1]}"
    done = dperm("run", "mechanism=noisy_gd", *words, "constraint.radius=auto", choice)
    assert done.code == 0, done.err
    told = " ".join(done.out.split())
    assert "constraint.radius=auto is " in told
    cost = told.partition("chose among 2 candidates by private selection, which cost ")[2]
    assert 0 < float(cost.partition(" of it")[0]) < 1
    assert told.partition("in the first trial: ")[2].startswith(("ridge 0.", "nothing."))
