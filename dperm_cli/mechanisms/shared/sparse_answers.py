"""Answer queries by a public function and update it where its error is large [JT13, Alg. 1].

The public state of a trial is w = sum_t alpha_t phi(z_t) over the queries that made updates; a
query z is answered by <w, phi(z)> unless the noisy prediction is farther off than the threshold.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.memo import MIB, memoise
from dperm_cli.kernels.shared.kernel_problem import KernelSpec
from dperm_cli.mechanisms.shared.kernel_queries import PROVED_RELATION, StabilityBounds
from dperm_cli.privacy.accounting.calibrate import sparse_reach
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import SparseAnswers
from dperm_cli.privacy.streams import SparseStream

MOST_UPDATES = 1_000_000
# Steps of the search for the least number of updates, and how near to it they have to come.
_SEARCHES, _SPARE = 12, 0.01


@dataclass(frozen=True)
class RunParameters:
    """A run: its updates B, the noise scale 1 / eps_0, the threshold and the step size."""

    updates: int
    scale: float
    threshold: float
    step: float

    def event(self, moves: StabilityBounds, queries: int) -> SparseAnswers:
        return SparseAnswers(
            self.scale, moves.value / 2.0, self.threshold, self.updates, queries,
            relation=PROVED_RELATION,
        )  # fmt: skip


def printed_updates(spec: KernelSpec, queries: int, budget: Budget, failure: float) -> int:
    """B = C n lambda eps / (200 sqrt(3) L R ln(2 T / beta) ln(4 / delta)), in the right units."""
    logs = math.log(2.0 * queries / failure) * math.log(4.0 / budget.delta)
    top = spec.radius * spec.n * spec.ridge * budget.epsilon
    found = top / (200.0 * math.sqrt(3.0) * spec.lipschitz * spec.bound * logs)
    return max(1, math.floor(min(found, MOST_UPDATES)))


def make_paper_run(
    spec: KernelSpec, queries: int, budget: Budget, failure: float, updates: int | None = None
) -> RunParameters:
    """B, where it is not given, and eps_0, sigma and eta as [JT13, Alg. 1] states them.

    ``Unsupported`` at delta = 0: the formulas hold ln(4 / delta).
    """
    require_delta(budget)
    if updates is None:
        updates = printed_updates(spec, queries, budget, failure)
    rate = spec.n * budget.epsilon * spec.ridge
    rate /= 200.0 * spec.lipschitz * spec.bound**2 * math.sqrt(updates) * math.log(4 / budget.delta)
    threshold = threshold_ratio(queries, failure) / rate
    return RunParameters(updates, 1.0 / rate, threshold, threshold / (4.0 * spec.bound**2))


def threshold_ratio(queries: int, failure: float) -> float:
    """4 ln(2 T / beta), the threshold divided by the noise scale."""
    return 4.0 * math.log(2.0 * queries / failure)


def calibrate_run(
    spec: KernelSpec,
    moves: StabilityBounds,
    updates: int,
    queries: int,
    budget: Budget,
    wide: float,
) -> RunParameters:
    """The least noise for so many updates, the threshold being ``wide`` scales.

    Step 3 sigma / (4 R^2): what takes |w - w*|^2 down most where the noise is below sigma / 4.
    """
    reach = largest_reach(updates, queries, budget, wide)
    scale = moves.value / reach
    return RunParameters(updates, scale, wide * scale, 0.75 * wide * scale / spec.bound**2)


def count_needed_updates(spec: KernelSpec, design: RunParameters) -> float:
    """16 C^2 R^2 / (9 sigma^2): updates after which w cannot be far off at any query.

    Each takes 9 sigma^2 / (16 R^2) off |w - w*|^2 <= C^2, while no noise is above sigma / 4.
    """
    return (4.0 * spec.radius * spec.bound / (3.0 * design.threshold)) ** 2


def run_at_scale(
    spec: KernelSpec, scale: float, queries: int, failure: float, updates: int | None = None
) -> RunParameters:
    """The run with noise of this scale, of so many updates, or of those that suffice."""
    threshold = threshold_ratio(queries, failure) * scale
    run = RunParameters(1, scale, threshold, 0.0)
    if updates is None:
        updates = max(1, min(queries, round(count_needed_updates(spec, run))))
    return replace(run, updates=updates)


def find_sufficient_run(
    spec: KernelSpec, moves: StabilityBounds, queries: int, budget: Budget, wide: float
) -> RunParameters:
    """The fewest updates that suffice (``count_needed_updates``), at the least noise.

    More updates need more noise, so a number that suffices keeps sufficing. T always suffice.
    """
    most = min(queries, MOST_UPDATES)

    def calibrate_at(updates: int) -> tuple[RunParameters, bool]:
        found = calibrate_run(spec, moves, updates, queries, budget, wide)
        return found, updates >= min(most, count_needed_updates(spec, found))

    # the noise rises about as the root of B, and what is needed falls as 1 / B
    best, updates = None, 1
    for _ in range(_SEARCHES):
        found, suffices = calibrate_at(updates)
        if suffices and (best is None or found.updates <= best.updates):
            best = found
        following = math.ceil(
            math.sqrt(updates * count_needed_updates(spec, found)) * (1.0 + _SPARE)
        )
        following = min(most, following)
        if suffices and following >= updates * (1.0 - 2.0 * _SPARE):
            break
        updates = following if following != updates else min(most, updates + 1)
    return calibrate_at(most)[0] if best is None else best


@memoise(MIB)
def largest_reach(updates: int, queries: int, budget: Budget, wide: float) -> float:
    """The largest sensitivity / scale within the budget, rounded down."""
    return sparse_reach(updates, queries, budget.epsilon, budget.delta, wide)


class QueryAnswerer:
    """The answering of queries, of all trials at once; private values come in one by one."""

    def __init__(self, stream: SparseStream, step: float) -> None:
        self._stream, self._step, self.asked = stream, step, 0
        self.alpha: list[np.ndarray] = []  # [trials] for each query that made updates
        self.made: list[int] = []  # the number of that query

    @property
    def has_ended(self) -> np.ndarray:
        """Which trials have ended, [trials]."""
        return self._stream.has_ended

    def answer(
        self, value: float, kernel: Callable[[list[int]], np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Answers [trials] to the next query and which are updates, [trials].

        ``value`` is its private prediction; ``kernel(numbers)`` gives K(z_k, z), [k], at the
        queries of these numbers.
        """
        known = np.zeros(self._stream.trials)
        if self.made:
            known = np.einsum("kt,k->t", np.array(self.alpha), kernel(self.made))
        value_of_each = np.full(self._stream.trials, float(value))
        answers, far = self._stream.answer(value_of_each, known, self.asked)
        if np.any(far):
            self.alpha.append(np.where(far, self._step * np.sign(answers - known), 0.0))
            self.made.append(self.asked)
        self.asked += 1
        return answers, far

    def weights(self, queries: int) -> np.ndarray:
        """alpha [trials, queries]."""
        found = np.zeros((self._stream.trials, queries))
        for number, alpha in zip(self.made, self.alpha, strict=True):
            found[:, number] = alpha
        return found


def answer_queries(
    stream: SparseStream, step: float, values: np.ndarray, gram: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Answers, updates and alpha, each [trials, T], to T queries in their order."""
    state = QueryAnswerer(stream, step)
    found = [
        state.answer(value, lambda numbers, t=t: gram[numbers, t]) for t, value in enumerate(values)
    ]
    answers = np.stack([answer for answer, _ in found], axis=1)
    updates = np.stack([far for _, far in found], axis=1)
    return answers, updates, state.weights(len(values))


def require_delta(budget: Budget) -> None:
    """``Unsupported`` at delta = 0 of the paper's formulas, which hold ln(4 / delta)."""
    if budget.delta == 0.0:
        raise Unsupported("calibration=paper needs delta > 0; use calibration=auto")
