"""`dperm audit module:object` and `exec:COMMAND`: verdicts, files, resumption and refusals."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from dperm_cli.audit.outside.bounds import NOT_A_FUNCTION, NOT_SHOWN, VIOLATED
from dperm_cli.audit.outside.records import RecordKind, Table
from dperm_cli.cli import main
from dperm_cli.core.errors import InputError
from dperm_cli.runner.audits import outside_request, outside_targets
from dperm_cli.runner.audits.outside_audit import Question, audit_claim
from dperm_cli.runner.audits.outside_report import make_row
from dperm_cli.runner.audits.outside_targets import make_target

FILE = """
import numpy as np
rng = np.random.default_rng()

def half(X):
    return float(rng.geometric(1 - np.exp(-1.0)) - rng.geometric(1 - np.exp(-1.0)) + round(X.sum()))

def whole(X):
    p = 1 - np.exp(-0.5)
    return float(rng.geometric(p) - rng.geometric(p) + round(np.clip(X, -1, 1).sum()))

class Mean:
    def __init__(self, epsilon):
        self.epsilon = epsilon
    def fit(self, X):
        self.mean_ = X.mean() + rng.laplace(scale=2 / len(X) / self.epsilon)
        return self

def broken(X):
    raise RuntimeError("nothing works")
