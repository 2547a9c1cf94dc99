"""Files and sizes that fit into no memory are refused with numbers, before anything runs."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import re
import resource
import shutil
import subprocess
import threading
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from dperm_cli.core.memory_limits import format_bytes
from tests.faults._program import (
    SMALL,
    Ended,
    assert_refused_in_a_line,
    read_table,
    run_dperm,
    start_dperm,
    wait_for,
)

MEBI = 1 << 20
ADDRESS_SPACE = 3 * MEBI  # KiB: three GiB
MECHANISM = SMALL[3:]


def ordinary_rows(columns: int = 20, digits: int = 4) -> bytes:
    """Thousands of lines, each of numbers and a label; the shorter the numbers, the more memory
    the lines need for their size."""
    rng = np.random.default_rng(0)
    lines = [
        ",".join(
            [
                *(f"{value:.{digits}f}" for value in rng.uniform(-1, 1, columns)),
                str(rng.choice([-1, 1])),
            ]
        )
        for _ in range(6000)
    ]
    return ("\n".join(lines) + "\n").encode()


def write_repeated(path, mebibytes: int, digits: int = 4) -> int:
    """A packed file of so many mebibytes of rows; the number of its lines."""
    block = ordinary_rows(digits=digits)
    times = mebibytes * MEBI // len(block) + 1
    packers = {".gz": partial(gzip.open, compresslevel=1), ".bz2": bz2.open,
               ".xz": partial(lzma.open, preset=0)}  # fmt: skip
    with packers[path.suffix](path, "wb") as file:
        for _ in range(times):
            file.write(block)
    return times * block.count(b"\n")


def limited(words, folder, seconds: float = 240.0):
    """``dperm`` within the address space; trouble that takes longer is an error."""
    return run_dperm(words, folder, seconds=seconds, before=f"ulimit -v {ADDRESS_SPACE}")


def assert_loaded_or_refused_with_numbers(ended, study, n: int) -> None:
    assert "Traceback" not in ended.err, ended.err[-2000:]
    if ended.code == 0:
        assert read_table(study)[0]["n"] == str(n)
        return
    assert_refused_in_a_line(ended)
    line = ended.err.splitlines()[-1]
    assert "memory" in line
    assert len(re.findall(r"\d[\d.,]*\s*[KMGT]i?B", line)) >= 2, line
    assert not study.exists()


def csv_words(name):
    return ["run", "dataset=csv", f"dataset.path={name}", "dataset.header=false",
            "dataset.test_fraction=0", *MECHANISM, "out=study"]  # fmt: skip


@pytest.mark.faults
@pytest.mark.parametrize(("suffix", "digits"), [
    ("gz", 0), ("gz", 4), ("xz", 4), ("bz2", 4),
])  # fmt: skip
def test_a_small_packed_file_of_many_rows_is_loaded_or_refused(suffix, digits, tmp_path):
    n = write_repeated(tmp_path / f"a.csv.{suffix}", 300, digits)
    ended = limited(csv_words(f"a.csv.{suffix}"), tmp_path, seconds=500)
    assert_loaded_or_refused_with_numbers(ended, tmp_path / "study", n)


@dataclass(frozen=True)
class Taken:
    """Seconds of processor that a run took, and the most memory that it held, in bytes."""

    seconds: float
    peak: int


def measure_run(words, folder) -> tuple[Ended, Taken]:
    """How a run within the address space ended, and what it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = start_dperm(words, folder, before=f"ulimit -v {ADDRESS_SPACE}")
    peaks, ended = [0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.02):
            with contextlib.suppress(OSError, StopIteration):
                lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
                peaks.append(int(next(x for x in lines if x.startswith("VmHWM:")).split()[1]) << 10)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        told = wait_for(process, seconds=1000)
    finally:
        ended.set()
        watcher.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return told, Taken(seconds, max(peaks))


@pytest.mark.faults
def test_a_packed_file_of_a_gibibyte_is_loaded_or_refused(tmp_path, record_property):
    """The time of the processor is at most twice that of a quarter of it, four times over."""
    taken = {}
    for mebibytes in (256, 1024):
        n = write_repeated(tmp_path / "a.csv.gz", mebibytes)
        ended, taken[mebibytes] = measure_run(csv_words("a.csv.gz"), tmp_path)
        assert_loaded_or_refused_with_numbers(ended, tmp_path / "study", n)
        shutil.rmtree(tmp_path / "study", ignore_errors=True)
        word = "refused" if ended.code else "loaded"
        measured = (
            f"{mebibytes} MiB {word}, peak memory {format_bytes(taken[mebibytes].peak)} of "
            f"{format_bytes(ADDRESS_SPACE << 10)}, {taken[mebibytes].seconds:.0f} s of processor"
        )
        print(measured)
        record_property("measured", measured)
    assert 0 < taken[1024].peak < ADDRESS_SPACE << 10
    assert taken[1024].seconds < 2 * 4 * taken[256].seconds


