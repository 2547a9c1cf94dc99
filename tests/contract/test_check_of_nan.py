"""``check`` of a mechanism that releases nan says so, and accuses it of nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import dperm_cli
from dperm_cli import Gaussian, Mechanism, Release


@dataclass(frozen=True)
class NanStep(Mechanism):
    """A noisy step, and then a nan."""

    def events(self, spec: Any, scale: float, budget: Any) -> Any:
        return (Gaussian(scale, spec.lipschitz, gap=spec.gradient_gap),)

    def release(self, view: Any, plan: Any, gate: Any) -> Any:
        start = np.tile(view.spec.constraint.centre(), (gate.trials, 1))
        total = gate.stream(plan.events[0], view.spec.p).add(view.gradient_sum(start), 0)
        return Release(total * np.nan)


@pytest.mark.slow
def test_nan_is_named_and_no_conclusion_is_drawn():
    report = dperm_cli.check(NanStep)
    broken = [finding.seen for finding in report.findings if finding.is_broken]
    assert any("not finite" in seen for seen in broken), broken
    assert not any("without passing the gate" in seen for seen in broken), broken
    assert not any("epsilon is at least" in seen for seen in broken), broken
    told = [finding.tried for finding in report.findings if "not finite" in finding.tried]
    assert len(told) == 2
