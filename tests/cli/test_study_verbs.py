"""``dperm status``, ``dperm merge`` and ``dperm verify``, and the keys of a sweep."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from dperm_cli.cli import main
from dperm_cli.core import completion
from dperm_cli.results.records.cell_claims import Claims
from dperm_cli.results.records.store import Store
from dperm_cli.results.records.study_lease import hold_lease
from dperm_cli.runner.cells import run_cell
from dperm_cli.runner.models import machine_file

BASE = ("dataset=synthetic_logistic", "dataset.n=30", "dataset.p=2", "trials=1",
        "mechanism=noisy_gd", "mechanism.steps=2")  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("made") / "a"
    assert main(["run", *BASE, "epsilon=[1,2,3]", f"out={out}"]) == 0
    return out


@pytest.fixture
def study(made, dperm, tmp_path):
    """A study of three cells in the folder ``a``."""
    return shutil.copytree(made, tmp_path / "a")


def records(folder: Path) -> dict[str, bytes]:
    store = Store(folder)
    return {name: store.path(name).read_bytes() for name in store.cells()}


def spoil(path: Path, at: int = 200) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(bytes(data))


def test_status_of_a_finished_study(dperm, study):
    done = dperm("status", "a")
    assert done.code == 0
    head, last = done.out.splitlines()
    assert head.endswith("3 cells, 3 done, 0 failed, 0 unsupported, 0 remaining")
    assert last.startswith("last record written")
    (found,) = dperm("status", "a", "format=json").rows
    assert (found["cells"], found["done"], found["remaining"], found["running"]) == (3, 3, 0, 0)
    assert found["seconds_since"] >= 0


def test_status_counts_everything_that_is_not_done(dperm, study, monkeypatch):
    store = Store(study)
    first, second, third = store.read_manifest()["cells"]
    row = store.read(first)[0]
    store.write(first, [{**row, "trial": None, "status": "failed", "reason": "out of luck"}])
    spoil(store.path(second))
    store.path(third).unlink()
    before = sorted(os.listdir(study))
    with Claims(study).claim(third):
        found = dperm("status", "a", "format=json").rows[0]
        words = dperm("status", "a").out
    names = ("done", "failed", "damaged", "remaining", "running")
    assert [found[name] for name in names] == [0, 1, 1, 2, 1]
    assert found["failures"][0]["cell"] == first
    assert found["failures"][0]["reason"] == "out of luck"
    assert "noisy_gd epsilon=1 tight on synthetic_logistic: out of luck" in words
    assert f"damaged: {Path('a') / 'records' / second}.parquet" in words
    with hold_lease(study):
        pass
    assert sorted(os.listdir(study)) == before


def test_a_study_is_found_by_its_name_under_outputs(dperm, tmp_path):
    assert dperm("run", *BASE, "out=outputs/mine").code == 0
    assert dperm("status", "mine").out == dperm("status", "outputs/mine").out


@pytest.mark.parametrize("verb", ["status", "verify"])
@pytest.mark.parametrize("words", [("nowhere",), ("empty",), (), ("a", "b"), ("a", "x=1")])
def test_what_is_no_study_is_one_line(dperm, tmp_path, verb, words):
    (tmp_path / "empty").mkdir()
    done = dperm(verb, *words)
    assert (done.code, len(done.err.splitlines())) in ((2, 1), (2, 0))
    assert os.listdir(tmp_path) == ["empty"]


def test_verify_passes_what_a_run_wrote(dperm, study):
    done = dperm("verify", "a")
    assert done.code == 0
    assert done.out == (
        "whole, recomputed: 3 records\n"
        "3 records whole, contents, ledger and table as they should be\n"
    )


def test_verify_names_a_damaged_file_with_code_3(dperm, study):
    path = next((study / "records").iterdir())
    spoil(path)
    done = dperm("verify", "a")
    assert done.code == 3
    assert done.out == f"damaged: {Path('a') / 'records' / path.name}\n"
    # the same run computes that record again, and all is well
    assert dperm("run", *BASE, "epsilon=[1,2,3]", "out=a").code == 0
    assert dperm("verify", "a").code == 0


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (slice(1), "has 1 cell whose record is not there"),
        (slice(None), "has 3 cells whose records are not there"),
    ],
)
def test_verify_names_records_that_were_deleted(names, words, dperm, study):
    for cell in Store(study).cells()[names]:
        Store(study).path(cell).unlink()
    done = dperm("verify", "a")
    assert done.code == 1
    assert words in done.out


def test_verify_of_no_record_is_no_success(dperm, study):
    for cell in Store(study).cells():
        Store(study).path(cell).unlink()
    for name in ("table.csv", "ledger.json"):
        (study / name).unlink()
    done = dperm("verify", "a")
    assert done.code == 1
    assert "holds no record that could be checked; 3 cells have none yet" in done.out


def claimed(study: Path) -> str:
    store = Store(study)
    name = store.cells()[0]
    store.write(name, [{**row, "epsilon_accounted": 0.1} for row in store.read(name)])
    return "its events give"


def renamed(study: Path) -> str:
    store = Store(study)
    one, other = store.cells()[:2]
    shutil.copy(store.path(one), store.path(other))
    return "holds another cell's rows"


def table(study: Path) -> str:
    path = study / "table.csv"
    path.write_text(path.read_text().replace("noisy_gd", "noisy_sgd", 1))
    return "is not the table of these records"


def ledger(study: Path) -> str:
    path = study / "ledger.json"
    path.write_text(path.read_text().replace('"trials": 1', '"trials": 2', 1))
    return "ledger.json"


def digest(study: Path) -> str:
    """A record whose checksum fits and whose rows are not those it was digested of."""
    from dperm_cli.results import record_format as module

    store = Store(study)
    name = store.cells()[0]
    rows = store.read(name)
    whole, module._digest_stable = module._digest_stable, lambda _: "0" * 64
    try:
        store.write(name, rows)
    finally:
        module._digest_stable = whole
    return "not those of its content digest"


@pytest.mark.parametrize("change", [claimed, renamed, table, ledger, digest])
def test_verify_finds_what_contradicts_the_records_with_code_1(dperm, study, change):
    words = change(study)
    done = dperm("verify", "a")
    assert done.code == 1
    assert words in done.out
    assert done.out.startswith("contradicts: ")


def test_merged_halves_are_the_whole(dperm, study):
    for name, epsilons in (("one", "[1,2]"), ("two", "[2,3]")):
        assert dperm("run", *BASE, f"epsilon={epsilons}", f"out={name}").code == 0
    before = records(Path("one"))
    done = dperm("merge", "one", "two", "out=both")
    assert done.code == 0
    assert "3 records of 2 studies" in done.err
    # of the cell that both have, the first one's record
    assert records(Path("both")).items() >= before.items()
    assert Path("both/table.csv").read_bytes() == (study / "table.csv").read_bytes()
    assert dperm("verify", "both").code == 0
    found = json.loads(Path("both/manifest.json").read_text())
    assert [part["folder"] for part in found["merged"]] == ["one", "two"]
    # again, as after a merge that was cut short
    assert dperm("merge", "one", "two", "out=both").code == 0
    assert records(Path("one")) == before


def test_a_merge_keeps_which_machine_was_given_which_records(dperm, study):
    """Of every record that is taken, from the study that it is taken from."""
    shutil.copytree("a", "b")
    first, second, third = Store(study).cells()
    for folder, cells in (("a", (first, second)), ("b", (second, third))):
        for cell in cells:
            machine_file.note_cell(Path(folder), cell, {"from": folder})
    assert dperm("merge", "a", "b", "out=both").code == 0
    kept = json.loads(Path("both", machine_file.IN_STUDY).read_text())
    # all three are taken from the first study, which notes nothing of the third
    assert kept == {first: {"from": "a"}, second: {"from": "a"}}
    Store(study).path(first).unlink()
    assert dperm("merge", "a", "b", "out=other").code == 0
    kept = json.loads(Path("other", machine_file.IN_STUDY).read_text())
    assert kept == {second: {"from": "a"}}


def test_a_merge_without_machines_has_no_file_of_them(dperm, study):
    shutil.copytree("a", "b")
    assert dperm("merge", "a", "b", "out=both").code == 0
    assert not Path("both", machine_file.IN_STUDY).exists()


def test_a_merge_takes_a_result_before_a_failure(dperm, study):
    shutil.copytree("a", "b")
    store = Store("b")
    name = store.cells()[0]
    row = store.read(name)[0]
    store.write(name, [{**row, "trial": None, "status": "failed", "reason": "out of luck"}])
    assert dperm("merge", "b", "a", "out=c").code == 0
    assert Store("c").status(name) == "ok"


def test_a_merge_refuses_results_that_differ(dperm, study):
    shutil.copytree("a", "b")
    store = Store("b")
    name = store.cells()[1]
    store.write(name, [{**row, "excess_risk": 0.0} for row in store.read(name)])
    done = dperm("merge", "a", "b", "out=c")
    assert done.code == 2
    assert len(done.err.splitlines()) == 1
    assert f"{Path('a') / 'records' / name}.parquet" in done.err
    assert f"{Path('b') / 'records' / name}.parquet" in done.err
    assert not Path("c").exists()


def test_a_merge_refuses_a_damaged_record_that_is_nowhere_whole(dperm, study):
    shutil.copytree("a", "b")
    name = Store("a").cells()[0]
    spoil(Store("a").path(name))
    assert dperm("merge", "a", "b", "out=c").code == 0
    spoil(Store("b").path(name))
    done = dperm("merge", "a", "b", "out=d")
    assert (done.code, "is damaged" in done.err) == (3, True)
    assert not Path("d").exists()


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (("a", "a"), "out="),
        (("a", "out=c"), "STUDY=a"),
        (("a", "nowhere", "out=c"), "STUDY=nowhere"),
        (("a", "a", "out=c", "format=xml"), "format=xml"),
        (("a", "a", "--force", "out=c"), "option=--force"),
    ],
)
def test_bad_words_of_a_merge(dperm, study, words, key):
    done = dperm("merge", *words)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert f"dperm: {key}" in done.err
    assert not Path("c").exists()


@pytest.mark.parametrize("verb", ["status", "merge", "verify"])
def test_help_and_completion_know_the_verb(dperm, study, verb):
    done = dperm(verb, "--help")
    assert done.code == 0
    assert done.out.startswith(f"usage: dperm {verb}")
    os.mkdir("outputs")
    shutil.copytree("a", "outputs/mine")
    assert os.path.join("outputs", "mine") in completion.complete_words([verb, "--", ""], [])
    assert verb in dperm("--help").out


def test_a_failed_cell_gives_code_1_and_the_others_are_kept(dperm, tmp_path, monkeypatch):
    real = run_cell.run

    def run(item, *rest):
        return (
            run_cell.make_failed_rows(item, "on purpose")
            if item.cell.epsilon == 2
            else real(item, *rest)
        )

    monkeypatch.setattr(run_cell, "run", run)
    done = dperm("run", *BASE, "epsilon=[1,2,3]", "out=a")
    assert done.code == 1
    assert "failed: noisy_gd epsilon=2 tight on synthetic_logistic: on purpose" in done.err
    assert "3 cells: 2 done, 0 looked up, 1 failed, 0 unsupported, 0 remaining" in done.err
    stopped = dperm("run", *BASE, "epsilon=[2,4]", "out=b", "on_error=stop")
    assert stopped.code == 1
    assert "stopped at the first failure" in stopped.err
    assert "1 failed, 0 unsupported, 1 remaining" in stopped.err
    assert "unfinished: 1 of 2 cells have no record yet" in stopped.out


def test_how_a_study_is_run_does_not_change_its_cells(dperm):
    shown = {
        dperm("run", *BASE, *words, "--cfg", "job").out
        for words in ((), ("workers=2",), ("workers=auto", "on_error=stop"), ("slurm={cores: 2}",))
    }
    assert len(shown) == 1


@pytest.mark.parametrize("word", ["workers=0", "backend=ray", "on_error=maybe", "slurm={a: 1}"])
def test_bad_keys_of_a_sweep_leave_nothing(dperm, tmp_path, word):
    done = dperm("run", *BASE, word)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert os.listdir(tmp_path) == []
