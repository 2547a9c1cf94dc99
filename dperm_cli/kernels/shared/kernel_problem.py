"""Regularised risk minimisation in the space of a kernel, and the public facts about it.

minimise sum_i l(f(x_i); y_i) + (n lambda / 2) |f|^2 over functions f = <w, phi(.)>. This is n times
[JT13, eq. (2)], so that ``ridge`` is the paper's lambda.
"""

from __future__ import annotations

import json
import math
from dataclasses import field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.digests import hash_parts
from dperm_cli.core.memo import MIB, Memo
from dperm_cli.kernels.base import Kernel
from dperm_cli.kernels.shared import dual_solver as duals
from dperm_cli.kernels.shared import mapped_rows
from dperm_cli.kernels.shared.feature_maps import Features, Landmarks
from dperm_cli.kernels.shared.mapped_rows import FeatureRows, map_rows
from dperm_cli.losses.shared.margin_loss import Glm
from dperm_cli.problem.data import Data, Matrix
from dperm_cli.problem.public_facts import PublicFacts

CLOSE = 1e-3  # the largest distance of a solution from the minimiser, as a share of its sensitivity
_TARGET_SHARE = 0.95  # the solver is asked for this share of it: the rest is for rounding
_SECONDS = 900.0  # default time limit of a solution
_SOLVED: Memo[str, duals.Solution] = Memo(256 * MIB)


@dataclass(frozen=True, eq=False)
class KernelSpec:
    """The public facts of a kernel problem: all that a kernel mechanism may plan with.

    Attributes
    ----------
    n : number of records, public under replace_one.
    lipschitz : L, of one record's loss in its margin, over the margins |z| <= bound * radius.
    bound : R = sup |phi(x)|, enforced on every record.
    ridge : lambda of [JT13, eq. (2)].
    radius : C, a bound on |w*| for every data set (``norm_bound``).
    smoothness : Lipschitz constant of the loss's slope in the margin, or None.
    kernel, features : the kernel, and the finite map in its place, or None where it is exact.
    queries : the public points Z, [T, columns]; T may be 0.
    rows : coordinates of phi(z_t) in an orthonormal basis of their span (exact) or of R^dim (finite
        map), [T, dim]: the predictions of a point theta [dim] on Z are ``rows @ theta``.
    dim : length of a released theta.
    gram : K_ZZ, [T, T], equal to rows rows^T up to rounding.
    loss, task, form : name of the loss, task of the data and the loss itself.
    """

    n: int
    lipschitz: float
    bound: float
    ridge: float
    radius: float
    smoothness: float | None
    kernel: Kernel
    features: Features | None
    queries: Matrix
    columns: int
    row_bound: float
    target_bound: float
    loss: str
    task: str
    form: Glm = field(repr=False)

    space: ClassVar[str] = "kernel"

    @property
    def stability(self) -> float:
        """2 L R / (lambda n) >= |w* - w*'| for neighbours under replace_one, in the RKHS norm.

        The gradients of two records differ by at most 2 L R, and the summed objective is
        n lambda-strongly convex [JT13, proof of Thm 2].
        """
        return 2.0 * self.lipschitz * self.bound / (self.ridge * self.n)

    @property
    def prediction_sensitivity(self) -> float:
        """s = 2 L R^2 / (lambda n) >= |<w* - w*', phi(z)>| for every z."""
        return self.stability * self.bound

    @property
    def close(self) -> float:
        """A distance to the exact minimiser that adds little to ``stability``: 2 CLOSE of it."""
        return CLOSE * self.stability

    @property
    def target_distance(self) -> float:
        """The distance from the minimiser that every solution is asked for.

        Mechanisms and the optimum share one solution, so they ask for the same. The rest of
        ``close`` is for rounding errors.
        """
        return _TARGET_SHARE * self.close

    @property
    def finite(self) -> bool:
        """Whether theta lives in the R^dim of a finite map, not in the span of the queries Z."""
        return self.features is not None

    @property
    def p(self) -> int:
        """The length of theta."""
        return self.dim

    @property
    def dim(self) -> int:
        return self.basis.dim

    @property
    def count(self) -> int:
        """T, the number of queries."""
        return int(self.queries.shape[0])

    @cached_property
    def basis(self) -> Features:
        """What maps points to coordinates: the finite map, or the projection on the span of Z."""
        if self.features is not None:
            return self.features
        return Landmarks(self.kernel, self.queries, self.bound)

    @cached_property
    def rows(self) -> np.ndarray:
        return self.basis.apply(self.queries) if self.count else np.zeros((0, self.dim))

    @cached_property
    def gram(self) -> np.ndarray:
        if self.features is not None:
            return self.rows @ self.rows.T
        return self.kernel.gram(self.queries, self.queries)

    def coordinates(self, points: Matrix) -> np.ndarray:
        """psi(x) of each row [m, columns], [m, dim]: f(x) = <theta, psi(x)>."""
        return self.basis.apply(points)

    def kernel_of(self, a: Matrix, b: Matrix) -> np.ndarray:
        """The kernel that is used, that of the finite map where there is one: [na, nb]."""
        if self.features is None:
            return self.kernel.gram(a, b)
        return self.features.apply(a) @ self.features.apply(b).T

    def interpolant(self, values: np.ndarray) -> np.ndarray:
        """The shortest theta with predictions nearest to ``values`` [..., T] on Z, [..., dim]."""
        return np.asarray(values) @ self._inverse.T

    @cached_property
    def _inverse(self) -> np.ndarray:
        return np.linalg.pinv(self.rows, rcond=1e-9)


