"""Euclidean projections in place, by integer code.

``size`` is the L2 radius (L2_BALL), the L1 radius (L1_BALL) or the half width (BOX).
"""

from __future__ import annotations

import math

from dperm_cli.loops.jit import compile_inline, compile_loop
from dperm_cli.loops.vector_lanes import dot, scale

L2_BALL, L1_BALL, BOX = 0, 1, 2


@compile_loop
def project(code, size, theta):
    """Replace ``theta`` [p], C-contiguous, by the nearest point of the set."""
    project_row(code, size, theta.reshape((1, theta.size)), 0)


@compile_inline
def project_row(code, size, theta, row):
    """Replace ``theta[row]`` by the nearest point of the set."""
    if code == L2_BALL:
        _l2_ball(size, theta, row)
    elif code == L1_BALL:
        _l1_ball(size, theta, row)
    else:
        _box(size, theta, row)


@compile_inline
def shrinkage(square, radius):
    """The factor that takes a vector of squared norm ``square`` into the ball: at most 1."""
    return radius / math.sqrt(square) if square > radius * radius else 1.0


@compile_inline
def _l2_ball(radius, theta, row):
    p = theta.shape[1]
    square = dot(theta, row * p, theta, row * p, p)
    scale(shrinkage(square, radius), theta, row * p, p)


@compile_inline
def _box(half_width, theta, row):
    for k in range(theta.shape[1]):
        theta[row, k] = min(max(theta[row, k], -half_width), half_width)


@compile_loop
def _l1_ball(radius, theta, row):
    """Soft-threshold at the root tau of sum max(|theta_k| - tau, 0) = radius.

    Newton's method from the left on this convex piecewise linear function rises to the root
    without overshooting; every step divides (excess x slope) by at least 4, so that
    O(log p) + 50 passes always suffice, and a few do in practice. It starts at
    max |theta_k| - radius <= tau and counts from there, which keeps full precision when the
    entries are much larger than the radius.
    """
    total, top = 0.0, 0.0
    for k in range(theta.shape[1]):
        total += abs(theta[row, k])
        top = max(top, abs(theta[row, k]))
    if not total > radius:
        return
    base, tau, active = max(top - radius, 0.0), 0.0, theta.shape[1] + 1
    while True:
        total, above = _mass_above(theta, row, base, tau)
        tau += (total - radius) / max(above, 1)
        # the same coordinates as before: this step only removed the rounding error
        if above == 0 or above >= active:
            break
        active = above
    for k in range(theta.shape[1]):
        rest = max((abs(theta[row, k]) - base) - tau, 0.0)
        theta[row, k] = math.copysign(rest, theta[row, k])


@compile_inline
def _mass_above(theta, row, base, tau):
    """Sum and number of the positive |theta_k| - base - tau."""
    total, above = 0.0, 0
    for k in range(theta.shape[1]):
        rest = (abs(theta[row, k]) - base) - tau
        if rest > 0.0:
            total += rest
            above += 1
    return total, above
