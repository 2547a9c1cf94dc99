"""``dperm ask``: a private session over a file or the input."""

from __future__ import annotations

import io
import json
import re

import numpy as np
import pytest

from dperm_cli.cli import dispatch
from dperm_cli.core.errors import EXIT_FAILED, EXIT_INPUT, EXIT_OK, InputError, StorageError
from dperm_cli.core.files import hold_lock
from dperm_cli.mechanisms.kernel import kernel_interactive, kernel_release
from dperm_cli.results.ledger import kept_ledger
from dperm_cli.results.records.store import Store
from dperm_cli.runner.models import budget_ledger, session_record

WORDS = [
    "dataset=synthetic_logistic", "dataset.n=300", "dataset.p=2", "loss=logistic", "ridge=0.5",
    "kernel=rbf", "kernel.features=landmarks", "kernel.size=20", "delta=1e-5",
]  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lines(capsys):
    out = capsys.readouterr()
    return [line.split(",") for line in out.out.splitlines()[1:]], out.err


def test_a_file_of_queries(folder, capsys):
    """Answers line by line, the repeated one again; the level told; its record left behind."""
    (folder / "q.csv").write_text("a,b\n0.1,0.2\n0.5,-0.3\n\n0.1,0.2\n")
    assert dispatch(["ask", *WORDS, "mechanism=kernel_release", "q.csv"]) == EXIT_OK
    found, told = lines(capsys)
    assert [int(update) for _, update in found] == [1, 1, 0]
    assert float(found[0][0]) == float(found[2][0]) != float(found[1][0])
    assert "epsilon 1, delta 1e-05" in told
    assert "another one spends as much again" in told
    assert "Published inputs: 20 inputs of held-out records" in told
    assert sorted(path.name for path in folder.iterdir()) == ["outputs", "q.csv"]
    (out,) = (folder / "outputs").iterdir()
    assert sorted(path.name for path in out.iterdir()) == [
        "ledger.json", "records", "releases.log",
    ]  # fmt: skip


def test_the_input_and_fresh_noise(folder, capsys, monkeypatch):
    answers = []
    for _ in range(2):
        monkeypatch.setattr("sys.stdin", io.StringIO("0.3,0.4\n"))
        assert dispatch(["ask", *WORDS, "mechanism=kernel_release", "-"]) == EXIT_OK
        answers.append(lines(capsys)[0][0][0])
    assert answers[0] != answers[1]


def test_a_session_that_is_spent_says_so(folder, capsys):
    (folder / "q.csv").write_text("0.1,0.2\n0.5,-0.3\n0.6,0.1\n")
    words = [*WORDS, "mechanism=kernel_interactive", "mechanism.queries=2", "q.csv"]
    assert dispatch(["ask", *words]) == EXIT_FAILED
    found, told = lines(capsys)
    assert len(found) == 2
    assert "all 2 queries of the session are spent" in told


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (["mechanism=noisy_gd", "q.csv"], "mechanism"),
        (["mechanism=kernel_release", "gone.csv"], "ask"),
        (["mechanism=kernel_release", "q.csv", "r.csv"], "ask"),
        (["mechanism=kernel_release", "bad.csv"], "ask"),
        (["mechanism=kernel_release", "noise=secure", "q.csv"], "noise"),
    ],
)
def test_bad_input_is_named(folder, words, key):
    (folder / "q.csv").write_text("0.1,0.2\n")
    (folder / "bad.csv").write_text("0.1,nan\n")
    with pytest.raises(InputError) as caught:
        dispatch(["ask", *WORDS, *words])
    assert caught.value.key == key
    assert caught.value.exit_code == EXIT_INPUT


@pytest.mark.parametrize(
    ("third", "words"),
    [("0.1,x", "line 3 holds what is no number"), ("0.1", "line 3 must hold 2 finite numbers"),
     ("0.1,inf", "line 3 must hold 2 finite numbers")],
)  # fmt: skip
def test_a_file_is_judged_before_its_first_line_is_answered(folder, capsys, third, words):
    (folder / "q.csv").write_text(f"a,b\n0.1,0.2\n{third}\n")
    with pytest.raises(InputError) as caught:
        dispatch(["ask", *WORDS, "mechanism=kernel_release", "q.csv"])
    assert str(caught.value) == f"ask=q.csv: {words}"
    out = capsys.readouterr()
    assert out.out == ""
    assert "epsilon" not in out.err


