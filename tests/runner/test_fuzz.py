"""The fuzzer finds planted faults, and says how to have a finding again."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dperm_cli.audit import fuzz_draws
from dperm_cli.cli import main
from dperm_cli.core import progress
from dperm_cli.core.errors import InputError, UnknownKey
from dperm_cli.kernels.shared import map_choice
from dperm_cli.kernels.shared.feature_maps import Fourier
from dperm_cli.problem.problem import Problem
from dperm_cli.results.ledger import statement
from dperm_cli.runner.audits import fuzz
from dperm_cli.runner.cells import kernel_cells
from dperm_cli.runner.studies import study_report
from dperm_cli.views import central
from dperm_cli.views.central import CentralView

SEED = 3


def found_within(draws, mechanism="all", seed=SEED, first=0):
    """The first finding among so many draws from that number on."""
    found = fuzz.search(seed, range(first, first + draws), mechanism=mechanism, most=1)
    assert found.findings, found.words()
    return found.findings[0]


@pytest.mark.parametrize(("draws", "least"), [(4, 2), pytest.param(12, 8, marks=pytest.mark.slow)])
def test_no_finding_in_sound_code(draws, least):
    found = fuzz.search(SEED, range(draws))
    assert not found.findings, [finding.line() for finding in found.findings]
    assert found.ended["ok"] >= least


def tell_private_n(monkeypatch):
    """A ledger that tells the number of records whatever was declared."""
    public = statement.select_public

    def told(row):
        return public(row) | {"population": row["n"], "population_source": "from the data"}

    monkeypatch.setattr(statement, "select_public", told)


def test_a_private_n_in_a_file(monkeypatch):
    tell_private_n(monkeypatch)
    finding = found_within(40)
    assert "ledger.json" in finding.fault
    assert "training records" in finding.fault


def test_a_message_with_a_private_value(monkeypatch):
    def tell(made):
        values = [row["optimum"] for row in made.summary if row["status"] == "ok"]
        print(f"the optimum is {values}", file=study_report.sys.stderr)

    monkeypatch.setattr(study_report, "_tell_ledger", tell)
    assert found_within(20).fault.startswith("stderr, line")


def test_a_progress_label_with_a_private_value(monkeypatch):
    def tell(*facts):
        progress.report(f"the mechanism's minimiser, gap {facts[-1]:.12g}", 0.0, 0.0)

    monkeypatch.setattr(central, "_report_progress", tell)
    assert found_within(40, "output_perturbation").fault.startswith("progress")


def test_a_map_made_of_the_records(monkeypatch):
    def frequencies(kernel, p, size, bound):
        return Fourier(dataclasses.replace(kernel, gamma=spread[-1]), p, size, bound)

    spread = [1.0]
    prepare = kernel_cells._prepare

    def noticed(cell, data):
        spread.append(1.0 + float(np.linalg.norm(np.asarray(data.x.sum(axis=0)))))
        return prepare(cell, data)

    monkeypatch.setattr(map_choice, "Fourier", frequencies)
    monkeypatch.setattr(kernel_cells, "_prepare", noticed)
    finding = found_within(40, "random_features")
    assert "feature map" in finding.fault or "model.npz" in finding.fault


def test_a_plan_that_follows_the_records(monkeypatch):
    spec = Problem.spec

    def measured(self):
        # more than enough, so that nothing but the measuring is wrong
        x = self.data.x.rows if isinstance(self.data.x, kernel_cells.PendingRows) else self.data.x
        found, measure = spec(self), 2.0 + float(np.tanh(np.sum(x)))
        return dataclasses.replace(found, lipschitz=found.lipschitz * measure)

    monkeypatch.setattr(Problem, "spec", measured)
    finding = found_within(40)
    assert any(word in finding.fault for word in ("column", "public facts", "progress"))


def test_batches_named_by_transformed_rows(monkeypatch):
    mapped = CentralView.map_rows

    def renamed(self, rows, row_bound, constraint):
        problem = mapped(self, rows, row_bound, constraint)._problem
        named = problem.data.with_records(problem.data.x, problem.data.y)
        return self._make_view(dataclasses.replace(problem, data=named))

    monkeypatch.setattr(CentralView, "map_rows", renamed)
    # this seed's draws before have no chain to one_pass_sgd
    finding = found_within(3, "projected", seed=2, first=17)
    assert "one_pass_sgd" in finding.draw.target.chain
    assert finding.fault.startswith("replay: call")


def test_an_exception_that_one_record_decides(monkeypatch):
    gradient = CentralView.gradient_sum

    def split(self, theta):
        if len(self.y) > 1 and np.unique(self.y).size == 1:
            raise ZeroDivisionError("no record of the other class")
        return gradient(self, theta)

    monkeypatch.setattr(CentralView, "gradient_sum", split)
    finding = found_within(40, "noisy_gd")
    assert "ZeroDivisionError: no record of the other class" in finding.fault


def test_an_accounted_epsilon_above_the_one_asked_for():
    made = type("Run", (), {})()
    made.records = [
        {
            "status": "ok", "guarantee": "approx", "epsilon": 1.0, "delta": 1e-6,
            "epsilon_accounted": 1.1, "delta_accounted": 1e-6,
        }
    ]  # fmt: skip
    assert fuzz.find_excess(made)
    made.records[0]["epsilon_accounted"] = 1.0
    assert not fuzz.find_excess(made)


def test_a_finding_names_the_command_that_repeats_it(monkeypatch, capsys, tmp_path):
    tell_private_n(monkeypatch)
    finding = found_within(40)
    words = finding.line().rpartition("| ")[2].split()
    assert words[:2] == ["dperm", "audit"]
    capsys.readouterr()
    assert main([*words[1:], f"out={tmp_path / 'kept'}"]) == 1
    told, progressed = capsys.readouterr()
    first, last = told.splitlines()
    assert first == finding.line()
    assert last.startswith(f"fuzz: seed {SEED}, 1 draws:")
    assert "Traceback" not in progressed
    kept = tmp_path / "kept" / f"draw-{finding.draw.number}"
    assert (kept / "command.txt").read_text().startswith("dperm run ")
    assert list((kept / "second" / "out").iterdir())


def test_a_search_without_findings_exits_0(capsys):
    assert main(["audit", "fuzz=1s", f"seed={SEED}", "draw=1"]) == 0
    told, _ = capsys.readouterr()
    assert told.startswith(f"fuzz: seed {SEED}, 1 draws: ")
    assert told.rstrip().endswith("0 findings")


def test_draws_follow_from_seed_and_number():
    for number in range(0, 300, 7):
        one, other = fuzz_draws.draw(5, number), fuzz_draws.draw(5, number)
        assert one.words == other.words
        assert np.array_equal(one.second.x, other.second.x)
    assert fuzz_draws.draw(5, 0).words != fuzz_draws.draw(6, 0).words


def test_a_pass_draws_every_target_once():
    every = fuzz_draws.targets()
    drawn = [fuzz_draws.draw(1, number).target for number in range(len(every))]
    assert set(drawn) == set(every)
    assert {target.chain[0] for target in every} == set(fuzz_draws.registry.list_protective())


def test_the_two_files_differ_in_one_record():
    dropped = 0
    for number in range(200):
        drawn = fuzz_draws.draw(9, number)
        if drawn.drops_record:
            dropped += 1
            rest = np.delete(np.arange(len(drawn.first.y)), drawn.index)
            assert np.array_equal(drawn.first.x[rest], drawn.second.x)
            assert np.array_equal(drawn.first.y[rest], drawn.second.y)
            continue
        apart = np.any(drawn.first.x != drawn.second.x, axis=1) | (drawn.first.y != drawn.second.y)
        assert set(np.flatnonzero(apart)) <= {drawn.index}
    assert dropped > 30


@pytest.mark.parametrize(
    ("word", "seconds"), [("30s", 30.0), ("10m", 600.0), ("1h", 3600.0), ("1.5m", 90.0)]
)
def test_times(word, seconds):
    assert fuzz.duration("fuzz", word) == seconds


@pytest.mark.parametrize("word", ["", "10", "m", "-1s", "0s", "1d", "1e9h", "nan", "9" * 6 + "h"])
def test_bad_times(word):
    with pytest.raises(InputError, match="must be a time such as 30s, 10m or 1h"):
        fuzz.duration("fuzz", word)


@pytest.mark.parametrize(
    "words",
    [
        ["fuzz="], ["fuzz=1s", "seed=-1"], ["fuzz=1s", "draw=x"], ["fuzz=1s", "mechanism=noisy"],
        ["fuzz=1s", "seed"], ["fuzz=1s", "sed=1"], ["fuzz=1s", "mechanism=non_private"],
    ],
)  # fmt: skip
def test_bad_words_are_one_line(words, capsys):
    with pytest.raises((InputError, UnknownKey)):
        fuzz.parse(words)
    assert main(["audit", *words]) == 2
    told, line = capsys.readouterr()
    assert told == ""
    assert line.count("\n") == 1


def test_out_must_be_a_new_folder(tmp_path):
    (tmp_path / "somebody's").write_text("")
    with pytest.raises(InputError, match="new or an empty folder"):
        fuzz.parse(["fuzz=1s", f"out={tmp_path}"])
