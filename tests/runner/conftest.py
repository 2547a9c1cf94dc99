"""Figures of runs are drawn once here, not in three formats: tests/results tests those."""

from __future__ import annotations

import pytest

from tests.conftest import draw_once


@pytest.fixture(autouse=True)
def one_drawing(monkeypatch):
    draw_once(monkeypatch)
