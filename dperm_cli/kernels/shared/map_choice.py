"""Choose the finite feature map of a kernel, and the public points where predictions are released.

Both depend on the configuration and public facts only, never on a training record.
"""

from __future__ import annotations

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.kernels.base import Kernel
from dperm_cli.kernels.shared import mapped_rows
from dperm_cli.kernels.shared.dual_solver import shuffle
from dperm_cli.kernels.shared.feature_maps import Explicit, Features, Fourier, Landmarks
from dperm_cli.kernels.shared.point_files import array_of
from dperm_cli.problem.public_facts import Matrix, PublicFacts

EXACT = 20_000  # records up to which auto keeps the kernel as it is
MONOMIALS = 2_000  # features up to which auto takes the explicit map
LANDMARKS, FREQUENCIES, QUERIES = 500, 250, 500  # the numbers for size=auto and queries=auto


@dataclass(frozen=True)
class MapRequest:
    """What a mechanism wants of the map.

    Attributes
    ----------
    mechanism : its name, for messages.
    minimiser_only : whether it asks for the kernel's minimiser alone, and for no rows.
    features : the one kind of map that it works on, or None.
    on_queries : whether it works on the span of the public queries where the kernel itself would
        be used.
    """

    mechanism: str
    minimiser_only: bool
    features: str | None = None
    on_queries: bool = False


def make_map_and_queries(
    kernel: Kernel, facts: PublicFacts, wanted: MapRequest
) -> tuple[Features | None, Matrix]:
    """The finite map or None, and the public points Z at which predictions are released.

    Raises:
        InputError: the configured kind does not fit the kernel or the mechanism, or there are no
            public points.
    """
    if choose_kind(kernel, facts, wanted) == "queries":
        points = make_queries(kernel, facts, None)
        return Landmarks(kernel, points, kernel.bound(facts.row_bound)), points
    features = make_map(kernel, facts, wanted)
    return features, make_queries(kernel, facts, features)


def make_map(kernel: Kernel, facts: PublicFacts, wanted: MapRequest) -> Features | None:
    """The finite map that replaces the kernel's own, or None where the kernel is used itself."""
    bound = kernel.bound(facts.row_bound)
    kind = choose_kind(kernel, facts, wanted)
    if kind == "exact":
        return None
    if kind == "explicit":
        return Explicit(kernel, facts.p, bound)
    if kind == "fourier":
        size = FREQUENCIES if kernel.size == "auto" else int(kernel.size)
        return Fourier(kernel, facts.p, size, bound)
    size = LANDMARKS if kernel.size == "auto" else int(kernel.size)
    points = _public_points(kernel.landmarks, "kernel.landmarks", kernel, facts)[:size]
    if not points.shape[0]:
        raise _no_points("kernel.landmarks", kernel, facts)
    return Landmarks(kernel, points, bound)


def choose_kind(kernel: Kernel, facts: PublicFacts, wanted: MapRequest) -> str:
    """``exact``, ``queries``, ``explicit``, ``fourier`` or ``landmarks``.

    Raises:
        InputError: the configured kind does not fit the kernel or the mechanism.
    """
    only, monomials = wanted.features, kernel.monomials(facts.p)
    if only is not None and kernel.features not in ("auto", only):
        allowed = f"must be {only} with {wanted.mechanism}, or auto"
        raise InputError("kernel.features", kernel.features, allowed)
    kind = kernel.features if only is None else only
    if kind == "auto":
        if (wanted.minimiser_only or wanted.on_queries) and facts.n <= EXACT:
            return "queries" if wanted.on_queries else "exact"
        if monomials is not None and monomials <= MONOMIALS:
            return "explicit"
        if kernel.is_shift_invariant and not wanted.minimiser_only:
            return "fourier"
        return "landmarks"
    if kind == "exact" and wanted.on_queries:
        return "queries"
    if kind == "exact" and not wanted.minimiser_only:
        allowed = f"{wanted.mechanism} works on parameters: it needs a finite map, "
        allowed += "kernel.features=auto, explicit, landmarks or fourier"
        raise InputError("kernel.features", kind, allowed)
    if kind == "explicit" and (monomials is None or monomials > 10 * MONOMIALS):
        size = "has no finite map" if monomials is None else f"has {monomials} features here"
        raise InputError("kernel.features", kind, f"{kernel.name} {size}; take landmarks")
    if kind == "fourier" and not kernel.is_shift_invariant:
        allowed = f"{kernel.name} is no function of x - z; take landmarks"
        raise InputError("kernel.features", kind, allowed)
    return kind


