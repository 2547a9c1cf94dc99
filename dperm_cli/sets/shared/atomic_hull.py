"""The convex hull of many points that are generated when needed and never stored as a list."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Protocol

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.memo import MIB, Memo
from dperm_cli.problem.cone_program import ConeProgram, add_mixture
from dperm_cli.sets.base import ConvexSet, by_rows, length, reached_diameter
from dperm_cli.sets.shared import hull_quadratic
from dperm_cli.sets.shared.hull_quadratic import Mixture

_PAIRS = 1500  # points up to which every distance is computed
_MOST_WRITTEN = 500_000  # numbers in all atoms of a hull that are written out
_BLOCK = 4_000_000  # numbers of atoms that are looked at together
_FLAT = 1e-20  # of the largest variance: what counts as none


class Atoms(Protocol):
    """Points a_0 .. a_{count - 1} of R^m, or +-a_j where ``signed``.

    An atom's label is j, and j + count for -a_j.
    """

    m: int
    count: int
    signed: bool

    def scores(self, g: np.ndarray) -> np.ndarray:
        """<g, a_j> for each row of [..., m]: [..., count]."""
        ...

    def take(self, labels: np.ndarray) -> np.ndarray:
        """Atoms by their labels [k]: [k, m]."""
        ...

    def norms(self, about: np.ndarray) -> np.ndarray:
        """|a_j - about| for every j, [count]."""
        ...

    def mean(self) -> np.ndarray:
        """Their mean, [m]; the origin where signed."""
        ...


@dataclass
class PointAtoms:
    """The rows of a table [count, m]."""

    table: np.ndarray
    signed: bool = False

    def __post_init__(self) -> None:
        self.count, self.m = self.table.shape

    def scores(self, g: np.ndarray) -> np.ndarray:
        return np.asarray(g, dtype=float) @ self.table.T

    def take(self, labels: np.ndarray) -> np.ndarray:
        signs = np.where(labels >= self.count, -1.0, 1.0)
        return self.table[labels % self.count] * signs[:, None]

    def norms(self, about: np.ndarray) -> np.ndarray:
        return length(self.table - about)

    def mean(self) -> np.ndarray:
        return np.zeros(self.m) if self.signed else np.mean(self.table, axis=0)


class Atomic(ConvexSet):
    """conv of atoms. The centre is their mean.

    Projections and minimisers are mixtures of at most m + 1 atoms, found by an active-set method
    that looks at all atoms once a round (``hull_quadratic``). ``radius`` is exact; ``diameter`` is
    too for C = -C and for up to 1500 atoms, otherwise an upper bound.

    A point that this set has made is known again by its bytes, with its mixture: it needs no
    second projection, and ``mixture`` can say at once what it is made of.
    """

    accuracy = 1e-9
    by_gap = True  # minimisers are certified by their gap

    def __init__(self, atoms: Any) -> None:
        self.atoms, self.p = atoms, atoms.m
        self._known: Memo[bytes, Mixture] = Memo(64 * MIB, most=256)

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        return self.atoms.signed

    @cached_property
    def radius(self) -> float:
        return float(np.max(self.atoms.norms(np.zeros(self.p))))

    @cached_property
    def diameter(self) -> float:  # type: ignore[override]
        if self.symmetric:
            return 2.0 * self.radius
        if self.atoms.count > _PAIRS:
            return 2.0 * self.outer_radius
        points = self.atoms.take(np.arange(self.atoms.count))
        return max(float(np.max(self.atoms.norms(point))) for point in points)

    least_diameter = cached_property(reached_diameter)  # type: ignore[assignment]

    @cached_property
    def outer_radius(self) -> float:
        return float(np.max(self.atoms.norms(self._centre)))

    @cached_property
    def inner_radius(self) -> float:
        """A lower bound, from the least variance of the atoms along a direction of the hull.

        The variance along a unit u is at most the product of the reaches along u and -u, which
        are equal where signed.
        """
        values, _ = self._spread
        if not len(values):
            return 0.0
        least = float(np.min(values))
        return float(np.sqrt(least)) if self.symmetric else least / self.outer_radius

    def directions(self) -> np.ndarray:
        return self._spread[1]

    @cached_property
    def _spread(self) -> tuple[np.ndarray, np.ndarray]:
        """The variances of the atoms along the hull's principal directions, and these [p, r]."""
        total, count = np.zeros((self.p, self.p)), self.atoms.count
        step = max(1, _BLOCK // self.p)
        for start in range(0, count, step):
            rows = self.atoms.take(np.arange(start, min(start + step, count))) - self._centre
            total += rows.T @ rows
        values, basis = np.linalg.eigh(total / count)
        kept = values > _FLAT * max(float(values[-1]), 1e-300)
        return values[kept], basis[:, kept]

    @cached_property
    def _centre(self) -> np.ndarray:
        return self.atoms.mean()

    def centre(self) -> np.ndarray:
        return self._centre.copy()

    def support(self, g: np.ndarray) -> np.ndarray:
        """The largest <g, a> over the atoms."""
        scores = self.atoms.scores(g)
        return np.max(np.abs(scores) if self.symmetric else scores, axis=-1)

    def lmo(self, g: np.ndarray) -> np.ndarray:
        """The first atom of smallest <g, a>."""
        g = np.asarray(g, dtype=float)
        labels = self.labels_of(-self.atoms.scores(g))
        return self.atoms.take(labels.ravel()).reshape(g.shape)

    @property
    def mixtures(self) -> Atomic:
        return self

    @property
    def add_cone_constraints(self) -> Any:
        return self._add_cone_constraints if self.atoms.count * self.p <= _MOST_WRITTEN else None

    def _add_cone_constraints(self, program: ConeProgram, theta: np.ndarray) -> None:
        count = (2 if self.atoms.signed else 1) * self.atoms.count
        add_mixture(program, theta, self.atoms.take(np.arange(count)))

    def labels_of(self, scores: np.ndarray) -> np.ndarray:
        """The label of the largest of the scores [..., count]."""
        if not self.symmetric:
            return np.argmax(scores, axis=-1)
        best = np.argmax(np.abs(scores), axis=-1)
        value = np.take_along_axis(scores, best[..., None], -1)[..., 0]
        return np.where(value < 0, best + self.atoms.count, best)

    def project(self, theta: np.ndarray) -> np.ndarray:
        """The nearest mixture of atoms, for each row of [..., p]."""
        return by_rows(lambda row: self.mixture(row)[0], theta)

    def mixture(self, point: np.ndarray) -> tuple[np.ndarray, Mixture]:
        """The projection of one point [p] and what it is made of."""
        found = self._known.get(point.tobytes())
        if found is not None:
            return point.copy(), found
        near, found = hull_quadratic.solve(self, None, point)
        return near, self.remember(near, found)

    def remember(self, point: np.ndarray, mixture: Mixture) -> Mixture:
        """Keep what a point of the set is made of."""
        return self._known.put(np.ascontiguousarray(point).tobytes(), mixture)

    def error_bound(self, theta: np.ndarray, near: np.ndarray) -> np.ndarray:
        """A bound on |near - projection of theta| for rows of the set: |.|^2 is at most the gap."""
        normal = theta - near
        gap = self.support(normal) - np.sum(normal * near, axis=-1)
        return np.sqrt(np.maximum(gap, 0.0) + 4e-16 * self.radius * length(normal))
