"""Ellipsoid around the origin."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any

import numpy as np

from dperm_cli.core import checks
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import Allowed, Check, Help, Range, fields_of
from dperm_cli.sets.base import Scaled, dimension
from dperm_cli.sets.shared import public_arrays
from dperm_cli.sets.shared.ball_image import Quadric

AT_LEAST_1 = "must be a number >= 1"


def _check_axes(key: str, value: Any) -> tuple[float, ...]:
    axes = public_arrays.vector(key, value)
    for axis in axes:
        checks.positive(key, axis)
    return axes


def _definite(key: str, value: Any) -> tuple[tuple[float, ...], ...]:
    rows = np.array(public_arrays.matrix(key, value))
    allowed = "must be a symmetric positive definite matrix"
    if rows.shape[0] != rows.shape[1] or not np.allclose(rows, rows.T, rtol=1e-12, atol=0.0):
        raise InputError(key, f"<{rows.shape[0]} x {rows.shape[1]} numbers>", allowed)
    values = np.linalg.eigvalsh(rows)
    if not values[0] > 1e-14 * values[-1]:
        raise InputError(key, f"<smallest eigenvalue {values[0]:.3g}>", allowed)
    return tuple(tuple(row) for row in (0.5 * (rows + rows.T)).tolist())


@dataclass(frozen=True)
class Ellipsoid(Scaled):
    """{theta in R^p : theta^T Q^{-1} theta <= scale^2}, scale set by ``constraint.radius``.

    axes : the semi-axes along the coordinates, in units of the scale; Q = diag(axes^2).
    condition : the largest semi-axis over the smallest, the others between in equal ratios.
    matrix : Q itself, symmetric and positive definite.
    path : a file with ``axes`` or ``matrix`` (.npz), or with the matrix (.csv); public numbers. It
        is read at once, and its content is what is kept.

    At most one of them; without any, axis j is 1 / sqrt(j). ``radius`` is the largest semi-axis.

    >>> Ellipsoid(2.0, 2, axes=(1.0, 0.5)).support(np.eye(2)).round(3).tolist()
    [2.0, 1.0]
    """

    axes: Annotated[public_arrays.Vector | None, Check(_check_axes), Help("over the radius")] = None
    condition: Annotated[
        float | None, Range(1), Allowed(AT_LEAST_1), Help("largest over smallest semi-axis")
    ] = None
    matrix: Annotated[
        public_arrays.Matrix | None, Check(_definite), Help("Q, positive definite")
    ] = None
    path: public_arrays.NumbersFile = None

    def __post_init__(self) -> None:
        super().__post_init__()
        given = [f for f in ("axes", "condition", "matrix", "path") if getattr(self, f) is not None]
        if len(given) > 1:
            raise InputError(f"constraint.{given[1]}", "given", f"excludes constraint.{given[0]}")
        if self.path is not None:
            self._read()
        rows = self.axes or self.matrix
        field = "axes" if self.axes else "matrix"
        self._keep("p", dimension(self.p, None if rows is None else len(rows), field))

    @cached_property
    def body(self) -> Quadric:
        """The set as semi-axes and their directions."""
        if self.matrix is not None:
            squares, directions = np.linalg.eigh(np.array(self.matrix))
            return Quadric(self.scale * np.sqrt(squares), directions)
        if self.axes is not None:
            return Quadric(self.scale * np.array(self.axes))
        if self.condition is not None:
            share = np.arange(self.p) / max(self.p - 1, 1)
            return Quadric(self.scale * self.condition**-share)
        return Quadric(self.scale / np.sqrt(np.arange(1.0, self.p + 1)))

    def _read(self) -> None:
        arrays = public_arrays.from_file("constraint.path", self.path, "matrix")
        found = [name for name in ("axes", "matrix") if name in arrays]
        if len(found) != 1:
            raise InputError("constraint.path", self.path, "must hold either axes or matrix")
        self._keep(found[0], fields_of(Ellipsoid)[found[0]].check(arrays[found[0]]))
        self._keep("path", None)