@dataclass(frozen=True)
class Fit:
    """A function within ``distance`` of the minimiser, in the RKHS norm. It is private.

    ``gap`` bounds its objective (a sum) above the least; ``value`` is the objective.
    """

    spec: KernelSpec = field(repr=False)
    solution: duals.Solution = field(repr=False)
    points: Matrix = field(repr=False)

    @property
    def distance(self) -> float:
        return self.solution.distance

    @property
    def gap(self) -> float:
        return self.solution.gap

    @property
    def value(self) -> float:
        return self.solution.value

    @property
    def norm(self) -> float:
        """|w|, in the RKHS norm."""
        return self.solution.norm

    def values(self, points: Matrix) -> np.ndarray:
        """f(x) of each row [m, columns], [m]."""
        weights, spec = self.solution.weights, self.spec
        if spec.features is not None:
            return spec.features.apply(points) @ weights
        used = np.flatnonzero(weights)
        out = np.empty(points.shape[0])
        for start in range(0, len(out), 2048):
            part = slice(start, start + 2048)
            out[part] = spec.kernel.gram(points[part], self.points[used]) @ weights[used]
        return out

    @cached_property
    def theta(self) -> np.ndarray:
        """Coordinates [dim]: w itself for a finite map, else its projection on the span of Z."""
        if self.spec.features is not None:
            return self.solution.weights
        # psi(z) of an orthonormal basis: values on Z are rows @ theta exactly
        return self.spec.interpolant(self.values(self.spec.queries))


