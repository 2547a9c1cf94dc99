"""Exact privacy loss where the density of the output is known, by quadrature.

``log_ratio`` is the largest |ln f(theta) - ln g(theta)| of two densities proportional to
exp(-energy) on a box in one or two dimensions. Their normalising integrals are computed by
Gauss-Legendre quadrature. ``delta_at`` is the hockey-stick divergence of two densities.

``noise_loss`` compares the noise of one event with its claim: it shifts the data by exactly the
sensitivity (in the norm of that noise) and computes what this spends. ``plan_loss`` does so for
all events of a plan. A value above 1 means that more is spent than was claimed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dperm_cli.audit import channel_loss, objective_loss
from dperm_cli.audit.quadrature import delta_at, place_nodes
from dperm_cli.core.errors import Unsupported
from dperm_cli.privacy.accounting.accountant import account, delta_of
from dperm_cli.privacy.events import Event, Gaussian

Energy = Callable[[np.ndarray], np.ndarray]
WITHIN = 1e-6  # relative error granted to the quadrature
POWER = 0.4  # a search that finds a smaller share of epsilon than this is taken to be broken

_PIECES = {1: 400, 2: 40}  # pieces of the quadrature along each axis, by dimension
_EDGES = 9  # points along each axis of the grid that holds the corners
_REACH = 12.0  # how far the integral goes beyond the sensitivity, in noise scales


def points(low: Sequence[float], high: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Quadrature points [m, p] and weights [m] on a box in one or two dimensions."""
    axes = [place_nodes(a, b, _PIECES[len(low)]) for a, b in zip(low, high, strict=True)]
    if len(axes) == 1:
        return axes[0][0][:, None], axes[0][1]
    (x, v), (y, w) = axes
    grid = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)
    return grid, np.outer(v, w).ravel()


def log_ratio(first: Energy, second: Energy, low: Sequence[float], high: Sequence[float]) -> float:
    """max over theta of |ln f - ln g| for densities f, g prop. to exp(-energy) on a box.

    Energies take theta [m, p] to [m], p = 1 or 2; +inf marks points outside the set. The maximum
    is over the quadrature points and a grid that holds the box's corners.
    """
    theta, weight = points(low, high)
    shift = _log_integral(-first(theta), weight) - _log_integral(-second(theta), weight)
    edges = [np.linspace(a, b, _EDGES) for a, b in zip(low, high, strict=True)]
    corners = np.stack(np.meshgrid(*edges, indexing="ij"), axis=-1).reshape(-1, len(low))
    tried = np.concatenate([theta, corners])
    energy, other = first(tried), second(tried)
    if not np.array_equal(np.isfinite(energy), np.isfinite(other)):
        return math.inf  # only one of the two laws can give this point
    inside = np.isfinite(energy)
    return float(np.max(np.abs(other[inside] - energy[inside] - shift)))


def noise_loss(event: Event, epsilon: float, delta: float, relation: str) -> float:
    """The privacy loss of one event's noise, divided by what is claimed for it.

    What is compared depends on the law of the event:

    - Gaussian: delta at ``epsilon`` by quadrature, over the claimed delta.
    - Sampled Gaussian: the same for one step, over what the accountant computes for one step.
    - Wishart: the same for matrices of order 2.
    - Laplace and Gamma-norm: the largest log ratio of densities over places and shifts, in one
      and two dimensions, over ``epsilon``.
    - Exponential mechanism: the largest log ratio for linear losses on an interval, over
      ``epsilon``.
    - Objective perturbation: ``objective_loss.share``.

    Args:
        event: one event of a plan.
        epsilon, delta: the claim for this event, epsilon in nats.
        relation: ``replace_one`` or ``add_remove``.

    Returns:
        The share of the claim that is spent: at most 1 for a correct claim.

    Raises:
        Unsupported: no exact loss is known for this kind of event.
    """
    event = event.as_one_sum(relation)
    if event.law not in _LOSSES:
        raise Unsupported(f"no exact loss is known for {type(event).__name__}")
    return _LOSSES[event.law](event, epsilon, delta, relation)


