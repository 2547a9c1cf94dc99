"""What ``check`` says of a mechanism: of nan, and of the norm of a sensitivity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import dperm_cli
from dperm_cli import Gaussian, Mechanism, Release
from dperm_cli.audit.contracts import mechanism_neighbours
from dperm_cli.privacy import events


@dataclass(frozen=True)
class NanStep(Mechanism):
    """A noisy step, and then a nan."""

    def events(self, spec: Any, scale: float, budget: Any) -> Any:
        return (Gaussian(scale, spec.lipschitz, gap=spec.gradient_gap),)

    def release(self, view: Any, plan: Any, gate: Any) -> Any:
        start = np.tile(view.spec.constraint.centre(), (gate.trials, 1))
        total = gate.stream(plan.events[0], view.spec.p).add(view.gradient_sum(start), 0)
        return Release(total * np.nan)


def test_the_mend_of_a_sensitivity_names_the_events_that_count_in_the_l1_norm():
    count_in_l1 = [
        name for name, event in vars(events).items()
        if isinstance(event, type) and getattr(event, "norm_order", None) == 1
    ]  # fmt: skip
    mend = mechanism_neighbours.check_neighbours.mend
    assert {"Laplace", "SparseAnswers"} == set(count_in_l1)
    assert "but L1 for Laplace and SparseAnswers" in mend


@pytest.mark.slow
def test_nan_is_named_and_no_conclusion_is_drawn():
    report = dperm_cli.check(NanStep)
    broken = [finding.seen for finding in report.findings if finding.is_broken]
    assert any("not finite" in seen for seen in broken), broken
    assert not any("without passing the gate" in seen for seen in broken), broken
    assert not any("epsilon is at least" in seen for seen in broken), broken
    told = [finding.tried for finding in report.findings if "not finite" in finding.tried]
    assert len(told) == 2
