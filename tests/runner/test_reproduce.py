"""Experiments as data: their files, their cells, and runs that are picked up again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from dperm_cli.core import catalogue, registry
from dperm_cli.core.errors import InputError
from dperm_cli.results.claims import experiment_tables as shown
from dperm_cli.results.records.store import Store
from dperm_cli.results.report import write_report
from dperm_cli.runner.cells.ledger_accountant import Accounting
from dperm_cli.runner.compose.composer import Composer
from dperm_cli.runner.studies import experiment_file
from dperm_cli.runner.verbs import reproduce, reproduce_all

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = sorted(catalogue.choices("experiment"))

TINY = {
    "name": "tiny",
    "base": {"dataset": "median_cloud", "dataset.p": 2, "mechanism": "noisy_gd",
             "mechanism.steps": 5},
    "trials": {"small": 2, "full": 3},
    "parts": {
        "grid": {"axes": {"dataset.n": {"small": [10, 20], "full": [10, 20, 40]},
                          "epsilon": [1, 2]}},
        "pairs": {"axes": {"size": [{"dataset.n": 30, "dataset.shift": [0.1, 0.2]},
                                    {"dataset.n": 60, "dataset.shift": 0.4}]}},
        "later": {"needs": ["no_such_mechanism"], "axes": {"mechanism": ["no_such_mechanism"]}},
    },
    "plot": [{"part": "grid", "x": "n", "curve": ["epsilon"], "lines": ["floor"], "slope": True}],
    "claims": [
        {"id": "grows", "text": "t", "theorem": "x", "kind": "value", "part": "grid", "axis": "n",
         "group": ["epsilon"], "quantity": "n", "expect": 0, "sense": "at_least"},
        {"id": "wrong", "text": "t", "theorem": "x", "kind": "value", "part": "grid",
         "where": {"n": 10, "epsilon": 1}, "quantity": "n", "expect": 11},
        {"id": "later", "text": "t", "theorem": "x", "kind": "value", "part": "later",
         "quantity": "n", "expect": 11},
    ],
}  # fmt: skip


def changed(**entries):
    return {**json.loads(json.dumps(TINY)), **entries}


def typed(size="small", **entries):
    return experiment_file.parse(changed(**entries), size)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working folder, with the tiny experiment in a user's own configuration folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine" / "experiment").mkdir(parents=True)
    (tmp_path / "mine" / "experiment" / "tiny.yaml").write_text(yaml.safe_dump(TINY))
    return tmp_path


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("size", ["small", "full"])
def test_shipped_experiments_are_whole(name, size):
    found = experiment_file.load(name, size)
    assert found.name == name
    assert found.claims
    assert (found.paper and found.text) != ""
    assert (ROOT / "experiments" / name / "README.md").read_text().startswith(f"# {name}")
    judged = [claim for claim in found.claims if size in claim.sizes]
    assert judged, "nothing is judged at this size"
    for part in found.parts:
        assert all(needed.islower() for needed in part.needs)


@pytest.mark.parametrize("size", ["small", "full"])
def test_cells_of_shipped_experiments_are_valid(size):
    """Every cell of every part that this version can run has valid keys and values.

    All experiments are one case, so that none is left to the night: cells of full size are run
    seldom, and a value that no data set allows was found only then.
    """
    composer, cells = Composer(), 0
    for name in SHIPPED:
        found = experiment_file.load(name, size)
        parts = [part for part in found.parts if part.find_reason() is None and found.verb == "run"]
        sizes = [len(reproduce.cells_of(part, composer)) for part in parts]
        assert all(sizes), name
        cells += sum(sizes)
    assert cells > 500


@pytest.mark.parametrize("name", SHIPPED)
def test_golden_tables_belong_to_their_experiments(name):
    path = ROOT / "experiments" / name / "table.csv"
    if not path.exists():
        pytest.skip("no golden table yet: the experiment has not been run in full")
    found = experiment_file.load(name, "small")
    head = path.read_text().splitlines()[0].split(",")
    assert head == (["part", *found.table] if found.table else list(shown.POINTS))


def test_axes_couple_keys_and_follow_the_size():
    grid, pairs, later = typed("full").parts
    cells = list(grid.cells())
    assert len(cells) == 6
    assert [c["dataset.n"] for c in cells] == [10, 10, 20, 20, 40, 40]
    assert {c["trials"] for c in cells} == {3}
    assert [(c["dataset.n"], c["dataset.shift"]) for c in pairs.cells()] == [
        (30, 0.1), (30, 0.2), (60, 0.4)]  # fmt: skip
    assert "no_such_mechanism" in str(later.find_reason())


def test_a_part_of_one_size_is_left_out_at_the_other():
    parts = {"a": {"axes": {"epsilon": [1]}}, "b": {"sizes": "full", "axes": {"epsilon": [2]}}}
    small, full = (typed(size, parts=parts, plot=[], claims=[]) for size in ("small", "full"))
    assert [part.find_reason() for part in small.parts] == [None, "runs at size=full"]
    assert [part.find_reason() for part in full.parts] == [None, None]


@pytest.mark.parametrize(
    ("entries", "key"),
    [
        ({"part": {}}, "experiment.part"),
        ({"verb": "walk"}, "experiment.verb"),
        ({"parts": {}}, "experiment.parts"),
        ({"parts": {"a": {"axis": {}}}}, "experiment.parts.a.axis"),
        ({"parts": {"a": {"axes": {"epsilon": []}}}}, "experiment.parts.a.axes.epsilon"),
        ({"parts": {"a": {"axes": {"epsilon": 1}}}}, "experiment.parts.a.axes.epsilon"),
        ({"parts": {"a": {"sizes": ["huge"]}}}, "experiment.parts.a.sizes"),
        ({"plot": [{"part": "none", "x": "n"}]}, "experiment.plot.part"),
        ({"plot": [{"x": "n", "colour": "red"}]}, "experiment.plot.0.colour"),
        ({"plot": [{"x": "n", "lines": ["flor"]}]}, "experiment.plot.0.lines"),
        ({"table": "n,", "base": []}, "experiment.base"),
        ({"table": ["part", "n"]}, "experiment.table"),
        ({"table": ["n", "n"]}, "experiment.table"),
        ({"parts": {"a": {"axes": {"n": list(range(400)), "p": list(range(400))}}}},
         "experiment.parts"),
    ],
)  # fmt: skip
def test_bad_files_are_named(entries, key):
    with pytest.raises(InputError) as caught:
        typed(**({"claims": [], "plot": []} | entries))
    assert caught.value.key == key


def test_a_settings_key_that_nothing_reads_is_refused():
    part = typed(parts={"a": {"axes": {"epsilom": [1]}}}, plot=[], claims=[]).parts[0]
    with pytest.raises(InputError, match="epsilom"):
        reproduce.cells_of(part, Composer())
    part = typed(parts={"a": {"base": {"out": "x"}}}, plot=[], claims=[]).parts[0]
    with pytest.raises(InputError, match="command line"):
        reproduce.cells_of(part, Composer())


def test_a_run_its_verdicts_and_its_files(folder, capsys):
    code = reproduce_all.reproduce_experiments(["tiny", "--config-dir", "mine"])
    text = capsys.readouterr().out
    assert code == 1  # one claim is wrong on purpose
    out = folder / "outputs" / "tiny"
    verdicts = {c["id"]: c for c in json.loads((out / "claims.json").read_text())["claims"]}
    assert [verdicts[k]["verdict"] for k in ("grows", "wrong", "later")] == [
        "confirmed", "refuted", "not judged"]  # fmt: skip
    assert "no_such_mechanism" in verdicts["later"]["note"]
    assert "refuted         wrong" in text
    names = {path.name for path in out.iterdir()}
    figures = {f"figure.{ending}" for ending in ("pdf", "svg", "png", "caption.md")}
    tables = {f"table.{ending}" for ending in ("csv", "md", "tex")}
    others = {"claims.json", "manifest.json", "ledger.json", "report.html", "records", "shown.json"}
    assert figures | tables | others == names
    assert len(Store(out).read_all()) == 14
    lines = (out / "table.csv").read_text().splitlines()
    assert lines[0] == ",".join(shown.POINTS)
    assert len(lines) == 5


def test_a_second_run_looks_everything_up_and_report_makes_the_same_files(folder, capsys):
    reproduce_all.reproduce_experiments(["tiny", "--config-dir", "mine"])
    out = folder / "outputs" / "tiny"
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    times = {path: path.stat().st_mtime_ns for path in (out / "records").iterdir()}
    reproduce_all.reproduce_experiments(["tiny", "--config-dir", "mine"])
    write_report(out, Accounting())
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert {path: path.stat().st_mtime_ns for path in (out / "records").iterdir()} == times
    next(iter(times)).unlink()
    reproduce_all.reproduce_experiments(["tiny", "--config-dir", "mine"])
    for name in ("table.csv", "claims.json", "figure.svg", "manifest.json"):
        assert (out / name).read_bytes() == before[out / name]


def test_a_manifest_of_nonsense_is_shown_as_a_plain_study(folder, capsys):
    reproduce_all.reproduce_experiments(["tiny", "--config-dir", "mine"])
    out = folder / "outputs" / "tiny"
    manifest = json.loads((out / "manifest.json").read_text())
    for nonsense in ([], {"parts": 1}, {**manifest["experiment"], "plot": [1]}, "x"):
        Store(out).write_manifest({**manifest, "experiment": nonsense})
        assert "noisy_gd" in write_report(out, Accounting(), figures=False).text


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (["no_such"], "experiment"),
        ([], "experiment"),
        (["leak", "bst14_table1"], "experiment"),
        (["leak", "size=huge"], "size"),
        (["leak", "trials=3"], "trials"),
        (["leak", "--fast"], "option"),
        (["leak", "out="], "out"),
        (["leak", "format=xml"], "format"),
        (["leak", "--config-dir", "nowhere"], "--config-dir"),
    ],
)
def test_bad_requests_leave_nothing_behind(words, key, folder):
    with pytest.raises(InputError) as caught:
        reproduce_all.reproduce_experiments(words)
    assert caught.value.key == key
    assert not (folder / "outputs").exists()


def test_planned_rows_say_that_nothing_was_released():
    found = experiment_file.load("bst14_accounting", "small")
    plans = reproduce.list_plans(found.parts[0], Composer())
    (row,) = next(iter(plans.values())).make_rows()
    assert row["status"] == "planned"
    assert row["epsilon_accounted"] == pytest.approx(0.0045944, rel=1e-4)
    assert row["mechanism"] in registry.names("mechanism")