def make_queries(kernel: Kernel, facts: PublicFacts, features: Features | None) -> Matrix:
    """Z: held-out inputs that are no landmarks, as far as they go, or the rows of a file."""
    if isinstance(kernel.queries, str) and kernel.queries != "auto":
        return _public_points(kernel.queries, "kernel.queries", kernel, facts)
    if facts.hidden_points and kernel.queries != "auto":
        raise _no_points("kernel.queries", kernel, facts)
    held_out = _list_public_inputs(kernel, facts)
    count = QUERIES if kernel.queries == "auto" else int(kernel.queries)
    have = int(held_out.shape[0])
    if kernel.queries != "auto" and count > have:
        raise InputError("kernel.queries", count, f"must be at most {have}, the held-out inputs")
    used = 0
    if isinstance(features, Landmarks) and kernel.landmarks == "auto":
        used = int(features.points.shape[0])
    first = used if have - used >= count else 0
    found = held_out[first : first + count]
    if features is None and not found.shape[0]:
        raise _no_points("kernel.queries", kernel, facts)
    return found


def check_size(facts: PublicFacts, dim: int) -> None:
    """InputError where the mapped rows of the public number of records are too large."""
    need = 8 * facts.n * dim
    if need > mapped_rows.MOST:
        allowed = f"makes {facts.n} rows of {dim} features, {need / 2**30:.1f} GiB; at most "
        allowed += f"{mapped_rows.MOST / 2**30:.0f} GiB for a mechanism that works on parameters"
        raise InputError("kernel.size", dim, allowed)


def _list_public_inputs(kernel: Kernel, facts: PublicFacts) -> Matrix:
    """The held-out inputs, which are public, in a fixed shuffled order."""
    if facts.points is None:
        return np.zeros((0, facts.p))
    return facts.points[shuffle(np.arange(facts.points.shape[0]), kernel.seed)]


def _no_points(key: str, kernel: Kernel, facts: PublicFacts) -> InputError:
    """The error that there are no public points, with what to type instead."""
    allowed = "needs public points: held-out inputs (dataset.test_fraction), or a file of rows"
    if facts.hidden_points:
        other = "explicit" if kernel.monomials(facts.p) is not None else "fourier"
        without = kernel.is_shift_invariant or other == "explicit"
        allowed = "which inputs are held out, and how many, follows the number of records, which a "
        allowed += "declared privacy.population keeps private: name public points by "
        allowed += f"dataset.test_path=FILE or {key}=FILE"
        allowed += f", or take kernel.features={other}" if without else ""
    return InputError(key, getattr(kernel, key.partition(".")[2]), allowed)


def _public_points(word: str, key: str, kernel: Kernel, facts: PublicFacts) -> Matrix:
    """Held-out inputs, or rows from a file, shortened to the row bound as records are."""
    if word == "auto":
        return _list_public_inputs(kernel, facts)
    rows = array_of(key, word, "x")
    if rows.ndim != 2 or rows.shape[1] != facts.p or not len(rows):
        allowed = f"must hold rows of {facts.p} columns, and holds an array of shape {rows.shape}"
        raise InputError(key, word, allowed)
    norms = np.linalg.norm(rows, axis=1)
    scale = np.minimum(1.0, facts.row_bound / np.maximum(norms, 1e-300))
    return rows * scale[:, None]
