"""The mean logistic loss of labels with known log odds, for rows uniform on a sphere.

A row is x, and y = 1 has the log odds <x, best>. By symmetry the mean loss of a point is made of
means over one coordinate of x alone. They are integrals over an angle, which Gauss's rule gives
exactly but for rounding, with the same bits on every processor.
"""

from __future__ import annotations

import math

import numpy as np

from dperm_cli.loops.jit import compile_loop
from dperm_cli.loops.slopes import exp, log_of_one_plus

_PANELS = 128
_FAR = 40.0  # exp(-_FAR) is below the last digit

# Gauss's rule of five nodes on [0, 1]: two pairs about the middle one
_ROOT = 2.0 * math.sqrt(10.0 / 7.0)
_INNER, _OUTER = math.sqrt(5.0 - _ROOT) / 6.0, math.sqrt(5.0 + _ROOT) / 6.0
_MIDDLE_WEIGHT = 64.0 / 225.0
_INNER_WEIGHT = (322.0 + 13.0 * math.sqrt(70.0)) / 1800.0
_OUTER_WEIGHT = (322.0 - 13.0 * math.sqrt(70.0)) / 1800.0
_NODES = (0.5 - _OUTER, 0.5 - _INNER, 0.5, 0.5 + _INNER, 0.5 + _OUTER)
_WEIGHTS = (_OUTER_WEIGHT, _INNER_WEIGHT, _MIDDLE_WEIGHT, _INNER_WEIGHT, _OUTER_WEIGHT)


def find_excess(points: np.ndarray, best: np.ndarray, dimension: int, radius: float) -> np.ndarray:
    """The expected logistic losses of some points above the least one, that of ``best``.

    With t the size of a coordinate on the unit sphere, r = radius |theta| and s = radius |best|,
    the excess is the sum of two parts, neither of which is below 0:

        a(r) - a(s) + (r - s) b         a(r) = E log(1 + exp(-r t)) and b = -a'(s)
        r (1 - cosine) (E t / 2 - b)    cosine of the angle between theta and ``best``

    The first part is the excess of a point as long as theta in the direction of ``best``.

    Args:
        points: theta [m, p].
        best: The log odds of y = 1 are <x, best> [p].
        dimension: Of the sphere whose coordinates x has, at least p.
        radius: Of the sphere.

    Returns:
        The excesses [m], each at least 0. None depends on the other points.

    Raises:
        ValueError: where the shapes do not fit.
    """
    if points.ndim != 2 or best.shape != points.shape[1:] or best.size > dimension:
        raise ValueError(f"points {points.shape} do not fit {best.shape} in dimension {dimension}")
    both = np.ascontiguousarray(np.concatenate([best[None], points]), dtype=float)
    lengths = np.linalg.norm(both, axis=1)
    units = both / np.where(lengths > 0.0, lengths, 1.0)[:, None]
    apart = 0.5 * np.square(units - units[0]).sum(axis=1)  # 1 - cosine
    r = float(radius) * lengths
    means, sizes = np.empty((len(r), 2)), np.empty(1)
    _fill_means(r, int(dimension), means, sizes)
    a, b = means[:, 0], means[0, 1]
    along = (a - a[0]) + (r - r[0]) * b
    across = r * apart * max(0.5 * sizes[0] - b, 0.0) if r[0] > 0.0 else 0.0
    return (np.maximum(along, 0.0) + across)[1:]


@compile_loop
def _power(base, exponent):
    """base^exponent by products, for a whole exponent >= 0."""
    result = 1.0
    while exponent > 0:
        if exponent % 2 == 1:
            result *= base
        base *= base
        exponent //= 2
    return result


@compile_loop
def _integrate(r, degree, end):
    """Integrals over angles from 0 to that whose half has the tangent ``end``.

    With t the sine of an angle, they are those of cosine^degree times 1, log(1 + exp(-r t)) and
    t / (1 + exp(r t)).
    """
    mass, losses, slopes = 0.0, 0.0, 0.0
    width = end / _PANELS
    for panel in range(_PANELS):
        for k in range(5):
            half = (panel + _NODES[k]) * width
            square = half * half
            whole = 1.0 + square
            t = 2.0 * half / whole
            weight = _WEIGHTS[k] * _power((1.0 - square) / whole, degree) / whole
            e = exp(-r * t)
            mass += weight
            losses += weight * log_of_one_plus(e)
            slopes += weight * (t * e / (1.0 + e))
    return 2.0 * width * mass, 2.0 * width * losses, 2.0 * width * slopes


@compile_loop
def _fill_means(r, dimension, means, sizes):
    """means [m, 2]: E log(1 + exp(-r t)) and E t / (1 + exp(r t)); sizes [1]: E t."""
    if dimension == 1:
        sizes[0] = 1.0
        for i in range(r.size):
            e = exp(-r[i])
            means[i, 0], means[i, 1] = log_of_one_plus(e), e / (1.0 + e)
        return
    degree = dimension - 2
    end = min(1.0, math.sqrt(0.5 * _FAR / max(degree, 1)))  # beyond it the cosine's power is 0
    mass = _integrate(0.0, degree, end)[0]
    sizes[0] = 1.0 / ((degree + 1) * mass)
    for i in range(r.size):
        near = end if r[i] * end <= _FAR else _FAR / r[i]
        _, losses, slopes = _integrate(r[i], degree, near)
        means[i, 0], means[i, 1] = losses / mass, slopes / mass
