"""The tables of docs/scale.md are what ``make bench-scale`` kept."""

from __future__ import annotations

import pytest

from benchmarks import (
    bench_bandwidth,
    bench_big_runs,
    bench_growth,
    bench_largest,
    bench_scale,
    watched_runs,
)
from benchmarks.watched_runs import format_table, read_kept, read_page
from dperm_cli.core import registry

BENCHES = {
    bench.MARKS: bench
    for bench in (bench_bandwidth, bench_big_runs, bench_growth, bench_largest, bench_scale)
}


@pytest.mark.parametrize("name", BENCHES)
def test_the_page_shows_what_was_measured(name):
    bench = BENCHES[name]
    head, *lines = read_kept(bench.KEPT)
    assert tuple(head) == bench.HEAD
    assert read_page(name) == format_table(bench.SHOWN, lines).strip()


def test_the_page_shows_the_machines():
    head, *lines = read_kept(watched_runs.MACHINES)
    assert tuple(head) == watched_runs.MACHINE_HEAD
    assert {line[0] for line in lines} == set(BENCHES)
    shown = format_table(watched_runs.MACHINE_SHOWN, lines)
    assert read_page("machines") == shown.strip()


def test_records_grow_by_factors_of_ten():
    lines = read_kept(bench_scale.KEPT)[1:]
    assert [float(line[0]) for line in lines] == [10.0**k for k in range(3, 3 + len(lines))]
    assert len(lines) >= 4


def test_all_axes_have_grown():
    lines = read_kept(bench_growth.KEPT)[1:]
    sizes = {axis: len(values) for axis, values in bench_growth.AXES.items()}
    assert [line[0] for line in lines] == [axis for axis, n in sizes.items() for _ in range(n)]


def test_mapped_records_take_a_third_of_the_time_and_memory_of_before():
    lines = {tuple(line[:2]): line for line in read_kept(bench_big_runs.KEPT)[1:]}
    assert set(lines) == {(n, s) for n in bench_big_runs.RECORDS for s in bench_big_runs.STORAGES}
    for (_, storage), line in lines.items():
        if storage == "mapped":
            assert min(float(line[4]), float(line[7])) >= 3.0


def test_every_mechanism_has_its_largest_problem():
    lines = read_kept(bench_largest.KEPT)[1:]
    assert [line[0] for line in lines] == sorted(registry.list_shipped("mechanism"))
    assert all(line[2] != "-" for line in lines)


def test_the_page_says_what_more_records_would_take():
    lines = read_kept(bench_bandwidth.KEPT)[1:]
    assert read_page(bench_bandwidth.BEYOND) == bench_bandwidth.format_beyond(lines).strip()


def test_what_has_not_been_run_follows_from_what_has():
    """Ten times the records: ten times the time and bytes, and memory on the same line."""
    before = ["1e+07", "2", "60", "20", "20", "11", "1e-9", "1"]
    last = ["1e+08", "20", "600", "180", "18", "100", "1e-9", "2"]
    first, second = bench_bandwidth.compute_beyond([before, last], disk=1.0)
    assert first == ["1e+09", "200", "1.7", "0.5", "5.6", "12"]
    assert second == ["1e+10", "2e+03", "17", "5", "56", "1.1e+02"]
    # a fast disk does not make sums faster
    assert bench_bandwidth.compute_beyond([before, last], disk=1e6)[0][4] == "0.5"


@pytest.mark.parametrize(
    ("watched", "reason"),
    [
        (watched_runs.Watched(None, "", "", 60.0, 1.0, 0.1), "not at its end after 60 s"),
        (
            watched_runs.Watched(2, "", "dperm: n=5: too few\n", 1.0, 1.0, 0.1),
            "refused: n=5: too few",
        ),
        (
            watched_runs.Watched(
                0, '{"status": "unsupported", "reason": "a|b"}\n', "", 1.0, 1.0, 0.1
            ),
            "unsupported: a/b",
        ),
        (
            watched_runs.Watched(
                0, '{"status": "ok", "seconds": 2.0, "p": 3}\n', "", 1.0, 1.0, 0.1
            ),
            "",
        ),
    ],
)
def test_a_run_that_did_not_end_has_a_reason(watched, reason):
    assert bench_largest.judge(10, watched, 60.0).reason == reason


def test_a_command_is_watched(tmp_path):
    watched = watched_runs.run_watched(["sh", "-c", "echo out; echo err >&2; exit 3"], tmp_path)
    assert (watched.code, watched.text, watched.errors) == (3, "out\n", "err\n")
    assert watched_runs.run_watched(["sleep", "20"], tmp_path, 0.1).code is None
