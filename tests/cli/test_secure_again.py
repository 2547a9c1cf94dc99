"""Secure noise is fresh at every run: `force=true`, lost records and merges forget no release."""

from __future__ import annotations

import json
import shutil

import pytest

from dperm_cli import cli
from dperm_cli.results.ledger import release_log
from tests.conftest import draw_nothing
from tests.results.test_release_log_lines import FORGED, signed

WORDS = ("run", "dataset=synthetic_logistic", "dataset.n=60", "dataset.p=2", "mechanism=noisy_gd",
         "mechanism.steps=3", "noise=secure", "trials=2")  # fmt: skip


def totals(folder):
    found = json.loads((folder / "ledger.json").read_text())
    (total,) = found["totals"]
    return total["releases"], total["all_trials"]["epsilon"]


@pytest.fixture
def again(dperm, tmp_path):
    def call(*words, out="o"):
        done = dperm(*WORDS, *words, f"out={out}")
        assert done.code == 0, done.err
        return totals(tmp_path / out)

    return call


def test_force_adds_to_the_total(dperm, again, tmp_path):
    count, epsilon = again()
    assert (count, again()) == (2, (count, epsilon))  # looked up
    assert '"record": false' not in (tmp_path / "o" / "ledger.json").read_text()
    count, more = again("force=true")
    assert count == 4
    assert more > 1.2 * epsilon
    told = dperm("report", "o")
    assert told.code == 0
    assert "4 releases" in told.err
    whole = f"All 4 releases about synthetic_logistic (2 cells) together are ({more:.5g}, "
    assert whole in told.err
    assert "every trial is a release, and all of them are spent" in told.out
    assert "simulation" not in told.out + told.err
    assert totals(tmp_path / "o") == (count, more)
    assert dperm("verify", "o").code == 0


def test_a_total_of_one_release_or_of_seeded_ones_is_not_told(dperm):
    assert "together are" not in dperm(*WORDS, "trials=1", "out=one").err
    seeded = dperm(*WORDS, "noise=research", "out=seeded")
    assert "together are" not in seeded.err
    assert "simulation" in seeded.out


def test_a_deleted_record_and_other_code(dperm, again, tmp_path, monkeypatch):
    again()
    (record,) = (tmp_path / "o" / "records").iterdir()
    record.unlink()
    assert again()[0] == 4
    monkeypatch.setattr("dperm_cli.runner.cells.record_digest.code_digest", lambda *parts: "other")
    assert again()[0] == 6


def test_merge_takes_the_logs_along(dperm, again, tmp_path):
    again("epsilon=1", out="a")
    again("epsilon=1", "force=true", out="a")
    again("epsilon=2", out="b")
    done = dperm("merge", "a", "b", "out=c")
    assert done.code == 0, done.err
    assert totals(tmp_path / "c")[0] == 6
    assert dperm("merge", "a", "b", "out=c").code == 0
    assert totals(tmp_path / "c")[0] == 6


EQUAL = ("run", "dataset=synthetic_logistic", "dataset.n=1", "dataset.p=1", "mechanism=local_sgd",
         "noise=secure", "epsilon=1", "privacy=local", "trials=1")  # fmt: skip


@pytest.fixture
def forced(dperm, tmp_path):
    """Six releases of a sign: most are equal."""
    for _ in range(6):
        assert dperm(*EQUAL, "force=true", "out=v").code == 0
    return tmp_path / "v"


def test_equal_points_are_releases_of_their_own(dperm, forced):
    """What came out does not tell whether it was drawn once or twice."""
    names = [entry.release for entry in release_log.read_entries(forced)]
    assert len(set(names)) == len(names) == 6
    assert totals(forced) == (6, 6.0)
    assert dperm("verify", "v").code == 0


def test_a_merge_counts_equal_points_of_two_folders(dperm, tmp_path):
    """One record can stand for a cell; the log has both."""
    for folder in ("a", "b", "c", "d"):
        assert dperm(*EQUAL, f"out={folder}").code == 0
    for _ in range(2):
        assert dperm("merge", "a", "b", "c", "d", "out=m").code == 0
        assert totals(tmp_path / "m") == (4, 4.0)
    assert dperm("verify", "m").code == 0
    assert dperm("merge", "m", "a", "out=n").code == 0
    assert totals(tmp_path / "n") == (4, 4.0)


