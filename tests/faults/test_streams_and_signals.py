"""Closed streams, signals, folders that may only be read, and limits of the system."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess

import pytest

from dperm_cli.core.memory_limits import format_bytes
from tests.faults._program import (
    SMALL,
    count_records,
    epsilons,
    kill_session,
    leftovers,
    read_table,
    run_dperm,
    start_dperm,
    wait_for,
    wait_for_none,
    wait_for_records,
)

RUN = ["run", *SMALL, "out=study"]


def test_a_closed_stdout_is_said_after_complete_results(tmp_path):
    ended = run_dperm(RUN, tmp_path, after=">&-")
    assert "Traceback" not in ended.err, ended.err[-1000:]
    assert ended.code == 3, ended.err[-1000:]
    assert "dperm: standard output cannot be written" in ended.err
    assert len(read_table(tmp_path / "study")) == 1


def test_a_closed_stderr_changes_nothing_but_what_is_printed(tmp_path):
    ended = run_dperm(RUN, tmp_path, after="2>&-")
    assert ended.code == 0
    assert "noisy_gd" in ended.out
    assert len(read_table(tmp_path / "study")) == 1


CLOSED = {
    "<&-": 0,
    ">&- 2>&-": 3,
    "<&- >&- 2>&-": 3,
}


@pytest.mark.slow
@pytest.mark.parametrize("streams", CLOSED)
@pytest.mark.parametrize("more", [[], ["workers=2"]], ids=["here", "workers"])
def test_closed_streams_of_a_run(streams, more, tmp_path):
    """What was printed is lost where stdout is closed, and nothing else."""
    ended = run_dperm([*RUN, *more], tmp_path, after=streams)
    assert ended.code == CLOSED[streams], ended.err[-1000:]
    assert len(read_table(tmp_path / "study")) == 1
    assert leftovers(tmp_path / "study") == []


QUICK = {
    "list": (["list", "loss"], 0),
    "help": (["--help"], 0),
    "wrong key": (["run", "epsilo=1"], 2),
    "no verb": (["ruun"], 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("streams", [">&-", "2>&-", ">&- 2>&-"])
@pytest.mark.parametrize("name", QUICK)
def test_closed_streams_of_a_quick_verb(name, streams, tmp_path):
    words, code = QUICK[name]
    lost = code == 0 and ">&-" in streams.split()
    ended = run_dperm(words, tmp_path, after=streams)
    assert "Traceback" not in ended.err, ended.err[-1000:]
    assert ended.code == (3 if lost else code), ended.err[-1000:]


@pytest.mark.slow
@pytest.mark.parametrize("stream", [
    ">/dev/full",
    "2>/dev/full",
])  # fmt: skip
def test_a_stream_without_room(stream, tmp_path):
    """Results that cannot be printed are trouble with storage; progress that cannot is none."""
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    ended = run_dperm(RUN, tmp_path, after=stream)
    assert "Traceback" not in ended.err, ended.err[-1000:]
    assert ended.code == (3 if stream[0] == ">" else 0), ended.err[-1000:]
    assert len(read_table(tmp_path / "study")) == 1


def is_clean(study) -> bool:
    return leftovers(study) == [] if study.exists() else True


def end_by_signal(tmp_path, number, words, records=2):
    """End a sweep of 200 cells by a signal when it has written some; what it left and said."""
    study = tmp_path / "study"
    process = start_dperm(["run", "-m", *SMALL, epsilons(200), *words, "out=study"], tmp_path)
    try:
        wait_for_records(process, study, records)
        os.kill(process.pid, number)
        ended = wait_for(process)
    finally:
        if process.poll() is None:
            kill_session(process)
    return ended, study, wait_for_none(process.pid)


ENDED = [
    pytest.param(signal.SIGHUP, []),
    *(pytest.param(number, words, marks=pytest.mark.slow) for number, words in [
        (signal.SIGTERM, []),
        (signal.SIGINT, []),
        (signal.SIGTERM, ["workers=2"]),
        (signal.SIGQUIT, []),
        (signal.SIGUSR1, []),
        (signal.SIGALRM, []),
        (signal.SIGXCPU, []),
        (signal.SIGHUP, ["workers=2"]),
        (signal.SIGQUIT, ["workers=2"]),
        (signal.SIGUSR2, ["workers=2"]),
        (signal.SIGPROF, ["workers=2"]),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("number", "words"), ENDED)
def test_a_signal_leaves_finished_cells_and_no_training_rows(number, words, tmp_path):
    ended, study, left = end_by_signal(tmp_path, number, words)
    assert ended.code == 128 + number, ended.err[-1000:]
    assert "Traceback" not in ended.err, ended.err[-1000:]
    assert count_records(study) >= 2
    assert leftovers(study) == []
    assert left == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_an_ignored_signal_stays_ignored(number, tmp_path):
    """``nohup dperm run`` goes on when its terminal is closed."""
    name = number.name.removeprefix("SIG")
    process = start_dperm(
        ["run", "-m", *SMALL, epsilons(40), "out=study"], tmp_path, before=f"trap '' {name}"
    )
    wait_for_records(process, tmp_path / "study", 2)
    os.kill(process.pid, number)
    ended = wait_for(process)
    assert len(ended.out) > 0 or number != signal.SIGHUP
    if number == signal.SIGHUP:
        assert ended.code == 0, ended.err[-1000:]


@pytest.mark.slow
@pytest.mark.parametrize("numbers", [(signal.SIGUSR1,), (signal.SIGINT, signal.SIGTERM)])
def test_a_signal_to_all_processes_ends_a_run_in_one_line(numbers, tmp_path):
    """As batch systems send them; what comes while the run tidies changes nothing."""
    study = tmp_path / "study"
    words = ["run", "-m", *SMALL, epsilons(200), "workers=2", "out=study"]
    process = start_dperm(words, tmp_path)
    wait_for_records(process, study, 2)
    for number in numbers:
        os.killpg(process.pid, number)
    ended = wait_for(process)
    assert ended.code == 128 + numbers[0], ended.err[-1000:]
    assert "Traceback" not in ended.err, ended.err[-1000:]
    assert ended.err.splitlines()[-1].endswith("finished cells are kept")
    assert leftovers(study) == []
    assert wait_for_none(process.pid) == []


@pytest.mark.slow
@pytest.mark.parametrize(("number", "words"), [
    (signal.SIGKILL, []),
    (signal.SIGABRT, []),
    (signal.SIGSEGV, ["workers=2"]),
])  # fmt: skip
def test_the_next_run_takes_away_what_a_crash_left(number, words, tmp_path):
    ended, study, left = end_by_signal(tmp_path, number, words)
    assert ended.code == -number
    assert leftovers(study) == [".work"]
    assert left == []
    again = run_dperm(["run", "-m", *SMALL, epsilons(200), "out=study"], tmp_path)
    assert again.code == 0, again.err[-1000:]
    assert leftovers(study) == []


@pytest.fixture(scope="module")
def small_study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    ended = run_dperm(RUN, folder)
    assert ended.code == 0, ended.err
    return folder / "study"


@pytest.fixture
def read_only_study(small_study, tmp_path):
    """A copy that cannot be written: read-only rights, and for root a read-only mount of it."""
    study = tmp_path / "study"
    shutil.copytree(small_study, study)
    if os.geteuid() != 0:
        for path in [study, *study.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        yield study
        for path in [study, *study.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
        return
    for words in (["--bind", str(study), str(study)], ["-o", "remount,bind,ro", str(study)]):
        made = subprocess.run(["mount", *words], capture_output=True, text=True)
        if made.returncode:
            subprocess.run(["umount", str(study)], capture_output=True)
            pytest.skip(f"no mount here: {made.stderr.strip()}")
    yield study
    subprocess.run(["umount", str(study)], check=True)


AGE = re.compile(r"written .* ago")  # a moment later at the second call


@pytest.mark.parametrize("verb", [
    "report",
    pytest.param("status", marks=pytest.mark.slow),
    pytest.param("verify", marks=pytest.mark.slow),
])  # fmt: skip
def test_verbs_read_a_study_that_cannot_be_written(verb, read_only_study, small_study, tmp_path):
    ended = run_dperm([verb, "study"], tmp_path)
    assert "Traceback" not in ended.err, ended.err[-1000:]
    expected = run_dperm([verb, str(small_study)], tmp_path).out
    assert AGE.sub("", ended.out) == AGE.sub("", expected)
    assert ended.out


@pytest.mark.slow
def test_a_lookup_in_a_study_that_cannot_be_written(read_only_study, tmp_path):
    """Nothing has to be computed, so nothing has to be written for the table to be shown."""
    ended = run_dperm(RUN, tmp_path)
    assert "Traceback" not in ended.err, ended.err[-1000:]
    assert ended.code in (0, 3)


@pytest.mark.slow
def test_a_new_study_in_a_folder_that_cannot_be_written(read_only_study, tmp_path):
    """One line that names the place and the reason, before anything is computed."""
    before = sorted(read_only_study.iterdir())
    ended = run_dperm([*RUN, "out=study/inside"], tmp_path)
    assert ended.code == 3, ended.err
    assert ended.out == ""
    (line,) = [each for each in ended.err.splitlines() if each.startswith("dperm:")]
    assert "study/inside" in line
    assert re.search("read-only file system|permission denied", line)
    assert sorted(read_only_study.iterdir()) == before


# How much is taken depends on the number of cores and on the versions of the libraries.


def limited(kilobytes: int, tmp_path, *more: str):
    return run_dperm([*RUN, *more], tmp_path, before=f"ulimit -v {kilobytes}", seconds=120)


@pytest.mark.parametrize("kilobytes", [
    pytest.param(100_000, marks=pytest.mark.slow),
    400_000,
    pytest.param(800_000, marks=pytest.mark.slow),
    pytest.param(1_200_000, marks=pytest.mark.slow),
    pytest.param(4_000_000, marks=pytest.mark.slow),
])  # fmt: skip
def test_small_address_spaces_are_enough_or_named(kilobytes, tmp_path):
    ended = limited(kilobytes, tmp_path)
    assert "Traceback" not in ended.err, ended.err[-1000:]
    if ended.code == 0:
        assert len(read_table(tmp_path / "study")) == 1
    else:
        assert ended.code == 2
        assert len(ended.err.splitlines()) == 1
        allowed = format_bytes(kilobytes << 10)
        assert f"{allowed} are allowed (ulimit -v)" in ended.err
        assert "limits.memory=auto" in ended.err


LIMITS = {"files": "ulimit -n 24", "file size": "ulimit -f 8", "stack": "ulimit -s 512"}


@pytest.mark.slow
@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("workers", [[], ["workers=2"]], ids=["here", "workers"])
def test_other_limits_are_enough_or_named(name, workers, tmp_path):
    ended = run_dperm([*RUN, *workers], tmp_path, before=LIMITS[name], seconds=120)
    assert "Traceback" not in ended.err, ended.err[-1000:]
    assert ended.code in (0, 2, 3), (ended.code, ended.err[-1000:])
    assert is_clean(tmp_path / "study")
