"""Break 8: under a declared population nothing released may follow an automatic split.

Which records are held out, and how many, is a function of the number of records, which a declared
population keeps private. Landmarks and queries that come with the data come from a declared file.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dperm_cli.audit import fuzz_draws
from dperm_cli.audit.hard_pairs import Records
from dperm_cli.problem.data import Data
from dperm_cli.runner.audits import fuzz, neighbour_runs
from tests.breaks._files import (
    assert_refused,
    make_rows,
    model_arrays,
    write_table,
    write_table_with_test,
)

DECLARED = ["privacy.relation=add_remove", "privacy.population=1000"]
KERNEL = ["kernel=rbf", "kernel.features=landmarks", "mechanism=noisy_gd", "mechanism.steps=3"]
WORDS = [*KERNEL, *DECLARED, "ridge=0.01", "trials=1", "delta=1e-6"]


def run(dperm, folder, n, *words):
    data = write_table(folder / f"n{n}.csv", make_rows(n))
    return dperm("run", "dataset=csv", f"dataset.path={data}", *words, f"out={folder}/study",
                 f"save={folder}/m.npz")  # fmt: skip


@pytest.mark.parametrize("n", [4, 84, 85])  # of 4 records none is held out
def test_landmarks_of_a_split_are_refused(n, dperm, tmp_path):
    done = run(dperm, tmp_path, n, *WORDS)
    assert_refused(done)
    assert "kernel.landmarks=auto" in done.err
    assert "dataset.test_path=FILE" in done.err
    assert "kernel.features=fourier" in done.err
    assert str(n) not in done.err.replace(str(tmp_path), "")
    assert not (tmp_path / "study").exists()
    assert not (tmp_path / "m.npz").exists()


@pytest.mark.parametrize("words", [["kernel.queries=3"], ["mechanism=non_private"]])
def test_queries_of_a_split_are_refused(words, dperm, tmp_path):
    words = [*DECLARED, "kernel=rbf", "ridge=0.1", "trials=1", *words]
    done = dperm("run", "dataset=breast_cancer", *words, "out=study")
    assert_refused(done)
    assert "kernel.queries" in done.err


def test_landmarks_of_a_declared_file_are_taken(dperm, tmp_path):
    data = write_table_with_test(tmp_path, make_rows(84), make_rows(11, seed=9))
    done = dperm("run", *data, *WORDS, "out=study", f"save={tmp_path}/m.npz")
    assert done.code == 0, done.err
    assert len(model_arrays(tmp_path / "m.npz")[1]["points"]) == 11


def test_landmarks_of_a_split_are_taken_where_n_is_public(dperm, tmp_path):
    done = run(dperm, tmp_path, 84, *KERNEL, "ridge=0.01", "trials=1", "delta=1e-6")
    assert done.code == 0, done.err
    assert len(model_arrays(tmp_path / "m.npz")[1]["points"]) == 16


def folders(tmp_path, n):
    rng = np.random.default_rng(0)
    x, y = np.round(rng.standard_normal((n, 3)), 4), rng.choice([-1.0, 1.0], n)
    for name, count in (("first", n), ("second", n - 1)):
        (tmp_path / name).mkdir()
        Records(x[:count], y[:count]).write(tmp_path / name / "records.npz")
    return tmp_path / "first", tmp_path / "second"


@pytest.mark.parametrize(
    "words",
    [["kernel=rbf", "kernel.features=fourier", "kernel.size=3"], ["kernel=polynomial"], [],
     WORDS[:2]],
    ids=["fourier", "explicit", "plain", "landmarks"],
)  # fmt: skip
def test_files_one_record_apart_through_a_split(words, tmp_path):
    """10 and 9 records hold out 2 and 1; all that is public is equal, or both are refused."""
    words = ["dataset=npz", "dataset.path=records.npz", "mechanism=noisy_gd", "mechanism.steps=3",
             *DECLARED, "ridge=0.1", "trials=1", "delta=1e-6", "save=m.npz", *words]  # fmt: skip
    fault, one, other = neighbour_runs.run_on_both(
        words, *folders(tmp_path, 10), cache=tmp_path / "cache"
    )
    assert fault is None
    assert one.code == other.code == (2 if "kernel.features=landmarks" in words else 0)
    if one.records:
        assert (one.records[0]["n"], other.records[0]["n"]) == (8, 8)


def publish_the_split(monkeypatch):
    facts = Data.facts

    def all_points(self, n=None):
        return replace(facts(self, n), points=self.x_test, hidden_points=False)

    monkeypatch.setattr(Data, "facts", all_points)


def test_the_replay_sees_landmarks_of_a_split(tmp_path, monkeypatch):
    publish_the_split(monkeypatch)
    words = ["dataset=npz", "dataset.path=records.npz", *WORDS, "save=m.npz"]
    fault, _, _ = neighbour_runs.run_on_both(
        words, *folders(tmp_path, 10), cache=tmp_path / "cache"
    )
    assert fault is not None


def test_the_fuzzer_draws_what_shows_it():
    drawn = [fuzz_draws.draw(5, number) for number in range(400)]
    ordinary = [one for one in drawn if not any(w.startswith("kernel=") for w in one.words)]
    assert len(ordinary) > 200
    shown = [
        one for one in drawn
        if one.split and one.drops_record and "kernel.features=landmarks" in one.words
    ]  # fmt: skip
    assert shown


def test_the_fuzzer_finds_it(monkeypatch):
    number = next(
        n for n in range(1000)
        if (one := fuzz_draws.draw(5, n)).split and one.drops_record and len(one.first.y) in (5, 20)
        and "kernel.features=landmarks" in one.words
    )  # fmt: skip
    assert not fuzz.search(5, [number]).findings
    publish_the_split(monkeypatch)
    assert fuzz.search(5, [number]).findings
