"""Helpers of kernel mechanisms: stability bounds, checks of queries, least squares in a ball."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from scipy import sparse

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import PrivacyError, Unsupported
from dperm_cli.core.fields import Help, Probability
from dperm_cli.kernels.shared.kernel_problem import KernelSpec
from dperm_cli.mechanisms.base import Mechanism
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Laplace
from dperm_cli.problem.data import Matrix

PROVED_RELATION = (
    "replace_one"  # the one relation that the sensitivity of a minimiser is proved for
)
_HALVINGS = 100
_ROUNDING_ROOM = 1e-9  # rounding of K(z, z), which ``KernelSpec.asked`` leaves room for
_NULL = 1e-10  # eigenvalues below this share of the largest count as zero


@dataclass(frozen=True, kw_only=True)
class KernelMechanism(Mechanism):
    """What the learners of [JT13] promise, and ``failure``, the chance that their errors exceed
    what they say."""

    failure: Annotated[Probability, Help("beta: chance that the errors exceed what is said")] = 0.05

    guarantees: ClassVar[tuple[str, ...]] = ("pure", "approx")
    relations: ClassVar[tuple[str, ...]] = ("replace_one",)
    requires: ClassVar[tuple[str, ...]] = ("strong_convexity",)
    space: ClassVar[str] = "kernel"


@dataclass(frozen=True)
class StabilityBounds:
    """How far the function that is found moves when a record is replaced, from public facts.

    Attributes
    ----------
    distance : to which the exact minimiser must be found, in the RKHS norm.
    weight : 2 L R / (lambda n) and what such distances add on both sides.
    value : R times that, of the prediction at any one point.
    """

    distance: float
    weight: float
    value: float


def bound_moves(spec: KernelSpec) -> StabilityBounds:
    """``StabilityBounds`` of a problem [JT13, Sec. 5, for eq. (2) as written]."""
    weight = spec.stability + 2.0 * spec.close
    return StabilityBounds(spec.target_distance, weight, weight * spec.bound)


def make_laplace(scale: float, move: float, count: int = 1) -> Laplace:
    """``count`` numbers with Laplace noise, each of which moves by ``move`` at most."""
    return Laplace(scale, move / 2.0, count, relation=PROVED_RELATION)


def check_kernel_problem(spec: KernelSpec, budget: Budget, *, queries: bool = True) -> None:
    """``Unsupported`` unless what all kernel mechanisms need is there."""
    if spec.space != "kernel":
        raise Unsupported("works on functions of a kernel: set kernel=linear or another one")
    if budget.relation != "replace_one":
        raise Unsupported(
            "the sensitivity of a kernel minimiser is proved for relation=replace_one alone: "
            "its average follows the number of records"
        )
    if not (spec.ridge > 0.0 and spec.stability > 0.0):
        raise Unsupported("a kernel minimiser is not stable without a ridge: set ridge above 0")
    if queries and not spec.count:
        raise Unsupported(
            "there are no public points to answer at: set kernel.queries to a number of held-out "
            "inputs or to a file"
        )
    if not has_bounded_features(spec, spec.queries):
        raise Unsupported(
            "a public point is longer in feature space than the bound R that the sensitivity "
            "follows from: shorten the rows of kernel.queries to dataset.row_bound"
        )


def has_bounded_features(spec: KernelSpec, points: Matrix) -> bool:
    """Whether |phi(z)| <= R for every public point: only there a prediction moves by s at most.

    Finite feature maps shorten longer rows themselves.
    """
    if spec.features is not None or not points.shape[0]:
        return True
    longest = float(np.max(spec.kernel.diagonal(points)))
    return longest <= spec.bound**2 * (1.0 + _ROUNDING_ROOM)


def check_queries(spec: KernelSpec, rows: Matrix) -> np.ndarray:
    """The queries of a session as an array [k, columns], all checked before one is answered.

    Noise is made for queries that a record could be: what is not finite, or longer than the row
    bound, would take the arithmetic of the session beyond what its sensitivity was proved for.

    Args:
        spec: the public facts of the session's problem.
        rows: queries [k, columns], dense or sparse.

    Raises:
        PrivacyError: a query has another number of columns, holds a number that is not finite, is
            longer than the row bound, or is longer than R in feature space.
    """
    dense = np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=float)
    if dense.ndim != 2 or dense.shape[1] != spec.columns:
        raise PrivacyError(
            f"queries must be rows of {spec.columns} columns, not an array of shape {dense.shape}"
        )
    dense = dense + 0.0  # -0 and 0 are one query
    if not np.all(np.isfinite(dense)):
        raise PrivacyError("a query holds a number that is nan or infinite")
    with np.errstate(over="ignore"):
        longest = float(np.max(np.linalg.norm(dense, axis=1), initial=0.0))
    if not longest <= spec.row_bound * (1.0 + _ROUNDING_ROOM):
        raise PrivacyError(
            f"a query has norm {longest:.6g}: shorten it to {spec.row_bound:.6g}, the row bound of "
            "the data set"
        )
    if not has_bounded_features(spec, dense):
        raise PrivacyError(
            f"a query has |phi(z)| above {spec.bound:.6g}, what its noise is made for: shorten "
            "it to the row bound of the data set"
        )
    return dense


def fit_in_ball(gram: np.ndarray, values: np.ndarray, radius: float | np.ndarray) -> np.ndarray:
    """alpha [..., T] of the w = sum alpha_t phi(z_t), |w| <= radius, nearest to values [..., T].

    Nearest in mean square over the z_t: with gram = U diag(m) U^T and c = U^T values, w has
    coordinates sqrt(m) c / (m + nu) in the eigenfunctions, nu >= 0 the least that keeps |w| in the
    ball, found by bisection from its feasible side.
    """
    spectrum, vectors = np.linalg.eigh(0.5 * (gram + gram.T))
    kept = spectrum > _NULL * max(float(spectrum[-1]), 0.0)
    spectrum, vectors = spectrum[kept], vectors[:, kept]
    along = np.asarray(values) @ vectors

    def norm(shift: np.ndarray) -> np.ndarray:
        part = np.sqrt(spectrum) * along / (spectrum + shift[..., None])
        return np.linalg.norm(part, axis=-1)

    low = np.zeros(along.shape[:-1])
    # |w| <= max_k sqrt(m_k) / (m_k + nu) |c| <= |c| / (2 sqrt(nu))
    high = (np.linalg.norm(along, axis=-1) / (2.0 * radius)) ** 2 * (1.0 + 1e-9)
    inside = norm(low) <= radius
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        fits = norm(middle) <= radius
        low, high = np.where(fits, low, middle), np.where(fits, middle, high)
    shift = np.where(inside, 0.0, high)
    return (along / (spectrum + shift[..., None])) @ vectors.T