@dataclass(frozen=True, eq=False)
class KernelProblem:
    """Records, a loss of the margin, a kernel, lambda > 0 and public queries.

    ``data`` holds the raw rows [n, columns]. With ``features``, the kernel is that of a finite map.
    ``rows`` may hold the mapped training rows, so that they are computed only once.
    """

    data: Data
    loss: Any
    kernel: Kernel
    ridge: float
    queries: Matrix
    features: Features | None = None
    radius: str | float = "auto"
    rows: Any = field(default=None, repr=False)

    def spec(self) -> KernelSpec:
        """The public facts. They follow from declared bounds, n, columns and public points."""
        return self._spec

    @cached_property
    def _spec(self) -> KernelSpec:
        return make_kernel_spec(
            self.data.facts(), self.loss, self.kernel, self.ridge, self.queries, self.features,
            self.radius,
        )  # fmt: skip

    def solve(
        self, distance: float | None = None, *, gap: float = 0.0, seconds: float = _SECONDS
    ) -> Fit:
        """A function close to the minimiser. Solutions are remembered.

        What is asked for is a distance or a gap. If both are given, the easier one counts. It is
        never easier than the default, ``spec().target_distance``. A remembered solution is used
        only for the same problem and the same request, so that no result depends on the calls
        before. One that missed its gap is tried again only with more time.

        Args:
            distance: the largest distance from the minimiser, in the RKHS norm.
            gap: the largest gap of the objective (a sum over records).
            seconds: the time limit.

        Returns:
            The fit, with the distance and gap that were reached: they may miss the request.
        """
        asked = self._gap(distance, gap)
        known = _SOLVED.get(self.solution_name(asked))
        if known is None or (known.gap > asked and known.seconds >= seconds):
            modulus = self.data.n * self.ridge
            known = duals.solve(
                self.system, self.loss, self.data.y, modulus, gap=asked, seconds=seconds
            )
            self.remember(known, asked)
        return Fit(self.spec(), known, self.data.x)

    def _gap(self, distance: float | None = None, gap: float = 0.0) -> float:
        """The gap that proves the distance, by sqrt(gap / m) or |P'| / m = sqrt(2 gap / m)."""
        modulus = self.data.n * self.ridge
        usual = 0.5 * modulus * self.spec().target_distance ** 2
        if distance is None and gap == 0.0:
            return usual
        return min(usual, max(0.5 * modulus * (distance or 0.0) ** 2, gap))

    def has_solution(self) -> bool:
        """Whether the solution that mechanisms ask for is remembered."""
        return self.solution_name() in _SOLVED

    def remember(self, solution: duals.Solution, asked: float | None = None) -> None:
        """Keep the solution of this gap for later calls."""
        _SOLVED.put(self.solution_name(asked), solution)

    def solution_name(self, asked: float | None = None) -> str:
        """The problem and the gap that its solution is asked for (default: the usual one)."""
        return f"{self.fingerprint()} {(self._gap() if asked is None else asked).hex()}"

    def verify_dual(self, slopes: np.ndarray, weights: np.ndarray) -> duals.Solution:
        """What stored slopes [n] and weights prove about this problem."""
        modulus = self.data.n * self.ridge
        return duals.verify_dual(self.system, self.loss, self.data.y, modulus, slopes, weights)

    @property
    def system(self) -> duals.FeatureSystem | duals.GramSystem:
        """The records in feature space, for the solver; maybe large, and made anew each time."""
        if self.features is None:
            return duals.GramSystem(self.kernel, self.data.x)
        rows = self.rows if self.rows is not None else map_rows(self.features, self.data.x)
        return duals.FeatureSystem(rows.array if isinstance(rows, FeatureRows) else rows)

    def fingerprint(self) -> str:
        """Hex digest of everything the minimiser depends on."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        own_map = map_name(self.kernel, self.features)
        facts = [self.data.fingerprint, repr(self.loss), self.ridge, own_map]
        if self._has_float32_rows:
            facts.append("float32")  # rounded rows have another minimiser
        return hash_parts(json.dumps(facts))

    @property
    def _has_float32_rows(self) -> bool:
        """Whether the rows of ``system`` are in float32."""
        if self.features is None or self.rows is not None:
            return isinstance(self.rows, FeatureRows)
        return mapped_rows.uses_float32(self.data.n, self.features.dim)

    @cached_property
    def points_name(self) -> str:
        """A digest of the queries."""
        dense = self.queries.toarray() if sparse.issparse(self.queries) else self.queries
        return hash_parts(np.ascontiguousarray(dense, "<f8"), size=64)[:32]


def make_kernel_spec(
    facts: PublicFacts,
    loss: Any,
    kernel: Kernel,
    ridge: float,
    queries: Matrix,
    features: Features | None,
    radius: str | float,
) -> KernelSpec:
    """Assemble the public facts of a kernel problem from those of its data.

    Args: as ``KernelProblem`` has them; ``queries`` are public points.
    """
    kernel.check_columns(facts.p)
    bound = kernel.bound(facts.row_bound)
    least, lipschitz = norm_bound(loss, bound, ridge, facts.target_bound)
    if radius == "paper":
        least = lipschitz * bound / ridge
    return KernelSpec(
        n=facts.n, lipschitz=lipschitz, bound=bound, ridge=ridge, radius=least,
        smoothness=loss.smoothness, kernel=kernel, features=features, queries=queries,
        columns=facts.p, row_bound=facts.row_bound, target_bound=facts.target_bound,
        loss=loss.name, task=facts.task, form=loss,
    )  # fmt: skip


def map_name(kernel: Kernel, features: Features | None) -> str:
    """A name of the kernel in force: its keys and, of landmarks and matrices, their numbers."""
    keys = replace(kernel, queries="1", radius="auto", landmarks="auto", size="auto")
    words = [repr(keys), type(features).__name__]
    parts = [] if kernel.matrix is None else [kernel.matrix]
    if isinstance(features, Landmarks):
        parts.append(features.points)
    elif features is not None:
        words.append(str(features.dim))
    every = [part.toarray() if sparse.issparse(part) else part for part in parts]
    pieces = [piece for a in every for piece in (f"{a.shape}", np.ascontiguousarray(a, "<f8"))]
    return " ".join([*words, hash_parts(*pieces)])


def norm_bound(loss: Any, bound: float, ridge: float, target: float) -> tuple[float, float]:
    """(C, L): C >= |w*| for every data set, and L = sup |l'| over the margins |z| <= R C.

    At the minimiser lambda |w*|^2 = -(1/n) sum l'(z_i) z_i, so that C^2 = max(-z l'(z)) / lambda
    does: the maximum is 1 for the hinge (1 + h for its huberized form at most), 0.2785 for the
    logistic loss and target^2 / 4 for the squared one. L R / lambda is the other bound
    ([JT13, Sec. 5] has twice that), and the smaller one is taken.
    """
    radius = math.sqrt(loss.radial_slope_bound(target) / ridge)
    lipschitz = float(loss.slope_bound(bound * radius, target))
    return min(radius, lipschitz * bound / ridge), lipschitz


__all__ = ["CLOSE", "Fit", "KernelProblem", "KernelSpec", "map_name", "norm_bound"]