def test_the_input_is_answered_as_it_comes(folder, capsys, monkeypatch):
    """A slip of the keyboard is told, spends nothing and does not end the session."""
    monkeypatch.setattr("sys.stdin", io.StringIO("0.1,0.2\n0.1\nNA,1\n0.1,0.2\n"))
    assert dispatch(["ask", *WORDS, "mechanism=kernel_release"]) == EXIT_INPUT
    found, told = lines(capsys)
    assert len(found) == 2
    assert found[0][0] == found[1][0]
    assert "epsilon 1" in told
    assert "ask=-: line 2 must hold 2 finite numbers; it was not asked" in told
    assert "ask=-: line 3 holds what is no number; it was not asked" in told


def bound_by_name(folder, monkeypatch, queries, *words, stdin=False):
    """The rows that reach the session of a data set with the columns a and b, and the exit code."""
    rng = np.random.default_rng(0)
    rows = [f"{a:.3f},{b:.3f},{'yes' if a > 0 else 'no'}" for a, b in rng.uniform(-1, 1, (60, 2))]
    (folder / "t.csv").write_text("\n".join(["a,b,kind", *rows]) + "\n")
    (folder / "q.csv").write_text(queries)
    monkeypatch.setattr("sys.stdin", io.StringIO(queries))
    heard = []

    def ask(self, rows):
        heard.extend(np.asarray(rows).tolist())
        return np.zeros(1), np.zeros(1)

    monkeypatch.setattr(kernel_release.ReleaseSession, "ask", ask)
    data = ["dataset=csv", "dataset.path=t.csv", "dataset.labels={yes: 1, no: -1}",
            "dataset.rows=clip"]  # fmt: skip
    model = ["loss=logistic", "ridge=0.5", "kernel=rbf", "mechanism=kernel_release", "out=s"]
    return dispatch(["ask", *data, *model, *words, "-" if stdin else "q.csv"]), heard


@pytest.mark.parametrize(
    ("words", "warned"),
    [((), True), (("dataset.bounds=[-5,5]",), False)],
)
def test_raw_columns_are_warned_of(folder, monkeypatch, capsys, words, warned):
    """As by ``dperm run`` and ``describe``: it follows from what is declared."""
    assert bound_by_name(folder, monkeypatch, "a,b\n0.1,0.2\n", *words)[0] == EXIT_OK
    told = capsys.readouterr().err
    assert ("warning: csv: " in told) == warned
    assert "epsilon" in told


@pytest.mark.parametrize("stdin", [False, True])
def test_columns_are_bound_by_name(folder, monkeypatch, stdin):
    """In any order, with the labels beside them, which may be text."""
    told = 'kind,"b",a\nyes,0.2,0.1\nno,-0.3,0.5\n'
    code, heard = bound_by_name(folder, monkeypatch, told, stdin=stdin)
    assert (code, heard) == (EXIT_OK, [[0.1, 0.2], [0.5, -0.3]])
    code, heard = bound_by_name(folder, monkeypatch, "0.1,0.2\n", "columns=position", stdin=stdin)
    assert (code, heard) == (EXIT_OK, [[0.1, 0.2]])


@pytest.mark.parametrize("stdin", [False, True])
@pytest.mark.parametrize(
    ("queries", "words"),
    [("b,c\n0.1,0.2\n", "lacks column a"), ("0.1,0.2\n", "say columns=position"),
     ("a,a,b\n1,2,3\n", "has column a more than once")],
)  # fmt: skip
def test_columns_that_cannot_be_bound_cost_nothing(folder, monkeypatch, queries, words, stdin):
    with pytest.raises(InputError, match=words):
        bound_by_name(folder, monkeypatch, queries, stdin=stdin)
    assert not (folder / "s").exists()