@pytest.mark.faults
def test_reading_stops_at_the_first_bad_line(tmp_path):
    """The third line refuses: what follows does not matter, and takes no memory."""
    block = ordinary_rows()
    with gzip.open(tmp_path / "a.csv.gz", "wb", 1) as file:
        file.write(b"0.5,word,1\n0.5,0.5,1\n")
        for _ in range(1024 * MEBI // len(block)):
            file.write(block)
    ended = run_dperm(
        csv_words("a.csv.gz"), tmp_path, seconds=60, before=f"ulimit -v {MEBI + MEBI // 2}"
    )
    assert_refused_in_a_line(ended)
    assert "memory" not in ended.err


def write_svmlight(path, largest: int, rows: int = 5):
    lines = [f"{1 if k % 2 else -1} 1:0.5 {largest}:0.25" for k in range(rows)]
    path.write_text("\n".join(lines) + "\n")


WIDE = ["run", "dataset=svmlight", "dataset.path=a.svmlight", "dataset.test_fraction=0", *MECHANISM,
        "out=study"]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("features", [
    2_000_000_000, 500_000_000, 2_000_000,
])  # fmt: skip
@pytest.mark.parametrize("places", ["within the declared", "first"])
def test_many_columns_are_computed_or_refused_with_numbers(features, places, tmp_path):
    write_svmlight(tmp_path / "a.svmlight", features if places != "first" else 2)
    ended = limited([*WIDE, f"dataset.n_features={features}"], tmp_path, seconds=100)
    assert_loaded_or_refused_with_numbers(ended, tmp_path / "study", 5)


GENERATED = {
    "rows": ["dataset.n=2000000000", "dataset.p=100"],
    "columns": ["dataset.n=10", "dataset.p=2000000000"],
    "trials": ["dataset.n=40", "dataset.p=100000", "trials=1000000"],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", GENERATED)
def test_generated_sizes_are_refused_with_numbers(name, tmp_path):
    words = ["run", "dataset=synthetic_logistic", *MECHANISM[:2], *GENERATED[name], "out=study"]
    ended = limited(words, tmp_path, seconds=60)
    assert ended.code != 0
    assert_loaded_or_refused_with_numbers(ended, tmp_path / "study", 0)


LONG_SWEEP = ["run", *SMALL, "out=study"]


def test_preflight_prints_memory_disk_and_time_and_writes_nothing(tmp_path):
    ended = run_dperm([*LONG_SWEEP, "--cfg", "preflight"], tmp_path)
    assert ended.code == 0, ended.err
    for word in ("memory", "disk", "time"):
        assert word in ended.out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_run_that_needs_more_than_its_limit_is_refused_with_both_numbers(tmp_path):
    words = ["run", "dataset=synthetic_logistic", "dataset.n=2000000", "dataset.p=100", *MECHANISM]
    ended = run_dperm([*words, "limits.memory=500MB", "out=study"], tmp_path, seconds=60)
    assert_refused_in_a_line(ended)
    assert "limits.memory" in ended.err
    assert len(re.findall(r"\d[\d.,]*\s*[KMGT]i?B", ended.err)) >= 2, ended.err
    assert not (tmp_path / "study").exists()


@pytest.mark.slow
def test_a_limit_that_is_wide_enough_changes_no_byte(tmp_path):
    tables = []
    for name, more in (("first", []), ("wide", ["limits.memory=100GB"])):
        ended = run_dperm(["run", *SMALL, *more, f"out={name}"], tmp_path)
        assert ended.code == 0, ended.err
        tables.append((tmp_path / name / "table.csv").read_bytes())
    assert tables[0] == tables[1]


@pytest.mark.faults
def test_a_disk_that_is_too_small_is_said_before_the_first_cell(tmp_path):
    """2000 cells do not fit on half a mebibyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=512k,mode=700", "dperm-test", str(disk)]
    made = subprocess.run(words, capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"this user may not mount a file system: {made.stderr.strip()}")
    try:
        axis = "epsilon=" + ",".join(str(k / 100) for k in range(1, 2001))
        ended = run_dperm(["run", "-m", *SMALL, axis, f"out={disk}/study"], tmp_path, seconds=500)
        left = list(disk.rglob("*.parquet"))
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    assert "Traceback" not in ended.err
    assert ended.code in (2, 3)
    assert "disk" in ended.err.splitlines()[-1]
    assert left == []
