"""Test whether points are in a set, by its half-spaces where there are few of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dperm_cli.sets.shared.half_spaces import HalfSpaces
from dperm_cli.sets.shared.vertex_hull import FACET_DIMENSION, FACET_POINTS, Hull

_SLACK = 1e-12  # tolerance, as a share of the radius


def make_membership_test(body: Any) -> Callable[[np.ndarray], np.ndarray]:
    """A function that tests rows [m, p] of the set's affine hull, with a result [m]."""
    slack = _SLACK * body.radius
    if isinstance(body, HalfSpaces):
        matrix, offset = body.matrix.T, body.offset + slack
        return lambda points: np.all(points @ matrix <= offset, axis=1)
    basis = body.directions()
    few = isinstance(body, Hull) and len(body.points) <= FACET_POINTS
    if few and 2 <= basis.shape[1] <= FACET_DIMENSION:
        from scipy.spatial import ConvexHull

        centre = body.centre()
        planes = ConvexHull((body.points - centre) @ basis).equations
        normals, level = basis @ planes[:, :-1].T, slack - planes[:, -1]
        return lambda points: np.all((points - centre) @ normals <= level, axis=1)
    return lambda points: body.contains(points, _SLACK)
