"""The mechanism of the paper: one long step against the noisy sum of all gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from dperm_cli import Gaussian, Mechanism, Range, Release


@dataclass(frozen=True)
class OneStep(Mechanism):
    """Project(centre - step_size (sum of gradients + noise))."""

    step_size: Annotated[float, Range(above=0)] = 0.1

    def events(self, spec, scale, budget):
        """One Gaussian sum, which a record moves by its Lipschitz constant at most."""
        return (Gaussian(scale, spec.lipschitz, gap=spec.gradient_gap),)

    def release(self, view, plan, gate):
        """The step from the centre of the set."""
        start = np.tile(view.spec.constraint.centre(), (gate.trials, 1))
        total = gate.stream(plan.events[0], view.spec.p).add(view.gradient_sum(start), 0)
        return Release(view.spec.constraint.project(start - self.step_size * total))