def test_a_lost_log_shrinks_nothing(dperm, forced):
    (forced / "releases.log").unlink()
    done = dperm("verify", "v")
    assert done.code == 3
    assert "releases.log: has no line of 5 releases in ledger.json" in done.out
    for verb in (("report", "v"), ("report", "v"), (*EQUAL, "out=v")):
        done = dperm(*verb)
        assert done.code == 3
        assert "lower bound" in done.err
        assert totals(forced) == (6, 6.0)
    assert dperm(*EQUAL, "out=v", "force=true").code == 3
    assert totals(forced) == (7, 7.0)
    assert dperm("verify", "v").code == 3
    assert dperm("merge", "v", "v", "out=m").code == 3
    assert totals(forced.parent / "m") == (7, 7.0)
    assert dperm("verify", "m").code == 3


def test_a_log_that_is_lost_with_its_ledger_is_told_by_the_record(dperm, forced):
    for name in ("releases.log", "ledger.json"):
        (forced / name).unlink()
    done = dperm("verify", "v")
    assert done.code == 3
    assert "has no line of the release of record" in done.out
    assert dperm("report", "v").code == 3
    (total,) = json.loads((forced / "ledger.json").read_text())["totals"]
    assert total["statement"].startswith("AT LEAST")


def test_what_was_lost_is_told_after_a_merge_too(dperm, forced):
    """Damaged lines do not come along, and the merged folder says that there were some."""
    path = forced / "releases.log"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"hello\n" + b"".join(lines[2:]))
    (forced / "ledger.json").unlink()
    assert dperm("merge", "v", "v", "out=m").code == 3
    done = dperm("verify", "m")
    assert done.code == 3
    assert "releases were lost before a merge (v: releases.log: line 2" in done.out
    assert "AT LEAST" in (forced.parent / "m" / "ledger.json").read_text()


@pytest.mark.in_turn
@pytest.mark.parametrize("name", list(FORGED))
def test_a_forged_line_through_every_verb(dperm, tmp_path, lined, name):
    """One line each, exit code 3, and no number of the ledger is smaller."""
    shutil.copytree(lined, tmp_path / "v")
    with open(tmp_path / "v" / "releases.log", "ab") as file:
        file.write(signed(FORGED[name]))
    for words in (("report", "v", "html=false"), ("verify", "v"), ("merge", "v", "v", "out=m")):
        done = dperm(*words)
        assert done.code == 3
        assert "releases.log: line 2: is damaged" in done.out
        assert "Traceback" not in done.err
    for folder in ("v", "m"):
        assert totals(tmp_path / folder) == (1, 1.0)
        assert "AT LEAST" in (tmp_path / folder / "ledger.json").read_text()
    for words in (("status", "v"), ("compare", "v", "v")):
        assert "Traceback" not in dperm(*words).err


@pytest.fixture(scope="module")
def lined(tmp_path_factory):
    """One release with its record, log and ledger."""
    folder = tmp_path_factory.mktemp("lined")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        draw_nothing(patch)
        assert cli.main([*EQUAL, "out=v"]) == 0
    return folder / "v"


def test_a_damaged_line_is_damage(dperm, again, tmp_path):
    again()
    again("force=true")
    path = tmp_path / "o" / "releases.log"
    path.write_bytes(path.read_bytes().replace(b'"trials":2', b'"trials":1', 1))
    done = dperm("verify", "o")
    assert done.code == 3
    assert "releases.log: line 1" in done.out
    done = dperm("report", "o")
    assert done.code == 3
    assert "releases.log: line 1" in done.out
    assert totals(tmp_path / "o")[0] == 4


def test_seeded_runs_have_no_log(dperm, tmp_path):
    words = [word for word in WORDS if word != "noise=secure"]
    for force in ("false", "true"):
        assert dperm(*words, f"force={force}", "out=o").code == 0
    assert not (tmp_path / "o" / "releases.log").exists()
    assert totals(tmp_path / "o")[0] == 2
