"""The table of docs/secure_noise.md is what the benchmark kept, and no ratio is above 1.1."""

from __future__ import annotations

from benchmarks import bench_secure
from tests.mechanisms.test_outputs_on_grid import FORMS


def test_the_page_shows_what_was_measured():
    page = bench_secure.PAGE.read_text()
    shown = page.split(bench_secure.BEGIN)[1].split(bench_secure.END)[0]
    assert shown.strip() == bench_secure.format_table(bench_secure.read_kept()).strip()


def test_secure_noise_costs_at_most_a_tenth():
    lines = bench_secure.read_kept()
    assert [line[0] for line in lines] == [name for name in bench_secure.CASES for _ in range(3)]
    assert not [line for line in lines if bench_secure.is_dear(line)]


def test_every_mechanism_with_a_secure_form_is_measured():
    """But ``auto``, which is one of them."""
    assert {name.partition(" ")[0] for name in FORMS} - {"auto"} <= {
        name.split()[0] for name in bench_secure.CASES
    }


def test_a_dear_mechanism_is_noticed():
    line = ("noisy_gd", "approx", "1", "10", "13", "1.300", "0.050")
    assert bench_secure.is_dear(line)
    assert not bench_secure.is_dear((*line[:5], "1.150", "0.050"))
