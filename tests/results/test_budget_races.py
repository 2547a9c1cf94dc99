"""One budget of ``dperm release``, ``dperm ask`` and an estimator at once, of which two are killed.

Each goes on until it is refused. Whatever came out of one is in the ledger, and the ledger's spends
are within the budget by the Gaussian curve itself, not by the filter that let them pass.
"""

from __future__ import annotations

import contextlib
import json
import math
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from dperm_cli import cli
from dperm_cli.core.errors import EXIT_FAILED, EXIT_OK, PrivacyError
from dperm_cli.estimators import PrivateLogisticRegression
from dperm_cli.privacy.accounting import gaussian_profile
from dperm_cli.privacy.accounting.budget_filter import BudgetFilter
from dperm_cli.runner.models import budget_ledger
from dperm_cli.runner.verbs import release as releasing
from tests.cli.test_ask import WORDS
from tests.cli.test_release import SCHEMA, write

EPSILON, DELTA = 2.0, 1e-5
EACH = gaussian_profile.mu(1.0, 1e-6) * (1 - 1e-6)  # of one release, fit or session
FORK = multiprocessing.get_context("fork")
ONE = ["epsilon=1", "delta=1e-6", "budget=people"]
RELEASE = ["release", "t.csv", "s.yaml", "mechanism=noisy_gd", "mechanism.steps=5", "out=here",
           "again=true", "diagnostics=false", *ONE]  # fmt: skip
ASK = ["ask", *WORDS[:-1], "mechanism=kernel_release", "out=asked", *ONE, "q.csv"]
SHORT, LONG = 0.5, 4.0  # about what it takes: in a fork, in a program that imports all


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPERM_CACHE_DIR", str(tmp_path / "cache"))
    # most of the time of a small release; they are made when its noise is drawn
    monkeypatch.setattr(releasing, "STATEMENTS", {})


def write_inputs():
    write()
    Path("s.yaml").write_text(SCHEMA)
    Path("q.csv").write_text("a,b\n0.1,0.2\n")


def run_until_refused(words):
    """The command again and again, its words into a file; somebody may kill this at any instant."""
    with (
        open(f"{words[0]}.txt", "w") as said,
        open(f"{words[0]}.err", "w") as wrong,
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(wrong),
    ):
        while not (code := cli.main(words)):
            said.flush()
    os._exit(code)


def make_rows():
    x = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    return x, np.where(x[:, 0] > 0, "yes", "no")


def make_model(budget):
    keys = {"bounds": (-1, 1), "classes": ["no", "yes"], "mechanism": "noisy_gd"}
    return PrivateLogisticRegression(1.0, delta=1e-6, **keys, budget=budget)


def fit_until_refused():
    model = make_model("people")
    for number in range(100):
        try:
            model.fit(*make_rows())
        except PrivacyError:
            os._exit(EXIT_FAILED)
        np.save(f"fit-{number}.npy", model.theta_)


def warm_up():
    """Import and compile what the three need, once, in the process that forks."""
    write_inputs()
    for words in (RELEASE, ASK):
        assert cli.main([word for word in words if word != "budget=people"]) == 0
    make_model(budget=None).fit(*make_rows())


def start_forks():
    """The three, each a fork of this process, which has all imported."""
    calls = [(run_until_refused, (RELEASE,)), (run_until_refused, (ASK,)), (fit_until_refused, ())]
    workers = [FORK.Process(target=target, args=given) for target, given in calls]
    for worker in workers:
        worker.start()
    return [(worker.pid, partial(end_of, worker)) for worker in workers]


def end_of(worker):
    worker.join(600)
    return worker.exitcode


def start_programs():
    """The same with the command line in programs of their own, as a user starts it."""
    root = str(Path(__file__).resolve().parents[2])
    env = os.environ | {"PYTHONPATH": root}
    workers = []
    for words in (RELEASE, ASK):
        with open(f"{words[0]}.txt", "w") as said, open(f"{words[0]}.err", "w") as wrong:
            command = [sys.executable, "-m", "dperm_cli", *words]
            workers.append(subprocess.Popen(command, stdout=said, stderr=wrong, env=env))
    fits = FORK.Process(target=fit_until_refused)
    fits.start()
    ends = [(worker.pid, partial(worker.wait, 600)) for worker in workers]
    return [*ends, (fits.pid, partial(end_of, fits))]


def race_with_kills(start, span, rng):
    """Start the three, kill two of them at random instants, and hold the ledger to its budget."""
    write_inputs()
    budget_ledger.create_budget("people", BudgetFilter.open(EPSILON, DELTA, rule="gaussian"))
    workers = start()
    for pid, _ in rng.sample(workers, 2):
        time.sleep(rng.random() * span)
        with contextlib.suppress(ProcessLookupError):  # it was done
            os.kill(pid, signal.SIGKILL)
    codes = [wait() for _, wait in workers]
    assert set(codes) <= {-signal.SIGKILL, EXIT_OK, EXIT_FAILED}
    found = budget_ledger.read_budget("people")
    assert EXIT_FAILED not in codes or found.rule.largest_gaussian(found.spends) < EACH
    mu = math.sqrt(math.fsum(entry.spend.mu**2 for entry in found.entries))
    assert all(entry.spend.mu > 0 and not entry.spend.epsilon for entry in found.entries)
    assert gaussian_profile.delta(EPSILON, mu) <= DELTA * (1 + 1e-9)
    check_all_is_counted(found.entries)
    return found


def check_all_is_counted(entries):
    """Each release, answer and fit that there is has an entry of its own."""
    what = [entry.what for entry in entries]
    released = [path for path in Path.cwd().glob("here/release*") if path.is_dir()]
    for path in released:
        number = path.name.partition("-")[2] or "1"
        assert what.count(f"sick: release {number} in here") == 1
    fits = len(list(Path.cwd().glob("fit-*.npy")))
    assert fits <= what.count("a fit of PrivateLogisticRegression")
    sessions = [word for word in what if word.startswith("session ")]
    lines = Path("ask.txt").read_text().splitlines() if Path("ask.txt").exists() else []
    answers = [line for line in lines if line.count(",") == 1 and line[0] in "-0123456789"]
    assert len(answers) <= len(sessions)
    rows = [json.loads(path.read_text()) for path in Path.cwd().glob("asked/records/*.json")]
    assert len(rows) <= len(sessions)


def race_in_rounds(rounds, seed):
    """The rounds; of every 20 the first has programs of its own, which take seconds to start.

    Returns:
        How many entries the ledgers have, and how many of them were finished.
    """
    rng = random.Random(seed)
    home = Path.cwd()
    warm_up()
    entries = finished = 0
    for turn in range(rounds):
        place = home / f"round-{turn}"
        place.mkdir()
        os.chdir(place)
        start, span = (start_programs, LONG) if turn % 20 == 0 else (start_forks, SHORT)
        found = race_with_kills(start, span, rng)
        entries += len(found.entries)
        finished += sum(entry.finished for entry in found.entries)
    return entries, finished


def test_two_that_are_killed_and_a_third_never_overspend():
    entries, finished = race_in_rounds(4, 1)
    assert entries >= finished > 0


@pytest.mark.slow
def test_nor_in_two_hundred_rounds():
    entries, finished = race_in_rounds(200, 2)
    assert entries > 400
    assert entries > finished > 200  # some died between the two lines of a release
