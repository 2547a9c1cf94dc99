"""The table of docs/scale.md is what ``make bench-scale`` kept."""

from __future__ import annotations

import csv

from benchmarks import bench_scale


def test_the_page_shows_what_was_measured():
    head, *lines = csv.reader(bench_scale.KEPT.read_text().splitlines())
    assert tuple(head) == bench_scale.HEAD
    assert [float(line[0]) for line in lines] == [10.0**k for k in range(3, 3 + len(lines))]
    assert len(lines) >= 4
    page = bench_scale.PAGE.read_text()
    shown = page.split(bench_scale.BEGIN)[1].split(bench_scale.END)[0]
    assert shown.strip() == bench_scale.format_table(lines).strip()
