"""The base class of constraint sets, with defaults computed from projection and support."""

from __future__ import annotations

from abc import ABC, abstractmethod
from operator import attrgetter
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from dperm_cli.core import checks
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import Check, CheckedFields, FromRun, Help, Key, Positive, Range, RunWord
from dperm_cli.core.registry import Plugin

_DRAWS = 4096
_CHUNK = 1024
_CUTS = 200


def reached_diameter(body: Any) -> float:
    """The largest distance between the two extreme points of the set along a coordinate axis."""
    axes = np.eye(body.p)
    return float(np.max(length(body.lmo(axes) - body.lmo(-axes))))


class AxisHull(NamedTuple):
    """The convex hull of the points radius e_j; with ``signed`` also of -radius e_j.

    >>> from dperm_cli.sets.l1_ball import L1Ball
    >>> L1Ball(2.0, 3).axis_hull
    AxisHull(radius=2.0, signed=True)
    """

    radius: float
    signed: bool


class Balls(NamedTuple):
    """The intersection {z : |z - centres[b]| <= radii[b] for all b}; [balls, p] and [balls].

    >>> from dperm_cli.sets.l2_ball import L2Ball
    >>> L2Ball(2.0, 2).balls()
    Balls(centres=array([[0., 0.]]), radii=array([2.]))
    """

    centres: np.ndarray
    radii: np.ndarray


