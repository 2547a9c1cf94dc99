"""Run mechanisms on public records, to see what they will do on records like them."""

from __future__ import annotations

from dataclasses import field
from typing import Any, cast

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.seeds import generator, seed_sequence
from dperm_cli.datasets.shared.row_rules import take_columns
from dperm_cli.mechanisms.base import Mechanism, Plan
from dperm_cli.mechanisms.shared.tuning_candidates import Choice, embed_points, find_block
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Loss, Problem, ProblemSpec
from dperm_cli.runner.cells.cell_budget import drop_reserve
from dperm_cli.runner.cells.outside_plan import copy_plan
from dperm_cli.runner.cells.outside_release import read_points
from dperm_cli.solvers.optimum import solve
from dperm_cli.views.choose import open_view

TRIALS = 24
MOST_NUMBERS = 2 * 10**7  # records times columns of one run: about 160 MB
MOST_SECONDS = 2.0  # that one trial is expected to take
OPTIMUM_SECONDS = 20.0


def take_choice(data: Data, choice: Choice) -> Data:
    """The records with the columns of a choice's scaling; with all where it names none."""
    block = find_block(data, choice)
    if block is None:
        return data
    x = take_columns(data.x, slice(block.start, block.stop), block.row_bound)
    return data.with_rows(
        x, row_bound=block.row_bound, minimiser=None, phi=None, phi_row_bound=None, x_test=None,
        y_test=None,
    )  # fmt: skip


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
        self,
        mechanism: Mechanism,
        plan: Plan,
        relation: str,
        spec: ProblemSpec,
        choice: Choice,
        judge: ProblemSpec,
    ) -> np.ndarray:
        """Excess risks per record of independent releases.

        Args:
            mechanism: Which releases.
            plan: What it planned for ``spec``.
            relation: That the plan is accounted under.
            spec: The public facts of the problem that is expected, at ``choice``.
            choice: The candidate that is in force; empty where there is none.
            judge: The public facts without that choice. Risk is over the optimum there.

        Returns:
            The risks, [trials].
        """
        stage, judged = self._stage(spec, choice), self._stage(judge, {})
        keys = [seed_sequence(self.seed, "plan", "rehearsal", str(i)) for i in range(TRIALS)]
        gate = Gate(keys, plan=(plan.events, relation))
        view = open_view(mechanism, stage.problem)
        released = mechanism.release(view, drop_reserve(copy_plan(plan)), gate.fix())
        points = read_points(mechanism, released, TRIALS, stage.problem.constraint)
        points = embed_points(points, judge, choice)
        values = judged.problem.evaluate_apart(points)
        return np.maximum(values - judged.least, 0.0) / spec.n

    def _stage(self, spec: ProblemSpec, choice: Choice) -> Stage:
        """The problem of ``spec.n`` public records: a part of them, or whole copies and a part."""
        form, source = spec.form, take_choice(self.data, choice)
        key = (spec.n, repr(spec.constraint), repr(form), spec.ridge, spec.lasso)
        key += (find_block(self.data, choice),)
        if key not in self._stages:
            rng = generator(seed_sequence(self.seed, "plan", "rehearsal", "records", str(spec.n)))
            copies, part = divmod(spec.n, source.n)
            places = [np.arange(source.n)] * copies
            if part:
                places.append(np.sort(rng.choice(source.n, part, replace=False)))
            data, loss = source.take(np.concatenate(places)), cast(Loss, form)
            problem = Problem(data, loss, spec.constraint, spec.ridge, spec.lasso)
            self._stages[key] = Stage(problem, solve(problem, seconds=OPTIMUM_SECONDS).value)
        return self._stages[key]
