"""Correlated Gaussian noise on a kernel minimiser's predictions [HRW13]."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, ClassVar, cast

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import PrivacyError, Unsupported
from dperm_cli.core.fields import Count, FromRun, Help, Range
from dperm_cli.kernels.shared.kernel_problem import Fit, KernelSpec
from dperm_cli.mechanisms.adversary import Adversary, kernel_pair
from dperm_cli.mechanisms.base import Mechanism, Plan, Release
from dperm_cli.mechanisms.perturbation.output_perturbation import OutputPerturbation
from dperm_cli.mechanisms.shared import kernel_queries
from dperm_cli.mechanisms.shared.minimisers_on_grid import put_minimiser_on_grid
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import GammaNorm, Gaussian
from dperm_cli.privacy.gate import Gate
from dperm_cli.privacy.secure_grid import Grid
from dperm_cli.privacy.streams import CoordinateStream
from dperm_cli.problem.data import Matrix
from dperm_cli.problem.problem import Loss, ProblemSpec
from dperm_cli.views.central import CentralView
from dperm_cli.views.kernel import KernelView

# Added to K(z, z) of every query of a session, as a share of R^2; fixed before the first query.
_JITTER = 1e-9
_NO_PURE = (
    "Gaussian noise needs delta > 0; mechanism=kernel_semi_interactive with perturbation=laplace "
    "is pure"
)

_IN_COORDINATES = OutputPerturbation("gaussian")  # what it is on rows of a finite map


@dataclass(frozen=True)
class KernelRelease(Mechanism):
    """f + tau G, G the Gaussian process of the kernel: predictions with noise tau N(0, K_ZZ).

    Algorithm: [HRW13] for the minimiser w* of [JT13, eq. (2)]. In coordinates of an orthonormal
    basis of the span of the public queries Z the projection of w* gets noise N(0, tau^2 I), which
    predictions on Z see as N(0, tau^2 K_ZZ). Guarantee: (epsilon, delta), exact for one Gaussian
    release of sensitivity 2 L R / (lambda n), under replace_one; trust: central. ``noise_scale`` is
    tau = 2 L R / (lambda n mu) in the RKHS norm; a prediction gets at most tau R, whatever the
    number of queries. Shapes: theta [trials, dim]. Cost: one minimisation and an eigendecomposition
    of K_ZZ. Unsupported: delta = 0, no kernel, no queries.

    ``session`` answers queries that are chosen one after another, up to ``queries`` of them.

    Under noise=secure (``on_grid``) the function is learned in coordinates of a finite map, made
    row by row: psi(x) = K_ZZ^(-1/2) k_Z(x), the projection on the span of Z, where the kernel
    itself would be used. It is the minimiser of an ordinary problem with strong convexity, found
    with a certificate, plus Gaussian noise on a grid (``output_perturbation``).

    >>> from dperm_cli.mechanisms.adversary import kernel_pair
    >>> spec = kernel_pair()[0].spec()  # one record, one public query
    >>> plan = KernelRelease().plan(spec, Budget(1.0, 1e-6))
    >>> round(plan.noise_scale, 2), plan.settings["queries"]
    (4.23, 1)
    """

    queries: Annotated[Count, Range(1, 100_000), Help("most queries of a session")] = 10_000
    on_grid: Annotated[bool, FromRun(), Help("noise=secure")] = False

    relations: ClassVar[tuple[str, ...]] = ("replace_one",)
    requires: ClassVar[tuple[str, ...]] = ("strong_convexity",)
    space: ClassVar[str] = "kernel"

    def __post_init__(self) -> None:
        """On a grid it works in coordinates of a finite map, and not on the kernel's minimiser.

        The released function answers any query: no session is needed.
        """
        super().__post_init__()
        if self.on_grid:
            own = {"space": "parameters", "secure": True, "on_queries": True, "session": None}
            for name, value in own.items():
                self._keep(name, value)

    def plan_on_grid(self, spec: ProblemSpec, plan: Plan, loss: Loss) -> tuple[Plan, Grid]:
        """With a minimiser that is certain to be found, whatever the records are."""
        found, grid = put_minimiser_on_grid(spec, plan)
        settings = {**found.settings, "prediction_noise": found.noise_scale * spec.row_bound}
        return replace(found, settings=settings), grid

    def check(self, spec: KernelSpec | ProblemSpec, budget: Budget) -> None:
        """A kernel, a ridge and delta > 0."""
        if isinstance(spec, KernelSpec):
            kernel_queries.check_kernel_problem(spec, budget, queries=False)
        elif budget.relation not in self.relations:
            raise Unsupported("kernel_release is proved for relation=replace_one alone")
        elif spec.smoothness is None:
            raise Unsupported(
                f"{spec.loss} has kinks: no solver is certain to find its minimiser on every data "
                "set, and failing would tell of the records; use a smooth loss, as loss=logistic "
                "or loss=huberized_hinge, or noise=research"
            )
        if budget.delta == 0.0:
            raise Unsupported(_NO_PURE)

    def scale(self, spec: KernelSpec | ProblemSpec, budget: Budget) -> float:
        """2 L R / (lambda n mu)."""
        if not isinstance(spec, KernelSpec):
            return _IN_COORDINATES.scale(spec, budget)
        weight = kernel_queries.bound_moves(spec).weight
        return calibrate.gaussian_scale(budget.epsilon, budget.delta, weight)

    def events(
        self, spec: KernelSpec | ProblemSpec, scale: float, budget: Budget
    ) -> tuple[GammaNorm | Gaussian]:
        """One release of the function."""
        if not isinstance(spec, KernelSpec):
            return _IN_COORDINATES.events(spec, scale, budget)
        return (
            Gaussian(
                scale,
                kernel_queries.bound_moves(spec).weight / 2.0,
                relation=kernel_queries.PROVED_RELATION,
            ),
        )

    def settings(
        self,
        spec: KernelSpec | ProblemSpec,
        events: tuple[GammaNorm | Gaussian],
        budget: Budget,
    ) -> dict[str, Any]:
        """What a prediction gets, and how well the minimiser is found."""
        if not isinstance(spec, KernelSpec):
            found = _IN_COORDINATES.settings(spec, events, budget)
            return {**found, "prediction_noise": events[0].scale * spec.row_bound}
        return {
            "queries": spec.count,
            "prediction_noise": events[0].scale * spec.bound,
            "distance": kernel_queries.bound_moves(spec).distance,
        }

    def release(self, view: KernelView | CentralView, plan: Plan, gate: Gate) -> Release:
        """The projection of the minimiser on the span of Z plus noise."""
        spec: Any = view.spec
        if not isinstance(spec, KernelSpec):
            return _IN_COORDINATES.release(cast(CentralView, view), plan, gate)
        view = cast(KernelView, view)
        found = view.find_minimiser(kernel_queries.bound_moves(spec).distance).theta
        noise = gate.stream(plan.events[0], spec.dim)
        return Release(noise.add(np.tile(found, (gate.trials, 1)), 0))

    def session(self, view: KernelView, plan: Plan, gate: Gate) -> ReleaseSession:
        """Answers to queries that come one after another, of one trial."""
        found = view.find_minimiser(kernel_queries.bound_moves(view.spec).distance)
        stream = gate.stream(plan.events[0], self.queries, one_by_one=True)
        return ReleaseSession(found, stream)

    def adversary(self, budget: Budget) -> Adversary:
        """One record on a line, whose minimiser is 2 L R / lambda away from its neighbour's."""
        return Adversary(*kernel_pair(), self, kind="gaussian", floor=0.8)


