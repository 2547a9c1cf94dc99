"""delta=auto: 1/n^2, within what a release can keep to."""

from __future__ import annotations

import json

import pytest

from dperm_cli.cli import main
from dperm_cli.runner.cells.cell_budget import delta_of


@pytest.mark.parametrize(
    ("n", "delta"), [(1, 0.25), (2, 0.25), (1000, 1e-6), (10**7, 1e-14), (10**8, 1e-14)]
)
def test_it_follows_from_the_number_of_records(n, delta):
    assert delta_of(None, n) == pytest.approx(delta, rel=1e-12)
    assert delta_of(1e-9, n) == 1e-9


def test_very_many_records_can_be_planned_for(capsys):
    """1/n^2 would be less than the bounded range of a noise generator adds."""
    words = ["account", "mechanism=noisy_gd", "n=100000000", "epsilon=1", "format=json"]
    assert main(words) == 0
    row = json.loads(capsys.readouterr().out.splitlines()[0])
    assert row["delta"] == 1e-14
    main([*words, "delta=1e-16"])
    assert "bounded range" in "".join(capsys.readouterr())
