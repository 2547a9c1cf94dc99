"""Budgets: no sequence of releases, however it is chosen and whatever dies, spends more."""

from __future__ import annotations

import contextlib
import json
import math
import multiprocessing
import os
import random
import signal
import stat
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dperm_cli import cli
from dperm_cli.core import files
from dperm_cli.core.errors import InputError, PrivacyError, StorageError
from dperm_cli.privacy.accounting import accountant, gaussian_profile
from dperm_cli.privacy.accounting.budget_filter import (
    BudgetFilter,
    Spend,
    choose_order,
    renyi_of_pure,
    room_at,
    spend_of,
)
from dperm_cli.privacy.budget import Guarantee
from dperm_cli.privacy.events import Gaussian, Laplace
from dperm_cli.runner.models import budget_ledger
from dperm_cli.runner.verbs import release as releasing
from tests.cli.test_release import SCHEMA, release, write

ONE = Spend(epsilon=1.0)
FORK = multiprocessing.get_context("fork")


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPERM_CACHE_DIR", str(tmp_path / "cache"))


# --- filters ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "order", "room"), [(1.0, 22.028, 0.53651), (3.0, 8.9737, 1.66071)]
)
def test_room_at_an_order(epsilon, order, room):
    assert room_at(order, epsilon, 1e-6) == pytest.approx(room, abs=1e-5)
    best, most = choose_order(epsilon, 1e-6)
    assert most / best >= room_at(order, epsilon, 1e-6) / order


def test_gaussian_releases_add_up_as_one():
    spends = [Spend(mu=0.2), Spend(mu=0.2), Spend(mu=0.1)]
    level = gaussian_profile.epsilon(1e-6, 0.3)
    assert level == pytest.approx(1.29171, abs=1e-5)
    for rule, slack in (("gaussian", 1e-9), ("mixed", 0.1)):
        assert BudgetFilter.open(level * (1 + slack), 1e-6, rule=rule).allows(spends)
        assert not BudgetFilter.open(level * (1 - 1e-9), 1e-6, rule=rule).allows(spends)


@pytest.mark.parametrize("order", [1.01, 2.0, 8.9, 22.0, 300.0])
@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.5, 3.0, 40.0])
def test_the_divergence_of_a_pure_release_is_that_of_randomized_response(order, epsilon):
    likely = -math.log1p(math.exp(-epsilon))
    pairs = ((likely, likely - epsilon), (likely - epsilon, likely))
    terms = [order * a + (1 - order) * b for a, b in pairs]
    expected = np.logaddexp(*terms) / (order - 1.0)
    assert renyi_of_pure(epsilon, order) == pytest.approx(expected, rel=1e-5, abs=1e-12)


PLANS = st.lists(
    st.one_of(
        st.floats(0.01, 2.0).map(lambda e: Spend(epsilon=e)),
        st.floats(0.01, 1.0).map(lambda mu: Spend(mu=mu)),
    ),
    min_size=1, max_size=8,
)  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(PLANS, st.floats(0.1, 4.0), st.sampled_from([1e-5, 1e-8]), st.sampled_from(
    ["mixed", "gaussian", "pure"]))  # fmt: skip
def test_what_passes_is_within_the_budget_by_the_accountant(spends, epsilon, delta, rule):
    """For plans fixed before, the accountant's exact curve bounds what a filter may let pass."""
    found = BudgetFilter.open(epsilon, delta, rule=rule)
    held = []
    for spend in spends:
        if found.allows([*held, spend]):
            held.append(spend)
    events = [Gaussian(scale=1.0 / s.mu, record_norm=1.0) if s.mu
              else Laplace(scale=1.0 / s.epsilon, record_norm=1.0) for s in held]  # fmt: skip
    if events:
        spent = accountant.delta_of(tuple(events), epsilon=epsilon, relation="add_remove")
        assert spent <= delta * (1 + 1e-6)


def test_a_budget_of_three_is_used_up_by_three():
    found = BudgetFilter.open(3.0, 0.0)
    assert found.largest_pure([ONE, ONE]) == pytest.approx(1.0)
    assert found.allows([ONE] * 3)
    assert not found.allows([*[ONE] * 3, Spend(epsilon=1e-9)])
    assert BudgetFilter.open(0.3, 0.0).allows([Spend(epsilon=0.1)] * 3)
    assert found.largest_gaussian([]) == 0.0


