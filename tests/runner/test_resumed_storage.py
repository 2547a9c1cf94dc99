"""A conversion that was interrupted goes on with the blocks that are finished."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from dperm_cli import cli
from dperm_cli.core.errors import InputError
from dperm_cli.datasets.shared import block_stage, stored_rows
from dperm_cli.datasets.shared.stored_rows import Target, store
from dperm_cli.runner.sweep.data_storage import load_records
from tests.runner.test_data_storage import (  # noqa: F401
    MAKERS,
    cache,
    check_equal,
    stores,
    write_csv,
)

append = block_stage.append_bytes
KINDS = ["csv", "csv, zeros", "svmlight", "parquet", "synthetic"]


@pytest.fixture
def written(monkeypatch):
    """The sizes of what is written; a number put in front of them is the call that is cut short."""
    calls: list = []

    def count(path, data):
        calls.append(path.name)
        if calls[0] == len(calls) - 1:
            append(path, data[: len(data) // 2])
            raise KeyboardInterrupt
        append(path, data)

    monkeypatch.setattr(block_stage, "append_bytes", count)
    return calls


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("at", [1, 5, 11])
def test_finished_blocks_are_kept(kind, at, cache, written, capsys):  # noqa: F811
    made = MAKERS[kind]()
    written[:] = [0]
    load_records(made, True)
    whole = len(written)
    [name] = stores(cache)
    stored_rows.remove_folder(cache / "stored" / name)
    written[:] = [at]
    with pytest.raises(KeyboardInterrupt):
        load_records(made, True)
    assert stores(cache) == [f"{name}.part"]
    assert "keeps the blocks that are finished; the same command goes on" in capsys.readouterr().err
    written[:] = [0]
    check_equal(load_records(made, True), made.load())
    each = 6 if kind == "svmlight" else 4  # columns of a block, and its line
    assert len(written) == whole - (at - 1) // each * each
    assert stores(cache) == [name]
    assert not (cache / "stored" / name / "unsplit").exists()


def interrupt(made, written, at=9):
    written[:] = [at]
    with pytest.raises(KeyboardInterrupt):
        store(made, Target(Path("kept")))
    written[:] = [0]


@pytest.mark.parametrize("column", ["x", "y", "names", "blocks.jsonl"])
def test_a_damaged_block_is_made_again(column, written):
    made = write_csv()
    interrupt(made, written, 13)  # in the fourth block
    path = Path("kept.part/unsplit") / column
    text = bytearray(path.read_bytes())
    text[len(text) // 2] ^= 1
    path.write_bytes(text)
    check_equal(store(made, Target(Path("kept"))), made.load())
    assert not Path("kept.part").exists()


def test_blocks_of_something_else_are_dropped(written):
    interrupt(write_csv(), written)
    other = write_csv(1)
    check_equal(store(other, Target(Path("kept"), about="another")), other.load())


def test_an_interruption_in_the_last_step_is_gone_on_from(written, monkeypatch):
    made = write_csv()

    def stop(*_args):
        raise KeyboardInterrupt

    written[:] = [0]
    with monkeypatch.context() as patched:
        patched.setattr(stored_rows, "write_rows", stop)
        with pytest.raises(KeyboardInterrupt):
            store(made, Target(Path("kept")))
    written[:] = [0]
    check_equal(store(made, Target(Path("kept"))), made.load())
    assert written == [0]  # no block was written again


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("kind", ["csv", "embedded"])
def test_a_killed_process_leaves_what_is_gone_on_with(kind, cache, monkeypatch):  # noqa: F811
    made = MAKERS[kind]()
    process = os.fork()
    if process == 0:
        place = (stored_rows, "write_rows") if kind == "csv" else (stored_rows, "write_folder")
        monkeypatch.setattr(*place, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        load_records(made, True)
        os._exit(0)
    assert os.waitpid(process, 0)[1] == signal.SIGKILL
    [left] = [name for name in stores(cache) if name[0] != "."]  # locks
    assert left.endswith(".part")
    check_equal(load_records(made, True), made.load())
    assert f"{stores(cache)[0]}.part" == left


def test_the_same_command_goes_on(written, capsys):
    write_csv()
    words = ["data", "store", "csv", "path=t.csv", "target=sick", "labels={yes: 1, no: -1}"]
    written[:] = [9]
    assert cli.main([*words, "to=kept"]) == 130
    said = capsys.readouterr().err
    assert "kept.part keeps the blocks that are finished; the same command goes on with" in said
    written[:] = [0]
    assert cli.main([*words, "to=kept"]) == 0
    assert capsys.readouterr().out == "kept: 72 records, 4 columns, float64\n"
    assert "x" in written
    assert sorted(path for path in os.listdir() if "kept" in path) == ["kept"]


def test_a_folder_that_is_not_ours_is_refused_and_stays():
    made = write_csv()
    Path("kept.part").mkdir()
    Path("kept.part/mine").write_text("")
    with pytest.raises(InputError, match=r"to=kept: is written as kept.part, which is there"):
        store(made, Target(Path("kept")))
    assert Path("kept.part/mine").exists()
