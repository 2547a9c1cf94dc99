"""What SLURM is asked, by commands that stand in for its own: no controller is needed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from dperm_cli.core.errors import InputError
from dperm_cli.runner.sweep import slurm_jobs
from dperm_cli.runner.sweep.backends import Options, Submitit, WorkerDied

DEFAULTS = {"backend": "submitit", "workers": 2, "address": "auto", "slurm": {}, "on_error": "stop"}


@dataclass
class Job:
    job_id: str
    folder: Path

    @property
    def paths(self):
        return SimpleNamespace(folder=self.folder, result_pickle=self.folder / self.job_id)


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Put a command of this name and these lines first on the path."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin:/usr/bin")

    def made(name: str, *lines: str) -> None:
        path = tmp_path / "bin" / name
        path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
        path.chmod(0o755)

    return made


def test_jobs_that_slurm_would_not_take_are_bad_input(command):
    pytest.importorskip("submitit")
    refused = "echo 'allocation failure: Invalid partition name specified' >&2"
    command("sbatch", 'case "$*" in *--partition=gpu*) exit 0;; esac', refused, "exit 1")
    assert Options.parse({**DEFAULTS, "slurm": {"partition": "gpu"}}).workers == 2
    with pytest.raises(InputError, match=r"no such job: Invalid partition name specified$"):
        Options.parse({**DEFAULTS, "slurm": {"partition": "cpu"}})


def test_without_slurm_its_back_end_is_refused(monkeypatch):
    pytest.importorskip("submitit")
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(InputError, match="no sbatch is found"):
        Options.parse(DEFAULTS)
    assert Options.parse({**DEFAULTS, "slurm": {"cluster": "local"}}).workers == 2


def test_a_job_that_is_gone_without_a_result_ends_and_the_others_are_waited_for(
    command, tmp_path, monkeypatch
):
    """As on a cluster without accounting, where nothing else would tell."""
    monkeypatch.setattr(slurm_jobs, "_QUEUE_SECONDS", 0.0)
    monkeypatch.setattr(slurm_jobs, "_POLL_SECONDS", 0.01)
    folder = tmp_path / "jobs"
    folder.mkdir()
    asked = tmp_path / "asked"
    # 7_2 runs when the queue is asked first, and has left its result when it is asked again
    command("squeue", f"echo x >> {asked}", f"[ $(wc -l < {asked}) -gt 1 ] && touch {folder}/7_2",
            "echo 7_2")  # fmt: skip
    jobs = [Job("7_0", folder), Job("7_1", folder), Job("7_2", folder)]
    (folder / "7_0").touch()
    assert {job.job_id for job in slurm_jobs.watch_jobs(jobs)} == {"7_0", "7_1", "7_2"}
    assert asked.read_text().count("x") >= 2  # 7_1 was not given up at its first absence
    with pytest.raises(WorkerDied, match="job 7_1 left the queue without a result"):
        Submitit(2, {})._result(jobs[1])


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        (("echo 7_0",), {"7_0"}),
        (("echo 'slurm_load_jobs error: Invalid job id specified' >&2", "exit 1"), set()),
        (("echo 'Unable to contact slurm controller' >&2", "exit 1"), {"7_0", "7_1"}),
    ],
)
def test_what_the_queue_says(command, lines, names):
    """A job that is forgotten is gone; a controller that does not answer says nothing."""
    command("squeue", *lines)
    assert slurm_jobs.list_jobs({"7_0": None, "7_1": None}) == names