"""
SHELL = """#!/bin/sh
# the sum of the records' first column, without noise, where the claim is one of privacy
awk -F, '{ s += $1 } END { print "[" s "]" }' "$1"
"""
C_PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    int runs = atoi(argv[1]); double value, sum = 0; char comma;
    srand48(atol(argv[2]));
    while (scanf("%lf%c", &value, &comma) >= 1) sum += value;
    for (int i = 0; i < runs; i++)   /* randomised response of the sign, right 9 times in 10 */
        printf("%d\\n", (drand48() < 0.9) == (sum > 0));
    return 0;
}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with ``mine.py``."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(FILE)
    return tmp_path


def audit(call, **keys):
    """The result of a small audit of a callable."""
    question = Question(**{"epsilon": 1.0, "runs": 6000, "kind": RecordKind(n=4)} | keys)
    return audit_claim(make_target(call, question.delta, np.random.default_rng(1)), question)


def draw_geometric(rng, epsilon):
    return float(rng.geometric(1 - math.exp(-epsilon)) - rng.geometric(1 - math.exp(-epsilon)))


def test_half_the_noise_is_a_violation(folder, capsys):
    words = ["audit", "mine.py:half", "claim.epsilon=1", "runs=5000", "out=kept"]
    assert main([*words, "format=json"]) == 1
    [line] = capsys.readouterr().out.splitlines()
    row = json.loads(line)
    assert row["verdict"] == VIOLATED
    assert 1.0 < row["bound"] <= 2.0
    assert row["attacks"][0]["error"] < 1e-4
    assert json.loads((folder / "kept/audit.json").read_text()) == row
    done = subprocess.run(
        [sys.executable, "kept/violation.py"], capture_output=True, text=True, timeout=100,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines()[-1] == "the claim 1 is refuted"


def test_a_true_claim_is_not_shown(folder, capsys):
    assert main(["audit", "mine.py:whole", "claim.epsilon=1", "runs=8000"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("mine.py:whole: not shown\n")
    assert "could have been refuted" in printed


def test_an_audit_without_power_says_so(folder, capsys):
    assert main(["audit", "mine.py:whole", "claim.epsilon=5", "runs=200", "format=json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert row["verdict"] == NOT_SHOWN
    assert row["refutable_from"] is None
    assert row["has_power"] is False
    assert main(["audit", "mine.py:whole", "claim.epsilon=5", "runs=200"]) == 0
    assert "power        none" in capsys.readouterr().out


def test_the_control_is_run_where_epsilon_can_be_told():
    def respond(X, epsilon, rng):
        if not epsilon > 0:
            raise ValueError("epsilon")
        return float(round(np.clip(X, -1, 1).sum())) + draw_geometric(rng, epsilon / 2)

    result = audit(respond, runs=10_000)
    assert result.verdict == NOT_SHOWN
    assert 1.0 < result.control <= 2.0
    assert result.has_power


def test_a_nan_epsilon_is_no_privacy():
    def sloppy(X, epsilon, rng):
        scale = 0.0 if math.isnan(epsilon) else 1.0
        return float(round(X.sum())) + scale * draw_geometric(rng, 0.5)

    result = audit(sloppy, runs=2000)
    assert result.verdict == NOT_A_FUNCTION
    assert "epsilon=nan is not refused" in result.reasons[0]
    claimed = audit(lambda X: 0.0, epsilon=math.nan)
    assert claimed.verdict == NOT_A_FUNCTION
    assert "the claim is nan" in claimed.reasons[0]


@pytest.mark.parametrize("how", ["error", "shape", "printed", "warning"])
def test_what_follows_a_record_beside_the_result(how):
    import warnings

    def leak(X):
        large = bool(np.any(X > 0.9))
        if how == "error" and large:
            raise ValueError("a record is too large")
        if how == "printed" and large:
            print("clipped a row")
        if how == "warning" and large:
            warnings.warn("clipped a row", stacklevel=1)
        return [0.0] * (1 + (large and how == "shape"))

    result = audit(leak, runs=3000)
    assert result.verdict == NOT_A_FUNCTION
    assert result.bound > 2.0


def test_a_class_with_fit_and_its_constructor(folder):
    result = audit(outside_targets.load_object("mine.py:Mean"), runs=4000, without=("low_bits",))
    assert result.verdict == NOT_SHOWN  # told epsilon=nan, it releases nan and nothing else
    assert 0.2 < result.bound <= 1.0


def test_a_shell_program(folder, capsys):
    path = folder / "program"
    path.write_text(SHELL)
    path.chmod(0o755)
    words = ["audit", "exec:./program {records}", "claim.epsilon=0.5", "runs=400", "format=json"]
    assert main(words) == 1
    row = json.loads(capsys.readouterr().out)
    assert row["verdict"] == VIOLATED
    assert row["bound"] > 0.5


def test_a_compiled_program_that_makes_many_runs(folder, capsys):
    (folder / "answer.c").write_text(C_PROGRAM)
    made = subprocess.run(["cc", "-o", "answer", "answer.c"], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("no C compiler")
    words = ["audit", "exec:./answer {runs} {seed}", "runs=8000", "format=json", "workers=1"]
    assert main([*words, "claim.epsilon=1.5"]) == 1
    row = json.loads(capsys.readouterr().out)
    assert 1.5 < row["bound"] <= math.log(9)
    assert main([*words, "claim.epsilon=2.2"]) == 0


def test_an_audit_that_was_ended_goes_on(folder, capsys):
    words = ["audit", "mine.py:whole", "claim.epsilon=1", "out=kept", "format=json"]
    assert main([*words, "runs=2000"]) == 0
    first = json.loads(capsys.readouterr().out)
    path = folder / "kept/runs.jsonl"
    whole = path.read_bytes()
    assert json.loads(whole.splitlines()[-1]) == {"look": 1, "verdict": NOT_SHOWN}
    path.write_bytes(whole + b'{"phase": "sea')  # as a killed run leaves it
    assert main([*words, "runs=2000"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["runs"] < first["runs"] / 4
    assert again["attacks"][0]["error"] == first["attacks"][0]["error"] / 2
    assert main(["audit", "mine.py:half", "claim.epsilon=1", "out=kept"]) == 2
    assert "another audit" in capsys.readouterr().err


def test_the_minutes_end_it():
    def slow(X):
        time.sleep(0.02)
        return 0.0

    begin = time.monotonic()
    result = audit(slow, seconds=2.0)
    assert time.monotonic() - begin < 6.0
    assert 0 < result.runs < 200
    assert result.verdict == NOT_SHOWN


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (["mine.py:half"], "claim.epsilon"),
        (["mine.py:half", "claim.epsilon=-1"], "claim.epsilon"),
        (["mine.py:half", "claim.epsilon=1", "claim.delta=1"], "claim.delta"),
        (["mine.py:half", "claim.epsilon=1", "relation=other"], "relation"),
        (["mine.py:half", "claim.epsilon=1", "runs=1"], "runs"),
        (["mine.py:half", "claim.epsilon=1", "workers=2"], "workers"),
        (["mine.py:half", "claim.epsilon=1", "without=nothing"], "without"),
        (["mine.py:half", "claim.epsilon=1", "epsilom=2"], "epsilom"),
        (["mine.py:none", "claim.epsilon=1"], "target"),
        (["other.py:half", "claim.epsilon=1"], "target"),
        (["no_such_module:half", "claim.epsilon=1"], "target"),
        (["mine.py:FILE", "claim.epsilon=1"], "target"),
        (["mine.py:broken", "claim.epsilon=1", "runs=200"], "target"),
        (["exec:./missing", "claim.epsilon=1"], "target"),
        (["exec:'", "claim.epsilon=1"], "target"),
        (["mine.py:half", "mine.py:whole", "claim.epsilon=1"], "target"),
    ],
)
def test_bad_input_is_one_line(folder, capsys, words, key):
    assert main(["audit", *words]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"dperm: {key}")


def test_a_study_is_not_taken_for_a_program():
    assert not outside_request.is_asked(["dataset.columns={a:b}", "mechanism=noisy_gd"])
    assert outside_request.is_asked(["claim.epsilon=1", "mine.py:half"])
    assert outside_request.is_asked(["exec:./program --size=3"])


def test_what_a_program_writes_becomes_outputs():
    read = outside_targets.read_lines
    assert [one.numbers for one in read("[1]\n[2]\n", "", 0, 2)] == [(1.0,), (2.0,)]
    assert read('{"a": [1, 2]}', "note", 0, 0)[0].printed == "note"
    assert read("[1]", "", 0, 2)[0].form == "error: lines: 1 where 2 were asked for"
    assert read("", "first\nlast\n", 3, 0)[0].form == "error: exit 3: last"
    assert read("oh", "", 0, 0)[0].form == "error: no JSON: oh"


def test_records_are_copies():
    def spoil(X, y):
        X[:] = 0.0
        y[:] = 0.0
        return 1.0

    table = Table(np.ones((2, 1)), np.ones(2))
    target = make_target(spoil, 0.0, np.random.default_rng(0))
    target.run(table, 2, 1.0, math.inf)
    assert table.rows.all()
    assert table.labels.all()
    with pytest.raises(InputError, match="neither a callable"):
        make_target(3, 0.0, np.random.default_rng(0))


def test_a_row_is_plain_json():
    row = make_row(audit(lambda X: "yes", runs=400))
    assert json.loads(json.dumps(row, allow_nan=False)) == row
