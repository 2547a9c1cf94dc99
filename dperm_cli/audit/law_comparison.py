"""Compare every way of drawing a plan's noise with the plain loop that the tape records.

A replay sees the plain loop: one draw after another through the gate. A compiled loop, a loop in
the coordinates of few rows, and a gate on a grid draw past the tape. ``compare`` holds what they
release against the plain loop's, number by number where they promise the same numbers, else law
against law: the mean squares, means and distributions of many features of the released points.
Releases on rows of zeros are functions of the noise alone.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import kolmogorov, log_ndtr

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.seeds import generator, seed_sequence

ALIKE = 1e-6  # of the largest coordinate: the same numbers up to rounding
LEVEL = 1e-9  # chance of a false alarm of one comparison of laws
_DIRECTIONS = 6
_CAUTION = 1.25  # times the standard error: means of few heavy-tailed numbers are not yet normal


@dataclass(frozen=True)
class Law:
    """What comparing the laws of two samples found: ``worst`` is the smallest chance."""

    worst: float
    said: str

    @property
    def is_alike(self) -> bool:
        return self.worst >= LEVEL


def same_numbers(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two sets of releases are equal up to rounding."""
    if one.shape != other.shape:
        return False
    size = max(float(np.max(np.abs(one), initial=0.0)), 1e-300)
    return bool(np.all(np.abs(one - other) <= ALIKE * size))


def compare(one: np.ndarray, other: np.ndarray, seed: int = 0, blur: float = 0.0) -> Law:
    """Two samples of released points, [k, p] and [m, p], of what should be one law.

    Both sides get normal noise of scale ``blur`` first, so that differences far below it are
    allowed.

    Features: every mean square, coordinates (at most 8) and random directions, the norm, and the
    share of the longest coordinate. Each is compared by its mean, its mean square and its whole
    distribution [Kolmogorov-Smirnov]; the chance of the worst is multiplied by their number.
    """
    p = one.shape[1]
    if blur:
        noise = generator(seed_sequence(seed, "audit", "blur", p))
        one, other = (side + blur * noise.standard_normal(side.shape) for side in (one, other))
    rng = generator(seed_sequence(seed, "audit", "directions", p))
    away = rng.standard_normal((p, _DIRECTIONS)) / math.sqrt(p)
    axes = np.eye(p)[:, : min(p, 8)]
    # most numbers may be exactly 0, as at a corner of a simplex: these have no size to go by
    sizes = np.abs(np.concatenate([one, other]))
    scale = float(np.median(sizes[sizes > 0.0])) if np.any(sizes > 0.0) else 1.0
    sides = [side / scale for side in (one, other)]
    named = [f"coordinate {k + 1}" for k in range(axes.shape[1])]
    named += [f"direction {k + 1}" for k in range(_DIRECTIONS)]
    named.append("length")
    columns = [
        np.column_stack([side @ axes, side @ away, np.linalg.norm(side, axis=1)]) for side in sides
    ]
    chances: dict[str, float] = {}
    for k, name in enumerate(named):
        first, second = columns[0][:, k], columns[1][:, k]
        chances[f"the mean of {name}"] = _means(first, second)
        chances[f"the mean square of {name}"] = _means(first**2, second**2)
        chances[f"the distribution of {name}"] = _smirnov(first, second)
    said = min(chances, key=lambda what: chances[what])
    worst = min(1.0, chances[said] * len(chances))
    return Law(worst, f"{said} differs ({_sizes(sides)})")


def _sizes(sides: list[np.ndarray]) -> str:
    first, second = (float(np.sqrt(np.mean(side**2))) for side in sides)
    return f"sizes {first:.4g} and {second:.4g}"


def _means(one: np.ndarray, other: np.ndarray) -> float:
    """The chance of means so far apart, by the normal law: at least 100 points a side.

    Heavy tails make the two variances disagree; the larger one is taken for both.
    """
    gap = abs(float(np.mean(one) - np.mean(other)))
    spread = max(float(np.var(one)), float(np.var(other))) * (1.0 / len(one) + 1.0 / len(other))
    if not math.isfinite(gap) or not math.isfinite(spread):
        return 0.0 if np.isfinite(one).all() != np.isfinite(other).all() else 1.0
    if gap <= 1e-9 * (abs(float(np.mean(one))) + abs(float(np.mean(other)))):
        return 1.0
    if spread == 0.0:
        return 0.0
    return find_tail(gap / (_CAUTION * math.sqrt(spread)))


def find_tail(z: float) -> float:
    """The chance that a normal number is as far out on either side; nan is certain to be wrong."""
    return float(2.0 * np.exp(log_ndtr(-abs(z)))) if math.isfinite(z) else 0.0


def _smirnov(one: np.ndarray, other: np.ndarray) -> float:
    """The chance of distribution functions so far apart, ties counted as equal."""
    # values that are equal but for rounding, as points of a boundary, must not be told apart
    both = np.concatenate([one, other])
    size = max(float(np.max(np.abs(both))), 1e-300)
    grid = size * 1e-7
    one, other = np.rint(one / grid), np.rint(other / grid)
    both = np.unique(np.concatenate([one, other]))
    cdf = [np.searchsorted(np.sort(side), both, side="right") / len(side) for side in (one, other)]
    far = float(np.max(np.abs(cdf[0] - cdf[1])))
    count = len(one) * len(other) / (len(one) + len(other))
    return float(kolmogorov(math.sqrt(count) * far))
