"""Phi C: the image of a constraint set under a public matrix, with its own projection and sizes."""

from __future__ import annotations

from functools import cached_property
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.problem import random_projection
from dperm_cli.problem.random_projection import Identity, Projection
from dperm_cli.sets import make_ball
from dperm_cli.sets.base import Delegate, ask_body
from dperm_cli.sets.shared.atomic_hull import Atomic, PointAtoms
from dperm_cli.sets.shared.ball_image import Quadric
from dperm_cli.sets.shared.linear_image import LinearImage
from dperm_cli.sets.shared.vertex_hull import Hull

_FLAT = 1e-13
MOST_COLUMNS = 5000  # of sets whose images are neither ellipsoids nor hulls


@dataclass(frozen=True, eq=False)
class ProjectedSet(Delegate):
    """{Phi theta : theta in C} for C of R^d and Phi [m, d].

    ``body`` does the work: an ellipsoid for a ball, a hull of d, 2 d or as many points as C has
    vertices for the simplex, the L1 ball and polytopes of vertices, else the image that convex
    optimisation sees to.
    """

    name: ClassVar[str] = "image"

    body: Any
    phi: Projection

    p = ask_body("p")

    def __repr__(self) -> str:
        kind = type(self.body).__name__
        return f"ProjectedSet({kind}, m={self.p}, d={self.phi.d}, radius={self.radius!r})"


@dataclass(frozen=True, eq=False)
class Held(Delegate):
    """A set with sizes that hold for others too: ``radius`` and ``diameter`` are upper bounds."""

    name: ClassVar[str] = "image"

    body: Any
    most_radius: float
    most_diameter: float

    p = ask_body("p")
    size = radius = property(attrgetter("most_radius"))
    diameter = property(attrgetter("most_diameter"))


@dataclass
class ColumnAtoms:
    """scale Phi e_j for every j: what the images of an L1 ball or a simplex are the hulls of."""

    phi: Projection
    scale: float
    signed: bool

    def __post_init__(self) -> None:
        self.count, self.m = self.phi.d, self.phi.m

    def scores(self, g: np.ndarray) -> np.ndarray:
        return self.scale * self.phi.back(g)

    def take(self, labels: np.ndarray) -> np.ndarray:
        signs = np.where(labels >= self.count, -self.scale, self.scale)
        return self.phi.columns(labels % self.count) * signs[:, None]

    def norms(self, about: np.ndarray) -> np.ndarray:
        # |a - c|^2 = |a|^2 - 2 <a, c> + |c|^2, with Phi's columns looked at once
        square = self._squares - 2.0 * self.scores(about) + float(about @ about)
        return np.sqrt(np.maximum(square, 0.0))

    def mean(self) -> np.ndarray:
        if self.signed:
            return np.zeros(self.m)
        ones = np.full((1, self.count), self.scale / self.count)
        return self.phi.apply(ones)[0]

    @cached_property
    def _squares(self) -> np.ndarray:
        return (self.scale * random_projection.column_norms(self.phi)) ** 2


def image(constraint: Any, phi: Projection) -> Any:
    """Phi C; C itself where Phi is the identity, and a ball's image on a line is a ball."""
    if isinstance(phi, Identity):
        return constraint
    if phi.m == 1 and constraint.is_ball:
        return make_ball(constraint.radius * random_projection.norm(phi), 1)
    return ProjectedSet(_body(constraint, phi), phi)


def reason_against(constraint: Any, kind: str, m: int) -> str | None:
    """Why the image of this set cannot be had, or None; it follows from sizes alone."""
    d = constraint.p
    entries = random_projection.stored_entries(kind, m, d)
    most = random_projection.MOST_ENTRIES
    if entries > most:
        return (
            f"a {kind} matrix of {m} x {d} takes {8e-9 * entries:.1f} GB: set mechanism.m to at "
            f"most {most // d}, or mechanism.phi=fast, which stores none"
        )
    if m < d > MOST_COLUMNS and not _has_form(constraint):
        return (
            f"the image of this {constraint.name or 'set'} has no closed form and is "
            f"looked for in up to {MOST_COLUMNS} columns; there are {d}: use an L1 ball, an L2 "
            "ball, a simplex or a polytope of vertices"
        )
    return None


def _has_form(constraint: Any) -> bool:
    if constraint.is_ball or constraint.axis_hull is not None:
        return True
    return isinstance(constraint.inner_body, Hull | Quadric)


def _body(constraint: Any, phi: Projection) -> Any:
    inner, hull = constraint.inner_body, constraint.axis_hull
    if constraint.is_ball:
        return ellipsoid(phi, constraint.radius)
    if hull is not None:
        return Atomic(ColumnAtoms(phi, hull.radius, hull.signed))
    if isinstance(inner, Hull):
        return Atomic(PointAtoms(phi.apply(inner.points)))
    if isinstance(inner, Quadric):
        return Quadric.of(phi.apply(inner.root().T).T)
    return LinearImage(phi.columns(np.arange(phi.d)).T, constraint)


def ellipsoid(phi: Projection, radius: float) -> Quadric:
    """The image of the ball {|theta| <= radius}, from the m x m matrix Phi Phi^T."""
    squares, directions = np.linalg.eigh(random_projection.gram(phi))
    axes = np.sqrt(np.maximum(squares, 0.0))
    kept = axes > np.sqrt(_FLAT) * np.max(axes)
    return Quadric(radius * axes[kept], directions[:, kept])
