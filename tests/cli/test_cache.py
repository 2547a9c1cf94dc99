"""``dperm cache`` lists what is kept between runs, and clears what it was asked to, and no more."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dperm_cli import cli
from dperm_cli.core import cache_contents
from dperm_cli.core.cache_contents import CLEARED, KINDS
from dperm_cli.core.files import hold_lock
from dperm_cli.core.package_paths import CACHE_DIR

TINY = ("trials=1", "mechanism=noisy_gd", "mechanism.steps=2")
NOTE = f"{'a' * 32}.json"
ENTRIES = {  # a name of each kind, as dperm gives it
    "stored": f"{'1' * 20}-{'2' * 20}", "parsed": f"covtype1-{'3' * 64}.arrays",
    "optima": f"optimum-{'4' * 32}.npz", "configurations": NOTE, "figures": NOTE, "reports": NOTE,
    "numba": "loop.nbi", "downloads": "a9a.bz2", "peers": "opendp",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty cache folder, beside an empty working folder."""
    monkeypatch.setenv(CACHE_DIR, str(tmp_path / "cache"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "cache"


def fill(folder: Path) -> dict[str, Path]:
    """One entry of each kind, of ten bytes."""
    found = {}
    for kind in KINDS:
        entry = folder / kind.room / ENTRIES[kind.name]
        entry.parent.mkdir(parents=True, exist_ok=True)
        if kind.name in ("stored", "peers"):
            inside = entry / "unsplit" / "x.npy"
            inside.parent.mkdir(parents=True)
            inside.write_bytes(b"0" * 10)
        else:
            entry.write_bytes(b"0" * 10)
        found[kind.name] = entry
    return found


def read_rows(capsys, *words):
    code = cli.main(["cache", *words, "format=json"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return code, {row["kind"]: (row["files"], row["bytes"]) for row in rows}


def test_all_that_runs_keep_is_of_a_kind(folder, capsys):
    """A new room of the cache has to be entered in the table: nobody else would find it."""
    rng = np.random.default_rng(0)
    text = "\n".join(f"{a:.3f},{b:.3f},{int(a > b)}" for a, b in rng.uniform(size=(40, 2)))
    Path("rows.csv").write_text(f"a,b,label\n{text}\n")
    mine = ["dataset=csv", "dataset.path=rows.csv", "dataset.target=label"]
    mine += ["dataset.labels={1: 1, 0: -1}", "dataset.bounds=[0,1]", "data_storage=mapped"]
    # a process of its own: this one remembers what it has composed and digested
    words = [sys.executable, "-m", "dperm_cli", "run", *TINY, "out=first"]
    subprocess.run(words, check=True, capture_output=True)
    assert cli.main(["run", *TINY, *mine, "out=mapped"]) == 0
    kernel = ["kernel=rbf", "mechanism=kernel_interactive", "ridge=0.1", "dataset.n=30"]
    kernel += ["dataset=synthetic_logistic", "trials=1"]
    assert cli.main(["run", *kernel, "out=kernel"]) == 0
    found = {path for path in folder.rglob("*") if path.is_file()}
    known = {
        path
        for kind in KINDS
        for entry in cache_contents._list_entries(kind, folder)
        for path in cache_contents._list_files(entry)
    }
    assert [path for path in found - known if not path.name.endswith(".lock")] == []
    capsys.readouterr()
    code, rows = read_rows(capsys)
    assert code == 0
    used = {name for name, (files, _) in rows.items() if files}
    assert {"stored", "optima", "configurations", "figures", "reports", "parsed"} <= used
    assert cli.main(["cache", "clear=all"]) == 0
    assert not {path for path in folder.rglob("*") if path.is_file()} & known - {
        path for path in known if "numba" in path.parts
    }
    assert cli.main(["run", *TINY, *mine, "out=mapped"]) == 0


@pytest.mark.parametrize("kind", CLEARED)
def test_what_was_asked_for_goes_and_nothing_else(folder, capsys, kind):
    entries = fill(folder)
    before = read_rows(capsys)[1]
    assert before == dict.fromkeys(entries, (1, 10))
    assert read_rows(capsys, f"clear={kind}") == (0, {kind: (1, 10)})
    assert {name for name, entry in entries.items() if not entry.exists()} == {kind}
    assert read_rows(capsys)[1] == before | {kind: (0, 0)}
    assert read_rows(capsys, f"clear={kind}") == (0, {kind: (0, 0)})


def test_files_by_other_names_stay(folder, capsys):
    """The variable may name a home folder, with figures and downloads of its owner's."""
    fill(folder)
    own = [folder / kind.room / name for kind in KINDS if kind.name in CLEARED
           for name in ("thesis.json", "optimum.npz", f"{NOTE}.bak", "budget.csv")]  # fmt: skip
    for path in own:
        path.write_text("mine")
    assert read_rows(capsys, "clear=all")[0] == 0
    assert all(path.read_text() == "mine" for path in own)
    assert [row[0] for name, row in read_rows(capsys)[1].items() if name in CLEARED] == [0] * 6


def test_what_only_looks_like_an_entry_stays(folder, tmp_path, capsys):
    """Folders where files belong or that hold no records, a pipe, and a room that is a link."""
    away = tmp_path / "away"
    fill(away)
    mine = []
    for name in (f"optima/{ENTRIES['optima']}", "dperm-sources.json", f"reports/{NOTE}",
                 f"stored/{ENTRIES['stored']}", f"parsed-{'3' * 64}.arrays"):  # fmt: skip
        (folder / name).mkdir(parents=True)
        mine.append(folder / name / "thesis.txt")
        mine[-1].write_text("mine")
    (folder / "sources.json").write_text("mine too")
    os.mkfifo(folder / f"parsed-{'5' * 64}.arrays")
    (folder / "figures").symlink_to(away / "figures")
    code, _ = read_rows(capsys, "clear=all")
    assert code == 0
    assert [path.read_text() for path in mine] == ["mine"] * 5
    assert (folder / "sources.json").read_text() == "mine too"
    assert (folder / f"parsed-{'5' * 64}.arrays").is_fifo()
    assert (away / "figures" / NOTE).exists()


def test_a_cache_folder_that_is_a_file_is_one_line(folder, capsys):
    folder.write_text("a file")
    for words in ([], ["clear=all"]):
        assert cli.main(["cache", *words]) == 2
        said = capsys.readouterr().err
        assert "must be a folder" in said
        assert said.count("\n") == 1
    assert folder.read_text() == "a file"


def test_links_go_and_what_they_lead_to_stays(folder, tmp_path, capsys):
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "deep").mkdir(parents=True)
    (elsewhere / "deep" / "kept.npy").write_bytes(b"0" * 1000)
    entries = fill(folder)
    link = entries["stored"].with_name(f"{'5' * 20}-{'6' * 20}")
    link.symlink_to(elsewhere)
    (entries["stored"] / "inside").symlink_to(elsewhere)
    assert read_rows(capsys)[1]["stored"][0] == 3  # the file and both links
    assert cli.main(["cache", "clear=stored"]) == 0
    assert not os.path.lexists(link)
    assert not entries["stored"].exists()
    assert (elsewhere / "deep" / "kept.npy").exists()


def test_records_that_a_run_is_storing_stay(folder, capsys):
    entry = fill(folder)["stored"]
    with hold_lock(entry.parent / f".{'1' * 20}.lock", wait=True):
        assert cli.main(["cache", "clear=stored,figures"]) == 3
    told = capsys.readouterr()
    assert entry.exists()
    assert f"{entry}: is in use or cannot be removed, and stays" in told.err
    assert [line.split()[:2] for line in told.out.splitlines()[1:]] == [
        ["stored", "0"], ["figures", "1"]]  # fmt: skip
    assert cli.main(["cache", "clear=stored"]) == 0
    assert not entry.exists()


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("clear=stord", "clear=stord: must be stored, parsed, optima, configurations, figures, "
         "reports or all (did you mean 'stored'?)"),
        ("clear=peers", "clear=peers: is not cleared here: it is installed by"),
        ("clear=stored,", "clear=: must be stored"), ("clear", "clear=: needs a value"),
        ("size", "unknown key"), ("format=yaml", "format=yaml: must be"),
    ],
)  # fmt: skip
def test_bad_words_clear_nothing(folder, capsys, word, told):
    entries = fill(folder)
    assert cli.main(["cache", word]) == 2
    found = capsys.readouterr()
    assert found.out == ""
    assert told in found.err
    assert found.err.count("\n") == 1
    assert all(entry.exists() for entry in entries.values())


def test_two_lists_of_kinds_are_refused(folder, capsys):
    entries = fill(folder)
    assert cli.main(["cache", "clear=stored", "clear=parsed"]) == 2
    assert "clear=parsed: was typed before, as clear=stored" in capsys.readouterr().err
    assert all(entry.exists() for entry in entries.values())


def test_a_cache_that_is_not_there_is_empty(folder, capsys, monkeypatch):
    assert cli.main(["cache"]) == 0
    told = capsys.readouterr()
    assert [line.split()[:2] for line in told.out.splitlines()[1:]] == [
        [kind.name, "0"] for kind in KINDS
    ]
    assert told.err == f"cache folder: {folder}\n"
    assert not folder.exists()
    monkeypatch.setattr(cache_contents, "cache_dir", lambda: None)
    assert cli.main(["cache"]) == 3
    assert capsys.readouterr().err == f"dperm: there is no cache folder: set {CACHE_DIR}=FOLDER\n"


def test_what_a_killed_run_left_in_a_room_goes_with_the_next(folder):
    begun = [
        folder / room / f".{NOTE}.123-0a1b.tmp" for room in ("reports", "figures", "configurations")
    ]
    for path in begun:
        path.parent.mkdir(parents=True)
        path.write_text("half")
    assert cli.main(["run", *TINY, "out=study"]) == 0
    assert [path for path in begun if path.exists()] == []
