"""A mechanism, a loss and a set of one file in a run, and what names their file afterwards."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time

import pytest

from tests.doors._doors import (
    DPERM,
    SMALL,
    digests,
    dperm,
    environment,
    plugin_words,
    refused,
    table,
)
from tests.doors._plugins import OWN, replaced
from tests.doors.conftest import own_run

OTHER = replaced(OWN, "step_size: Positive = 0.1", "step_size: Positive = 0.2")


def rows_of(folder, mechanism):
    return [row for row in table(folder) if row["mechanism"] == mechanism]


def test_the_rows_are_those_of_any_mechanism(own_study):
    rows = rows_of(own_study / "study", "one_step")
    assert [row["status"] for row in rows] == ["ok", "ok"]
    assert [row["guarantee"] for row in rows] == ["approx", "approx"]
    for row in rows:
        assert float(row["epsilon_accounted"]) <= float(row["epsilon"])
        assert float(row["optimum_gap"]) < 0.2 * float(row["floor_excess_risk"])
    assert {(row["loss"], row["constraint"]) for row in rows} == {("quantile", "nonnegative_ball")}
    assert float(rows[0]["noise_scale"]) > float(rows[1]["noise_scale"])


def test_each_row_names_the_file_its_version_and_its_digest(own_study):
    for row in table(own_study / "study"):
        words = plugin_words(row)
        assert "own.py" in words  # the loss and the set of noisy_gd's rows are of the file, too
        assert "quantile" in words
        assert digests(words)
    assert "one_step" in plugin_words(rows_of(own_study / "study", "one_step")[0])


def test_ledger_report_and_table_say_whose_proof_it_is(own_study):
    study = own_study / "study"
    (digest,) = digests(plugin_words(rows_of(study, "one_step")[0]))
    for name in ("ledger.json", "table.md", "report.html"):
        text = (study / name).read_text()
        assert "own.py" in text, name
        assert "its own proof" in text or "own proof" in text, name
    for name in ("ledger.json", "report.html"):
        assert digest[:12] in (study / name).read_text(), name


def test_no_row_without_a_plugin_speaks_of_one(study_folder):
    """The shipped mechanisms' rows say nothing, but the column is there for all."""
    for row in table(study_folder):
        assert any("plugin" in key for key in row)
        assert plugin_words(row).strip() in ("", "none", "[]")
    assert "own proof" not in (study_folder / "table.md").read_text()


def test_a_changed_file_has_another_digest_and_no_cell_of_the_old_one(own_study, tmp_path):
    shutil.copytree(own_study, tmp_path / "copy")
    cwd = tmp_path / "copy"
    before = rows_of(cwd / "study", "one_step")
    (cwd / "own.py").write_text(OTHER)
    done = dperm(*own_run(), cwd=cwd, code=0)
    after = rows_of(cwd / "study", "one_step")
    assert digests(plugin_words(before[0])) != digests(plugin_words(after[0]))
    assert {row["cell"] for row in before}.isdisjoint({row["cell"] for row in after})
    assert before[0]["excess_risk_median"] != after[0]["excess_risk_median"]
    assert "0 looked up" in done.stderr


@pytest.mark.slow
def test_an_unchanged_file_is_looked_up_from_another_folder(own_study, tmp_path):
    """The digest names the contents: where the file lies makes no other cell."""
    shutil.copytree(own_study, tmp_path / "copy")
    done = dperm(*own_run(), cwd=tmp_path / "copy", code=0)
    assert "4 looked up" in done.stderr
    assert (tmp_path / "copy/study/table.csv").read_bytes() == (
        own_study / "study/table.csv"
    ).read_bytes()


def test_report_and_verify_need_no_plugin(own_study, tmp_path):
    """Both read records: the file may be gone."""
    shutil.copytree(own_study / "study", tmp_path / "study")
    before = (tmp_path / "study/table.csv").read_bytes()
    done = dperm("report", "study", cwd=tmp_path, code=0)
    assert "one_step" in done.stdout
    assert (tmp_path / "study/table.csv").read_bytes() == before
    verified = dperm("verify", "study", cwd=tmp_path, code=0)
    said = verified.stdout + verified.stderr
    assert "own.py" in said or "one_step" in said
    assert "Traceback" not in said


def test_a_resume_without_the_file_is_refused_and_leaves_the_study(own_study, tmp_path):
    shutil.copytree(own_study / "study", tmp_path / "study")
    files = {p: p.read_bytes() for p in (tmp_path / "study").rglob("*") if p.is_file()}
    words = [word for word in own_run() if word not in ("--plugin", "own.py")]
    refused(dperm(*words, cwd=tmp_path), "one_step|quantile|nonnegative_ball", "--plugin")
    assert files == {p: p.read_bytes() for p in (tmp_path / "study").rglob("*") if p.is_file()}


def test_list_help_and_describe_show_it(own, tmp_path):
    assert "one_step" in dperm("list", "mechanism", "--plugin", own, cwd=tmp_path, code=0).stdout
    keys = ("mechanism=one_step", "loss=quantile")
    page = dperm("run", "--plugin", own, *keys, "--help", cwd=tmp_path, code=0).stdout
    assert "mechanism.step_size: 0.1" in page
    assert "loss.tau: 0.5" in page
    known = dperm("describe", "--plugin", own, *SMALL[:3], cwd=tmp_path, code=0).stdout
    assert "one_step" in known