def plan_loss(
    events: Sequence[Event], epsilon: float, delta: float, relation: str
) -> tuple[float, float] | None:
    """The largest and the smallest share of its claim that a part of the plan spends.

    Several Gaussian events are treated as one, whose squared sensitivity over scale is the sum of
    theirs. Pure events at delta = 0 are added up. In both cases the sum is compared with the whole
    ``epsilon``. In a plan of both kinds, or of pure events at ``delta`` > 0, each event is compared
    with what the accountant computes for it alone. Answers of local channels are compared by
    ``channel_loss``.

    Args:
        events: the events of the plan.
        epsilon, delta: the claim of the plan, epsilon in nats.
        relation: ``replace_one`` or ``add_remove``.

    Returns:
        (largest, smallest) share of the claim, or None where no density is known.
    """
    if any(event.kind() == "local" for event in events):
        return _channel_shares(events, epsilon)
    noisy: list[Any] = [event.as_one_sum(relation) for event in events]
    noisy = [event for event in noisy if event.law in _LOSSES and event.sensitivity(relation) > 0.0]
    if len(noisy) > 1 and all(event.law == "gaussian" for event in noisy):
        squares = (e.count * (e.sensitivity(relation) / e.scale) ** 2 for e in noisy)
        mu = math.sqrt(math.fsum(squares))
        record = mu / 2.0 if relation == "replace_one" else mu
        noisy = [Gaussian(1.0, record)]
    if delta == 0.0 and len(noisy) > 1 and all(event.kind() == "pure" for event in noisy):
        whole = math.fsum(noise_loss(event, epsilon, delta, relation) for event in noisy)
        return whole, whole
    found = []
    for event in noisy:
        own, pure = epsilon, event.kind() == "pure"
        # at delta > 0 a claim may lie below the largest log ratio, which is a pure epsilon
        if len(noisy) > 1 or (pure and delta > 0.0):
            own = account((event,), delta=0.0 if pure else delta, relation=relation).epsilon
        found.append(noise_loss(event, own, delta, relation))
    return (max(found), min(found)) if found else None


def _channel_shares(events: Sequence[Any], epsilon: float) -> tuple[float, float] | None:
    """The share of the claim that all answers of one user spend through local channels.

    ``channel_loss.shares`` gives a share for the plan's channel and for channels of other
    dimensions: the result has the sum of the largest and the sum of the smallest.
    """
    worst, least = [], []
    for event in events:
        shares = channel_loss.shares(event) if event.kind() == "local" else None
        if shares is None:
            return None
        worst.append(max(shares) * event.epsilon * event.messages)
        least.append(min(shares) * event.epsilon * event.messages)
    return math.fsum(worst) / epsilon, math.fsum(least) / epsilon


def linear_exponential(event: Any, relation: str, records: int = 1000) -> float:
    """The exponential mechanism's log ratio for ``records`` linear losses, all alike but one.

    On [-1/2, 1/2] the loss g theta has oscillation |g|. The neighbour's total slope is smaller by
    the sensitivity.
    """
    step = event.exponent * event.sensitivity(relation)
    steep = records * step / 2.0 if relation == "replace_one" else records * step

    def energy(slope: float) -> Energy:
        return lambda theta: slope * theta[:, 0]

    return log_ratio(energy(steep), energy(steep - step), [-0.5], [0.5])


def _find_gaussian_share(event: Any, epsilon: float, delta: float, relation: str) -> float:
    """delta at epsilon over the claimed one.

    T releases are as one release with sqrt(T) times the shift.
    """
    mu = math.sqrt(event.count) * event.sensitivity(relation) / event.scale
    x, weight = place_nodes(-_REACH, mu + _REACH, 4 * _PIECES[1])
    return delta_at(epsilon, _normal(x), _normal(x - mu), weight) / delta


def _find_mixture_share(event: Any, epsilon: float, delta: float, relation: str) -> float:
    """delta of one step over the claimed one, at the epsilon where the step spends ``delta``."""
    one = replace(event, count=1)
    at = min(epsilon, account((one,), delta=delta, relation=relation).epsilon)
    claimed = delta_of((one,), epsilon=at, relation=relation)
    if not claimed > 0.0:
        return 0.0
    # replace_one under Poisson batches: either record shifts the noise away from 0, if drawn
    both = relation == "replace_one" and event.sampling == "poisson"
    shift = event.record_norm / event.scale if both else event.sensitivity(relation) / event.scale
    x, weight = place_nodes(-shift - _REACH, shift + _REACH, 4 * _PIECES[1])
    rate, without = event.batch / event.population, _normal(x)
    first = (1.0 - rate) * without + rate * _normal(x - shift)
    second = (1.0 - rate) * without + rate * _normal(x + shift) if both else without
    return delta_at(at, first, second, weight) / claimed


def _find_exponential_share(event: Any, epsilon: float, delta: float, relation: str) -> float:
    """The log ratio of ``linear_exponential`` for all draws, over ``epsilon``."""
    return event.count * linear_exponential(event, relation) / epsilon


