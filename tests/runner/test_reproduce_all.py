"""Every experiment in turn, the verdicts that are kept, and the page that is made of them."""

from __future__ import annotations

import json
import re
import sys
import types
from pathlib import Path

import pytest
import yaml

from dperm_cli.core import catalogue
from dperm_cli.core.errors import EXIT_STORAGE, DpermError, InputError, StorageError
from dperm_cli.results.records.store import Store
from dperm_cli.runner.studies import experiment_file, freshness, verdict_files
from dperm_cli.runner.verbs import reproduce, reproduce_all

ROOT = Path(__file__).resolve().parents[2]
TINY = {
    "base": {"dataset": "median_cloud", "dataset.p": 2, "dataset.n": 10, "mechanism": "noisy_gd",
             "mechanism.steps": 5},
    "trials": 2,
    "parts": {"grid": {"axes": {"epsilon": [1, 2]}}},
    "plot": [{"part": "grid", "x": "epsilon"}],
}  # fmt: skip


def tiny(name, expect):
    claim = {"id": "size", "text": "t", "theorem": "x", "kind": "value", "quantity": "n",
             "axis": "epsilon", "expect": expect}  # fmt: skip
    return {**TINY, "name": name, "claims": [claim]}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Three experiments: one that holds, one that does not, one whose data are not here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPERM_DATA_DIR", raising=False)
    monkeypatch.setenv("DPERM_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "mine" / "experiment").mkdir(parents=True)
    made = {"a_holds": tiny("a_holds", 10), "b_wrong": tiny("b_wrong", 11)}
    made["c_absent"] = {**tiny("c_absent", 10), "base": {"dataset": "reuters_moneyfx"}}
    for name, data in made.items():
        (tmp_path / "mine" / "experiment" / f"{name}.yaml").write_text(yaml.safe_dump(data))
    known = types.SimpleNamespace(choices=lambda group: made)
    monkeypatch.setattr(reproduce_all, "catalogue", known)
    return tmp_path


def run(*words):
    return reproduce_all.reproduce_experiments(["all", "--config-dir", "mine", *words])


def files(out: Path) -> dict[Path, tuple[int, bytes]]:
    found = (path for path in out.rglob("*") if path.is_file())
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in found}


def test_all_of_them_run_whatever_one_says(folder, capsys):
    code = run()
    text = capsys.readouterr().out
    assert code == 1
    summary = [line.split() for line in text.splitlines()[-4:]]
    assert summary[0][:3] == ["experiment", "confirmed", "refuted"]
    assert summary[1][:3] == ["a_holds", "1", "0"]
    assert summary[2] == ["b_wrong", "0", "1", "0", "0", "0", "0", "0", "size"]
    assert summary[3][:2] == ["c_absent", "-"]
    assert "data: " in " ".join(summary[3])
    assert sorted(path.name for path in (folder / "outputs").iterdir()) == ["a_holds", "b_wrong"]


def read_tables(found: dict[Path, tuple[int, bytes]], out: Path) -> dict[str, bytes]:
    """What was written but for the records, which hold how long it took."""
    named = {path.relative_to(out).as_posix(): data for path, (_, data) in found.items()}
    return {name: data for name, data in named.items() if not name.endswith(".parquet")}


@pytest.mark.skipif(sys.platform != "linux", reason="no pool elsewhere")
def test_workers_share_the_experiments_at_small_size(folder, capsys):
    assert run() == 1
    alone, here = capsys.readouterr().out, files(folder / "outputs")
    assert run("workers=2", "out=shared") == 1
    assert capsys.readouterr().out == alone
    there = files(folder / "shared")
    assert read_tables(there, folder / "shared") == read_tables(here, folder / "outputs")
    assert run("workers=2", "out=shared") == 1  # is looked up
    assert capsys.readouterr().out == alone
    again = files(folder / "shared")
    assert {path: data for path, (_, data) in again.items()} == {
        path: data for path, (_, data) in there.items()
    }


@pytest.mark.parametrize("workers", [1, 2])
def test_a_full_disk_ends_them_all(folder, monkeypatch, workers):
    def fill(*asked, **how):
        raise StorageError("outputs: No space left on device")

    monkeypatch.setattr(reproduce, "carry_out", fill)
    with pytest.raises(DpermError, match="No space left") as raised:
        run(f"workers={workers}")
    assert raised.value.exit_code == EXIT_STORAGE


def test_absent_data_alone_are_no_failure(folder, capsys):
    (folder / "mine" / "experiment" / "b_wrong.yaml").write_text(
        yaml.safe_dump(tiny("b_wrong", 10))
    )
    assert run("format=json") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["experiment"], row["confirmed"], row["code"]) for row in rows] == [
        ("a_holds", 1, 0), ("b_wrong", 1, 0), ("c_absent", 0, 0)]  # fmt: skip


