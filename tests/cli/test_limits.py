"""One set of limits for the numbers of `run`, `describe`, `account` and `audit`."""

from __future__ import annotations

import functools
import os

import pytest

from dperm_cli import cli
from dperm_cli.core import foreign_errors
from dperm_cli.core.errors import Unsupported
from dperm_cli.mechanisms.sampling.regularized_exponential import RegularizedExponential
from dperm_cli.mechanisms.shared.secure_plan import require_secure
from dperm_cli.runner.compose import cell_schema

VERBS = {
    "run": ("run",),
    "describe": ("describe",),
    "account": ("account", "figure=false"),
    "audit": ("audit", "mechanism=noisy_gd", "--quick"),
}
NO_EPSILON = (
    "1e300", "nan", "inf", "-inf", "0", "-1", "1e-400", "1e-320", "9.9e-10", "1.1e6", "x",
)  # fmt: skip
NO_DELTA = ("1", "2", "-0.1", "nan", "inf", "1e300", "1e-320", "x")
HUGE = ("1e300", "1e51", "-1", "nan", "inf", "x")


def refused(dperm, tmp_path, words, key):
    done = dperm(*words)
    assert (done.code, done.out) == (2, ""), (words, done.err)
    (line,) = done.err.splitlines()
    assert line.startswith(f"dperm: {key}="), line
    assert "must be" in line
    assert os.listdir(tmp_path) == []
    return line.partition("must")[2]


@pytest.mark.parametrize("given", NO_EPSILON)
def test_every_verb_refuses_the_same_epsilon_in_the_same_words(dperm, tmp_path, given):
    said = {refused(dperm, tmp_path, (*w, f"epsilon={given}"), "epsilon") for w in VERBS.values()}
    assert len(said) == 1


@pytest.mark.parametrize("given", NO_DELTA)
@pytest.mark.parametrize("verb", list(VERBS))
def test_every_verb_refuses_the_same_delta(dperm, tmp_path, verb, given):
    refused(dperm, tmp_path, (*VERBS[verb], f"delta={given}"), "delta")


@pytest.mark.parametrize("verb", ["run", "audit"])
@pytest.mark.parametrize("given", ["-1", "9223372036854775808", "1e300", "x"])
def test_seeds(dperm, tmp_path, verb, given):
    refused(dperm, tmp_path, (*VERBS[verb], f"seed={given}"), "seed")


@pytest.mark.parametrize("given", HUGE)
@pytest.mark.parametrize("key", ["n", "p", "L", "radius", "noise_scale", "ridge", "smoothness"])
def test_constants_of_account(dperm, tmp_path, key, given):
    mechanism = "mechanism=noisy_gd" if key == "noise_scale" else "mechanism=all"
    refused(dperm, tmp_path, ("account", mechanism, f"{key}={given}"), key)


@pytest.mark.parametrize("verb", ["run", "account"])
def test_a_number_of_steps_has_a_limit(dperm, tmp_path, verb):
    words = (verb, "mechanism=noisy_gd", "mechanism.steps=1e300")
    refused(dperm, tmp_path, words, "mechanism.steps")


@pytest.mark.parametrize("epsilon", cell_schema.EPSILONS)
@pytest.mark.parametrize("delta", [cell_schema.LEAST_DELTA, 0.99])
def test_what_is_just_within_is_computed(dperm, epsilon, delta):
    words = (f"epsilon={epsilon!r}", f"delta={delta!r}", "mechanism=noisy_gd,output_perturbation")
    done = dperm("account", *words, "ridge=0.1", "figure=false", "format=json")
    assert done.code == 0, done.err
    assert [row["status"] for row in done.rows] == ["ok", "ok"]
    assert all(0.5 * epsilon < row["epsilon_accounted"] <= epsilon for row in done.rows)


@pytest.mark.parametrize(
    "words",
    [
        ("L=1e50", "radius=1e-50", "ridge=1e50", "mechanism=output_perturbation"),
        ("L=1e50", "noise_scale=1e-50", "mechanism=noisy_sgd"),
        ("L=1e50", "n=1e9", "delta=1e-300", "mechanism=all"),
        ("L=1e-50", "n=1e9", "epsilon=1e-9", "ridge=1e50", "mechanism=all"),
    ],
)
def test_together_beyond_the_arithmetic_is_a_row_and_no_traceback(dperm, words):
    done = dperm("account", *words, "figure=false", "format=json")
    failed = [row for row in done.rows if row["status"] == "failed"]
    assert done.code == (1 if failed else 0), done.err
    assert all("cannot be computed" in row["reason"] for row in failed)
    assert "Traceback" not in done.err
    if "delta=1e-300" in words:
        assert failed
        shown = dperm("account", *words, "figure=false")
        assert f"failed: {failed[0]['mechanism']}" in shown.out


def test_weak_levels_are_remarked_on_in_the_row_the_ledger_and_on_stderr(dperm, tmp_path):
    words = ("run", "-m", "epsilon=1,20", "delta=0.01", "trials=1", "format=json", "out=o")
    done = dperm(*words)
    assert done.code == 0, done.err
    first, second = sorted(row["remarks"] for row in done.rows)
    assert first.startswith("delta 0.01 is not below 1/n (n 456): ")
    assert "; epsilon 20 is above 10" in second
    lines = [line for line in done.err.splitlines() if line.startswith("warning: ")]
    assert [line.split()[1] for line in lines] == ["delta", "epsilon"]
    again = dperm("report", "o")
    assert [line for line in again.err.splitlines() if line.startswith("warning: ")] == lines
    assert (tmp_path / "o" / "ledger.json").read_text().count("A weak guarantee: ") == 2


def test_remarks_do_not_follow_a_private_number_of_records(dperm):
    declared = ("privacy.relation=add_remove", "privacy.population=1000", "trials=1")
    done = dperm("run", *declared, "delta=0.0015", "format=json", "out=o")
    assert "(n 1000)" in done.rows[0]["remarks"]  # 0.0015 is below 1/456
    done = dperm("run", *declared, "delta=0.0009", "format=json", "out=q")
    assert done.rows[0]["remarks"] is None
    assert "warning" not in done.err


def test_account_notes_them(dperm):
    words = ("account", "mechanism=noisy_gd", "n=50", "figure=false", "format=json")
    (row,) = dperm(*words, "epsilon=30", "delta=0.1").rows
    assert "(n 50)" in row["note"]
    assert "above 10" in row["note"]
    assert dperm(*words).rows[0]["note"] is None


def test_a_refusal_that_no_verb_has_caught_is_one_line(monkeypatch, capsys):
    """`dperm plan like=a9a` had a traceback: a refusal is no DpermError."""

    refuse = functools.partial(require_secure, RegularizedExponential())
    monkeypatch.setattr(cli, "dispatch", lambda arguments: refuse())
    # this file is code from outside, whose words are not shown
    monkeypatch.setattr(foreign_errors, "is_foreign", lambda error: False)
    assert cli.main(["plan"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("dperm: regularized_exponential has no secure form; use")
    with pytest.raises(Unsupported):
        cli.main(["plan", "--debug"])