def test_deltas_have_a_share_of_their_own():
    found = BudgetFilter.open(2.0, 1e-6, kept_share=0.5)
    assert found.allows([Spend(epsilon=0.05, delta=5e-7)])
    assert not found.allows([Spend(epsilon=0.05, delta=5e-7), Spend(epsilon=0.01, delta=1e-12)])
    assert not BudgetFilter.open(2.0, 1e-6, rule="gaussian").allows([ONE])
    assert not BudgetFilter.open(2.0, 1e-6, rule="pure").allows([Spend(mu=0.01)])


def test_what_a_plan_takes():
    events = (Gaussian(scale=10.0, record_norm=1.0, count=4),)
    pair = Guarantee("approx", 0.5, 1e-6, "replace_one", "test")
    assert spend_of(events, pair).mu == pytest.approx(0.4)
    assert spend_of(events, pair, 3).mu == pytest.approx(1.2)
    mixed = (*events, Laplace(scale=10.0, record_norm=1.0))
    assert spend_of(mixed, pair) == Spend(epsilon=0.5, delta=1e-6)
    assert spend_of(mixed, pair, 2).delta == pytest.approx(1e-6 * (1 + math.exp(0.5)))


# --- the ledger ---------------------------------------------------------------------------------


def open_budget(name="people", **keys):
    given = {"epsilon": 3.0, "delta": 0.0} | keys
    return budget_ledger.create_budget(name, BudgetFilter.open(**given))


def take(name="people", spend=ONE):
    return budget_ledger.reserve(name, spend, "replace_one", "noisy_gd", "a test")


def race(_):
    try:
        take()
    except PrivacyError:
        return 0
    return 1


def test_of_eight_processes_three_find_room():
    open_budget()
    with FORK.Pool(8) as pool:
        assert sum(pool.map(race, range(8), chunksize=1)) == 3
    assert len(budget_ledger.read_budget("people").entries) == 3


def test_the_ledger_is_for_its_owner_and_says_who_spent_what():
    path = open_budget()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    budget_ledger.finish("people", take(), "here")
    take()
    first, second = budget_ledger.read_budget("people").entries
    assert (first.finished, first.place, first.mechanism) == (True, "here", "noisy_gd")
    assert not second.finished
    assert first.spend == ONE
    with pytest.raises(InputError, match="a budget is opened once"):
        open_budget()


def damage(path, kind):
    lines = path.read_bytes().splitlines(keepends=True)
    spoiled = {
        "a smaller spend": [lines[0], lines[1].replace(b"1.0", b"0.1"), *lines[2:]],
        "an entry taken out": [lines[0], *lines[2:]],
        "a larger budget": [lines[0].replace(b'"epsilon": 3.0', b'"epsilon": 9.0'), *lines[1:]],
        "entries in another order": [lines[0], lines[2], lines[1]],
        "the opening taken out": lines[1:],
        "no text": [b"\xff\xfe\n"],
        "another file": [b"{}\n"],
    }
    path.write_bytes(b"".join(spoiled[kind]))


@pytest.mark.parametrize(
    "kind",
    ["a smaller spend", "an entry taken out", "a larger budget", "entries in another order",
     "the opening taken out", "no text", "another file"],
)  # fmt: skip
def test_a_ledger_that_was_changed_refuses(kind):
    path = open_budget()
    take()
    take()
    damage(path, kind)
    before = path.read_bytes()
    for call in (take, lambda: budget_ledger.read_budget("people")):
        with pytest.raises(InputError, match="is damaged"):
            call()
    assert path.read_bytes() == before


@pytest.mark.parametrize("cut", [1, 20, 90])
def test_a_line_that_was_being_written_is_taken_away(cut):
    path = open_budget()
    take()
    whole = path.read_bytes()
    take()
    longer = path.read_bytes()
    path.write_bytes(longer[: len(whole) + cut])
    take()
    found = budget_ledger.read_budget("people")
    assert len(found.entries) == 2
    assert b'"torn"' in path.read_bytes()


def test_without_locks_nothing_is_released(monkeypatch):
    open_budget()

    def refuse(*_, **__):
        raise OSError(files.NO_LOCKS[0], "No locks available")

    monkeypatch.setattr("filelock.FileLock.acquire", refuse)
    with pytest.raises(StorageError):
        take()


