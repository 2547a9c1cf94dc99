"""Points that a mechanism from outside releases."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dperm_cli import Gaussian, Mechanism, Release
from dperm_cli.core.errors import DpermError
from dperm_cli.runner.cells.outside_release import read_points


class Own(Mechanism):
    """A mechanism that is not dperm's."""

    def events(self, spec: Any, scale: float, budget: Any) -> Any:
        return (Gaussian(scale, 1.0),)

    def release(self, view: Any, plan: Any, gate: Any) -> Any:
        return Release(np.zeros((1, 1)))


UNIT: Any = SimpleNamespace(contains=lambda theta, near: bool(np.all(np.abs(theta) <= 1 + near)))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.nan, "is not finite: look for .* a projection does not mend it"),
        (np.inf, "is not finite"),
        (2.0, r"outside the set: project it by view\.spec\.constraint\.project"),
    ],
)
def test_a_point_that_cannot_be_used(value, words):
    with pytest.raises(DpermError, match=words):
        read_points(Own(), Release(np.array([[value]])), 1, UNIT)
    assert read_points(Own(), Release(np.array([[0.5]])), 1, UNIT).tolist() == [[0.5]]
