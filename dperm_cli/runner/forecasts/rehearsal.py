"""Run mechanisms on public records, to see what they will do on records like them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dperm_cli.core.seeds import generator, seed_sequence
from dperm_cli.mechanisms.base import Mechanism, Plan
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem, ProblemSpec
from dperm_cli.runner.cells.cell_budget import drop_reserve
from dperm_cli.runner.cells.outside_plan import copy_plan
from dperm_cli.runner.cells.outside_release import read_points
from dperm_cli.solvers.optimum import solve
from dperm_cli.views.choose import open_view

TRIALS = 24
MOST_NUMBERS = 2 * 10**7  # records times columns of one run: about 160 MB
MOST_SECONDS = 2.0  # that one trial is expected to take
OPTIMUM_SECONDS = 20.0


@dataclass(frozen=True)
class Stage:
    """A public problem of as many records as are expected, and its least objective.

    Attributes:
        problem: of records that are drawn from the public ones.
        least: the objective at its certified minimiser.
    """

    problem: Problem
    least: float


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """Runs on public records, which keep the problems they were made for.

    Attributes:
        data: the public records.
        seed: of which records are taken, and of noise.
    """

    data: Data
    seed: int = 0
    _stages: dict[Any, Stage] = field(default_factory=dict)

    def can_run(self, spec: ProblemSpec, seconds: float) -> bool:
        """Whether runs are small enough.

        Args:
            spec: The public facts of the problem that is expected.
            seconds: That one release is expected to take.
        """
        return spec.n * spec.bounds.columns <= MOST_NUMBERS and seconds <= MOST_SECONDS

    def measure(
        self, mechanism: Mechanism, plan: Plan, relation: str, spec: ProblemSpec
    ) -> np.ndarray:
        """Excess risks per record of independent releases.

        Args:
            mechanism: Which releases.
            plan: What it planned for ``spec``.
            relation: That the plan is accounted under.
            spec: The public facts of the problem that is expected.

        Returns:
            The risks, [trials].
        """
        stage = self._stage(spec)
        keys = [seed_sequence(self.seed, "plan", "rehearsal", str(i)) for i in range(TRIALS)]
        gate = Gate(keys, plan=(plan.events, relation))
        view = open_view(mechanism, stage.problem)
        released = mechanism.release(view, drop_reserve(copy_plan(plan)), gate.fix())
        points = read_points(mechanism, released, TRIALS, stage.problem.constraint)
        values = np.array([float(stage.problem.objective(point)) for point in points])
        return np.maximum(values - stage.least, 0.0) / spec.n

    def _stage(self, spec: ProblemSpec) -> Stage:
        """The problem of ``spec.n`` public records: a part of them, or whole copies and a part."""
        form: Any = spec.form
        key = (spec.n, repr(spec.constraint), repr(form), spec.ridge, spec.lasso)
        if key not in self._stages:
            rng = generator(seed_sequence(self.seed, "plan", "rehearsal", "records", str(spec.n)))
            copies, part = divmod(spec.n, self.data.n)
            places = [np.arange(self.data.n)] * copies
            if part:
                places.append(np.sort(rng.choice(self.data.n, part, replace=False)))
            data = self.data.take(np.concatenate(places))
            problem = Problem(data, form, spec.constraint, spec.ridge, spec.lasso)
            self._stages[key] = Stage(problem, solve(problem, seconds=OPTIMUM_SECONDS).value)
        return self._stages[key]
