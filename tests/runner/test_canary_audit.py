"""`dperm audit MODULE:OBJECT method=canaries`: verdicts, files, resumption and refusals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dperm_cli.api.foreign_claims import audit_fit
from dperm_cli.cli import main
from dperm_cli.core.errors import InputError

RECORDS = "numeric:p=200,norm=1,n=200"
FILE = """
import numpy as np
rng = np.random.default_rng()

def small_noise(X):
    return X.sum(axis=0) + rng.normal(scale=0.3, size=X.shape[1])
"""


def make_perceptron(scale):
    """A weight for each column and an intercept, with Laplace noise."""

    def fit(X, y, rng):
        summed = ((2.0 * y - 1.0)[:, None] * X).sum(axis=0)
        noise = rng.laplace(scale=scale, size=len(summed))
        return {"a_bias": rng.laplace(), "coef": summed + noise}

    return fit


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_small_noise_is_refuted_and_enough_is_not(relation):
    """The l1 norm of a row of norm 1 is up to the root of 200; replacing moves the sum by twice
    that, as its label flips."""
    keys = {"relation": relation, "records": f"{RECORDS},labels=0|1", "method": "canaries"}
    bad = audit_fit(make_perceptron(0.05), epsilon=1, progress=False, **keys)
    assert bad.verdict == "violated"
    assert bad.bound > 2.0
    assert bad.row["runs"] == 16
    good = audit_fit(make_perceptron(2.0 * np.sqrt(200.0)), epsilon=1, progress=False, **keys)
    assert good.verdict == "not shown"
    assert good.has_power
    assert good.frame()["claim"].tolist() == [1.0]


def test_one_run_is_enough():
    """Rows that are nearly orthogonal: 400 columns, 200 records."""
    records = "numeric:p=400,norm=1,n=200"

    def summed(X, rng):
        return X.sum(axis=0) + rng.normal(scale=0.2, size=X.shape[1])

    found = audit_fit(
        summed, epsilon=1, delta=1e-7, records=records, method="canaries", runs=1, progress=False
    )
    assert found.is_refuted
    assert found.row["runs"] == 1
    assert found.row["canaries"] == 200


def test_sound_mechanisms_are_not_accused():
    """Thirty audits of randomised response of each record's sign, which is tight at epsilon 1: a
    verdict is wrong with a chance of 1e-4."""
    rate = 1.0 / (1.0 + np.exp(-1.0))

    def respond(X, rng):
        signs = np.sign(X[:, 0])
        return np.where(rng.random(len(signs)) < rate, signs, -signs) @ X

    for seed in range(30):
        found = audit_fit(
            respond, epsilon=1, records="numeric:p=60,norm=1,n=40", method="canaries", runs=4,
            seed=seed, progress=False,
        )  # fmt: skip
        assert found.verdict == "not shown"


def test_a_large_delta_leaves_no_power_and_it_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(FILE)
    words = ["audit", "mine.py:small_noise", "claim.epsilon=1", f"records={RECORDS}"]
    assert main([*words, "claim.delta=1e-3", "method=canaries", "runs=2"]) == 0
    assert "so large a delta may tell all coins at once" in capsys.readouterr().out


def test_what_is_kept_goes_on_and_shows_it_again(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(FILE)
    words = ["audit", "mine.py:small_noise", "claim.epsilon=1", "claim.delta=1e-7"]
    words += [f"records={RECORDS}", "method=canaries", "out=kept", "format=json"]
    assert main([*words, "runs=3"]) in (0, 1)
    kept = Path("kept/runs.jsonl").read_text().splitlines()
    assert main([*words, "runs=16"]) == 1
    row = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert row["verdict"] == "violated"
    lines = Path("kept/runs.jsonl").read_text().splitlines()
    assert lines[: len(kept)] == kept
    assert len(lines) == 1 + 16 + 2  # what was asked, the runs, and two looks
    done = subprocess.run(
        [sys.executable, "kept/violation.py"], capture_output=True, text=True, timeout=100,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines()[-1] == "the claim 1 is refuted"
    # the runs of one method are not those of the other
    other = [word for word in words if not word.startswith("method=")]
    assert main([*other, "runs=200"]) == 2
    assert "holds the runs of another audit" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ({"method": "canary"}, "method"),
        ({"method": "canaries", "pairs": "zeros"}, "pairs"),
        ({"method": "canaries", "without": "low_bits"}, "without"),
        ({"method": "canaries", "beyond": True}, "beyond"),
        ({"method": "canaries", "epsilon": float("nan")}, "claim.epsilon"),
        ({"method": "canaries", "runs": 0}, "runs"),
        ({"runs": 50}, "runs"),
    ],
)
def test_refusals(keys, key):
    with pytest.raises(InputError) as refused:
        audit_fit(np.sum, **({"epsilon": 1} | keys))
    assert str(refused.value).startswith(f"{key}=")


def test_a_mechanism_that_always_fails_is_refused():
    def fail(X):
        raise RuntimeError("nothing works")

    with pytest.raises(InputError, match="every run failed"):
        audit_fit(fail, epsilon=1, method="canaries", runs=2, progress=False)