def test_bad_keys_are_refused_as_those_of_shipped_ones(own, tmp_path):
    base = ("run", "--plugin", own, "mechanism=one_step", *SMALL)
    for word, said in (
        ("mechanism.step_size=-1", "> 0"),
        ("mechanism.step_siz=1", "step_size"),
        ("mechanism.step_size=many", "number"),
    ):
        refused(dperm(*base, word, cwd=tmp_path), r"mechanism\.step_siz", said)


@pytest.mark.slow
def test_it_is_swept_and_compared_like_any_other(own, tmp_path):
    keys = ("mechanism=one_step", "mechanism.step_size=0.01,0.1,1", *SMALL, "out=study")
    dperm("run", "-m", "--plugin", own, *keys, cwd=tmp_path, code=0)
    assert len(table(tmp_path / "study")) == 3
    dperm("compare", "study", "study", cwd=tmp_path, code=0)


@pytest.mark.slow
def test_it_is_audited_and_half_the_noise_is_caught(own, tmp_path):
    done = dperm("audit", "--plugin", own, "mechanism=one_step", "--quick", cwd=tmp_path, code=0)
    assert "one_step" in done.stdout
    assert "caught" in done.stdout


@pytest.mark.slow
def test_the_audit_finds_a_planted_fault(tmp_path):
    text = replaced(OWN, "spec.lipschitz, gap=spec.gradient_gap", "spec.lipschitz / 4")
    (tmp_path / "mine.py").write_text(text)
    dperm("audit", "--plugin", "mine.py", "mechanism=one_step", "--quick", cwd=tmp_path, code=1)


@pytest.mark.slow
@pytest.mark.parametrize("where", [("workers=2",), ("backend=dask", "workers=2")])
def test_workers_give_the_bytes_of_one_process(where, own_study, tmp_path):
    shutil.copy(own_study / "own.py", tmp_path)
    dperm(*own_run(*where), cwd=tmp_path, code=0)
    for name in ("table.csv", "ledger.json", "table.tex"):
        found = (tmp_path / "study" / name).read_bytes()
        assert found == (own_study / "study" / name).read_bytes(), name


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["workers=1", "workers=2"])
def test_a_killed_run_goes_on_to_the_same_bytes(workers, tmp_path):
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "own.py").write_text(OWN)
    keys = (
        "run",
        "--plugin",
        "own.py",
        "-m",
        "mechanism=one_step",
        "dataset=diabetes",
        "loss=squared",
        "constraint.radius=1",
        "trials=2000",
        "seed=range(0,12)",
        "out=study",
    )
    dperm(*keys, cwd=tmp_path / "whole", code=0)
    run = subprocess.Popen(
        [*DPERM, *keys, workers],
        cwd=tmp_path / "killed",
        env=environment(tmp_path),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    records = tmp_path / "killed/study/records"
    until = time.monotonic() + 120
    while time.monotonic() < until and run.poll() is None and not any(records.glob("*.parquet")):
        time.sleep(0.01)
    os.killpg(run.pid, signal.SIGKILL)
    said = run.communicate()[1].decode()
    assert any(records.glob("*.parquet")), said
    dperm(*keys, workers, cwd=tmp_path / "killed", code=0)
    for name in ("table.csv", "ledger.json"):
        found = (tmp_path / "killed/study" / name).read_bytes()
        assert found == (tmp_path / "whole/study" / name).read_bytes(), name


@pytest.mark.slow
def test_a_file_that_changes_while_workers_start_mixes_nothing(tmp_path):
    """Workers run what the command read: all rows have the digest of one file."""
    text = (
        OWN
        + "\nimport os\nfrom pathlib import Path\n"
        + (
            "if os.getpid() == int(os.environ.get('OWNER', os.getpid())):\n"
            "    Path(__file__).write_text(Path(__file__).read_text() + '# more\\n')\n"
        )
    )
    (tmp_path / "own.py").write_text(text)
    done = dperm(*own_run("workers=2"), cwd=tmp_path)
    if done.returncode == 0:
        words = {frozenset(digests(plugin_words(row))) for row in table(tmp_path / "study")}
        assert len(words) == 1
    else:
        assert "own.py" in done.stderr
        assert "changed" in done.stderr


@pytest.mark.slow
def test_an_event_from_outside_says_so_in_every_row(tmp_path):
    """The accountant believes it: rows, ledger and report must not hide that."""
    text = replaced(
        OWN,
        "@dataclass(frozen=True)\nclass OneStep",
        '@dataclass(frozen=True)\nclass Quiet(Gaussian):\n    """An event of one\'s own."""\n\n\n'
        "@dataclass(frozen=True)\nclass OneStep",
    )
    text = replaced(text, "return (Gaussian(scale", "return (Quiet(scale")
    (tmp_path / "own.py").write_text(text)
    dperm(*own_run(), cwd=tmp_path, code=0)
    study = tmp_path / "study"
    for row in rows_of(study, "one_step"):
        assert "event" in row["remarks"] + plugin_words(row)
        assert "quiet" in (row["remarks"] + plugin_words(row)).lower()
    for row in rows_of(study, "noisy_gd"):
        assert "quiet" not in (row["remarks"] + plugin_words(row)).lower()
    assert "quiet" in json.dumps(json.loads((study / "ledger.json").read_text())).lower()
    (tmp_path / "own.py").unlink()
    said = dperm("verify", "study", cwd=tmp_path)
    assert "quiet" in (said.stdout + said.stderr).lower()
    assert "Traceback" not in said.stderr
