"""A stored data set is that which was stored: the same records and results, in a folder."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from dperm_cli import cli
from dperm_cli.core.errors import InputError, StorageError
from dperm_cli.datasets.files.csv import Csv
from dperm_cli.datasets.files.npz import Npz
from dperm_cli.datasets.files.stored import Stored
from dperm_cli.datasets.generated.synthetic_logistic import SyntheticLogistic
from dperm_cli.datasets.shared import block_stage
from dperm_cli.datasets.shared.row_rules import row_norms
from dperm_cli.datasets.shared.stored_rows import ROUNDED, Target, round_towards_zero
from dperm_cli.datasets.shared.stored_rows import store as store_at
from dperm_cli.losses.logistic import Logistic
from dperm_cli.losses.multinomial import Multinomial
from dperm_cli.losses.squared import Squared
from dperm_cli.problem.problem import Problem
from dperm_cli.problem.row_products import add_rows, multiply_rows
from dperm_cli.sets import make_ball
from dperm_cli.solvers import optimum


def store(made, folder, precision):
    return store_at(made, Target(folder, precision))


def write_csv(n=97, seed=0):
    rng = np.random.default_rng(seed)
    lines = ["a,b,label"]
    lines += [
        f"{u!r},{v!r},{'yes' if w < 0.4 else 'no'}" for u, v, w in rng.random((n, 3)).tolist()
    ]
    with open("table.csv", "w") as file:
        file.write("\n".join(lines) + "\n")
    return Csv(
        path="table.csv", target="label", labels={"yes": 1, "no": -1}, bounds=[[0, 1], [0, 1]]
    )


def write_npz(n=83, p=4):
    rng = np.random.default_rng(1)
    np.savez("records.npz", x=rng.standard_normal((n, p)), y=rng.random(n))
    return Npz(
        path="records.npz", task="regression", target_bounds=[0, 1], rows="clip", row_bound=2.0
    )


MAKERS = {
    "csv": write_csv,
    "npz": write_npz,
    "no test records": lambda: SyntheticLogistic(n=301, p=7, n_test=0),
    "test records": lambda: SyntheticLogistic(n=50, p=3, n_test=20),
}


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def check_equal(first, second):
    for name in ("x", "y", "x_test", "y_test", "names", "minimiser"):
        one, other = getattr(first, name), getattr(second, name)
        assert (one is None) == (other is None), name
        if one is not None:
            assert one.dtype == other.dtype, name
            assert one.tobytes() == other.tobytes(), name
    facts = [
        "name",
        "task",
        "row_bound",
        "target_bound",
        "fingerprint",
        "preprocessing",
        "classes",
        "split",
    ]
    for name in (*facts, "split"):
        assert getattr(first, name) == getattr(second, name), name
    assert first.identity == second.identity


@pytest.mark.parametrize("kind", MAKERS)
def test_it_holds_the_records_that_the_data_set_loads(kind, tmp_path, monkeypatch):
    monkeypatch.setattr("dperm_cli.datasets.generated.synthetic_logistic._PART", 40)
    monkeypatch.setattr("dperm_cli.problem.row_products._BLOCK_NUMBERS", 64)
    made = MAKERS[kind]()
    kept = store(made, tmp_path / "kept", "float64")
    check_equal(kept, made.load())
    check_equal(Stored(path="kept").load(), kept)
    assert not (tmp_path / "kept" / "unsplit").exists()


@pytest.mark.parametrize("kind", MAKERS)
def test_single_precision_shortens_rows_and_says_so(kind, tmp_path):
    made = MAKERS[kind]()
    kept, whole = store(made, tmp_path / "kept", "float32"), made.load()
    assert kept.x.dtype == np.float32
    assert kept.preprocessing == (*whole.preprocessing, ROUNDED)
    np.testing.assert_allclose(kept.x, whole.x, rtol=2.0**-23)
    assert np.all(np.abs(kept.x.astype(float)) <= np.abs(whole.x))
    assert np.all(row_norms(kept.x.astype(float)) <= whole.row_bound)
    assert np.array_equal(kept.names, whole.names)
    assert kept.fingerprint != whole.fingerprint
    again = store(made, tmp_path / "again", "float32")
    check_equal(kept, again)


def test_rounding_towards_zero_is_that():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.standard_normal(3000), 10.0 ** rng.uniform(-60, 30, 300), [0.0, 1.0]])
    rounded = round_towards_zero(x).astype(float)
    assert np.all(np.abs(rounded) <= np.abs(x))
    normal = np.abs(x) > 1e-37
    assert np.all(np.abs(rounded - x)[normal] <= 2.0**-23 * np.abs(x)[normal])


@pytest.mark.parametrize("loss", [Logistic(), Squared(), Multinomial()], ids=lambda one: one.name)
def test_everything_is_computed_in_doubles(loss, monkeypatch):
    """An optimum on rows of single precision is that on the same rows written as doubles."""
    monkeypatch.setattr("dperm_cli.problem.row_products._BLOCK_NUMBERS", 100)
    data = SyntheticLogistic(n=400, p=5, n_test=0).load()
    if loss.name == "multinomial":
        data = data.with_rows(data.x, task="multiclass", y=(data.y > 0) + 0.0, classes=2)
    single = data.with_rows(round_towards_zero(data.x))
    double = data.with_rows(single.x.astype(np.float64))
    p = loss.dimension(data.facts())
    problems = [Problem(one, loss, make_ball(2.0, p)) for one in (single, double)]
    found = [optimum.solve(one) for one in problems]
    assert found[0].converged
    # the order of sums decides where within its gap a solver stops
    assert found[0].value == pytest.approx(found[1].value, rel=1e-12, abs=found[0].gap)
    values = [float(one.objective(found[0].theta)) for one in problems]
    assert values[0] == pytest.approx(values[1], rel=1e-13)
    v = np.random.default_rng(3).standard_normal((5, 2))
    np.testing.assert_allclose(multiply_rows(single.x, v), double.x @ v, rtol=1e-14, atol=1e-15)
    w = np.random.default_rng(4).standard_normal(400)
    np.testing.assert_allclose(add_rows(single.x, w), double.x.T @ w, rtol=1e-12)


def run_json(capsys, *words):
    capsys.readouterr()
    code = cli.main(["run", "mechanism=noisy_gd", "mechanism.steps=5", "trials=2",
                     "constraint.radius=2", "format=json", *words])  # fmt: skip
    return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_run_on_the_folder_is_that_on_the_data_set(capsys):
    keys = ["dataset.n=90", "dataset.p=3", "dataset.n_test=0"]
    assert cli.main(["data", "store", "synthetic_logistic", *keys, "to=kept"]) == 0
    assert capsys.readouterr().out == "kept: 90 records, 3 columns, float64\n"
    code, [first] = run_json(capsys, "dataset=synthetic_logistic", *keys, "out=one")
    assert code == 0
    code, [second] = run_json(capsys, "dataset=stored", "dataset.path=kept", "out=two")
    assert code == 0
    differ = {key for key in first if first[key] != second[key]}
    assert differ <= {"cell", "overrides", "seconds"} | {k for k in first if "second" in k}
    assert (
        cli.main(["data", "store", "synthetic_logistic", *keys, "to=f", "precision=float32"]) == 0
    )
    code, [third] = run_json(capsys, "dataset=stored", "dataset.path=f", "out=three")
    assert code == 0
    assert third["excess_risk_median"] != second["excess_risk_median"]
    assert third["optimum"] == pytest.approx(second["optimum"], rel=1e-6)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["csv", "to=here"], "dataset.path"),
        (["synthetic_logistic"], "to: has to be given"),
        (["synthetic_logistic", "to=there", "precision=single"], "precision=single"),
        (["synthetic_logistic", "to=there", "dataset.m=3"], "dataset.m"),
        (["zipf_regression", "to=there", "precision=float32"], "is for dense rows"),
        (["synthetic_logistic", "to=taken"], "to=taken: exists"),
    ],
)
def test_bad_words_are_one_line_and_leave_nothing(words, told, capsys):
    os.mkdir("taken")
    assert cli.main(["data", "store", *words]) == 2
    said = capsys.readouterr()
    assert told in said.err
    assert said.err.count("\n") == 1
    assert os.listdir() == ["taken"]


def test_what_is_no_folder_of_ours_is_refused(tmp_path):
    with pytest.raises(InputError, match="dperm data store"):
        Stored(path="nowhere").load()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "facts.json").write_text("{")
    with pytest.raises(InputError, match=r"dataset.path"):
        Stored(path="broken").load()


def test_a_full_disk_leaves_no_folder(tmp_path, monkeypatch):
    def refuse(*_args, **_more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(block_stage.np, "memmap", refuse)
    with pytest.raises((StorageError, OSError), match=r"(?i)no space left"):
        store(SyntheticLogistic(n=10, p=2, n_test=0), tmp_path / "kept", "float64")
    assert not (tmp_path / "kept").exists()