@pytest.mark.parametrize("stdin", [False, True])
def test_other_columns_are_not_read(folder, monkeypatch, stdin):
    code, heard = bound_by_name(folder, monkeypatch, "b,c,a\n0.2,9,0.1\n", stdin=stdin)
    assert (code, heard) == (EXIT_OK, [[0.1, 0.2]])


def test_refusals_say_what_to_set(folder, capsys):
    """How many queries there were, the key, and the mechanisms that answer any."""
    assert asked(folder, "mechanism=kernel_release", "epsilon=20") == EXIT_FAILED
    told = lines(capsys)[1]
    assert "10000 queries (mechanism.queries) at epsilon 20" in told
    assert "set a smaller epsilon" in told  # not even one query would do
    with pytest.raises(InputError, match="mechanism=kernel_release or kernel_interactive"):
        asked(folder, "mechanism=noisy_gd")


def asked(folder, *words, queries="0.1,0.2\n0.5,-0.3\n"):
    """The exit code of one session, which is recorded in ``s``."""
    (folder / "q.csv").write_text(queries)
    return dispatch(["ask", *WORDS, "out=s", *words, "q.csv"])


def ledger(folder):
    return json.loads((folder / "s" / "ledger.json").read_text())


@pytest.mark.parametrize("name", ["kernel_release", "kernel_interactive"])
def test_a_session_is_in_the_ledger(folder, capsys, name):
    """Its level, mechanism, relation and data; no seed, no point, no word of how much was asked."""
    assert asked(folder, f"mechanism={name}", "epsilon=0.5") == EXIT_OK
    found = ledger(folder)
    (entry,) = found["releases"]
    assert entry["settings"]["session"] is True
    assert (entry["mechanism"], entry["relation"]) == (name, "replace_one")
    assert entry["asked"] == {"epsilon": 0.5, "delta": 1e-5, "kind": "auto"}
    assert 0.49 < entry["accounted"]["epsilon"] <= 0.5
    assert entry["accounted"]["delta"] == 1e-5
    assert len(entry["events"]) == 1
    assert entry["seed"] is None
    assert "landmarks" in entry["data"]["preprocessing"]
    assert re.search(rf"in one session of {name}\. The session is private", entry["statement"])
    (row,) = Store("s").read_all()
    assert row["cell"] == entry["cell"]
    assert row["data_fingerprint"] == entry["data"]["fingerprint"]
    assert row["theta"] is None
    assert f"recorded in s as {row['cell']}" in lines(capsys)[1]
    assert dispatch(["verify", "s"]) == EXIT_OK
    assert dispatch(["report", "s"]) == EXIT_OK
    assert ledger(folder) == found


def test_every_session_spends_anew(folder):
    """Two equal sessions are two releases; with those of a study they add up."""
    for _ in range(2):
        assert asked(folder, "mechanism=kernel_release", "seed=0") == EXIT_OK
    found = ledger(folder)
    assert len({entry["cell"] for entry in found["releases"]}) == 2
    (total,) = found["totals"]
    assert total["releases"] == 2
    assert 1.3 < total["all_trials"]["epsilon"] <= 2.0
    run = ["run", *WORDS, "mechanism=kernel_release", "seed=0", "trials=3", "out=s"]
    assert dispatch(run) == EXIT_OK
    found = ledger(folder)
    (more,) = found["totals"]
    assert (more["releases"], len(more["cells"])) == (5, 3)
    assert more["one_trial_of_each_cell"]["epsilon"] > 1.1 * total["all_trials"]["epsilon"]
    # the session's noise is not the study's, and a session is none of several to choose from
    assert not any("same noise" in warning for warning in found["warnings"])
    assert found["choices"] == []
    assert dispatch(["verify", "s"]) == EXIT_OK


