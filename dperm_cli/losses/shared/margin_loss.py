"""The base class of losses of the margin z = <x, theta>."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from dperm_cli.losses.base import PerRecord, row_norm, weighted_gram
from dperm_cli.losses.shared import long_sums
from dperm_cli.problem.cone_program import ConeProgram, ToDual, add_pieces
from dperm_cli.problem.data import Bounds, Data, Minorant, PublicFacts
from dperm_cli.problem.row_products import add_rows, multiply_rows
from dperm_cli.problem.split_rows import SplitRows, is_sparse, sum_parts


class Glm(PerRecord):
    """A loss l(z; y) of the margin z = <x, theta>, as in a generalised linear model.

    A subclass must define ``value``, ``slope``, ``slope_bound`` and ``span``, and may define
    ``smoothness``, ``conjugate`` and ``pieces``. All broadcast over margins [..., n] and labels
    [n].

    - ``slope_bound(margin, target)`` is sup |slope| over |z| <= margin and |y| <= target.
    - ``span(margin, target)`` is the sup over those y of max - min of the loss over those z.
    - ``smoothness`` is the Lipschitz constant of the slope, or None.
    - ``conjugate(a, y)`` is sup_z (a z - l(z; y)).
    - ``pieces(y)`` = (sign, offset, up, down) describes a loss of two linear pieces,
      l = up max(r, 0) + down max(-r, 0) with r = sign z + offset and sign^2 = 1. The conjugate
      then follows from it.

    >>> from dperm_cli.losses.logistic import Logistic
    >>> isinstance(Logistic(), Glm), Logistic().slope_bound(1.0, 1.0) < 1.0
    (True, True)
    """

    value: Any
    slope_bound: Any
    span: Any

    @property
    def by_parts(self) -> bool:
        """Whether there is a compiled slope."""
        return self.code is not None

    def dimension(self, facts: PublicFacts) -> int:
        """One parameter per column."""
        return facts.p

    def values(self, theta: np.ndarray, data: Data) -> np.ndarray:
        """Each record's loss at each row of [..., p], shape [..., n]."""
        return self.value(margins(theta, data), data.y)

    def gradient(self, theta: np.ndarray, data: Data) -> np.ndarray:
        """Sum over records of one subgradient, [..., p].

        A loss with a compiled slope is summed by blocks of records (``loops.gradient_sums``).
        """
        if self.code is not None and self.has_compiled_sums(data):
            flat = theta.reshape(-1, data.p)
            return self._sum_by_loops("sum_gradients", self.code, flat, data).reshape(theta.shape)
        slopes = self.slope(margins(theta, data), data.y).reshape(-1, data.n)
        return np.ascontiguousarray(add_rows(data.x, slopes.T).T).reshape(theta.shape)

    def sum_values(self, theta: np.ndarray, data: Data) -> np.ndarray:
        """The summed loss at each row of [..., p], shape [...]."""
        if self.code is None or not self.has_compiled_sums(data):
            return super().sum_values(theta, data)
        flat = theta.reshape(-1, data.p)
        return self._sum_by_loops("sum_losses", self.code, flat, data).reshape(theta.shape[:-1])

    def _sum_by_loops(self, name: str, code: int, points: np.ndarray, data: Data) -> np.ndarray:
        """What the function of ``loops.gradient_sums`` gives at points [m, p]."""
        if isinstance(data.x, SplitRows):
            work = partial(_sum_part, name, points, code, self.width)
            return sum_parts(data.x, work, data.y)
        from dperm_cli.loops import gradient_sums

        records = gradient_sums.wrap_rows(data.x, data.y)
        return getattr(gradient_sums, name)(records, points, code, self.width)

    def has_compiled_sums(self, data: Data) -> bool:
        """Whether there is a compiled slope, and rows in memory and not made when needed."""
        return self.has_part_sums(data)

    def lipschitz(self, bounds: Bounds) -> float:
        """row_bound * slope_bound, the Lipschitz constant for records within the bounds."""
        return self.lipschitz_norm(bounds, 2)

    def lipschitz_norm(self, bounds: Bounds, norm: float) -> float:
        """sup |g|_norm over subgradients g, for norm 1, 2 or inf.

        This is the L of the (L, norm) losses of [DJW12, Def. 2], which are L-Lipschitz in the dual
        norm.
        """
        slope = self.slope_bound(bounds.row * bounds.radius, bounds.target)
        return row_norm(bounds, norm) * slope

    def curvature_bound(self, bounds: Bounds) -> float | None:
        """Lipschitz constant of one record's gradient, or None where the loss has a kink."""
        return None if self.smoothness is None else self.smoothness * (bounds.row * bounds.row)

    def majoriser(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Curvatures w(z) in [0, smoothness] of parabolas above the loss that touch it at z.

        l(z + t) <= l(z) + l'(z) t + w(z) t^2 / 2 for every t. Here w is the smoothness.
        """
        return np.full(np.broadcast_shapes(np.shape(z), np.shape(y)), float(self.smoothness))

    def majorant(self, theta: np.ndarray, data: Data) -> np.ndarray:
        """Sum over records of w(z) x x^T at each row of [..., p], shape [..., p, p]."""
        z = margins(theta, data).reshape(-1, data.n)
        found = np.stack([_gram(data.x, self.majoriser(row, data.y)) for row in z])
        return found.reshape(*theta.shape, theta.shape[-1])

    def oscillation(self, bounds: Bounds, constraint: Any) -> float:
        """min(2 span, 2 L diameter): margins are at most row bound * the set's radius."""
        margin = bounds.row * constraint.radius
        default = super().oscillation(bounds, constraint)
        return min(2.0 * self.span(margin, bounds.target), default)

    def variation(self, bounds: Bounds, constraint: Any) -> float:
        """min(span, L diameter), as in ``oscillation``."""
        span = self.span(bounds.row * constraint.radius, bounds.target)
        return min(span, super().variation(bounds, constraint))

    @property
    def conjugate(self) -> Any:
        """The convex conjugate l*(a, y) as a function, or None where it is not known.

        With it, one slope per record is a dual point. Without it, dual points are points theta,
        whose tangents give lower bounds.
        """
        return None if self.pieces is None else self._conjugate_of_pieces

    def _conjugate_of_pieces(self, a: np.ndarray, y: np.ndarray) -> np.ndarray:
        """l*(a) of a loss of two linear pieces: linear between its two slopes, +inf outside."""
        sign, offset, up, down = self.pieces(y)
        along = sign * np.asarray(a)
        return np.where((along >= -down) & (along <= up), -along * offset, np.inf)

    def dual(self, theta: np.ndarray, data: Data) -> np.ndarray:
        """A dual point for theta [p]: the slopes [n], where ``minorant`` touches the loss."""
        if self.conjugate is None:
            return super().dual(theta, data)
        if long_sums.has_many_records(data):
            return long_sums.map_margins(data.x, theta, self.slope, data.y)
        return self.slope(margins(theta, data), data.y)

    def dual_slope(self, dual: np.ndarray, data: Data) -> np.ndarray:
        """The slope [p] of ``minorant``."""
        if not self.conjugate:
            return super().dual_slope(dual, data)
        return add_rows(data.x, dual)

    @property
    def hessian(self) -> Any:
        """(theta, data) -> Hessian [p, p] of the summed loss, or None without ``curvature``."""
        return None if self.curvature is None else self._hessian

    def _hessian(self, theta: np.ndarray, data: Data) -> np.ndarray:
        if long_sums.has_many_records(data):
            return long_sums.sum_gram(data.x, theta, self.curvature, data.y)
        return weighted_gram(data.x, self.curvature(margins(theta, data), data.y))

    @property
    def envelope_dual(self) -> Any:
        """(theta, data, width) -> dual point of the Moreau envelope, or None without ``pieces``."""
        return None if self.pieces is None else self._envelope_dual

    def _envelope_dual(self, theta: np.ndarray, data: Data, width: float) -> np.ndarray:
        sign, offset, up, down = self.pieces(data.y)
        return sign * np.clip((sign * margins(theta, data) + offset) / width, -down, up)

    @property
    def cone_cost(self) -> Any:
        """The function that adds the summed loss to a cone program; None without ``pieces``."""
        return None if self.pieces is None else self._add_pieces

    def _add_pieces(self, program: ConeProgram, data: Data, theta: np.ndarray) -> ToDual:
        return add_pieces(program, theta, data.x, self.pieces(data.y))

    def hessian_rank(self, bounds: Bounds) -> int:
        """1: one record's Hessian is a multiple of x x^T."""
        return 1

    def fenchel_terms(
        self, z: np.ndarray, a: np.ndarray, y: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """l(z) + l*(a) - a z >= 0 of every record, and the size of the numbers that were added.

        That size bounds rounding errors; the terms add up to the duality gap of the losses.
        """
        terms = np.maximum(self.value(z, y) + self.conjugate(a, y) - a * z, 0.0)
        return terms, float(np.sum(np.abs(a * z))) + 2.0 * len(z)

    def minorant(self, dual: np.ndarray, data: Data) -> Minorant:
        """An affine lower bound on the summed loss, from one slope a per record, [n].

        Fenchel's inequality l(z) >= a z - l*(a) is added up.
        """
        if self.conjugate is None:
            return super().minorant(dual, data)
        if long_sums.has_many_records(data):
            constant, slopes, terms = self._sum_conjugates(dual, data)
        else:
            conjugates = self.conjugate(dual, data.y)
            constant, slopes, terms = math.inf, 0.0, 0.0
            if np.all(np.isfinite(conjugates)):
                constant, slopes = math.fsum(conjugates), math.fsum(np.abs(dual))
                terms = math.fsum(np.abs(conjugates))
        if not math.isfinite(constant):
            return Minorant(np.zeros(data.p), -math.inf, 0.0, 0.0)
        slope = self.dual_slope(dual, data)
        return Minorant(slope, -constant, data.row_bound * slopes, terms)

    def _sum_conjugates(self, dual: np.ndarray, data: Data) -> list[float]:
        """Sums of the conjugates, of the slopes' moduli and of the conjugates' moduli.

        The first is infinite where one conjugate is.
        """

        def make(block: slice) -> tuple[np.ndarray, ...]:
            conjugates = self.conjugate(dual[block], data.y[block])
            outside = not np.all(np.isfinite(conjugates))
            known = np.full(1, np.inf) if outside else conjugates
            return known, np.abs(dual[block]), np.abs(known)

        return long_sums.sum_numbers(data.n, make)


def _gram(x: Any, weights: np.ndarray) -> np.ndarray:
    """sum_i w_i x_i x_i^T, [p, p]."""
    if not is_sparse(x):
        return weighted_gram(x, weights)
    return sum_parts(x, _add_sparse_gram, weights).toarray()


def _add_sparse_gram(x: Any, weights: np.ndarray) -> Any:
    return x.T @ x.multiply(weights[:, None]).tocsr()


def _sum_part(
    name: str, points: np.ndarray, code: int, width: float, x: Any, y: np.ndarray
) -> np.ndarray:
    """``Glm._sum_by_loops`` of the records of one part."""
    from dperm_cli.loops import gradient_sums

    records = gradient_sums.wrap_rows(x, y)
    return getattr(gradient_sums, name)(records, points, code, width, is_part=True)


def margins(theta: np.ndarray, data: Data) -> np.ndarray:
    """<x_i, theta> for each row of [..., p], shape [..., n]."""
    flat = theta.reshape(-1, theta.shape[-1])
    z = np.ascontiguousarray(multiply_rows(data.x, flat.T).T)
    return z.reshape(*theta.shape[:-1], data.n)
