"""A small study that several files look at."""

from __future__ import annotations

import pytest

import dperm_cli
from tests.conftest import draw_nothing

SMALL = ("dataset=diabetes", "loss=squared", "constraint.radius=1", "trials=2")


@pytest.fixture(scope="session")
def study(tmp_path_factory):
    """Two mechanisms at two budgets."""
    out = tmp_path_factory.mktemp("api") / "study"
    keys = {"mechanism": ["noisy_gd", "output_perturbation"], "epsilon": [1, 3], "ridge": 0.01}
    return dperm_cli.run(*SMALL, **keys, out=out, progress=False)


@pytest.fixture
def undrawn(monkeypatch):
    """No figure is drawn: that takes longer than a small study."""
    draw_nothing(monkeypatch)


@pytest.fixture
def run_small(tmp_path, undrawn):
    """Run a small study without progress; gives the study."""

    def run(*words, out="study", **keys):
        return dperm_cli.run(*words, out=tmp_path / out, progress=False, **{"trials": 2, **keys})

    return run
