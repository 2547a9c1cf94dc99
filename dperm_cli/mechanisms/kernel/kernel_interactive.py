"""Private interactive non-linear prediction, PINP [JT13, Alg. 1]."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import PrivacyError
from dperm_cli.core.fields import Auto, Choices, Help, Positive, Range
from dperm_cli.kernels.shared.kernel_problem import Fit, KernelSpec
from dperm_cli.mechanisms.adversary import Adversary, kernel_pair
from dperm_cli.mechanisms.base import Design, Plan, Release
from dperm_cli.mechanisms.shared import kernel_queries, sparse_answers
from dperm_cli.mechanisms.shared.kernel_queries import KernelMechanism
from dperm_cli.mechanisms.shared.sparse_answers import QueryAnswerer, RunParameters
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import SparseAnswers
from dperm_cli.privacy.gate import Gate
from dperm_cli.privacy.streams import SparseStream
from dperm_cli.problem.data import Matrix
from dperm_cli.views.kernel import KernelView


@dataclass(frozen=True)
class KernelInteractive(KernelMechanism):
    """Queries answered by a public function, corrected where it is far from the minimiser.

    Algorithm: [JT13, Alg. 1]; the one draw of noise on a query serves the test and the answer, and
    a run stops at B updates, after which the function answers alone. Guarantee: (epsilon, delta)
    under replace_one by a numeric Renyi bound that does not grow with the number of queries, or by
    that of so many Laplace releases where it is smaller; pure epsilon at delta = 0, where every
    query is paid for; trust: central. ``noise_scale`` is that of the Laplace noise 1 / eps_0, in
    the unit of a prediction. Shapes: theta [trials, dim], the function at the end; ``answers`` and
    ``updates`` in the by-products. Cost: one minimisation, and a kernel row a query. Unsupported:
    no kernel, no queries; calibration=paper at delta = 0.

    With probability 1 - ``failure`` every answer is within 5 sigma / 4 of the minimiser's
    prediction, sigma the threshold, if the updates suffice, as those of ``updates=auto`` do.
    ``calibration=paper`` takes B, eps_0, sigma and eta as printed (B in the right units), which
    spends less than a fiftieth of epsilon. ``threshold`` is in noise scales, auto 4 ln(2 T / beta).

    >>> from dperm_cli.mechanisms.adversary import kernel_pair
    >>> spec = kernel_pair()[0].spec()  # one record, one public query
    >>> plan = KernelInteractive().plan(spec, Budget(1.0, 1e-6))
    >>> round(plan.noise_scale, 2)
    1.0
    """

    calibration: Annotated[str, Choices("auto", "paper"), Help("paper = constants as printed")] = (
        "auto"
    )
    updates: Annotated[
        int | Auto,
        Range(1, sparse_answers.MOST_UPDATES),
        Help("B, answers that look at the data; auto = the fewest that do"),
    ] = "auto"
    threshold: Annotated[Positive | Auto, Help("in noise scales; auto = 4 ln(2 T / beta)")] = "auto"
    queries: Annotated[
        int | Auto, Range(1, 10**9), Help("T; auto = the public queries there are")
    ] = "auto"

    def check(self, spec: KernelSpec, budget: Budget) -> None:
        """A kernel and queries."""
        kernel_queries.check_kernel_problem(spec, budget, queries=self.queries == "auto")

    def design(self, spec: KernelSpec, budget: Budget) -> Design:
        """B, the noise, the threshold and the step, from public facts alone."""
        moves, queries = kernel_queries.bound_moves(spec), self._queries(spec)
        run = self.choose_run(spec, budget)
        settings = {
            "calibration": self.calibration,
            "updates": run.updates,
            "threshold": run.threshold,
            "step": run.step,
            "queries": queries,
            "failure": self.failure,
            "updates_enough": min(sparse_answers.count_needed_updates(spec, run), float(queries)),
            "distance": moves.distance,
        }
        return Design((run.event(moves, queries),), run.scale, queries, settings)

    def choose_run(self, spec: KernelSpec, budget: Budget) -> RunParameters:
        """The run that these fields ask for."""
        queries = self._queries(spec)
        moves = kernel_queries.bound_moves(spec)
        updates = None if self.updates == "auto" else int(self.updates)
        if self.calibration == "paper":
            return sparse_answers.make_paper_run(spec, queries, budget, self.failure, updates)
        wide = self.threshold
        wide = (
            sparse_answers.threshold_ratio(queries, self.failure) if wide == "auto" else float(wide)
        )
        if updates is None:
            return sparse_answers.find_sufficient_run(spec, moves, queries, budget, wide)
        return sparse_answers.calibrate_run(spec, moves, updates, queries, budget, wide)

    def events(self, spec: KernelSpec, scale: float, budget: Budget) -> tuple[SparseAnswers]:
        """The run at another noise scale, threshold and updates following it."""
        queries, moves = self._queries(spec), kernel_queries.bound_moves(spec)
        updates = None if self.updates == "auto" else int(self.updates)
        run = sparse_answers.run_at_scale(spec, scale, queries, self.failure, updates)
        return (run.event(moves, queries),)

    def release(self, view: KernelView, plan: Plan, gate: Gate) -> Release:
        """Answers to all public queries, in their order."""
        spec = view.spec
        values = view.find_minimiser(kernel_queries.bound_moves(spec).distance).values(spec.queries)
        stream, step = gate.stream(plan.events[0], 1), plan.settings["step"]
        values = values[: plan.settings["queries"]]
        answers, updates, alpha = sparse_answers.answer_queries(stream, step, values, spec.gram)
        theta = alpha @ spec.rows[: len(values)]
        return Release(theta, {"answers": answers, "updates": updates})

    def session(self, view: KernelView, plan: Plan, gate: Gate) -> InteractiveSession:
        """Answers to queries that come one after another, of one trial."""
        found = view.find_minimiser(kernel_queries.bound_moves(view.spec).distance)
        stream = gate.stream(plan.events[0], 1)
        return InteractiveSession(found, stream, plan.settings["step"], self._queries(view.spec))

    def adversary(self, budget: Budget) -> Adversary:
        """One query on a line: a record's label decides which side an update can come from."""
        attacked = replace(self, calibration="auto", updates=1, threshold=1.0, queries="auto")
        return Adversary(*kernel_pair(), attacked, floor=0.85)

    def _queries(self, spec: KernelSpec) -> int:
        return spec.count if self.queries == "auto" else int(self.queries)


