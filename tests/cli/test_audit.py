"""`dperm audit`: its tables, its files, its refusals, a run's own plan, and the grid."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dperm_cli.audit import mechanism_audit, statistical_attack
from dperm_cli.cli import main
from dperm_cli.runner import audit_findings, audit_request
from dperm_cli.runner.audits import audit_tables

FEW = {"gaussian": 8000, "profile": 8000, "threshold": 8000}
ALONE = ("part=adversary", "workers=1")


@pytest.fixture
def few(monkeypatch):
    """Few runs: what is printed matters here, not how tight it is."""
    monkeypatch.setattr(statistical_attack, "RUNS", FEW)
    monkeypatch.setattr(mechanism_audit, "ROUNDS", 8)
    monkeypatch.setattr(audit_findings, "QUICK_ROUNDS", 8)


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A small csv file of two columns and a label, in the working folder."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-0.6, 0.6, (12, 2)), rng.choice([-1, 1], 12)
    lines = ["a,b,y", *(f"{u:.6f},{v:.6f},{z}" for (u, v), z in zip(x, y, strict=True))]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    return ["dataset=csv", "dataset.path=rows.csv", "dataset.test_fraction=0",
            "dataset.intercept=false"]  # fmt: skip


def test_rows_as_json_and_files(few, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["audit", "mechanism=noisy_gd", "epsilon=20", "--quick", *ALONE]
    assert main([*words, "format=json"]) == 0
    printed = capsys.readouterr().out
    rows = [json.loads(line) for line in printed.splitlines()]
    assert [row["relation"] for row in rows] == ["replace_one", "add_remove"]
    for row in rows:
        assert row["kind"] == "adversary"
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
    assert head.startswith("mechanism,relation,epsilon,delta,claim,bound,runs,tightness,floor")


@pytest.mark.parametrize(
    ("head", "key"),
    [
        (audit_tables.HEAD, audit_tables.HEAD_KEY),
        (audit_tables.CASES, audit_tables.CASES_KEY),
    ],
)
def test_columns_of_tables_have_a_key(head, key):
    told = {part.split(":")[0] for line in key for part in line.split("; ")}
    needed = {"control", "floor", "worst", "exact", "tightness", "bound", "law", "bound/claim"}
    assert needed & set(head) == told & set(head)


def test_a_violation_is_an_exit_code_and_a_line(few, capsys, monkeypatch):
    from dperm_cli.mechanisms.gradient import noisy_gd
    from dperm_cli.privacy.events import Gaussian

    def half(self, spec, scale, budget):
        return (Gaussian(scale, spec.lipschitz / 2, self._steps()),)

    monkeypatch.setattr(noisy_gd.NoisyGd, "events", half)
    assert main(["audit", "mechanism=noisy_gd", "epsilon=20", "--quick", *ALONE]) == 1
    out, err = capsys.readouterr()
    assert out.count("violation") == 2
    assert all(f"\n{line}" in out for line in audit_tables.HEAD_KEY)
    assert "above the claim 20" in err
    assert "moved by 2 sensitivities" in err


@pytest.mark.slow
def test_the_grid_says_what_was_and_what_was_not_attacked(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["audit", "mechanism=newton", "part=grid", "--quick", "workers=1"]
    assert main([*words, "out=kept"]) == 0
    out, _ = capsys.readouterr()
    head, line, *rest = out.splitlines()
    assert head.split() == list(audit_tables.CASES)
    assert line.split()[0] == "newton"
    assert "ok" in line
    assert any("newton: loss=hinge (hinge has kinks" in text for text in rest)
    kept = [json.loads(row) for row in (tmp_path / "kept" / "audit.json").read_text().splitlines()]
    kinds = {row["kind"] for row in kept}
    assert kinds == {"case", "not attacked"}
    cases = [row for row in kept if row["kind"] == "case" and row["mechanism"] == "newton"]
    assert {row["verdict"] for row in cases} == {"ok"}
    assert all("loss=" in row["settings"] and row["pairs"] and row["paths"] for row in cases)
    assert (tmp_path / "kept" / "cases.csv").exists()
    # one case by its number, with the same outcome
    assert main([*words, "case=1", "format=json"]) == 0
    rows = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    (again,) = [row for row in rows if row["kind"] == "case"]
    for key in ("case", "settings", "pairs", "claim", "replay_calls", "replay_worst", "exact"):
        assert again[key] == cases[1][key]


@pytest.mark.slow
def test_the_plan_of_a_run_is_attacked(few, table, capsys, tmp_path):
    (tmp_path / "two.csv").write_text("0.9,0,1\n-0.9,0,-1\n")
    words = ["audit", *table, "mechanism=noisy_sgd", "mechanism.sampling=poisson", "--quick",
             "privacy.relation=add_remove", "privacy.population=14", "epsilon=3"]  # fmt: skip
    assert main([*words, "pair=two.csv", "format=json"]) == 0
    rows = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    (case,) = [row for row in rows if row["kind"] == "case"]
    assert case["pairs"][0] == "yours"
    assert case["relation"] == "add_remove"
    assert case["claim"] <= 3.0
    assert case["replay_calls"] > 14**2  # the plan's own number of steps
    (own,) = [row for row in rows if row["kind"] == "adversary"]
    assert own["relation"] == "add_remove"
    assert own["epsilon"] == 3.0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.csv", "two.csv"]


@pytest.mark.slow
def test_several_cells_and_secure_noise(few, table, capsys):
    words = [*table, "mechanism=noisy_gd", "noise=secure", "epsilon=1,2", "--quick", "workers=1"]
    assert main(["audit", *words, "format=json"]) == 0
    rows = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    assert [row["kind"] for row in rows] == ["case", "case"]
    assert [round(row["claim"]) for row in rows] == [1, 2]
    assert all(row["paths"] == ["secure", "seeded"] for row in rows)


def test_an_audit_of_nothing_says_what_would_fit(table, capsys):
    assert main(["audit", *table, "mechanism=frank_wolfe", "loss=hinge"]) == 1
    out, err = capsys.readouterr()
    assert "not attacked" in out
    assert "nothing was audited: frank_wolfe" in err
    assert "set mechanism=" in err
    assert "noisy_gd" in err or "huberized" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["mechanism=noisy_dg"], "did you mean 'noisy_gd'"),
        (["epsilon=nan"], "epsilon=nan: must be a finite number > 0"),
        (["epsilon=1,-1"], "epsilon=-1"),
        (["epsilon=x"], "epsilon=x"),
        (["epsilon="], "epsilon="),
        (["epsilon=1e300"], "epsilon=1e+300: must be between 1e-09 and 1e+06"),
        (["epsilon=1e300", "ridge=0.1"], "epsilon=1e+300: must be between 1e-09 and 1e+06"),
        (["delta=1"], "delta=1"),
        (["seed=-1"], "seed=-1"),
        (["seed=fersh"], "did you mean 'fresh'"),
        (["format=xml"], "format=xml"),
        (["mechanism=non_private"], "mechanism=non_private: must be one of all, "),
        (
            ["mechanism=non_private", "dataset=breast_cancer"],
            "mechanism=non_private: must be one of all, ",
        ),
        (
            [
                "mechanism=objective_perturbation",
                "calibration=paper",
                "ridge=0.1",
                "mechanism.allow_not_private=true",
            ],
            "mechanism=objective_perturbation: gives no guarantee as it is set",
        ),
        (["apir=two.csv"], "apir: unknown key (did you mean 'pair'?)"),
        (["fuz=10s"], "fuz: unknown key (did you mean 'fuzz'?)"),
        (
            ["wrokers=2"],
            "sampler, save, seed, slurm, split, stop, threads, trials, tune, workers",
        ),
        (["draw=3"], "draw=3: repeats a draw of fuzz="),
        (["sead=1"], "sead: unknown key (did you mean 'seed'?)"),
        (["--slow"], "option=--slow"),
        (["out=taken"], "out=taken: is a file"),
        (["part=half"], "part=half: must be one of"),
        (["case=-1"], "case=-1"),
        (["workers=0"], "workers=0"),
        (["stop=soon"], "stop=soon: must be one of"),
        (["pair=missing.csv"], "pair=missing.csv: no such file"),
        (["pair=taken"], "pair=taken: must hold two records"),
        (["ridge=-1"], "ridge=-1"),
        (["loss=hinge", "save=m.npz"], "save=m.npz: is a key of `dperm run`"),
        (["loss=hing"], "did you mean 'hinge'"),
        (["constraint.radius=1e300"], "constraint.radius=1e+300"),
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
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


@pytest.mark.parametrize(
    "words",
    [["epsilon=1e300"], ["L=1e300"], ["noise_scale=1e300"], ["constraint.radius=1e200"],
     ["smoothness=1e300"], ["ridge=1e300"]],
)  # fmt: skip
def test_account_has_the_limits_of_run(words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["account", "mechanism=noisy_gd", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert words[0].partition("=")[0] in err
    assert list(tmp_path.iterdir()) == []


def test_help_names_the_keys(capsys):
    assert main(["audit", "--help"]) == 0
    text = capsys.readouterr().out
    for key in (*audit_request.OWN, *audit_request.GRID, "--quick", "docs/audit.md"):
        assert key in text