class ConvexSet(Plugin, CheckedFields, ABC):
    """A compact convex set in R^p; a subclass gives project, lmo and the sizes.

    Methods take rows of [..., p]. What follows ``accuracy`` are capabilities: a set that offers one
    is served by the faster or sharper method that needs it, and by the general one otherwise.

    Attributes:
        symmetric: whether C = -C.
        accuracy: of a projection, over the radius.
        audit_place: among those that audits try, the least demanding first; below 10 in the
            declared grid, from there on by the fuzzer.
        code: of the compiled projection in ``loops.projections``.
        iterative: whether each projection is itself a search.
        by_gap: whether minimisers over the set are certified by their gap alone.
        sign_symmetric: whether flipping signs of coordinates leaves the set as it is.
        thresholded: whether thresholding and then projecting minimises |theta - x|^2 / 2 +
            c |theta|_1 over the set.
        is_ball: whether it is the Euclidean ball about the origin.
        polyhedral: whether it is given by its half-spaces or its corners.
        half_side: a, where the set is the cube [-a, a]^p.
        norm_power: q, where the set is {|theta|_q <= size}.
        inner_cube: half the side of the largest cube about the origin inside the set.
        l1_radius: sup of |theta|_1 over the set.
        axis_hull: the set as the hull of points on the axes.
        mixtures: the ``atomic_hull.Atomic`` that knows what its points are mixtures of.
        cutting_ball: the radius of a ball about the origin that the set ``inner`` is cut down to.
        ball_about: the (point, reach) of a ball that the set ``inner`` is cut down to.
        add_cone_constraints: ``add_cone_constraints(program, theta)`` adds the rows that keep the
            variables theta in the set (``problem.cone_program``).
        radius_around: ``radius_around(reach, p)``, the radius of the least such set in R^p around
            the Euclidean ball of radius ``reach``, where ``constraint.radius=auto`` has a rule.
        barrier: makes the set's piece of an interior-point iteration (``problem.set_barriers``).
        normals: points whose normal cones are known exactly (``problem.normal_cones``).

    >>> class Interval(ConvexSet):
    ...     p, radius, inner_radius = 1, 1.0, 1.0
    ...     project = staticmethod(lambda theta: np.clip(theta, -1.0, 1.0))
    ...     lmo = staticmethod(lambda g: -np.sign(g))
    >>> Interval().diameter, Interval().support(np.array([[-3.0], [2.0]])).tolist()
    (2.0, [3.0, 2.0])
    """

    group: ClassVar[str] = "constraint"
    p: int
    radius: Any  # sup of |theta| over the set
    symmetric: Any = True
    accuracy: Any = 4e-15

    audit_place: ClassVar[int | None] = None
    code: ClassVar[int | None] = None
    iterative: ClassVar[bool] = False
    by_gap: Any = False
    sign_symmetric: Any = False
    thresholded: ClassVar[bool] = False
    is_ball: ClassVar[bool] = False
    polyhedral: ClassVar[bool] = False
    half_side: Any = None
    norm_power: Any = None
    inner_cube: Any = None
    l1_radius: Any = None
    axis_hull: Any = None
    mixtures: Any = None
    cutting_ball: Any = None
    ball_about: Any = None
    add_cone_constraints: Any = None
    radius_around: ClassVar[Any] = None
    barrier: Any = None
    normals: Any = None

    @property
    def size(self) -> float:
        """The set's radius as configured, in its own norm; without one the Euclidean radius."""
        return self.radius

    @property
    def diameter(self) -> float:
        """sup of |theta - theta'| over the set; twice the radius for C = -C."""
        return 2.0 * self.radius

    @property
    def least_diameter(self) -> float:
        """A lower bound on the diameter, for lower bounds on a risk; ``diameter`` is from above."""
        return self.diameter

    @property
    @abstractmethod
    def inner_radius(self) -> float:
        """Radius of the largest ball about the centre inside the set, within its affine hull."""

    @property
    def outer_radius(self) -> float:
        """Radius of the smallest ball about the centre around the set."""
        return self.radius

    @abstractmethod
    def project(self, theta: np.ndarray) -> np.ndarray:
        """Euclidean projection of each row of [..., p]."""

    @abstractmethod
    def lmo(self, g: np.ndarray) -> np.ndarray:
        """A minimiser of <g, theta> over the set, for each row of [..., p]."""

    def support(self, g: np.ndarray) -> np.ndarray:
        """sup of <g, theta> over the set, for each row of [..., p]."""
        g = np.asarray(g, dtype=float)
        return np.sum(g * self.lmo(-g), axis=-1)

    def gauge(self, theta: np.ndarray) -> np.ndarray:
        """The least t >= 0 with theta in t C, inf where there is none, for rows of [..., p]."""
        return gauge_by_cuts(self, np.asarray(theta, dtype=float))

    def contains(self, theta: np.ndarray, tolerance: float = 1e-9) -> np.ndarray:
        """Whether each row of [..., p] is within tolerance * radius of the set; false for nan."""
        theta = np.asarray(theta, dtype=float)
        finite = np.all(np.isfinite(theta), axis=-1)
        near = np.where(finite[..., None], theta, 0.0)
        distance = np.linalg.norm(near - self.project(near), axis=-1)
        return finite & (distance <= tolerance * self.radius)

    def centre(self) -> np.ndarray:
        """The origin, [p]."""
        return np.zeros(self.p)

    def directions(self) -> np.ndarray:
        """An orthonormal basis of the affine hull's directions, [p, dimension of the set]."""
        return np.eye(self.p)

    @property
    def inner_body(self) -> ConvexSet:
        """The set that does the computations: the set itself, or the one it delegates to."""
        return self

    def balls(self) -> Balls | None:
        """The set as an intersection of Euclidean balls, None where it is something else."""
        return None

    def vertices(self) -> np.ndarray | None:
        """Points [m, p] whose convex hull is the set, where they are few; otherwise None."""
        return None

    def root(self) -> np.ndarray | None:
        """A [p, k] with C = A B for the unit ball B of R^k, where there is one; otherwise None."""
        return None

    def width(
        self, rng: np.random.Generator | None = None, draws: int = _DRAWS
    ) -> tuple[float, float]:
        """(estimate, standard error) of the Gaussian width E sup <g, theta>, by simulation.

        Pairs g, -g are averaged; without ``rng`` the draws are the same every time.
        """
        rng = np.random.default_rng(0) if rng is None else rng
        pairs, values = max(2, draws // 2), []
        for start in range(0, pairs, _CHUNK):
            g = rng.standard_normal((min(_CHUNK, pairs - start), self.p))
            values.append(0.5 * (self._reach_along(g) + self._reach_along(-g)))
        found = np.concatenate(values)
        return float(found.mean()), float(found.std(ddof=1) / np.sqrt(pairs))

    def _reach_along(self, g: np.ndarray) -> np.ndarray:
        """sup of <g, theta> for each row of [m, p], as near as an estimate by simulation needs."""
        return self.support(g)

    def isotropic(self) -> tuple[np.ndarray, np.ndarray]:
        """(A [p, p], b [p]) with B inside {phi : A phi + b in C}, from the set alone.

        B is the unit ball of the affine hull's directions. For C = -C the set lies in sqrt(p) B,
        otherwise in p B, unless the set says what it reaches.
        """
        scale = self.inner_radius or self.outer_radius or self.radius or 1.0
        return scale * np.eye(self.p), self.centre()


# The key ``constraint.radius``, under the name that a set's own size has, and the dimension. p = 0
# asks for a set in any dimension, so that a configuration can be checked before there are data.
Radius = Annotated[Positive, Key("radius"), Help("of the set, in its own norm")]
BallRadius = Annotated[
    Positive,
    Key("radius"),
    RunWord("auto"),
    Help("of the set, in its own norm; auto = from public facts, for logistic and squared"),
]
AnyDimension = Annotated[int, Range(0), FromRun(), Help("number of parameters")]
Dimension = Annotated[AnyDimension, Check(lambda key, value: dimension(value))]


@dataclass(frozen=True)
class OfRadius(ConvexSet):
    """A set that is determined by its Euclidean radius and its dimension.

    >>> from dperm_cli.core.fields import fields_of
    >>> {name: field.key for name, field in fields_of(OfRadius).items()}
    {'radius': 'constraint.radius', 'p': 'p'}
    """

    radius: Radius
    p: Dimension


def ask_body(name: str) -> Any:
    """A property that is the body's value, or its method, of this name."""
    return property(attrgetter(f"body.{name}"))


class Delegate(ConvexSet):
    """A set under its own name that delegates all computations to another set, ``body``.

    The kind of the set (a ball, a cube, a hull) is that of its ``inner_body``.

    >>> from dperm_cli.sets.lp_ball import LpBall
    >>> ball = LpBall(1.0, 3, power=1.0)
    >>> isinstance(ball, Delegate), ball.inner_body
    (True, L1Ball(radius=1.0, p=3))
    """

    body: Any

    inner_body = property(attrgetter("body"))
    accuracy = ask_body("accuracy")
    by_gap = ask_body("by_gap")
    add_cone_constraints = ask_body("add_cone_constraints")
    mixtures = ask_body("mixtures")
    symmetric = ask_body("symmetric")
    size = ask_body("size")
    radius = ask_body("radius")
    diameter = ask_body("diameter")
    least_diameter = ask_body("least_diameter")
    inner_radius = ask_body("inner_radius")
    outer_radius = ask_body("outer_radius")
    balls = ask_body("balls")
    project = ask_body("project")
    lmo = ask_body("lmo")
    support = ask_body("support")
    gauge = ask_body("gauge")
    contains = ask_body("contains")
    centre = ask_body("centre")
    directions = ask_body("directions")
    vertices = ask_body("vertices")
    root = ask_body("root")
    width = ask_body("width")
    isotropic = ask_body("isotropic")


@dataclass(frozen=True)
class Scaled(Delegate):
    """A set given in units of the key ``constraint.radius``, and possibly by its dimension.

    >>> from dperm_cli.core.fields import fields_of
    >>> {name: field.key for name, field in fields_of(Scaled).items()}
    {'scale': 'constraint.radius', 'p': 'p'}
    """

    scale: Radius
    p: AnyDimension

    size = property(attrgetter("scale"))


def dimension(p: object, given: int | None = None, field: str = "") -> int:
    """The checked dimension; the fields that were ``given`` in numbers decide their own.

    p = 0 asks for that dimension, or for 1 where the set takes any: a configuration can be checked
    before there are data. InputError names ``constraint.<field>`` and both dimensions.
    """
    asked = checks.integer("p", p, low=0)
    if asked == 0:
        return given or 1
    if given is not None and given != asked:
        words = f"lies in {given} dimensions, but the problem has {asked} parameters"
        raise InputError(f"constraint.{field}", f"<{given} columns>", words)
    return asked


def length(rows: np.ndarray) -> np.ndarray:
    """The Euclidean norm of each row of [..., p], without overflow or underflow."""
    rows = np.asarray(rows, dtype=float)
    largest = np.max(np.abs(rows), axis=-1, keepdims=True)
    sound = (largest > 0) & np.isfinite(largest)
    scaled = rows / np.where(sound, largest, 1.0)
    return np.linalg.norm(scaled, axis=-1) * np.where(sound, largest, 1.0)[..., 0]


def unit(rows: np.ndarray) -> np.ndarray:
    """Each row of [..., p] over its Euclidean norm; rows of zeros stay."""
    rows = np.asarray(rows, dtype=float)
    largest = np.max(np.abs(rows), axis=-1, keepdims=True)
    scaled = rows / np.where(largest > 0, largest, 1.0)
    norm = np.linalg.norm(scaled, axis=-1, keepdims=True)
    return scaled / np.where(norm > 0, norm, 1.0)


def by_rows(one, theta: np.ndarray) -> np.ndarray:
    """A function of one row [p] applied to every row of [..., p]."""
    theta = np.asarray(theta, dtype=float)
    rows = theta.reshape(-1, theta.shape[-1])
    found = np.empty_like(rows)
    for i, row in enumerate(rows):
        found[i] = one(row)
    return found.reshape(theta.shape)


def gauge_by_cuts(body: ConvexSet, theta: np.ndarray) -> np.ndarray:
    """The gauge from projections: 1 / the largest s with s theta in C.

    Every point s theta outside the set has a plane between it and the set; s moves down to where
    the ray crosses that plane, until the point is in the set.
    """
    length = np.linalg.norm(theta, axis=-1)
    moving = length > 0
    ray = theta / np.where(moving, length, 1.0)[..., None]
    reach = start = 1.5 * body.radius
    step = np.where(moving, reach, 0.0)
    for _ in range(_CUTS):
        point = step[..., None] * ray
        nearest = body.project(point)
        normal = point - nearest
        depth = np.linalg.norm(normal, axis=-1)
        outside = depth > body.accuracy * start
        slope = np.sum(normal * ray, axis=-1)
        blocked = outside & (slope <= 1e-13 * depth)
        level = np.sum(normal * nearest, axis=-1) / np.where(slope > 0, slope, 1.0)
        crossed = np.where(outside, np.where(blocked, 0.0, np.minimum(level, step)), step)
        crossed = np.maximum(crossed, 0.0)
        if np.all(np.abs(crossed - step) <= 0.05 * body.accuracy * start):
            break
        step = crossed
    kept = step > 1e-13 * start
    with np.errstate(divide="ignore"):
        found = np.where(kept, length / np.where(kept, step, 1.0), np.inf)
    return np.where(moving, found, np.where(np.isnan(length), np.nan, 0.0))
