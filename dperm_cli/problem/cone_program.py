"""Add the constraints and costs of sets and losses to a cone program.

``rows`` of a cone program are its constraints: an affine function of the variables v lies in a
cone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from scipy import sparse

# From the program's multipliers to a dual point of the loss
ToDual = Callable[[np.ndarray], np.ndarray]


class ConeProgram(Protocol):
    """What a cone program has to offer here. Variables and rows are referred to by index."""

    def variables(self, count: int, scale: float = 1.0) -> np.ndarray:
        """Indices of new variables, whose size is of the order of ``scale``."""
        ...

    def linear(self, columns: np.ndarray, coefficients: Any) -> None:
        """Add <coefficients, v[columns]> to the cost."""
        ...

    def quadratic(self, columns: np.ndarray, matrix: Any) -> None:
        """Add <u, matrix u> / 2 with u = v[columns], or a diagonal of that, to the cost."""
        ...

    def add(
        self, cone: str, terms: list[tuple[Any, np.ndarray]], constant: Any, power: float = 0.0
    ) -> slice:
        """Require sum of matrix @ v[columns] + constant to be in the cone; returns the rows'
        places.
        """
        ...


def add_ball(
    program: ConeProgram, theta: np.ndarray, radius: float, about: np.ndarray | None = None
) -> None:
    """The constraint |v[theta] - about| <= radius."""
    rows = sparse.vstack([sparse.coo_array((1, theta.size)), sparse.eye_array(theta.size)])
    away = np.zeros(theta.size) if about is None else -about
    program.add("second_order", [(rows, theta)], np.concatenate([[radius], away]))


def add_cube(program: ConeProgram, theta: np.ndarray, half_side: float) -> None:
    """The constraint |v[theta]_j| <= half_side for all j."""
    eye = sparse.eye_array(theta.size)
    program.add("nonnegative", [(eye, theta)], np.full(theta.size, half_side))
    program.add("nonnegative", [(-eye, theta)], np.full(theta.size, half_side))


def add_l1_ball(program: ConeProgram, theta: np.ndarray, radius: float) -> None:
    """The constraint |v[theta]|_1 <= radius."""
    moduli = program.variables(theta.size, radius)
    eye = sparse.eye_array(theta.size)
    program.add("nonnegative", [(eye, moduli), (eye, theta)], np.zeros(theta.size))
    program.add("nonnegative", [(eye, moduli), (-eye, theta)], np.zeros(theta.size))
    program.add("nonnegative", [(-ones(theta.size), moduli)], radius)


def add_power_ball(program: ConeProgram, theta: np.ndarray, power: float, size: float) -> None:
    """|v[theta]|_q <= size, as |theta_j| <= t_j^(1/q) size^(1 - 1/q) with sum t = size."""
    shares = program.variables(theta.size, size)
    program.add("zero", [(ones(theta.size), shares)], -size)
    for one, t in zip(theta, shares, strict=True):
        terms = [(_entry(3, 0), np.array([t])), (_entry(3, 2), np.array([one]))]
        program.add("power", terms, np.array([0.0, size, 0.0]), 1.0 / power)


def add_shares(program: ConeProgram, weights: np.ndarray, total: float) -> None:
    """The constraints v[weights] >= 0 and sum of v[weights] = ``total``."""
    add_nonnegative(program, weights)
    program.add("zero", [(ones(weights.size), weights)], -total)


def add_mixture(program: ConeProgram, theta: np.ndarray, points: np.ndarray) -> None:
    """The constraint that v[theta] is in the convex hull of the points [m, p]."""
    weights = program.variables(len(points))
    add_equal(program, theta, points.T, weights)
    add_shares(program, weights, 1.0)


def add_equal(program: ConeProgram, theta: np.ndarray, matrix: Any, other: np.ndarray) -> None:
    """The constraint v[theta] = matrix v[other]."""
    terms = [(sparse.eye_array(theta.size), theta), (-matrix, other)]
    program.add("zero", terms, np.zeros(theta.size))


def add_nonnegative(program: ConeProgram, *columns: np.ndarray) -> None:
    """The constraint v[each] >= 0."""
    for each in columns:
        program.add("nonnegative", [(sparse.eye_array(each.size), each)], np.zeros(each.size))


def add_pieces(
    program: ConeProgram, theta: np.ndarray, x: Any, pieces: tuple[Any, Any, float, float]
) -> ToDual:
    """The sum over rows x_i of up max(r, 0) + down max(-r, 0) with r = sign <x_i, theta> + offset.

    r = above - below is charged up * above + down * below.
    """
    sign, offset, up, down = pieces
    n = len(offset)
    above, below = program.variables(n), program.variables(n)
    program.linear(above, up)
    program.linear(below, down)
    eye = sparse.eye_array(n)
    terms = [(_scale_rows(x, sign), theta), (-eye, above), (eye, below)]
    equal = program.add("zero", terms, offset)
    add_nonnegative(program, above, below)
    return lambda multipliers: sign * np.clip(-multipliers[equal], -down, up)


def add_rounded_part(
    program: ConeProgram, theta: np.ndarray, x: Any, sign: Any, offset: Any, width: float
) -> ToDual:
    """The sum over rows of a positive part rounded on [-h, h] around its kink.

    It is the least w^2 / (4 h) + e over w, e >= 0 with w + e >= r + h, r = sign <x_i, theta> +
    offset and h = ``width``.
    """
    n = len(offset)
    bent, straight = program.variables(n), program.variables(n)
    program.quadratic(bent, np.full(n, 0.5 / width))
    program.linear(straight, 1.0)
    eye = sparse.eye_array(n)
    terms = [(eye, bent), (eye, straight), (_scale_rows(x, -sign), theta)]
    above = program.add("nonnegative", terms, -offset - width)
    add_nonnegative(program, bent, straight)
    return lambda multipliers: sign * np.clip(multipliers[above], 0.0, 1.0)


def add_l1_distances(program: ConeProgram, theta: np.ndarray, x: np.ndarray) -> ToDual:
    """The sum over rows of |v[theta] - x_i|_1."""
    n, p = x.shape
    above, below = program.variables(n * p), program.variables(n * p)
    program.linear(above, 1.0)
    program.linear(below, 1.0)
    eye = sparse.eye_array(n * p)
    copies = sparse.vstack([sparse.eye_array(p)] * n)
    equal = program.add("zero", [(copies, theta), (-eye, above), (eye, below)], -x.ravel())
    add_nonnegative(program, above, below)
    return lambda multipliers: np.clip(-multipliers[equal], -1.0, 1.0).reshape(n, p)


def add_distances(program: ConeProgram, theta: np.ndarray, x: np.ndarray) -> ToDual:
    """The sum over rows of |v[theta] - x_i|_2."""
    n, p = x.shape
    lengths = program.variables(n)
    program.linear(lengths, 1.0)
    first = _entry(p + 1, 0)
    rest = sparse.coo_array((np.ones(p), (1 + np.arange(p), np.arange(p))), shape=(p + 1, p))
    groups = []
    for row, length in zip(x, lengths, strict=True):
        terms = [(first, np.array([length])), (rest, theta)]
        groups.append(program.add("second_order", terms, np.concatenate([[0.0], -row])))

    def to_dual(multipliers: np.ndarray) -> np.ndarray:
        slopes = -multipliers[groups[0].start : groups[-1].stop].reshape(n, p + 1)[:, 1:]
        return slopes / np.maximum(1.0, np.linalg.norm(slopes, axis=1, keepdims=True))

    return to_dual


def ones(count: int) -> sparse.coo_array:
    """A row of ones."""
    return sparse.coo_array(np.ones((1, count)))


def _entry(length: int, row: int) -> sparse.coo_array:
    return sparse.coo_array(([1.0], ([row], [0])), shape=(length, 1))


def _scale_rows(x: Any, factors: np.ndarray) -> Any:
    return sparse.coo_array(sparse.diags_array(factors) @ sparse.csr_array(x))