class InteractiveSession:
    """Queries answered in turn; rows of queries that made updates are remembered, and no others."""

    def __init__(self, found: Fit, stream: SparseStream, step: float, queries: int) -> None:
        self._found, self._state = found, QueryAnswerer(stream, step)
        self._queries, self._points = queries, {}

    @property
    def has_ended(self) -> bool:
        """Whether all updates are spent: the public function answers alone."""
        return bool(self._state.has_ended.all())

    def ask(self, rows: Matrix) -> tuple[np.ndarray, np.ndarray]:
        """Answers [k] to queries [k, columns], and whether each is an update, [k].

        PrivacyError for a query that no record could be (``kernel_queries.check_queries``).
        """
        dense = kernel_queries.check_queries(self._found.spec, rows)
        found = [self._one(row[None, :]) for row in dense]
        return np.array([a for a, _ in found]), np.array([far for _, far in found], dtype=bool)

    def _one(self, row: np.ndarray) -> tuple[float, bool]:
        number, spec = self._state.asked, self._found.spec
        if number >= self._queries:
            raise PrivacyError(f"all {self._queries} queries of the session are spent")

        def kernel(numbers: list[int]) -> np.ndarray:
            points = np.concatenate([self._points[k] for k in numbers])
            return spec.kernel_of(points, row)[:, 0]

        value = 0.0 if self.has_ended else float(self._found.values(row)[0])
        answers, far = self._state.answer(value, kernel)
        if far[0]:
            self._points[number] = row
        return float(answers[0]), bool(far[0])
