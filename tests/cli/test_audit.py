"""`dperm audit`: its table, its files, its refusals."""

from __future__ import annotations

import json

import pytest

from dperm_cli.audit import examine, statistical
from dperm_cli.cli import main
from dperm_cli.runner import audit as verb

FEW = {"gaussian": 8000, "profile": 8000, "threshold": 8000}


@pytest.fixture
def few(monkeypatch):
    """Few runs: what is printed matters here, not how tight it is."""
    monkeypatch.setattr(statistical, "RUNS", FEW)
    monkeypatch.setattr(examine, "ROUNDS", 8)
    monkeypatch.setattr(verb, "QUICK_ROUNDS", 8)


def test_rows_as_json_and_files(few, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["audit", "mechanism=noisy_gd", "epsilon=20", "--quick", "part=adversary"]
    assert main([*words, "format=json"]) == 0
    printed = capsys.readouterr().out
    rows = [json.loads(line) for line in printed.splitlines()]
    assert [row["relation"] for row in rows] == ["replace_one", "add_remove"]
    for row in rows:
        assert row["verdict"] == "ok"
        assert row["faults"] == []
        assert row["control_caught"] is True
        assert 0.5 < row["tightness"] < 1.0
        assert row["replay_worst"] == pytest.approx(1.0)
        assert row["exact"] == pytest.approx(1.0, abs=1e-5)
    assert list(tmp_path.iterdir()) == []
    assert main([*words, "format=json", "out=kept"]) == 0
    assert capsys.readouterr().out == printed  # fixed seeds
    assert (tmp_path / "kept" / "audit.json").read_text() == printed
    head = (tmp_path / "kept" / "audit.csv").read_text().splitlines()[0]
    assert head.startswith("mechanism,relation,epsilon,delta,claim,bound,tightness,floor")


def test_a_violation_is_an_exit_code_and_a_line(few, capsys, monkeypatch):
    from dperm_cli.mechanisms import noisy_gd
    from dperm_cli.privacy.events import Gaussian

    def half(self, spec, scale, budget):
        return (Gaussian(scale, spec.lipschitz / 2, self._steps()),)

    monkeypatch.setattr(noisy_gd.NoisyGd, "events", half)
    assert main(["audit", "mechanism=noisy_gd", "epsilon=20", "--quick", "part=adversary"]) == 1
    out, err = capsys.readouterr()
    assert out.count("violation") == 2
    assert "above the claim 20" in err
    assert "moved by 2 sensitivities" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["mechanism=noisy_dg"], "did you mean 'noisy_gd'"),
        (["epsilon=nan"], "epsilon=nan: must be a finite number > 0"),
        (["epsilon=1,-1"], "epsilon=-1"),
        (["epsilon=x"], "epsilon=x"),
        (["epsilon="], "epsilon="),
        (["delta=1"], "delta=1"),
        (["seed=-1"], "seed=-1"),
        (["seed=fersh"], "did you mean 'fresh'"),
        (["format=xml"], "format=xml"),
        (["sead=1"], "sead: unknown key (did you mean 'seed'?)"),
        (["--slow"], "--slow"),
        (["out=taken"], "out=taken: is a file"),
    ],
)
def test_bad_words_are_one_line(words, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("")
    assert main(["audit", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.count("\n") == 1


def test_help_names_the_keys(capsys):
    assert main(["audit", "--help"]) == 0
    text = capsys.readouterr().out
    for key in (*verb.OWN, *verb.GRID, "--quick", "docs/audit.md"):
        assert key in text