class ReleaseSession:
    """Queries answered by the values of one random function, drawn as far as they are asked for.

    The queries' Gram matrix plus jitter has a Cholesky factor, grown by a row for each new query.
    The whitened predictions it gives are coordinates of the minimiser in orthonormal directions
    (after a contraction, by the jitter), so that all of them together move by the sensitivity. A
    query that was asked before gets its answer again. The conditional variance is at least the
    jitter: it is never negative.
    """

    def __init__(self, found: Fit, stream: CoordinateStream) -> None:
        self._found, self._stream = found, stream
        self._jitter = _JITTER * found.spec.bound**2
        self._points: list[np.ndarray] = []
        self._factor = np.zeros((0, 0))
        self._whitened = np.zeros(0)  # private: L^-1 f(Z)
        self._noisy = np.zeros(0)
        self._known: dict[bytes, float] = {}

    @property
    def has_ended(self) -> bool:
        """Whether no new query can be answered."""
        return len(self._points) >= self._stream.dim

    def ask(self, rows: Matrix) -> tuple[np.ndarray, np.ndarray]:
        """Answers [k] to queries [k, columns], and whether each looked at the data, [k].

        PrivacyError for a query that no record could be (``kernel_queries.check_queries``).
        """
        dense = kernel_queries.check_queries(self._found.spec, rows)
        known = [row.tobytes() in self._known for row in dense]
        answers = np.array([self._one(row) for row in dense])
        return answers, ~np.array(known, dtype=bool)

    def _one(self, row: np.ndarray) -> float:
        name = row.tobytes()
        if name not in self._known:
            self._known[name] = self._answer_new_query(row)
        return self._known[name]

    def _answer_new_query(self, row: np.ndarray) -> float:
        if self.has_ended:
            raise PrivacyError(f"all {self._stream.dim} queries of the session are spent")
        spec, number = self._found.spec, len(self._points)
        along = np.zeros(0)
        if number:
            column = spec.kernel_of(np.array(self._points), row[None, :])[:, 0]
            along = _forward(self._factor, column)
        own = float(spec.kernel_of(row[None, :], row[None, :])[0, 0]) + self._jitter
        height = max(own - float(along @ along), self._jitter) ** 0.5
        value = float(self._found.values(row[None, :])[0])
        whitened = (value - float(along @ self._whitened)) / height
        noisy = float(self._stream.add(np.array([whitened]), number)[0])
        self._grow(row, along, height, whitened, noisy)
        return float(along @ self._noisy[:-1]) + height * noisy

    def _grow(self, row: Any, along: Any, height: float, whitened: float, noisy: float) -> None:
        self._factor = np.pad(self._factor, (0, 1))
        self._factor[-1] = np.append(along, height)
        self._points.append(row)
        self._whitened = np.append(self._whitened, whitened)
        self._noisy = np.append(self._noisy, noisy)


def _forward(factor: np.ndarray, column: np.ndarray) -> np.ndarray:
    from scipy.linalg import solve_triangular

    return np.asarray(solve_triangular(factor, column, lower=True, check_finite=False))