@pytest.mark.parametrize(
    ("mechanism", "session"),
    [
        ("kernel_release", kernel_release.ReleaseSession),
        ("kernel_interactive", kernel_interactive.InteractiveSession),
    ],
)
def test_the_record_comes_before_the_first_answer(folder, monkeypatch, mechanism, session):
    """A crash loses no spending, and where nothing can be recorded nothing is answered."""

    def ask(self, rows):
        assert len(Store("s").cells()) == 1
        raise KeyboardInterrupt

    name = f"mechanism={mechanism}"
    monkeypatch.setattr(session, "ask", ask)
    with pytest.raises(KeyboardInterrupt):
        asked(folder, name)
    assert len(ledger(folder)["releases"]) == 1

    def full(self, *args, **more):
        raise StorageError("s: no space left on device")

    def never(self, rows):
        raise AssertionError("answered without a record")

    monkeypatch.setattr(session_record.Store, "write", full)
    monkeypatch.setattr(session, "ask", never)
    with pytest.raises(StorageError):
        asked(folder, name)


def test_nobody_writes_a_ledger_over_a_record_that_comes_meanwhile(folder, monkeypatch):
    """From reading the records to writing their ledger, sessions and runs keep others out."""
    held = []

    def build_ledger(*rows, real=kept_ledger.ledger.build_ledger, **more):
        with hold_lock(folder / "s" / ".ledger.lock") as free:
            held.append(not free)
        return real(*rows, **more)

    monkeypatch.setattr(kept_ledger.ledger, "build_ledger", build_ledger)
    assert asked(folder, "mechanism=kernel_release") == EXIT_OK
    assert held == [True]
    assert dispatch(["report", "s"]) == EXIT_OK
    assert held == [True, True]
    assert not (folder / "s" / ".ledger.lock").exists()


def test_a_session_that_is_asked_nothing_leaves_nothing(folder):
    assert asked(folder, "mechanism=kernel_release", queries="a,b\n\n") == EXIT_OK
    assert not (folder / "s").exists()


def test_a_folder_of_somebody_else_is_refused(folder):
    (folder / "s").mkdir()
    (folder / "s" / "table.csv").write_text("mine")
    with pytest.raises(InputError, match="no study's"):
        asked(folder, "mechanism=kernel_release")


def test_a_ledger_that_says_otherwise_is_left_alone(folder, capsys):
    assert asked(folder, "mechanism=kernel_release") == EXIT_OK
    path = folder / "s" / "ledger.json"
    path.write_text(path.read_text().replace("session-", "another-"))
    before = path.read_text()
    assert asked(folder, "mechanism=kernel_release") == EXIT_OK
    assert "the privacy ledger does not hold" in lines(capsys)[1]
    assert path.read_text() == before
    assert len(Store("s").cells()) == 2


def test_help(capsys):
    assert dispatch(["ask", "--help"]) == EXIT_OK
    assert "usage: dperm ask" in capsys.readouterr().out
    assert dispatch(["ask"]) == EXIT_INPUT


def test_a_session_is_counted_in_its_budget(folder, capsys):
    """Before its first answer; one that is asked nothing, or that does not fit, takes nothing."""
    (folder / "q.csv").write_text("a,b\n0.1,0.2\n")
    (folder / "none.csv").write_text("a,b\n")
    assert dispatch(["budget", "create", "people", "epsilon=1.2", "delta=1e-4"]) == EXIT_OK
    words = ["ask", *WORDS, "mechanism=kernel_release", "budget=people"]
    with pytest.raises(InputError, match="no such budget"):
        dispatch([*words[:-1], "budget=nobody", "q.csv"])
    assert dispatch([*words, "none.csv"]) == EXIT_OK
    assert budget_ledger.read_budget("people").entries == ()
    capsys.readouterr()
    assert dispatch([*words, "q.csv"]) == EXIT_OK
    (entry,) = budget_ledger.read_budget("people").entries
    assert (entry.mechanism, entry.finished, entry.spend.mu > 0) == ("kernel_release", True, True)
    assert entry.place is not None
    assert entry.place.startswith("outputs")
    assert len(lines(capsys)[0]) == 1
    assert dispatch([*words, "q.csv"]) == EXIT_FAILED
    found, told = lines(capsys)
    assert found == []
    assert "does not fit; left:" in told
    assert len(budget_ledger.read_budget("people").entries) == 1
