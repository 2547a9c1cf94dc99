"""`mechanism=auto` on the command line: the row and `describe` say what was chosen and why."""

from __future__ import annotations

import json

import pytest

SQUARED = ("dataset=sparse_regression", "dataset.n=300", "dataset.p=4", "dataset.nonzeros=2")
LOGISTIC = ("dataset=synthetic_logistic", "dataset.n=300", "dataset.p=4")
RUN = ("run", "mechanism=auto", "trials=2", "out=here")


def test_the_row_says_what_was_chosen_and_why(dperm):
    done = dperm(*RUN, *SQUARED, "format=json")
    assert done.code == 0, done.err
    (row,) = done.rows
    found = json.loads(row["settings"])
    assert row["mechanism"] == "auto"
    assert found["chosen"] == found["inner"]["name"] == "sufficient_statistics"
    ranked = sorted(found["predicted"], key=found["predicted"].get)
    assert ranked[:2] == [found["chosen"], found["runner_up"]]
    assert "noisy_gd" in found["predicted"]
    assert "exponential" in found["refused"]
    assert row["epsilon_accounted"] <= 1.0


def test_the_table_says_what_was_chosen_at_each_epsilon(dperm):
    done = dperm(*RUN, *LOGISTIC, "epsilon=[0.1,1]")
    told = " ".join(done.out.split())
    assert "auto chose, from public facts:" in told
    assert "(runner-up" in told


def test_bounds_are_those_of_the_mechanism_that_runs(dperm):
    """A strongly convex problem has a bound for objective perturbation, and so has auto."""
    keys = (*LOGISTIC, "privacy=pure", "trials=1", "format=json")
    (chosen,) = dperm("run", "mechanism=auto", "out=one", *keys).rows
    name = json.loads(chosen["settings"])["chosen"]
    (own,) = dperm("run", f"mechanism={name}", "out=two", *keys).rows
    assert own["bound_upper"] is not None
    for column in ("bound_upper", "bound_upper_id", "epsilon_accounted", "noise_scale", "steps"):
        assert chosen[column] == own[column], column


def test_secure_noise_has_a_choice_of_its_own(dperm):
    once = [word for word in RUN if not word.startswith("trials=")]
    done = dperm(*once, *SQUARED, "noise=secure", "trials=1", "format=json")
    (row,) = done.rows
    found = json.loads(row["settings"])
    assert found["chosen"] == "sufficient_statistics"
    assert found["inner"]["noise"] == "wishart"  # as with research noise
    assert (row["guarantee"], row["delta_accounted"]) == ("pure", 0.0)
    assert row["arithmetic"].startswith("grid")


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        (("calibration=paper",), "name a mechanism for calibration=paper"),
        (("privacy=pure", "mechanism.among=[noisy_gd]"), "noisy_gd: gives approx guarantees"),
    ],
)
def test_what_it_cannot_do_is_one_row_with_the_reason(dperm, keys, reason):
    done = dperm(*RUN, *LOGISTIC, *keys, "format=json")
    (row,) = done.rows
    assert (done.code, row["status"]) == (1, "unsupported")
    assert reason in row["reason"]


def test_users_choose_a_local_mechanism(dperm):
    done = dperm(*RUN, *LOGISTIC, "privacy=local", "format=json")
    (row,) = done.rows
    found = json.loads(row["settings"])
    assert (row["guarantee"], found["chosen"]) == ("local", "local_sgd")
    assert row["channel"] == found["inner"]["channel"] is not None
    assert found["refused"]["noisy_gd"] == "is for central trust"


def test_it_runs_on_the_features_of_a_kernel(dperm):
    done = dperm(*RUN, *LOGISTIC, "kernel=rbf", "kernel.size=5", "ridge=0.1", "format=json")
    assert done.code == 0, done.err
    found = json.loads(done.rows[0]["settings"])
    assert found["chosen"] in ("objective_perturbation", "noisy_gd", "output_perturbation")


def test_there_is_nothing_to_tune(dperm):
    done = dperm(*RUN, *LOGISTIC, "mechanism.steps=3")
    assert done.code == 2
    assert done.err.startswith("dperm: mechanism.steps")
    assert len(done.err.splitlines()) == 1


def test_describe_names_choice_runner_up_and_risks(figures, dperm):
    done = dperm("describe", *LOGISTIC, "mechanism=auto", "epsilon=1", "format=json", "out=here")
    (facts,) = done.rows
    (row,) = facts["mechanisms"]["auto"]
    assert {"chosen", "runner_up", "predicted", "refused", "reason"} <= set(row)
    said = " ".join(dperm("describe", *LOGISTIC, "mechanism=auto", "epsilon=1").out.split())
    assert f"chooses {row['chosen']}" in said
    assert f"runner-up {row['runner_up']}" in said


def test_a_mechanism_whose_risk_is_not_predicted_is_named(dperm):
    done = dperm("run", *LOGISTIC, "mechanism=auto", "mechanism.among=[noisy_gd,newton]")
    assert (done.code, done.out) == (2, "")
    assert "must be without newton" in done.err
    assert "mechanism=newton runs it" in done.err


def test_describe_has_the_choice_right_below_auto(dperm):
    done = dperm("describe", *LOGISTIC, "constraint.radius=1", "epsilon=1")
    lines = done.out.splitlines()
    (at,) = [i for i, line in enumerate(lines) if line.startswith("  auto ")]
    chosen = lines[at].partition("chooses ")[2].split()[0]
    below = next(line for line in lines[at + 1 :] if not line.startswith("   "))  # auto's goes on
    assert below.split()[0] == chosen
