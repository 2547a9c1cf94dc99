"""What every constraint set promises: its projection, its linear oracle, its sizes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from dperm_cli.audit import declared_grid
from dperm_cli.audit.contracts.examples import make_examples
from dperm_cli.audit.contracts.promises import NotTried, promise, require, require_bounds, show
from dperm_cli.core import registry
from dperm_cli.core.dataclass import dataclass
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem
from dperm_cli.solvers import optimum

DIMENSIONS = (1, 2, 5)
SCALES = (1e-6, 0.1, 1.0, 10.0, 1e5)
_KINKED = next(
    name
    for name in declared_grid.PLAIN
    if registry.load("loss", name).pieces and "regression" in registry.load("loss", name).tasks
)
_INSIDE = 1e-9  # of the radius: what membership grants to rounding


@dataclass(frozen=True)
class Subject:
    """A set with its defaults and with other keys, in several dimensions."""

    examples: tuple[Any, ...]


def make_subject(cls: type[Any], others: Any = None) -> Subject:
    """The set to be checked, from its class."""
    return Subject(tuple(body for p in DIMENSIONS for body in make_examples(cls, p=p)))


def _bodies(subject: Subject) -> Iterator[tuple[Any, np.random.Generator]]:
    for number, body in enumerate(subject.examples):
        yield body, np.random.default_rng(number)


def _points(body: Any, rng: np.random.Generator, scale: float, count: int = 12) -> np.ndarray:
    """Points [count, p] about the origin, some along the axes."""
    found = rng.standard_normal((count, body.p))
    found[:2] = np.sign(found[:2]) * np.eye(body.p)[rng.integers(0, body.p, 2)]
    return scale * body.radius * found


def _directions(body: Any, rng: np.random.Generator, count: int = 40) -> np.ndarray:
    return np.vstack([rng.standard_normal((count, body.p)), np.eye(body.p), -np.eye(body.p)])


def _slack(body: Any, theta: Any = 0.0) -> Any:
    """What rounding, and the declared accuracy of the projection, may do."""
    length = np.linalg.norm(theta, axis=-1) if np.ndim(theta) else 0.0
    return (1e-12 + 10.0 * body.accuracy) * body.radius * (body.radius + length)


@promise(
    "radius, diameter and the other sizes are finite, positive and in order",
    mend="radius is sup |theta| over the set, diameter sup |theta - theta'|, inner_radius "
    "that of a ball about centre() inside; size is the key as configured",
)
def check_declared_sizes(subject: Subject) -> str:
    for body, _ in _bodies(subject):
        sizes = {
            "radius": body.radius,
            "diameter": body.diameter,
            "inner_radius": body.inner_radius,
            "outer_radius": body.outer_radius,
            "size": body.size,
        }
        for word, value in sizes.items():
            value = float(value)
            require(math.isfinite(value) and value >= 0.0, f"{body}: {word} is {value}")
        require(body.radius > 0 or body.diameter == 0, f"{body}: radius is {body.radius}")
        require(
            body.inner_radius <= body.outer_radius * (1 + _INSIDE),
            f"{body}: inner_radius is above outer_radius",
        )
        require(
            body.least_diameter <= body.diameter * (1 + _INSIDE),
            f"{body}: least_diameter is above diameter",
        )
        require(body.p >= 1, f"{body}: p is {body.p}")
        require(
            body == replace(body) and hash(body) == hash(replace(body)),
            f"{body} is not equal to its copy",
        )
    dims = ", ".join(map(str, DIMENSIONS))
    return f"{len(subject.examples)} sets in {dims} dimensions"


@promise(
    "methods take rows of any shape, [..., p], and write to none",
    mend="work along the last axis (axis=-1, keepdims=True) and return a new array",
)
def check_rows(subject: Subject) -> str:
    for body, rng in _bodies(subject):
        rows = body.radius * rng.standard_normal((2, 3, body.p))
        kept = rows.copy()
        rows.setflags(write=False)
        for word, method, tail in (
            ("project", body.project, (body.p,)),
            ("lmo", body.lmo, (body.p,)),
            ("support", body.support, ()),
            ("gauge", body.gauge, ()),
            ("contains", body.contains, ()),
        ):
            whole, one = np.asarray(method(rows)), np.asarray(method(rows[1, 2]))
            require(
                whole.shape == (2, 3, *tail),
                f"{word} of rows [2, 3, {body.p}] has shape {list(whole.shape)}",
            )
            same = np.allclose(whole[1, 2], one, rtol=1e-7, atol=1e-8)
            require(same, f"{word} of one row is not that of the row among others")
        require(np.array_equal(rows, kept), "the rows were written to")
    return f"{len(subject.examples)} sets, 5 methods"


@promise(
    "the projection lies in the set, and projecting again changes nothing",
    mend="project(theta) must return a point of the set, with gauge at most 1; a point of "
    "the set is its own projection",
)
def check_projection_inside(subject: Subject) -> str:
    count = 0
    for body, rng in _bodies(subject):
        corners = body.lmo(_directions(body, rng))
        believed = np.all(body.gauge(corners) <= 1 + 1e-6)  # else the gauge is to blame
        for scale in SCALES:
            found = body.project(_points(body, rng, scale))
            require(np.isfinite(found), f"{body}: project gives a number that is not finite")
            again = np.linalg.norm(body.project(found) - found, axis=1)
            require(
                again <= 1e-8 * body.radius,
                f"{body}: project moves its own result by {show(np.max(again))}",
            )
            gauge = body.gauge(found)
            require(
                not believed or gauge <= 1 + 1e-6,
                f"{body}: project gives a point of gauge "
                f"{show(np.max(gauge))}, which is outside of the set",
            )
            count += len(found)
    return f"{count} points"


@promise(
    "the projection is the nearest point of the set",
    mend="project(theta) minimises "
    "|theta - c| over the set: for an intersection one projection after the other is not "
    "enough; the order matters",
)
def check_projection_nearest(subject: Subject) -> str:
    count = 0
    for body, rng in _bodies(subject):
        others = body.project(_points(body, rng, 1.0, 60))
        corners = body.lmo(_directions(body, rng))
        if np.all(body.contains(corners, 1e-7)):
            others = np.vstack([others, corners])
        for scale in SCALES:
            theta = _points(body, rng, scale)
            found = body.project(theta)
            away = theta - found
            ahead = away @ others.T - np.sum(away * found, axis=1)[:, None]
            limit = _slack(body, theta)[:, None]
            at = np.unravel_index(np.argmax(ahead - limit), ahead.shape)
            # from the projection towards any point of the set it gets no nearer
            require(
                ahead <= limit,
                f"{body}: of {show(theta[at[0]])} it gives "
                f"{show(found[at[0]])}, and on the way to {show(others[at[1]])} of the set "
                "there are points nearer to it",
            )
            moved = np.linalg.norm(found - found[::-1], axis=1)
            before = np.linalg.norm(theta - theta[::-1], axis=1)
            require(
                moved <= before + 1e-8 * body.radius,
                f"{body}: project takes two points further apart, so it is no projection",
            )
            count += ahead.size
    return f"{count} pairs of points"


@promise(
    "lmo, the linear oracle, and support find the least and the largest inner product",
    mend="lmo(g) is a point of the set with the least <g, theta>; support(g) is "
    "<g, lmo(-g)>, the largest",
)
def check_linear_oracle(subject: Subject) -> str:
    count = 0
    for body, rng in _bodies(subject):
        g = _directions(body, rng)
        best = body.lmo(g)
        require(body.contains(best, 1e-7), f"{body}: lmo gives a point outside of the set")
        others = np.vstack([body.project(_points(body, rng, 3.0, 60)), best])
        product = np.sum(g * best, axis=1)
        least = np.min(g @ others.T, axis=1)
        size = 1e-9 * body.radius * np.linalg.norm(g, axis=1)
        at = int(np.argmax(product - least - size))
        require(
            product <= least + size,
            f"{body}: lmo({show(g[at])}) has the inner product "
            f"{show(product[at])}, and another point of the set {show(least[at])}",
        )
        off = np.abs(body.support(-g) + product)
        require(off <= size, f"{body}: support(-g) is {show(np.max(off))} off -<g, lmo(g)>")
        count += g.shape[0] * len(others)
    return f"{count} inner products"


@promise(
    "the gauge is the least t >= 0 with theta in t C, and agrees with membership",
    mend="gauge(theta) is 1 on the boundary, and gauge(2 theta) = 2 gauge(theta); inf where "
    "no multiple of the set holds theta",
)
def check_gauge(subject: Subject) -> str:
    count = 0
    for body, rng in _bodies(subject):
        corners = body.lmo(_directions(body, rng, 6))
        inside = rng.dirichlet(np.ones(len(corners)), size=8) @ corners
        for points in (inside, corners):
            gauge = body.gauge(points)
            require(
                gauge <= 1 + 1e-7,
                f"{body}: the gauge of a point of the set is {show(np.max(gauge))}, above 1",
            )
        require(body.gauge(np.zeros(body.p)) == 0.0, f"{body}: the gauge of 0 is not 0")
        for theta in _points(body, rng, 1.0, 8):
            t = float(body.gauge(theta))
            if not math.isfinite(t) or t == 0.0:
                continue
            require(
                body.contains(theta / t, 1e-7),
                f"{body}: theta / gauge(theta) is outside of the set at theta = {show(theta)}",
            )
            beyond = body.contains(theta / t * (1 + 1e-4), 1e-9)
            require(
                not beyond,
                f"{body}: the gauge of {show(theta)} is {t:g}, and a smaller "
                "multiple of the set holds it",
            )
            count += 1
        require(not body.contains(np.full(body.p, np.nan)), f"{body}: contains(nan) is true")
    return f"{count} rays"


@promise(
    "centre() lies in the set, with a ball of inner_radius about it",
    mend="give centre() a point inside, [p], and inner_radius at most its distance to the "
    "boundary; the origin is taken where the class has no centre",
)
def check_centre(subject: Subject) -> str:
    for body, rng in _bodies(subject):
        centre = np.asarray(body.centre())
        require(centre.shape == (body.p,), f"{body}: centre() has shape {list(centre.shape)}")
        require(body.contains(centre), f"{body}: centre() {show(centre)} is outside of the set")
        basis = body.directions()
        require(
            np.allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-8),
            f"{body}: directions() is no orthonormal basis",
        )
        along = rng.standard_normal((60, basis.shape[1])) @ basis.T
        along = np.vstack([along, basis.T, -basis.T])
        along /= np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-300)
        edges = centre + (1 - 1e-9) * body.inner_radius * along
        require(
            body.contains(edges, 1e-8),
            f"{body}: a point at inner_radius "
            f"{show(body.inner_radius)} from centre() is outside of the set",
        )
        if basis.shape[1]:
            require(body.inner_radius > 0, f"{body}: inner_radius is 0")
    return f"{len(subject.examples)} sets, 60 directions each"


@promise(
    "no two points are further apart than diameter, none is further out than radius",
    mend="diameter and radius must be upper bounds: sensitivities and step sizes are made of them",
)
def check_sizes(subject: Subject) -> str:
    count = 0
    for body, rng in _bodies(subject):
        ends = np.vstack([body.lmo(_directions(body, rng)), body.project(_points(body, rng, 50.0))])
        reached = {
            "diameter": (
                np.max(np.linalg.norm(ends[:, None] - ends[None], axis=-1)),
                body.diameter,
            ),
            "radius": (np.max(np.linalg.norm(ends, axis=1)), body.radius),
            "outer_radius": (
                np.max(np.linalg.norm(ends - body.centre(), axis=1)),
                body.outer_radius,
            ),
        }
        require_bounds(str(body), reached, 1e-8)
        if body.symmetric:
            require(
                body.contains(-ends, 1e-7),
                f"{body}: symmetric is true, and the opposite of a point is outside of the set",
            )
        count += ends.shape[0] ** 2
    return f"{count} pairs of points"


@promise(
    "the isotropic map takes a unit ball into the set",
    mend="isotropic() = (A, b) with "
    "A phi + b in the set for all |phi| <= 1: inner_radius I and centre() do",
)
def check_isotropic(subject: Subject) -> str:
    for body, rng in _bodies(subject):
        root, shift = body.isotropic()
        require(
            np.shape(root) == (body.p, body.p) and np.shape(shift) == (body.p,),
            f"{body}: isotropic() has shapes {np.shape(root)} and {np.shape(shift)}",
        )
        basis = np.linalg.svd(np.linalg.solve(root, body.directions()), full_matrices=False)[0]
        phi = rng.standard_normal((40, basis.shape[1])) @ basis.T
        phi /= np.maximum(np.linalg.norm(phi, axis=1, keepdims=True), 1e-300)
        require(
            body.contains(shift + (1 - 1e-9) * phi @ root.T, 1e-8),
            f"{body}: isotropic() takes a unit vector out of the set",
        )
    return f"{len(subject.examples)} sets"


@promise(
    "what it offers beyond the methods agrees with them: vertices, balls, root, cone constraints",
    mend="leave out a capability that does not describe this very set",
)
def check_capabilities(subject: Subject) -> str:
    seen = []
    for body, rng in _bodies(subject):
        g = _directions(body, rng)
        found = {"vertices": body.vertices(), "balls": body.balls(), "root": body.root()}
        seen += [word for word, made in found.items() if made is not None]
        support = body.support(g)
        size = 1e-7 * body.radius * np.linalg.norm(g, axis=1)
        if found["vertices"] is not None:
            most = np.max(g @ np.asarray(found["vertices"]).T, axis=1)
            require(np.abs(most - support) <= size, f"{body}: its vertices have another support")
        if found["root"] is not None:
            most = np.linalg.norm(g @ found["root"], axis=1)
            require(np.abs(most - support) <= size, f"{body}: its root has another support")
        if found["balls"] is not None:
            theta = _points(body, rng, 1.0, 60)
            centres, radii = found["balls"]
            out = np.linalg.norm(theta[:, None] - centres[None], axis=-1) - radii
            clear = np.abs(np.max(out, axis=1)) > 1e-6 * body.radius
            inside = np.max(out, axis=1) <= 0
            require((inside == body.contains(theta))[clear], f"{body}: its balls are another set")
        if body.add_cone_constraints is not None:
            _check_cone_constraints(body)
            seen.append("cone constraints")
    if not seen:
        raise NotTried("it offers none of them")
    return ", ".join(dict.fromkeys(seen))


def _check_cone_constraints(body: Any) -> None:
    """A cone program on its rows finds optima at the boundary, and support proves them.

    Where it proves nothing, a slower method takes its place.
    """
    if body.diameter > 0.0:
        methods = [optimum.solve(_make_far_problem(body, way)).method for way in range(3)]
        require(
            any(method != "first_order" for method in methods),
            f"{body}: support does not prove the optima that a cone program finds on its "
            "add_cone_constraints: they are another set",
        )


def _make_far_problem(body: Any, way: int) -> Problem:
    """A regression with a kink whose best point without a set lies beyond it."""
    rng = np.random.default_rng(way)
    x = rng.standard_normal((12, body.p))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = 2.0 * body.radius * x @ _unit(rng.standard_normal(body.p))
    name, bound = f"cone constraints {way} {body!r}", 2.0 * body.radius
    data = Data.of_records("contract", "regression", x, y, 1.0, bound, name)
    return Problem(data, registry.load("loss", _KINKED)(), body)


def _unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)