def test_relations_are_converted_one_way():
    open_budget("strict", relation="add_remove")
    open_budget("wide", epsilon=1.9)
    with pytest.raises(InputError, match=r"say privacy.relation=add_remove"):
        budget_ledger.reserve("strict", ONE, "replace_one", "m", "w")
    with pytest.raises(PrivacyError, match="takes epsilon 2, which does not fit"):
        budget_ledger.reserve("wide", ONE, "add_remove", "m", "w")


def spend_and_die(seed):
    """Reserve and finish until nothing fits; somebody may kill this at any instant."""
    rng = random.Random(seed)
    while True:
        try:
            entry = take(spend=Spend(epsilon=rng.choice([0.1, 0.25, 0.5])))
        except PrivacyError:
            os._exit(0)
        Path(f"drawn-{entry}").touch()  # the noise
        budget_ledger.finish("people", entry, "here")


def interleave(rounds):
    rng = random.Random(5)
    for turn in range(rounds):
        name = Path("budgets/people.jsonl")
        name.unlink(missing_ok=True)
        for drawn in Path.cwd().glob("drawn-*"):
            drawn.unlink()
        open_budget()
        workers = [FORK.Process(target=spend_and_die, args=(10 * turn + k,)) for k in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers[:2]:
            time.sleep(rng.random() * 0.02)
            with contextlib.suppress(ProcessLookupError):  # it was done
                os.kill(worker.pid, signal.SIGKILL)
        for worker in workers:
            worker.join(20)
        found = budget_ledger.read_budget("people")
        assert math.fsum(entry.spend.epsilon for entry in found.entries) <= 3.0 + 1e-9
        drawn = {path.name.removeprefix("drawn-") for path in Path.cwd().glob("drawn-*")}
        assert drawn <= {entry.id for entry in found.entries}
        assert found.rule.largest_pure(found.spends) < 0.5


def test_killed_processes_never_overspend():
    interleave(8)


@pytest.mark.slow
def test_killed_processes_never_overspend_in_many_rounds():
    interleave(200)


# --- the verbs ----------------------------------------------------------------------------------


def test_releases_share_a_budget(capsys, monkeypatch):
    monkeypatch.setattr(releasing, "STATEMENTS", {})
    write()
    Path("s.yaml").write_text(SCHEMA)
    assert cli.main(["budget", "create", "people", "epsilon=2", "delta=1e-6"]) == 0
    capsys.readouterr()
    words = ["out=here", "again=true", "budget=people", "diagnostics=false"]
    assert release(capsys, *words, "format=json")[0] == 0
    code, out, _ = release(capsys, *words, "format=json")
    assert code == 0
    assert json.loads(out)["rest"].startswith("left: epsilon ")
    before = sorted(Path("here").iterdir())
    code, out, err = release(capsys, *words)
    assert (code, out) == (1, "")
    assert "which does not fit; left: epsilon" in err
    assert sorted(Path("here").iterdir()) == before
    assert cli.main(["budget", "show", "people", "format=json"]) == 0
    first, *entries = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["releases"] == 2
    assert [entry["state"] for entry in entries] == ["released", "released"]
    assert release(capsys, "out=there", "budget=peopel")[2].endswith("(did you mean 'people'?)\n")
    assert not Path("there").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["open", "x"], "budget=open: must be one of create, show, list"),
        (["create"], "budget=create: write dperm budget create NAME"),
        (["create", "x"], "epsilon=None: must be given"),
        (["create", "x", "epsilon=-1"], "epsilon=-1"),
        (["create", "x", "epsilon=many"], "epsilon=many"),
        (["create", "x", "epsilon=1", "delta=2"], "delta=2"),
        (["create", "x", "epsilon=1", "rule=mixed"], "rule=mixed: needs delta above 0"),
        (["create", "x", "epsilon=1", "rule=pur"], "did you mean 'pure'"),
        (["create", "../x", "epsilon=1"], "budget=../x: must be a word"),
        (["create", "x", "epsilon=1e-9", "delta=1e-9"], "epsilon=1e-09: is too small"),
        (["show", "x"], "budget=x: no such budget"),
        (["show", "x", "epsilon=3"], "epsilon: unknown key"),
        (["list", "x"], "budget=list x"),
    ],
)
def test_bad_words_are_refused_and_leave_nothing(words, told, capsys):
    assert cli.main(["budget", *words]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert told in said.err
    assert not Path("budgets").exists()
