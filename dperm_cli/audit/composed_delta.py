"""A lower bound on the delta of a plan's composed steps, computed without the accountant.

Every step has a pair of laws on a line that some neighbours really have: noise on two values that
are the sensitivity apart, or a mixture of both where batches are drawn. The distribution of the
privacy loss of one step is put on a grid, every loss rounded DOWN, and taken to the power of the
number of steps by Fourier transforms. So the delta that comes out is at most the true one, up to
rounding of about 1e-13; one above the claim says that the accountant adds up wrongly. Steps of
unknown loss count for nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr
from scipy.stats import laplace

from dperm_cli.privacy.events import Event

WITHIN = 1e-6  # relative, and
ROUNDING = 1e-12  # absolute error of the transforms
_CELLS = 60_000  # of the line, for the law of one step
_MOST = 1 << 18  # points of the grid of losses
_REACH = 9.0  # standard deviations, or units of a Laplace law
_COMPOSED = ("laplace", "sampled_gaussian")  # laws whose steps the accountant adds up by itself
_KNOWN = ("gaussian", *_COMPOSED)


def find_faults(events: Sequence[Event], epsilon: float, delta: float, relation: str) -> list[str]:
    """What is wrong with a claim, in words: nothing for pure claims and unknown steps."""
    if not delta > 0.0 or not any(event.law in _COMPOSED for event in events):
        return []
    spent = least_delta(events, epsilon, relation)
    if spent <= delta * (1.0 + WITHIN) + ROUNDING:
        return []
    return [f"the steps together spend delta {spent:.4g} at epsilon {epsilon:.4g}, "
            f"and {delta:.4g} is claimed"]  # fmt: skip


def least_delta(events: Sequence[Event], epsilon: float, relation: str) -> float:
    """A delta that the steps spend at least, at this epsilon."""
    named: list[Any] = [event for event in events if event.law in _KNOWN]
    known = [event for event in named if event.record_norm > 0.0]
    if not known:
        return 0.0
    return max(
        _compose_losses([(_cells(e, relation, swap), int(e.count)) for e in known], epsilon)
        for swap in (False, True)
    )


Cells = tuple[np.ndarray, np.ndarray]


def _cells(event: Any, relation: str, swap: bool) -> Cells:
    """Masses under the first law and losses ln(first / second) of the cells of a line."""
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
    # of a whole cell: merging outcomes only lowers what can be told apart
    return first[kept], np.log(first[kept]) - np.log(second[kept])


def _compose_losses(steps: Sequence[tuple[Cells, int]], epsilon: float) -> float:
    total = sum(count for _, count in steps)
    mean = sum(count * float(mass @ loss) for (mass, loss), count in steps)
    spread = sum(count * float(mass @ loss**2) for (mass, loss), count in steps)
    largest = max(float(np.max(np.abs(loss))) for (_, loss), _ in steps)
    # what lies beyond wraps around: nearly nothing, and what is lost lowers delta
    reach = abs(mean) + 12.0 * math.sqrt(spread) + 2.0 * largest + abs(epsilon) + 1.0
    points = _MOST if total > 50 else _MOST >> 2
    if 8 * total > points:
        return 0.0  # rounding down would move the sum by more than the grid holds
    # each rounding down is by h at most, and the sum must not leave the grid
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
