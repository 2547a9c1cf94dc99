"""What the bounded range of the seeded generator adds to delta."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.special import ndtr, ndtri

from dperm_cli.loops import exponential, gaussian
from dperm_cli.privacy._streams import GAMMA_NORM, GAUSSIAN, LAPLACE
from dperm_cli.privacy.events import (
    DisjointBatches,
    Event,
    GammaNorm,
    Gaussian,
    GaussianMatrix,
    Laplace,
    PerturbedObjective,
    RegularizedExponential,
    SampledGaussian,
    SparseAnswers,
)

Noisy = Gaussian | SampledGaussian | Laplace | GammaNorm | PerturbedObjective

# The noise that carries out each event.
_KINDS = {
    Gaussian: GAUSSIAN,
    GaussianMatrix: GAUSSIAN,
    SampledGaussian: GAUSSIAN,
    Laplace: LAPLACE,
    GammaNorm: GAMMA_NORM,
}

# The chance of what one uniform leaves out, at most, with room for the tries of a rejection.
_UNSEEN = 2.0**-50


def kind_of(event: Noisy) -> str:
    return event.noise if isinstance(event, PerturbedObjective) else _KINDS[type(event)]


def largest_norm(event: Noisy, dim: int) -> float:
    """The largest 2-norm that a draw of the seeded generator for the event can have.

    Normals come in pairs of radius at most ``gaussian.LARGEST``; a Gamma norm is a sum of ``dim``
    exponentials.
    """
    if kind_of(event) == GAUSSIAN:
        return 1.001 * event.scale * gaussian.LARGEST * math.sqrt((dim + 1) // 2)
    return 1.001 * event.scale * exponential.LARGEST * dim


def range_delta(events: Sequence[Event], relation: str, dim: int) -> float:
    """What the bounded range of the seeded generator can add to delta, in ``dim`` coordinates.

    An output that a neighbour's larger value makes possible may be impossible here. Normals come
    in m = ceil(dim / 2) pairs of radius at most R = ``gaussian.LARGEST``, and a pair shifted by t
    standard deviations leaves that range with chance at most h(t) = exp(-(R - t)^2 / 2), plus one
    atom exp(-R^2 / 2). h is convex up to R - 1, so that shifts of length s in all, spread over
    the pairs as one likes, add at most 2 m e^{-R^2/2} + sqrt(m) (h(s) - e^{-R^2/2}) a draw.
    Exponentials, of which Laplace and Gamma-norm noise are made, end at R = 9227 scales: the
    chance that one passes R - s is at most e^-(R - s), which is 0 in float64 up to s = 8400; a
    Gamma norm of p coordinates has p of them and normals of radius sqrt(2 R).
    Secure noise has no bounded range.

    A sampler of a strongly convex law turns uniforms of 52 bits into points: what it cannot draw
    has chance ``_UNSEEN`` (dim + 2) at most, and a neighbour that is s standard deviations off, as
    a Gaussian trade-off says, draws it with chance Phi(s + Phi^-1 of that) at most. Laws of pure
    events are statements about real numbers.
    """
    return sum((_out_of_range(event, relation, dim) for event in events), 0.0)


def _out_of_range(event: Event, relation: str, dim: int) -> float:
    if isinstance(event, DisjointBatches):
        # two of its sums move at most, neither by more than all of the sensitivity
        return 2.0 * _out_of_range(event.alone(), relation, dim)
    if isinstance(event, SparseAnswers):
        event = event.all_shown()
    if isinstance(event, RegularizedExponential):
        shift = event.sensitivity(relation) / event.scale
        unseen = float(ndtr(shift + ndtri(min(0.5, _UNSEEN * (dim + 2.0)))))
        return event.count * unseen if shift > 0.0 else 0.0
    kind = kind_of(event) if isinstance(event, Noisy) else ""
    if isinstance(event, GaussianMatrix):
        dim = dim * (dim + 1) // 2
    if isinstance(event, Noisy) and kind == GAUSSIAN:
        shift = event.sensitivity(relation) / event.scale
        rate = event.rate if isinstance(event, SampledGaussian) else 1.0
        return event.count * rate * _pairs_out_of_range(shift, (dim + 1) // 2)
    if isinstance(event, Noisy):
        room = exponential.LARGEST - event.sensitivity(relation) / event.scale
        # of the at most 2^23 coordinates of a draw, with two exponentials each
        return event.count * min(1.0, 2.0 * exponential.MOST * math.exp(-max(room, 0.0)))
    return 0.0


def _pairs_out_of_range(shift: float, pairs: int) -> float:
    room, atom = gaussian.LARGEST - shift, math.exp(-(gaussian.LARGEST**2) / 2.0)
    if not room > 1.0:
        return 1.0
    alone = math.exp(-room * room / 2.0) - atom
    return min(1.0, 2.0 * pairs * atom + math.sqrt(pairs) * alone) if shift > 0 else 0.0
