"""Bound the delta that is added because seeded noise has a largest value.

Seeded noise has a largest value, so some outputs are possible on one neighbour and impossible on
the other. Secure noise has no largest value. For pure events nothing is added: their guarantee is
stated for noise of real numbers.
"""

from __future__ import annotations

import math

from scipy.special import ndtr, ndtri

# Of delta: what the range may add to it without an event of its own.
NEGLIGIBLE_DELTA_SHARE = 1e-3
# The chance of what one uniform leaves out, at most, with room for the tries of a rejection.
_UNDRAWN_CHANCE = 2.0**-50


def normal_range_delta(shift: float, dim: int) -> float:
    """The delta of one draw of ``dim`` normals, for values ``shift`` standard deviations apart.

    Normals come in m = ceil(dim / 2) pairs of radius at most R = ``gaussian_noise.LARGEST``. A pair
    shifted by t standard deviations leaves that range with probability at most
    h(t) = exp(-(R - t)^2 / 2), plus one atom exp(-R^2 / 2). h is convex up to R - 1. So shifts with
    root of sum of squares s, however they are spread over the pairs, add at most
    2 m e^{-R^2/2} + sqrt(m) (h(s) - e^{-R^2/2}).
    """
    from dperm_cli.loops import gaussian_noise  # numba: not where events alone are read

    pairs = (dim + 1) // 2
    room, atom = gaussian_noise.LARGEST - shift, math.exp(-(gaussian_noise.LARGEST**2) / 2.0)
    if not room > 1.0:
        return 1.0
    alone = math.exp(-room * room / 2.0) - atom
    return min(1.0, 2.0 * pairs * atom + math.sqrt(pairs) * alone) if shift > 0 else 0.0


def exponential_range_delta(shift: float) -> float:
    """The delta of one draw of Laplace or Gamma-norm noise, for values ``shift`` scales apart.

    Both are made of exponentials, which end at R = 9227 scales. The probability that one exceeds
    R - s is at most e^-(R - s), which is 0 in float64 up to s = 8400. A Gamma norm of p coordinates
    is a sum of p exponentials; its direction is made of normals of radius at most sqrt(2 R).
    """
    from dperm_cli.loops import exponential_noise

    room = exponential_noise.LARGEST - shift
    # of the at most 2^23 coordinates of a draw, with two exponentials each
    return min(1.0, 2.0 * exponential_noise.MOST * math.exp(-max(room, 0.0)))


def uniform_range_delta(shift: float, dim: int) -> float:
    """The delta of one draw from a strongly convex law, ``shift`` = its sensitivity / scale.

    A sampler turns uniforms of 52 bits into points. What it cannot draw has probability at most
    q = ``_UNDRAWN_CHANCE`` (dim + 2). On a neighbour whose law is s standard deviations away, in
    the sense of a Gaussian trade-off, this has probability at most Phi(s + Phi^-1(q)).
    """
    unseen = float(ndtr(shift + ndtri(min(0.5, _UNDRAWN_CHANCE * (dim + 2.0)))))
    return unseen if shift > 0.0 else 0.0


def largest_norm(kind: str, scale: float, dim: int) -> float:
    """The largest 2-norm that one draw of Gaussian or Gamma-norm noise can have.

    Normals come in pairs of radius at most ``gaussian_noise.LARGEST``; a Gamma norm is a sum of
    ``dim`` exponentials.
    """
    from dperm_cli.loops import exponential_noise, gaussian_noise

    if kind == "gaussian":
        return 1.001 * scale * gaussian_noise.LARGEST * math.sqrt((dim + 1) // 2)
    return 1.001 * scale * exponential_noise.LARGEST * dim
