"""What the last iterate of noisy gradient descent tells, where the others stay hidden.

theta <- Project(theta - eta_t (gradient of the sum + N(0, sigma^2 I))), full gradients, no
momentum, a smooth convex loss and eta_t <= 2 / (n beta), so that a step without noise brings no two
points further apart. Two data sets then pull their iterates apart by eta_t ``move`` a step, noise
hides part of it, and what lies far back hardly counts. Proof: docs/proofs/_hidden_state.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

MOST_STEPS = 5_000  # of steps that are not all alike


def compose_steps(count: int, move: float, sigma: float) -> float:
    """mu of all iterates together: sqrt(T) releases of sensitivity ``move``.

    >>> compose_steps(100, 2.0, 100.0)
    0.2
    """
    return move * math.sqrt(count) / sigma


def bound_last_iterate(
    count: int, eta: float, move: float, sigma: float, diameter: float, contraction: float = 1.0
) -> float:
    """mu of the last of ``count`` iterates, all with the step ``eta``.

    Args:
        count: the number T of steps.
        eta: the step, at most 2 / (n beta).
        move: how far one record moves the sum of gradients, at most 2 L.
        sigma: standard deviation of the noise on a sum of gradients.
        diameter: of the set that every iterate is projected on; inf without one.
        contraction: c with |step(a) - step(b)| <= c |a - b| for steps without noise; 1 of convex
            losses, max(|1 - eta n Delta|, |1 - eta n beta|) of strongly convex ones.

    Returns:
        The smaller of the bound over all steps from one start, and of those over the last K.

    Raises:
        ValueError: a contraction outside (0, 1], or numbers that are not above 0.

    >>> bound_last_iterate(100, 0.01, 2.0, 100.0, 1.0)
    0.2
    """
    if not 0.0 < contraction <= 1.0:
        raise ValueError(f"contraction={contraction}: must be above 0 and at most 1")
    if not (count >= 1 and eta > 0.0 and move > 0.0 and sigma > 0.0 and diameter > 0.0):
        raise ValueError("count, eta, move, sigma and diameter must be above 0")
    if contraction == 1.0:
        best = diameter / (move * eta)  # the K of least bound
        last = np.array([1.0, math.floor(best), math.ceil(best), count]) if best < count else count
        last = np.clip(last, 1, count)
        sums = squares = last
        kept: float | np.ndarray = 1.0
    else:
        last = np.arange(1.0, count + 1.0)
        kept = contraction**last
        sums = (1.0 - kept) / (1.0 - contraction)
        squares = (1.0 - kept**2) / (1.0 - contraction**2)
    near = (kept * diameter + move * eta * sums) / (eta * np.sqrt(squares))
    # from one start: nothing lies between the iterates at first
    whole = move * np.max(sums / np.sqrt(squares) * (last == count))
    return float(min(np.min(near), whole)) / sigma


def bound_varied_steps(etas: Sequence[float], move: float, sigma: float, diameter: float) -> float:
    """The same for steps that differ, of a convex loss: the least over the last K steps.

    Raises:
        ValueError: a step that is not above 0, or more than ``MOST_STEPS`` steps.

    >>> round(bound_varied_steps([1.0, 0.4], 2.0, 1.0, 0.1) ** 2, 6)
    5.0625
    """
    steps = np.asarray(etas, dtype=float)
    if steps.ndim != 1 or not 1 <= len(steps) <= MOST_STEPS or not np.all(steps > 0.0):
        raise ValueError(f"steps must be 1 to {MOST_STEPS} numbers above 0")
    found = [move**2 * len(steps)]  # all iterates
    found.append(_add_slopes(steps, move, 0.0))
    if math.isfinite(diameter):
        found += [_add_slopes(steps[-k:], move, diameter) for k in range(1, len(steps) + 1)]
    return math.sqrt(min(found)) / sigma


def _add_slopes(steps: np.ndarray, move: float, apart: float) -> float:
    """The sum of (change of B)^2 / (change of Q) along the greatest convex minorant.

    Its points are (0, 0) and (Q_k, B_k): Q_k is the sum of the squares of the first k steps, B_k
    that of ``move`` times them, and ``apart``.
    """
    across, up = np.cumsum(steps**2), apart + move * np.cumsum(steps)
    corners = [(0.0, 0.0)]
    for point in zip(across.tolist(), up.tolist(), strict=True):
        while len(corners) > 1 and _slope(corners[-2], corners[-1]) >= _slope(corners[-2], point):
            corners.pop()
        corners.append(point)
    pairs = pairwise(corners)
    return sum((b[1] - a[1]) ** 2 / (b[0] - a[0]) for a, b in pairs)


def _slope(first: tuple[float, float], second: tuple[float, float]) -> float:
    return (second[1] - first[1]) / (second[0] - first[0])
