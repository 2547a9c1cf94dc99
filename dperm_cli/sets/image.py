"""Image of a set under a public matrix."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import Check, Help
from dperm_cli.sets.base import Scaled, dimension
from dperm_cli.sets.shared import nested_set, public_arrays
from dperm_cli.sets.shared.ball_image import Quadric
from dperm_cli.sets.shared.linear_image import LinearImage
from dperm_cli.sets.shared.vertex_hull import Hull

_SEED = 20140


def _check_matrix(key: str, value: Any) -> public_arrays.Matrix:
    rows = public_arrays.matrix(key, value)
    if not np.any(rows):
        raise InputError(key, "<zeros>", "must not be all zeros")
    return rows


@dataclass(frozen=True)
class Image(Scaled):
    """{scale * matrix phi : phi in K}, the scale set by ``constraint.radius``.

    inner : the set K in R^k as a mapping {name: ..., radius: ...}; without one the unit L1 ball.
    matrix : [p, k] public numbers; without it a rotation drawn once from a fixed seed, its
        directions scaled from 1 down to 1/2.
    path : an .npz file with ``matrix``, or a .csv file of its rows. It is read at once, and its
        content is what is kept.

    Images of balls and ellipsoids are ellipsoids and those of sets with few vertices are hulls,
    both exact; for the others the sizes are bounds, and where the matrix is not injective a
    projection has a computed error bound (LinearImage).

    >>> hexagon = Image(1.0, 2, matrix=[[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    >>> hexagon.support(np.array([[1.0, 0.0], [1.0, 1.0]])).round(3).tolist()
    [1.0, 2.0]
    """

    inner: nested_set.Inner = None
    matrix: Annotated[
        public_arrays.Matrix | None, Check(_check_matrix), Help("null = a fixed rotation")
    ] = None
    path: public_arrays.NumbersFile = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.path is not None:
            self._read()
        inner = {"name": "l1_ball", "radius": 1.0} if self.inner is None else self.inner
        given = None if self.matrix is None else len(self.matrix)
        self._keep("p", dimension(self.p, given, "matrix"))
        self._keep("inner", nested_set.build(inner, len(self.matrix[0]) if self.matrix else self.p))

    @cached_property
    def body(self) -> Quadric | Hull | LinearImage:
        """The set that does the work."""
        inner: Any = self.inner
        matrix = self.scale * self._matrix
        if inner.root() is not None:
            return Quadric.of(matrix @ inner.root())
        if inner.vertices() is not None:
            return Hull(inner.vertices() @ matrix.T)
        return LinearImage(matrix, inner)

    @property
    def _matrix(self) -> np.ndarray:
        if self.matrix is not None:
            return np.array(self.matrix)
        normal = np.random.default_rng(_SEED).standard_normal((self.p, self.p))
        rotation, upper = np.linalg.qr(normal)
        rotation = rotation * np.where(np.diag(upper) < 0, -1.0, 1.0)
        return rotation * np.linspace(1.0, 0.5, self.p)

    def _read(self) -> None:
        if self.matrix is not None:
            raise InputError("constraint.matrix", "given", "excludes constraint.path")
        arrays = public_arrays.from_file("constraint.path", self.path, "matrix")
        if "matrix" not in arrays:
            raise InputError("constraint.path", self.path, "must hold an array named matrix")
        self._keep("matrix", _check_matrix("constraint.matrix", arrays["matrix"]))
        self._keep("path", None)
