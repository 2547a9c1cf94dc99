"""A lower bound on the delta of a plan's composed steps, computed without the accountant.

For every step there is a pair of one-dimensional laws that occurs for some neighbours: noise around
two values that are the sensitivity apart, or a mixture of both where batches are drawn. The
distribution of one step's privacy loss is put on a grid, with every loss rounded down. Fourier
transforms give the distribution of the sum over all steps.

So the computed delta is at most the true one, up to rounding of about 1e-13. If it is above the
claim, the accountant adds up wrongly. Steps whose loss is unknown are left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr
from scipy.stats import laplace

from dperm_cli.privacy.events import Event

WITHIN = 1e-6  # relative error granted to the computed delta, and
ROUNDING = 1e-12  # absolute error of the transforms
_CELLS = 60_000  # intervals of the real line, for the law of one step
_MOST = 1 << 18  # points of the grid of losses
_REACH = 9.0  # how far the line goes, in standard deviations
_COMPOSED = ("laplace", "sampled_gaussian")  # laws whose steps the accountant adds up by itself
_KNOWN = ("gaussian", *_COMPOSED)


def find_faults(events: Sequence[Event], epsilon: float, delta: float, relation: str) -> list[str]:
    """What is wrong with the plan's claim, as sentences.

    Args:
        events: the events of the plan.
        epsilon, delta: the claim, epsilon in nats.
        relation: ``replace_one`` or ``add_remove``.

    Returns:
        One sentence if the steps spend more than ``delta``. Empty otherwise, and for pure claims
        and plans without steps that the accountant composes.
    """
    if not delta > 0.0 or not any(event.law in _COMPOSED for event in events):
        return []
    spent = least_delta(events, epsilon, relation)
    if spent <= delta * (1.0 + WITHIN) + ROUNDING:
        return []
    return [f"the steps together spend delta {spent:.4g} at epsilon {epsilon:.4g}, "
            f"and {delta:.4g} is claimed"]  # fmt: skip


def least_delta(events: Sequence[Event], epsilon: float, relation: str) -> float:
    """A lower bound on the delta that the steps spend together at ``epsilon``."""
    named: list[Any] = [event for event in events if event.law in _KNOWN]
    known = [event for event in named if event.record_norm > 0.0]
    if not known:
        return 0.0
    return max(
        _compose_losses(
            [(_discretise_step(e, relation, swap), int(e.count)) for e in known], epsilon
        )
        for swap in (False, True)
    )


Cells = tuple[np.ndarray, np.ndarray]


def _discretise_step(event: Any, relation: str, swap: bool) -> Cells:
    """Divide the line into intervals: each one's mass, and its loss ln(first / second).

    The mass is that under the first law of the step's pair; ``swap`` exchanges the two laws.
    """
    twice = 2.0 if relation == "replace_one" else 1.0
    apart = event.record_norm * twice
    if event.gap is not None and relation == "replace_one":
        apart = min(event.gap, apart)
    shift, rate, other = apart / event.scale, 1.0, 0.0
    if event.samples_records:
        rate = event.batch / event.population
        if event.sampling == "poisson" and relation == "replace_one":
            shift = event.record_norm / event.scale
            other = -shift
    low, high = min(other, 0.0) - _REACH, shift + _REACH
    cdf = ndtr
    if event.noise_law == "laplace":
        low, high, cdf = low - 4.0 * _REACH, high + 4.0 * _REACH, laplace.cdf
    edges = np.linspace(low, high, _CELLS + 1)
    base = np.diff(cdf(edges))
    first = (1.0 - rate) * base + rate * np.diff(cdf(edges - shift))
    second = (1.0 - rate) * base + rate * np.diff(cdf(edges - other)) if other else base
    if swap:
        first, second = second, first
    kept = (first > 0.0) & (second > 0.0)
    # the loss of a whole interval: merging outcomes can only make the laws harder to tell apart
    return first[kept], np.log(first[kept]) - np.log(second[kept])


def _compose_losses(steps: Sequence[tuple[Cells, int]], epsilon: float) -> float:
    """delta at ``epsilon`` of the sum of all steps' losses, each rounded down to a grid."""
    total = sum(count for _, count in steps)
    mean = sum(count * float(mass @ loss) for (mass, loss), count in steps)
    spread = sum(count * float(mass @ loss**2) for (mass, loss), count in steps)
    largest = max(float(np.max(np.abs(loss))) for (_, loss), _ in steps)
    # losses beyond this wrap around: they have nearly no mass, and this lowers delta
    reach = abs(mean) + 12.0 * math.sqrt(spread) + 2.0 * largest + abs(epsilon) + 1.0
    points = _MOST if total > 50 else _MOST >> 2
    if 8 * total > points:
        return 0.0  # rounding down would move the sum by more than the grid holds
    # each loss is rounded down by h at most, and the sum must stay on the grid
    h = 2.0 * reach / (points - 2 * total)
    power = np.ones(points // 2 + 1, complex)
    for (mass, loss), count in steps:
        place = np.floor(loss / h).astype(np.int64)
        line = np.bincount(place % points, mass, points)
        power = power * np.fft.rfft(line) ** count
    law = np.fft.irfft(power, points)
    places = np.arange(points)
    losses = h * np.where(places < points // 2, places, places - points)
    above = losses > epsilon
    return float(np.sum(np.maximum(law[above], 0.0) * -np.expm1(epsilon - losses[above])))