def _bound_perturbed_loss(event: Any, epsilon: float, delta: float, relation: str) -> float:
    """The privacy loss of objective perturbation over ``epsilon`` (``objective_loss``)."""
    return objective_loss.share(event, epsilon, relation)


def _find_shift_ratio(event: Any, epsilon: float, delta: float, relation: str) -> float:
    """The largest |energy(b - m) - energy(b)| over places b and shifts m, in 1-D and 2-D.

    A shifted density has the same normalising constant.
    """
    order = 1 if event.law == "laplace" else 2
    shift = event.sensitivity(relation) / event.scale
    worst = 0.0
    for p in (1, 2):
        axis = np.linspace(-2.0, 2.0, 41)
        places = np.stack(np.meshgrid(*[axis] * p, indexing="ij"), axis=-1).reshape(-1, p)
        for angle in (0.0, 0.5, math.pi / 4.0) if p == 2 else (0.0,):
            move = np.array([math.cos(angle), math.sin(angle)][:p])
            move *= shift / float(np.linalg.norm(move, order))
            at = (shift + 1.0) * places
            moved = np.linalg.norm(at - move, order, axis=1) - np.linalg.norm(at, order, axis=1)
            worst = max(worst, float(np.max(np.abs(moved))))
    return event.count * worst / epsilon


def _find_wishart_ratio(event: Any, epsilon: float, delta: float, relation: str) -> float:
    """The largest log ratio of densities of 2 x 2 matrices, over places and shifts, over epsilon.

    In units of the scale half the difference of two Wishart matrices of order 2 with 3 degrees of
    freedom has a density that depends on the eigenvalues alone: ``_log_wishart_density``.
    """
    shift = event.sensitivity(relation) / event.scale
    worst = 0.0
    for first, second in ((0.0, 0.0), (1.0, -0.5), (2.0, 1.0), (-0.3, -2.0), (0.4, -3.0)):
        place = np.diag([first, second]) * (shift + 1.0)
        for angle, share in itertools.product((0.0, 0.5, math.pi / 4.0), (1.0, 0.5, 0.0)):
            turn = np.array([math.cos(angle), math.sin(angle)])
            across = np.array([-turn[1], turn[0]])
            # one record comes, or one comes and another goes
            move = share * np.outer(turn, turn) - (1.0 - share) * np.outer(across, across)
            moved = _log_wishart_density(place + shift * move) - _log_wishart_density(place)
            worst = max(worst, abs(moved))
    return event.count * worst / epsilon


def _log_wishart_density(matrix: np.ndarray) -> float:
    """ln f(S), S = W - W' of order 2, up to a constant; densities e^(-tr W) on the cone.

    f(S) is the integral of e^(-2 tr W + tr S) over W >= 0 and W >= S. With a = W_11, b = W_22 and S
    = diag(s, -t) the entry W_12 has room of 2 sqrt(min(a b, (a - s)(b + t))). That is e^-|S| times
    a constant where s and -t have one sign.
    """
    low, high = np.linalg.eigvalsh(matrix)
    if low >= 0.0 or high <= 0.0:
        return -abs(low + high) + math.log(math.pi / 16.0)
    (a, v), (b, w) = (place_nodes(0.0, 20.0, 12) for _ in range(2))
    # a = high + u: what is left over after e^-|S|, integrated over sqrt(u) and sqrt(b)
    u, b = a[:, None] ** 2 / 20.0, b[None, :] ** 2 / 20.0
    room = 2.0 * np.sqrt(np.minimum((high + u) * b, u * (b - low)))
    each = room * np.exp(-2.0 * (u + b)) * (a[:, None] / 10.0) * (np.sqrt(20.0 * b) / 10.0)
    return low - high + math.log(float(v @ each @ w))


def _normal(x: np.ndarray) -> np.ndarray:
    """The standard normal density."""
    return np.exp(-x * x / 2.0) / math.sqrt(2.0 * math.pi)


def _log_integral(log_values: np.ndarray, weight: np.ndarray) -> float:
    """The logarithm of an integral, from the logarithms of the integrand and quadrature weights."""
    top = float(np.max(log_values))
    return top + math.log(float(np.exp(log_values - top) @ weight))


# By the law of an event: (event, epsilon, delta, relation) -> the share of its claim it spends.
_LOSSES: dict[str, Callable[[Any, float, float, str], float]] = {
    "gaussian": _find_gaussian_share,
    "sampled_gaussian": _find_mixture_share,
    "perturbed_objective": _bound_perturbed_loss,
    "exponential": _find_exponential_share,
    "laplace": _find_shift_ratio,
    "gamma_norm": _find_shift_ratio,
    "wishart": _find_wishart_ratio,
}
