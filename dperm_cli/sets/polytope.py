"""Polytope, given by its vertices or by half-spaces."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import Check, Help, Key, keys_of
from dperm_cli.sets.base import Scaled, dimension
from dperm_cli.sets.shared import public_arrays
from dperm_cli.sets.shared.half_spaces import HalfSpaces
from dperm_cli.sets.shared.vertex_hull import Hull

_EITHER = "needs either vertices, or matrix and offset, or path"


@dataclass(frozen=True)
class Polytope(Scaled):
    """scale * conv(vertices), or scale * {theta : matrix theta <= offset}.

    The key ``constraint.radius`` sets the scale. Without vertices and half-spaces, it is the
    cross-polytope with vertices +-e_j. For half-spaces in more than 6 dimensions ``radius``,
    ``diameter`` and ``outer_radius`` are upper bounds; for vertices there, ``inner_radius`` is a
    lower bound.

    Attributes:
        vertices: points [m, p].
        matrix, offset: half-spaces [m, p] and [m]; the set must be bounded and not empty.
        path: a .npz file with ``vertices``, or with ``matrix`` and ``offset``; or a .csv file of
            vertices. The numbers are public. The file is read at once, and its numbers are kept.

    >>> triangle = Polytope(2.0, 2, matrix=[[1, 1], [-1, 0], [0, -1]], offset=[1, 0, 0])
    >>> triangle.support(np.array([[1.0, 3.0], [-1.0, 1.0]])).round(3).tolist()
    [6.0, 2.0]
    """

    polyhedral: ClassVar[bool] = True

    points: Annotated[
        public_arrays.Matrix | None,
        Check(public_arrays.matrix),
        Key("vertices"),
        Help("null = +-e_j"),
    ] = None
    matrix: Annotated[
        public_arrays.Matrix | None, Check(public_arrays.matrix), Help("of half-spaces")
    ] = None
    offset: Annotated[
        public_arrays.Vector | None, Check(public_arrays.vector), Help("of half-spaces")
    ] = None
    path: public_arrays.NumbersFile = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.path is not None:
            self._read()
        halves = self.matrix is not None or self.offset is not None
        if self.points is not None and halves:
            raise InputError("constraint.vertices", "given", f"{_EITHER}, not both")
        given, field = (None if self.points is None else len(self.points[0])), "vertices"
        if halves:
            given, field = self._halves(), "matrix"
        self._keep("p", dimension(self.p, given, field))
        if halves:
            _ = self.body

    @cached_property
    def body(self) -> Hull | HalfSpaces:
        """The set that computes everything: one given by vertices or by half-spaces."""
        if self.matrix is not None and self.offset is not None:
            offset = self.scale * np.array(self.offset)
            return HalfSpaces(np.array(self.matrix), offset, "constraint.matrix")
        if self.points is not None:
            return Hull(self.scale * np.array(self.points))
        return Hull(self.scale * np.vstack([np.eye(self.p), -np.eye(self.p)]))

    def _halves(self) -> int:
        for name in ("matrix", "offset"):
            if getattr(self, name) is None:
                raise InputError(f"constraint.{name}", None, _EITHER)
        rows, offset = self.matrix, self.offset
        assert rows is not None
        assert offset is not None
        if len(rows) != len(offset):
            words = f"must hold one number for each of the {len(rows)} rows of constraint.matrix"
            raise InputError("constraint.offset", f"<{len(offset)} numbers>", words)
        return len(rows[0])

    def _read(self) -> None:
        for name in ("vertices", "matrix", "offset"):
            if getattr(self, "points" if name == "vertices" else name) is not None:
                raise InputError(f"constraint.{name}", "given", "excludes constraint.path")
        arrays = public_arrays.from_file("constraint.path", self.path, "vertices")
        found = {name for name in ("vertices", "matrix", "offset") if name in arrays}
        if found not in ({"vertices"}, {"matrix", "offset"}):
            words = "must hold either vertices, or matrix and offset"
            raise InputError("constraint.path", self.path, words)
        for name in found:
            field = keys_of(Polytope)[name]
            self._keep(field.name, field.check(arrays[name]))
        self._keep("path", None)
