"""``dperm ask``: a private session over a file or the input."""

from __future__ import annotations

import io

import pytest

from dperm_cli.cli import dispatch
from dperm_cli.core.errors import EXIT_FAILED, EXIT_INPUT, EXIT_OK, InputError

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
    """Answers line by line, the repeated one again; the level told; nothing left behind."""
    (folder / "q.csv").write_text("a,b\n0.1,0.2\n0.5,-0.3\n\n0.1,0.2\n")
    assert dispatch(["ask", *WORDS, "mechanism=kernel_release", "q.csv"]) == EXIT_OK
    found, told = lines(capsys)
    assert [int(update) for _, update in found] == [1, 1, 0]
    assert float(found[0][0]) == float(found[2][0]) != float(found[1][0])
    assert "epsilon 1, delta 1e-05" in told
    assert "another one spends as much again" in told
    assert [path.name for path in folder.iterdir()] == ["q.csv"]


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
    monkeypatch.setattr("sys.stdin", io.StringIO("0.1,0.2\n0.1\n"))
    with pytest.raises(InputError, match="ask=-: line 2"):
        dispatch(["ask", *WORDS, "mechanism=kernel_release"])
    found, told = lines(capsys)
    assert len(found) == 1
    assert "epsilon 1" in told


def test_help(capsys):
    assert dispatch(["ask", "--help"]) == EXIT_OK
    assert "usage: dperm ask" in capsys.readouterr().out
    assert dispatch(["ask"]) == EXIT_INPUT
