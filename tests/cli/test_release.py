"""``dperm release``: one model from one's own table, and nothing beside it that says more."""

from __future__ import annotations

import csv
import importlib.util
import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dperm_cli import cli
from dperm_cli.privacy.accounting import gaussian_profile
from dperm_cli.privacy.accounting.group_privacy import (
    budget_for_record,
    guarantee_for_person,
    sum_of_steps,
)
from dperm_cli.privacy.budget import Budget, Guarantee
from dperm_cli.runner.cells import run_cell
from dperm_cli.runner.models import model_file, release_folder
from dperm_cli.runner.verbs import release as releasing

ROOT = Path(__file__).resolve().parents[2]
NUMBERS = "age,weight,sex,sick\n"
SCHEMA = """\
target: {column: sick, kind: label, classes: [no, yes]}
columns:
  age: {kind: number, bounds: [0, 100]}
  weight: {kind: number, bounds: [0, 200], missing: drop}
  sex: {kind: category, values: [f, m], missing: zero}
"""
PERSONS = "unit: {column: sex, at_most: 3}\n" + SCHEMA.replace(
    "  sex: {kind: category, values: [f, m], missing: zero}\n", ""
)
THREE = SCHEMA.replace("[no, yes]", "[no, yes, perhaps]")
COST = """\
target: {column: sick, kind: number, bounds: [1, 1000], transform: log}
columns:
  age: {kind: number, bounds: [0, 100]}
  weight: {kind: drop}
  sex: {kind: identifier}
"""


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPERM_CACHE_DIR", str(tmp_path / "cache"))
    Path("s.yaml").write_text(SCHEMA)


@pytest.fixture
def _short(monkeypatch):
    """Releases without their statements, which take most of the time of a small one."""
    monkeypatch.setattr(releasing, "STATEMENTS", {})


def records(count=300):
    rng = np.random.default_rng(3)
    age, weight = rng.integers(0, 100, count), rng.integers(40, 120, count)
    sick = age + rng.normal(0, 20, count) > 50
    return [
        f"{a},{w},{'fm'[k]},{'yes' if s else 'no'}"
        for a, w, k, s in zip(age, weight, rng.integers(0, 2, count), sick, strict=True)
    ]


def write(name="t.csv", lines=None):
    Path(name).write_text(NUMBERS + "\n".join(records() if lines is None else lines) + "\n")


def release(capsys, *words, table="t.csv", schema="s.yaml"):
    if not any(word.startswith("epsilon=") for word in words):
        words = ("epsilon=1", *words)
    code = cli.main(["release", table, schema, *words])
    said = capsys.readouterr()
    return code, said.out, said.err


def read_folder(folder):
    files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_one_release_leaves_a_model_its_card_and_its_ledger(capsys):
    write()
    code, out, err = release(capsys, "epsilon=2", "out=here", "format=json")
    assert code == 0
    (told,) = map(json.loads, out.splitlines())
    assert told["epsilon"] == pytest.approx(2.0)
    assert told["noise"] == "secure"
    documents = {"statement.html", "statement.pdf"}
    assert set(read_folder("here/release")) == {"model.npz", "ledger.json", "card.md"} | documents
    ledger = json.loads(Path("here/release/ledger.json").read_text())
    assert ledger["epsilon"] <= 2.0
    assert ledger["mechanism"] == told["mechanism"] != "auto"
    found = model_file.read("here/release/model.npz")
    assert found.schema.columns == ("age", "age=missing", "weight", "sex=f", "sex=m", "sex=other",
                                    "constant")  # fmt: skip
    diagnostics = json.loads(Path("here/private/diagnostics.json").read_text())
    assert diagnostics["excess_risk"] >= -diagnostics["optimum_gap"]
    assert diagnostics["note"] == release_folder.NOTE
    assert "dperm predict here/release/model.npz" in err


def test_a_kernel_is_released_and_its_holder_is_told_how_good_it_is(capsys):
    """The figures of every release with a kernel were an error, which nobody saw."""
    write()
    np.save("z.npy", np.random.default_rng(0).standard_normal((4, 7)))
    own = ("kernel=rbf", "kernel.queries=z.npy", "mechanism=kernel_release", "ridge=0.1")
    code, _, err = release(capsys, *own, "out=here")
    assert code == 0, err
    assert json.loads(Path("here/release/ledger.json").read_text())["mechanism"] == "kernel_release"
    diagnostics = json.loads(Path("here/private/diagnostics.json").read_text())
    assert diagnostics["excess_risk"] >= -diagnostics["optimum_gap"]
    assert diagnostics["records"] == len(records())


