"""``verb: geometry`` of an experiment: facts about sets and random matrices, without any records.

A cell that names ``m`` measures lifting [KJ16, Thm 3.8, Cor. 3.9]: a point of the set goes through
a random matrix, exactly, and is lifted back. One without ``m`` compares a Gaussian width's closed
form with its simulation through the support function. What was found stands in ``settings``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dperm_cli import __version__
from dperm_cli.core import catalogue, checks, registry
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import configure
from dperm_cli.core.seeds import generator, seed_sequence
from dperm_cli.problem import random_projection
from dperm_cli.sets.base import ConvexSet
from dperm_cli.sets.shared import image_set
from dperm_cli.solvers.lift import lift

KEYS = ("constraint", "constraint.radius", "constraint.power", "p", "m", "phi", "spread", "trials",
        "seed")  # fmt: skip
DRAWS = 8192  # of a simulated width

Settings = Mapping[str, Any]
Row = dict[str, Any]


def make_rows(settings: Settings) -> list[Row]:
    """The rows of a cell, status ``planned``: one a matrix, or a single one for a width.

    InputError for an unknown key, and for a set whose points are not named by ``spread``.
    """
    checks.known_keys(settings, KEYS, "geometry.")
    body = _set(settings)
    found = _liftings(body, settings) if "m" in settings else iter([_width(body, settings)])
    common = {
        "status": "planned",
        "relation": "replace_one",  # which every row names, though there are no records here
        "constraint": body.name,
        "p": body.p,
        "radius": body.radius,
        "diameter": body.diameter,
        "seed": int(settings.get("seed", 0)),
        "trials": int(settings.get("trials", 1)),
        "overrides": dict(settings),
        "version": __version__,
    }
    return [{**common, "trial": trial, "settings": facts} for trial, facts in enumerate(found)]


def _set(settings: Settings) -> Any:
    known = catalogue.choices("constraint")
    name = checks.choice("geometry.constraint", settings.get("constraint"), known)
    p = checks.integer("geometry.p", settings.get("p"), low=2)
    made = registry.load("constraint", name)
    radius = checks.positive("geometry.constraint.radius", settings.get("constraint.radius", 1.0))
    more = {"power": settings["constraint.power"]} if "constraint.power" in settings else {}
    return configure(made, "geometry.constraint", {"radius": radius, **more}, p=p)


def _width(body: Any, settings: Settings) -> dict[str, Any]:
    """The closed form, the simulation, and how many standard errors lie between them."""
    exact, error = body.width()
    if error > 0.0:
        raise InputError("geometry.constraint", body.name, "has no closed form of its width")
    rng = generator(seed_sequence(int(settings.get("seed", 0)), "width", body.name, body.p))
    mean, error = ConvexSet.width(body, rng, DRAWS)
    off = abs(mean - exact) / error
    return {"width": exact, "width_simulated": mean, "width_error": error, "errors_off": off}


def _liftings(body: Any, settings: Settings) -> Iterator[dict[str, Any]]:
    """Trial by trial a matrix, a point of a face, and how far from it the lifted one is."""
    if body.axis_hull is None:  # a point of ``spread`` equal entries lies on no face
        known = ", ".join(registry.list_offering("constraint", "axis_hull"))
        allowed = f"must be one of {known} to be lifted to"
        raise InputError("geometry.constraint", body.name, allowed)
    m = checks.integer("geometry.m", settings["m"], low=1, high=body.p)
    spread = checks.integer("geometry.spread", settings.get("spread", 1), low=1, high=body.p)
    wanted = settings.get("phi", "gaussian")
    kind = checks.choice("geometry.phi", wanted, random_projection.KINDS)
    seed, width = int(settings.get("seed", 0)), body.width()[0]
    limit = (2.0 * width + body.diameter) / m**0.5  # docs/proofs/_kj16.md, Theorem 5: in the mean
    for trial in range(checks.integer("geometry.trials", settings.get("trials", 1), low=1)):
        phi = random_projection.draw(kind, m, body.p, seed, "lifting", trial)
        theta = draw_face_point(body, spread, seed, trial)
        there = image_set.image(body, phi)
        back = lift(body, phi, there, phi.apply(theta[None, :]))
        yield {
            "m": m,
            "spread": spread,
            "lifting_error": float(np.linalg.norm(back.theta[0] - theta)),
            "lifting_limit": min(limit, body.diameter),
            "residual": float(back.residual[0]),
        }


def draw_face_point(body: Any, spread: int, seed: int, trial: int) -> np.ndarray:
    """``spread`` equal entries at random places, with random signs where the set has both."""
    rng = generator(seed_sequence(seed, "lifting", body.name, body.p, spread, trial))
    theta = np.zeros(body.p)
    places = rng.permutation(body.p)[:spread]
    signs = rng.choice([-1.0, 1.0], size=spread) if body.axis_hull.signed else 1.0
    theta[places] = signs * (body.radius / spread)
    return theta
