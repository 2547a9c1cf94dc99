"""The exact privacy loss of objective perturbation, maximised over points and records.

At an interior point theta the released minimiser has the density f(b(theta)) |det db/dtheta| with
b(theta) = -(sum of gradients + Lam theta) and db/dtheta = -(sum of Hessians + Lam I). The log ratio
of two data sets that share all records but one is therefore in closed form; ``find_worst`` looks
for its maximum over theta, the record, the one in its place, and the other records.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr

from dperm_cli.audit.quadrature import delta_at, place_nodes
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.seeds import generator, seed_sequence
from dperm_cli.privacy.events import PerturbedObjective
from dperm_cli.problem.problem import Problem

_PIECES = 400  # of the set, for quadrature
_TRIED = 20_000
_CLIMBED = 6  # of the best ones
_ROUNDS, _AROUND, _SHRINK = 60, 64, 0.8


@dataclass(frozen=True)
class _Ramp:
    """A loss of the margin whose slope rises from -steep to steep, by ``bend`` a unit, about
    z = -steep / bend for y = 1 and z = steep / bend for y = -1."""

    steep: float
    bend: float

    def slope(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        if self.bend == 0.0:
            return -y * self.steep * np.ones_like(z)
        return y * np.clip(self.bend * y * z - self.steep, -self.steep, self.steep)

    def curvature(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        rising = (self.bend * y * z > 0.0) & (self.bend * y * z < 2.0 * self.steep)
        return np.where(rising, self.bend, 0.0)


def plan_faults(events: Sequence[Any], problem: Problem, relation: str) -> list[str]:
    """What the perturbed objectives of a plan spend at its own loss, rows, radius and curvature.

    Where the loss bends and rows have another norm than 1, a constant of the plan may be too small
    though noise and claim agree with it. The set is cut to where the loss bends and the minimiser
    lies: beyond, neither tells anything.
    """
    found = []
    loss, spec = problem.loss, problem.spec()
    known = loss.curvature is not None
    for event in events:
        if event.law != "perturbed_objective" or not known or problem.data.task != "binary":
            continue
        claim, row = event.epsilon(relation), spec.row_bound
        if event.noise == "gamma_norm":
            most = find_worst(
                loss, event, p=min(spec.p, 2), row=row, radius=min(spec.constraint.radius, 4 / row),
                removed=relation == "add_remove", tries=_TRIED // 4,
            )  # fmt: skip
            if not event.count * most <= event.count * claim * (1.0 + 1e-9):
                found.append(f"a perturbed objective spends {most:.6g}, and {claim:.6g} is claimed")
            continue
        far = (12.0 * event.scale + 20.0 * spec.lipschitz) / event.strength
        spent = max(
            delta_on_a_line(loss, event, claim, *pair, radius=min(spec.constraint.radius, far))
            for pair in _on_a_line(row, relation)
        )
        if not spent <= event.delta * (1.0 + 1e-6):
            found.append(f"a perturbed objective spends delta {spent:.4g} of {event.delta:.4g}")
    return found


Side = tuple[np.ndarray, np.ndarray]


def _on_a_line(row: float, relation: str) -> list[tuple[Side, Side]]:
    """Neighbours on a line: some records that agree, and one that turns or goes."""
    found = []
    for others, sign in ((2, 1.0), (8, 1.0), (8, -1.0)):
        rows, labels = row * np.ones(others + 1), np.append(sign * np.ones(others), 1.0)
        turned, gone = labels.copy(), rows.copy()
        turned[-1], gone[-1] = -1.0, 0.0
        other = (gone, labels) if relation == "add_remove" else (rows, turned)
        found.append(((rows, labels), other))
    return found


def share(event: PerturbedObjective, epsilon: float, relation: str) -> float:
    """What the worst loss that an event allows spends, over its claim.

    Gamma norm: the largest log ratio, over ``epsilon``, for records on a line whose gradients are
    the sensitivity apart while one of them bends. Gaussian: the delta that aligned records leave
    beside the Jacobian, by quadrature, over the delta claimed.
    """
    if event.noise == "gaussian":
        return _find_aligned_delta(event, relation) / event.delta
    ramp = _Ramp(event.sensitivity(relation) / 2.0, event.curvature)
    size = 1.0 if event.curvature == 0.0 else min(1.0, ramp.steep / event.curvature)
    return event.count * find_worst(ramp, event, p=1, radius=size) / epsilon


def _find_aligned_delta(event: PerturbedObjective, relation: str) -> float:
    ratio = event.sensitivity(relation) / event.scale
    e = event.epsilon(relation) - event.jacobian
    g = np.linspace(0.0, 12.0, 200_001)
    density = np.exp(-g * g / 2.0) * np.sqrt(2.0 / np.pi)
    # both signs of the noise find a record whose gradient is aligned with it
    spent = np.maximum(1.0 - np.exp(e - ratio * g - ratio * ratio / 2.0), 0.0)
    return float(np.trapezoid(spent * density, g))


@dataclass(frozen=True)
class Candidates:
    """Points and data sets: theta [m, p], rows x [m, k, p] and labels y [m, k].

    Record 0 is in the first data set only, record 1 in the second only, the rest in both.
    """

    theta: np.ndarray
    x: np.ndarray
    y: np.ndarray

    def take(self, which: np.ndarray) -> Candidates:
        return Candidates(self.theta[which], self.x[which], self.y[which])


def log_ratio(
    loss: Any, event: PerturbedObjective, tried: Candidates, weights: np.ndarray | None = None
) -> np.ndarray:
    """ln f_D(theta) - ln f_D'(theta), [m], for Gamma-norm noise and a loss of the margin.

    ``weights`` [p] are the strength's shares of the coordinates, all 1 by default: 0 stands for a
    coordinate that nobody regularises.
    """
    p = tried.theta.shape[1]
    shares = np.ones(p) if weights is None else weights
    z = np.einsum("mkp,mp->mk", tried.x, tried.theta)
    slopes, bends = loss.slope(z, tried.y), loss.curvature(z, tried.y)
    sides = []
    for left_out in (1, 0):
        kept = [i for i in range(tried.x.shape[1]) if i != left_out]
        x = tried.x[:, kept]
        b = np.einsum("mk,mkp->mp", slopes[:, kept], x) + event.strength * shares * tried.theta
        hessian = np.einsum("mk,mkp,mkq->mpq", bends[:, kept], x, x)
        hessian = hessian + event.strength * np.diag(shares)
        volume = np.linalg.slogdet(hessian)[1]
        sides.append(volume - np.linalg.norm(b, axis=1) / event.scale)
    return sides[0] - sides[1]


def find_worst(
    loss: Any,
    event: PerturbedObjective,
    *,
    p: int,
    row: float = 1.0,
    radius: float = 1.0,
    others: int = 2,
    seed: int = 0,
    weights: np.ndarray | None = None,
    last_column: float | None = None,
    removed: bool = False,
    tries: int = _TRIED,
) -> float:
    """The largest log ratio found: random candidates, the best ones climbed by random steps.

    ``last_column`` fixes the last coordinate of every row, as an intercept does. With ``removed``
    nothing stands in the place of the record, and either data set may be the first one.
    """
    rng = generator(seed_sequence(seed, "objective loss", p, others))

    def legal(c: Candidates) -> Candidates:
        kept = _legal(c, row, radius, last_column)
        if removed:
            kept.x[:, 1] = 0.0
        return kept

    def ratio(c: Candidates) -> np.ndarray:
        found = log_ratio(loss, event, c, weights)
        return np.abs(found) if removed else found

    tried = legal(_random(rng, tries, p, others, row, radius))
    value = ratio(tried)
    order = np.argsort(value)[::-1][:_CLIMBED]
    best = -np.inf
    for start in order:
        here, at = tried.take(np.array([start])), float(value[start])
        size = 0.5
        for _ in range(_ROUNDS):
            around = legal(_around(rng, here, size * radius, size * row))
            found = ratio(around)
            top = int(np.argmax(found))
            if found[top] > at:
                here, at = around.take(np.array([top])), float(found[top])
            else:
                size *= _SHRINK
        best = max(best, at)
    return best


def _random(
    rng: np.random.Generator, m: int, p: int, others: int, row: float, radius: float
) -> Candidates:
    theta = rng.standard_normal((m, p))
    theta *= radius * rng.uniform(0.0, 1.0, (m, 1)) ** 2 / np.linalg.norm(theta, axis=1)[:, None]
    x = rng.standard_normal((m, 2 + others, p))
    x *= row / np.linalg.norm(x, axis=2, keepdims=True)
    # half of them along one line, where noise and records can be aligned
    line = rng.uniform(size=m) < 0.5
    x[line] = x[line, :1] * rng.choice([-1.0, 1.0], (int(line.sum()), 2 + others, 1))
    return Candidates(theta, x, rng.choice([-1.0, 1.0], (m, 2 + others)))


def _around(rng: np.random.Generator, c: Candidates, far: float, wide: float) -> Candidates:
    theta = c.theta + far * rng.standard_normal((_AROUND, c.theta.shape[1]))
    x = c.x + wide * rng.standard_normal((_AROUND, *c.x.shape[1:]))
    only = rng.uniform(size=_AROUND)
    theta[only < 0.25] = c.theta
    x[only > 0.75] = c.x
    return Candidates(theta, x, np.repeat(c.y, _AROUND, axis=0))


def _legal(c: Candidates, row: float, radius: float, last: float | None) -> Candidates:
    """Points within the set and rows within their bound."""
    theta = c.theta * np.minimum(1.0, radius / np.linalg.norm(c.theta, axis=1))[:, None]
    free = c.x if last is None else c.x[..., :-1]
    most = row if last is None else np.sqrt(row**2 - last**2)
    norm = np.maximum(np.linalg.norm(free, axis=2, keepdims=True), 1e-300)
    x = free * np.minimum(1.0, most / norm)
    if last is not None:
        x = np.concatenate([x, np.full((*x.shape[:2], 1), last)], axis=2)
    return Candidates(theta, x, c.y)


def delta_on_a_line(
    loss: Any,
    event: PerturbedObjective,
    epsilon: float,
    first: tuple[np.ndarray, np.ndarray],
    second: tuple[np.ndarray, np.ndarray],
    radius: float = 1.0,
) -> float:
    """The exact delta at epsilon of Gaussian noise between two data sets (rows [n], labels [n]).

    One parameter, C = [-radius, radius]: a density inside and two atoms at the ends, where the
    minimiser gets stuck. Centred on 0.
    """
    theta, weight = place_nodes(-radius, radius, _PIECES)
    one, other = (_law(loss, event, data, theta, radius) for data in (first, second))
    return delta_at(epsilon, one, other, np.append(weight, [1.0, 1.0]))


def _law(
    loss: Any,
    event: PerturbedObjective,
    data: tuple[np.ndarray, np.ndarray],
    theta: np.ndarray,
    radius: float,
) -> np.ndarray:
    """The density at interior points, and after these the chances of the two ends."""
    x, y = data

    def slope(at: np.ndarray) -> np.ndarray:
        return loss.slope(np.multiply.outer(at, x), y) @ x + event.strength * at

    bend = loss.curvature(np.multiply.outer(theta, x), y) @ x**2 + event.strength
    b = slope(theta) / event.scale
    density = np.exp(-b * b / 2.0) / np.sqrt(2.0 * np.pi) * bend / event.scale
    low, high = slope(np.array([-radius, radius])) / event.scale
    # at the left end the whole slope -low pushes further left; at the right end likewise
    return np.append(density, [ndtr(low), ndtr(-high)])