@pytest.mark.usefixtures("_short")
def test_another_release_is_asked_for_counted_and_kept_apart(capsys):
    write()
    assert release(capsys, "out=here", "diagnostics=false")[0] == 0
    before = read_folder("here")
    code, out, err = release(capsys, "out=here")
    assert (code, out) == (2, "")
    assert "again=true" in err
    assert read_folder("here") == before
    assert release(capsys, "out=here", "again=true", "diagnostics=false")[0] == 0
    after = read_folder("here")
    assert {name: after[name] for name in before if name != "private/releases.log"} == {
        name: content for name, content in before.items() if name != "private/releases.log"
    }
    assert after["release-2/model.npz"] != after["release/model.npz"]  # fresh noise
    assert len(after["private/releases.log"].splitlines()) == 2


def test_a_release_that_died_counts(capsys, monkeypatch):
    write()

    def die(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(run_cell, "read_points", die)
    assert release(capsys, "out=here")[0] == 130
    code, _, err = release(capsys, "out=here")
    assert code == 2
    assert "a release was made into it" in err


@pytest.mark.parametrize("schema", [SCHEMA, PERSONS, THREE, COST], ids=["two", "persons", "three",
                                                                       "cost"])  # fmt: skip
@pytest.mark.parametrize(
    "other",
    ["", "99,199,m,yes", "1e308,-1e308,x,no", ",,,", "no,such,cells,here", "a,b", '"open,1,f,yes',
     "5,60,f,maybe", "0,0,f,\x00", "50,80,f,7.5"],
)  # fmt: skip
@pytest.mark.usefixtures("_short")
def test_neighbouring_tables_give_the_same_bytes_where_the_point_is_the_same(
    schema, other, capsys, monkeypatch
):
    """Everything that leaves, with the released point held fixed: noise could give it."""
    compare_neighbours(schema, other, capsys, monkeypatch)


@pytest.mark.parametrize("schema", [SCHEMA, PERSONS])
def test_statements_on_neighbouring_tables_are_the_same(schema, capsys, monkeypatch):
    compare_neighbours(schema, "99,199,m,yes", capsys, monkeypatch)


def compare_neighbours(schema, other, capsys, monkeypatch):
    Path("s.yaml").write_text(schema)
    # the places of records stay: an empty line would be no record
    replaced = [other or ",,,", *records()[1:]]

    def hold_still(mechanism, released, trials, held):
        return np.full((trials, held.p), 0.01)

    monkeypatch.setattr(run_cell, "read_points", hold_still)
    seen = []
    for lines in (records(), replaced):
        write(lines=lines)
        said = release(capsys, "out=here", "diagnostics=false")
        seen.append((said, read_folder("here")))
        shutil.rmtree("here")
    assert seen[0] == seen[1]
    assert seen[0][0][0] == 0


@pytest.mark.usefixtures("_short")
def test_under_add_remove_no_file_knows_the_number_of_records(capsys, monkeypatch):
    monkeypatch.setattr(run_cell, "read_points", lambda *given: np.full((1, given[3].p), 0.01))
    seen = []
    for count in (300, 150):
        write(lines=records()[:count])
        words = ["privacy.relation=add_remove", "privacy.population=400", "out=here"]
        said = release(capsys, *words, "diagnostics=false")
        seen.append((said, read_folder("here")))
        shutil.rmtree("here")
    assert seen[0] == seen[1]
    assert seen[0][0][0] == 0
    write()
    assert "declare privacy.population" in release(capsys, "privacy.relation=add_remove")[2]


@pytest.mark.usefixtures("_short")
def test_predictions_are_those_of_the_encoded_table(capsys):
    write()
    assert release(capsys, "out=here", "epsilon=5")[0] == 0
    Path("new.csv").write_text("note,sex,weight,age\nx,f,60,20\ny,m,80,99\nz,m,,50\n")
    assert cli.main(["predict", "here/release/model.npz", "new.csv"]) == 0
    lines = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [line["label"] for line in lines] == ["no", "yes", ""]  # a weight is missing: drop
    found = model_file.read("here/release/model.npz")
    row = np.array([[2 * 0.2 - 1, 0, 2 * 0.3 - 1, 1, 0, 0, 1.0]])
    score = float((row / np.linalg.norm(row) @ found.theta)[0])
    assert float(lines[0]["score"]) == pytest.approx(score, rel=1e-12)
    assert float(lines[0]["probability=yes"]) == pytest.approx(1 / (1 + math.exp(-score)))


_PREDICT = """
import sys
from dperm_cli.cli import main
assert main(["predict", "here/release/model.npz", sys.argv[1], "out=" + sys.argv[2]]) == 0
# not ru_maxrss: where a process is forked, that has what the one that forks it holds
with open("/proc/self/status") as file:
    (peak,) = (int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM"))
print(peak)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
@pytest.mark.usefixtures("_short")
def test_memory_of_predictions_does_not_grow_with_the_file(capsys):
    """Ten times as many rows, which alone would take 10 MiB more as they are encoded."""
    write()
    assert release(capsys, "out=here", "mechanism=output_perturbation", "ridge=0.1")[0] == 0
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    peaks = {}
    for count in (20_000, 200_000):
        write(f"{count}.csv", records(count))
        for ending in ("csv", "parquet"):
            words = [f"{count}.csv", f"predicted.{ending}"]
            done = subprocess.run(
                [sys.executable, "-c", _PREDICT, *words],
                capture_output=True, text=True, env=env, check=True,
            )  # fmt: skip
            assert f"{count} predictions" in done.stderr
            peaks[count, ending] = int(done.stdout)
    for ending in ("csv", "parquet"):
        assert peaks[200_000, ending] - peaks[20_000, ending] < 8 << 20, peaks


@pytest.mark.usefixtures("_short")
def test_epsilon_holds_for_all_records_of_a_person(capsys):
    write()
    Path("s.yaml").write_text(PERSONS)
    assert release(capsys, "out=here", "epsilon=3", "delta=1e-6")[0] == 0
    ledger = json.loads(Path("here/release/ledger.json").read_text())
    assert ledger["records_per_person"] == 3
    assert ledger["epsilon_of_one_record"] <= 1.0
    assert ledger["epsilon"] == pytest.approx(3 * ledger["epsilon_of_one_record"])
    assert ledger["delta"] <= 1e-6
    assert (
        "for a person with at most 3 records" in model_file.read("here/release/model.npz").level()
    )


@pytest.mark.parametrize("size", [1, 2, 7])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (8.0, 1e-9), (0.01, 0.0)])
def test_a_group_costs_what_its_steps_sum_to(size, epsilon, delta):
    one = budget_for_record(Budget(epsilon, delta), size)
    kind = "approx" if delta else "pure"
    found = guarantee_for_person(
        Guarantee(kind, one.epsilon, one.delta, "replace_one", "test"), size
    )
    assert found.epsilon <= epsilon * (1 + 1e-12)
    assert found.delta <= delta
    assert found.delta == pytest.approx(delta, rel=1e-9)
    assert sum_of_steps(one.epsilon, size) == pytest.approx(
        sum(math.exp(i * one.epsilon) for i in range(size))
    )


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (["trials=3"], "trials=3"), (["noise=research"], "noise=research"),
        (["dataset.test_fraction=0.5"], "dataset.test_fraction=0.5"),
        (["epsilon=[1,2]"], "release=2 cells"),
        (["again=yes"], "again=yes"), (["out=t.csv"], "out=t.csv"), (["epsilon=-1"], "epsilon=-1"),
        (["mechanism=non_private"], "save=non_private"), (["budgt=x"], "budgt: unknown key"),
        (["extra.csv"], "release="), (["epsilon=1", "epsilon=5"], "epsilon=5: was typed before"),
        (["out=a", "out=b"], "out=b: was typed before"),
        (["evalute=0.2"], "evalute: unknown key (did you mean 'evaluate'?)"),
    ],
)  # fmt: skip
def test_bad_words_are_refused_and_leave_nothing(words, key, capsys):
    write()
    before = sorted(path.name for path in Path.cwd().iterdir() if path.name != "cache")
    code, out, err = release(capsys, *words)
    assert (code, out) == (2, "")
    assert err.startswith(f"dperm: {key}")
    assert err.count("\n") == 1
    assert sorted(path.name for path in Path.cwd().iterdir() if path.name != "cache") == before


def test_a_release_spends_what_somebody_said(capsys):
    write()
    assert cli.main(["release", "t.csv", "s.yaml", "out=here"]) == 2
    assert capsys.readouterr().err.startswith("dperm: epsilon: is not given")
    assert not Path("here").exists()


@pytest.mark.usefixtures("_short")
def test_what_is_wrong_is_told_before_another_release_is_offered(capsys):
    """Nobody is led to ``again=true`` by a line that would have been refused anyway."""
    write()
    assert release(capsys, "out=here", "diagnostics=false")[0] == 0
    for word in ("epsilon=-1", "delta=2", "evalute=0.2", "evaluate=2", "loss=squard"):
        code, _, err = release(capsys, "out=here", word)
        assert (code, "again=true" in err) == (2, False), err
    assert "again=true" in release(capsys, "out=here")[2]


@pytest.mark.usefixtures("_short")
def test_a_large_delta_is_said_and_a_small_one_is_not(capsys):
    write("small.csv", records(30))
    err = release(capsys, "out=a", "diagnostics=false", table="small.csv")[2]
    assert "delta=0.00111 is large for 30 records" in err
    write()
    assert "is large" not in release(capsys, "out=b", "diagnostics=false")[2]


@pytest.mark.parametrize(("n", "enough"), [(30, "1e-06"), (10**6, "1e-08")])
def test_the_delta_that_is_advised_is_not_large_itself(n, enough, capsys):
    releasing.warn_of_delta(0.1, n)
    assert f"say delta={enough} or less" in capsys.readouterr().err
    releasing.warn_of_delta(float(enough), n)
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("_short")
@pytest.mark.parametrize(("classes", "zero"), [("[no, yes]", 0), ("[No, Yes]", 300)])
def test_the_holder_is_told_that_no_record_could_be_used(classes, zero, capsys):
    write()
    Path("s.yaml").write_text(SCHEMA.replace("[no, yes]", classes))
    assert release(capsys, "out=here")[0] == 0
    [kept] = Path("here/private").glob("diagnostics*.json")
    found = json.loads(kept.read_text())
    found = found.get("diagnostics", found)
    assert found["zero_records"] == zero
    assert ("warning" in found) == (zero > 0)


@pytest.mark.usefixtures("_short")
def test_a_table_may_have_any_name(capsys):
    write("epsilon=2 b.csv")
    assert release(capsys, "out=here", table="epsilon=2 b.csv")[0] == 0


def test_a_mechanism_without_a_secure_form_is_refused_by_name(capsys):
    write()
    code, out, err = release(capsys, "mechanism=regularized_exponential")
    assert (code, out) == (1, "")
    assert "unsupported" in err
    assert "use mechanism=approximate_minima_perturbation" in err  # the nearest that has one
    assert not Path("outputs").exists()


def test_a_draft_names_every_column(capsys):
    write()
    assert cli.main(["schema", "t.csv", "target=sick"]) == 0
    draft = capsys.readouterr().out
    Path("draft.yaml").write_text(draft)
    for name in ("age", "weight", "sex"):
        assert f"\n  {name}: {{kind: FILL_IN}}" in draft
    code, out, err = release(capsys, schema="draft.yaml")
    assert (code, out) == (2, "")
    assert "schema.target.classes=" in err
    assert cli.main(["schema", "t.csv", "target=sik"]) == 2
    assert "did you mean 'sick'" in capsys.readouterr().err


def load_generator():
    path = ROOT / "examples" / "make_hospital_table.py"
    spec = importlib.util.spec_from_file_location("make_hospital_table", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.usefixtures("_short")
@pytest.mark.parametrize("target", ["readmitted", "ward", "cost"])
def test_the_hospital_is_predicted_as_well_as_without_noise(target, capsys):
    """At epsilon 1, on 20,000 records: within 1.5 points of the optimum on the same encoding."""
    load_generator().main([".", "20000", target])
    code, *_ = release(capsys, "epsilon=1", "out=here", table="hospital.csv", schema="schema.yaml")
    assert code == 0
    found = json.loads(Path("here/private/diagnostics.json").read_text())
    lost = found["metric_of_the_optimum"] - found["metric_on_training_records"]
    assert lost <= (0.05 if target == "cost" else 0.015)
    assert found["metric_on_training_records"] > found["metric_of_the_baseline"] + 0.05


def test_a_group_costs_little_more_than_gaussian_noise_needs():
    one = budget_for_record(Budget(1.0, 1e-6), 3)
    exact = gaussian_profile.mu(1.0, 1e-6) / 3
    assert 1.0 <= exact / gaussian_profile.mu(one.epsilon, one.delta) <= 1.003


@pytest.mark.usefixtures("_short")
def test_a_model_is_verified_and_exported_without_data(capsys):
    write()
    assert release(capsys, "out=here", "epsilon=5", "diagnostics=false")[0] == 0
    model = "here/release/model.npz"
    assert cli.main(["verify", model]) == 0
    assert "recomputed from its events" in capsys.readouterr().out
    assert cli.main(["export", model]) == 0
    lines = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    found = model_file.read(model)
    assert [line["coordinate"] for line in lines] == list(found.schema.columns)
    assert [float(line["coefficient"]) for line in lines] == found.theta.tolist()
    assert lines[0]["unit"] == "[0, 100] scaled to [-1, 1]"
    assert lines[3]["unit"] == "1 where it holds"
    Path(model).write_bytes(b"no model")
    assert cli.main(["verify", model]) == 2
    assert cli.main(["export", model]) == 2


def test_saving_spends_one_release(capsys):
    words = ["mechanism=noisy_gd", "mechanism.steps=5", "save=m.npz", "out=study", "format=json"]
    assert cli.main(["run", *words]) == 0
    (row,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert row["trials"] == 1