def test_a_fault_in_one_file_does_not_stop_the_others(folder, capsys):
    (folder / "mine" / "experiment" / "a_holds.yaml").write_text("name: a_holds\nparts: {}\n")
    assert run() == 1
    out = capsys.readouterr().out
    assert "== b_wrong" in out
    assert "a_holds" in out.splitlines()[-3]


def test_a_second_call_computes_and_draws_nothing(folder, capsys, monkeypatch):
    run("verdicts=kept")
    before = files(folder / "outputs" / "a_holds")
    drawn = []
    whole = reproduce.write_report
    monkeypatch.setattr(
        reproduce, "write_report", lambda out, **k: drawn.append(out) or whole(out, **k)
    )
    assert run("verdicts=kept") == 1
    assert drawn == []
    after = files(folder / "outputs" / "a_holds")
    # the manifest alone is written again
    changed = {path.name for path in before if after[path] != before[path]}
    assert changed <= {"manifest.json"}
    assert {p: data for p, (_, data) in after.items()} == {p: d for p, (_, d) in before.items()}
    # what somebody spoilt, or what has other verdicts, is made again
    out = folder / "outputs" / "a_holds"
    table = (out / "table.csv").read_bytes()
    (out / "table.csv").write_text("spoilt")
    run()
    assert drawn == [Path("outputs/a_holds")]
    assert (out / "table.csv").read_bytes() == table
    (out / "records" / f"{Store(out).cells()[0]}.parquet").unlink()
    run()
    assert len(drawn) == 1 or drawn == [Path("outputs/a_holds")] * 2
    assert len(Store(out).cells()) == 2


def test_a_note_of_nonsense_is_not_fresh(tmp_path):
    inputs = freshness.digest_inputs(tmp_path, b"")
    files = ({"..": None}, {"../a": None}, {"": None}, {"/etc": None}, {"a\0": None}, [5], "a")
    notes = [json.dumps({"files": each, "inputs": inputs}).encode() for each in files]
    (tmp_path / "records").mkdir()
    notes.append(json.dumps({"files": {"records": None}, "inputs": inputs}).encode())
    for data in (b"", b"[]", b"{", b"[" * 100_000, b'{"files": 1, "inputs": 2}', *notes):
        (tmp_path / freshness.NOTE).write_bytes(data)
        assert not freshness.is_fresh(tmp_path, b"")


def test_verdicts_are_kept_by_size(folder, capsys):
    run("verdicts=kept")
    run("size=full", "verdicts=kept")
    found = json.loads((folder / "kept" / "b_wrong" / "verdicts.json").read_text())
    assert sorted(found["sizes"]) == ["full", "small"]
    assert found["sizes"]["small"]["claims"]["size"]["verdict"] == "refuted"
    assert found["sizes"]["small"]["claims"]["size"]["measured"][0].endswith("(does not)")
    assert not (folder / "kept" / "c_absent").exists()


@pytest.mark.parametrize("data", ["x", "[]", "{}", '{"sizes": {"huge": {}}}', '{"sizes": []}'])
def test_a_file_that_holds_no_verdicts_is_named(tmp_path, data):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / verdict_files.FILE).write_text(data)
    with pytest.raises(InputError, match="is no file of verdicts"):
        verdict_files.read(tmp_path, "a")


def test_the_page_in_the_documentation_is_made_of_the_files_that_are_kept(tmp_path, capsys):
    page = tmp_path / "claims.md"
    assert reproduce_all.reproduce_experiments(["claims", f"out={page}"]) == 0
    assert page.read_text() == (ROOT / "docs" / "claims.md").read_text(), "run `make claims`"
    reproduce_all.reproduce_experiments(["claims"])
    assert capsys.readouterr().out == page.read_text()


def test_the_page_has_every_claim_and_no_other():
    text = (ROOT / "docs" / "claims.md").read_text()
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", text, re.M | re.S))
    assert "small size" in sections.pop("Checklist")
    assert sorted(sections) == sorted(catalogue.choices("experiment"))
    for name, section in sections.items():
        filed = yaml.safe_load((ROOT / "experiments" / name / "claims.yaml").read_text())["claims"]
        assert re.findall(r"^\| `(\w+)`: ", section, re.M) == [claim["id"] for claim in filed]
        for claim in experiment_file.load(name, "small").claims:
            assert (f"`{claim.id}` is expected to fail" in section) == (claim.expected == "fails")
