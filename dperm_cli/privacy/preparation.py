"""Bounds of numbers and common words of a table, found with privacy: one release of counts.

Every number counts in a bin of its sign and its power of 2, every word for itself. All counts get
Laplace noise in one release. What is read off them is post-processing. Proofs:
``docs/proofs/_preparation.md``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.events import Laplace
from dperm_cli.privacy.gate import Gate
from dperm_cli.privacy.metrics.noise_choice import check_grid, find_grid
from dperm_cli.privacy.secure_grid import Grid

LOWEST, HIGHEST = -32, 31  # powers of 2 that have a bin
BINS = HIGHEST - LOWEST + 1  # of each sign
EMPTY_TAKEN = 0.01  # chance that an empty bin is taken, over all columns
MOST_RECORDS = 2**31  # that the grid of the noise is made for
_ROUNDING = 1.0  # of a count and of its noise, generously


@dataclass(frozen=True)
class PreparationPlan:
    """What a preparation will do to the records, from public facts alone.

    Attributes:
        number_columns, word_columns: how many columns are counted.
        at_most: records of one person.
        epsilon, delta, relation: the guarantee for all records of a person.
        event: one release of all counts.

    >>> plan = plan_preparation(2, 1, 1, 0.5, 1e-6, "replace_one")
    >>> plan.event.scale, round(plan.bin_threshold, 1), round(plan.word_threshold, 1)
    (12.0, 114.0, 159.5)
    """

    number_columns: int
    word_columns: int
    at_most: int
    epsilon: float
    delta: float
    relation: str
    event: Laplace

    @property
    def grid(self) -> Grid:
        """The grid of secure noise; counts lie on it, so that no rounding is charged."""
        return find_grid(self.event, MOST_RECORDS)

    @property
    def bin_threshold(self) -> float:
        """A bin is taken from this noisy count on; all empty ones stay below with chance .99."""
        bins = 2 * BINS * max(self.number_columns, 1)
        return 0.5 + self.event.scale * math.log(bins / (2.0 * EMPTY_TAKEN))

    @property
    def word_threshold(self) -> float:
        """A word is taken from this noisy count on; those of one person pass with chance delta."""
        if not self.word_columns:
            return math.inf
        words = self.word_columns * self.at_most
        return self.at_most + _ROUNDING + self.event.scale * math.log(words / (2.0 * self.delta))

    def open_secure_gate(self) -> Gate:
        """A gate that holds the event of this plan and nothing else."""
        return Gate.secure(1, self.grid, ([self.event], self.relation))


def plan_preparation(
    number_columns: int,
    word_columns: int,
    at_most: int,
    epsilon: float,
    delta: float,
    relation: str,
) -> PreparationPlan:
    """Plan the release of all counts.

    Args:
        number_columns: columns whose bounds are sought.
        word_columns: columns whose words are sought; they need a delta.
        at_most: records of one person that count.
        epsilon, delta: the guarantee for a person.
        relation: ``replace_one`` or ``add_remove``.

    Raises:
        InputError: words without a delta, or a delta above half of one over the scale.
        Unsupported: no grid can hold the noise.
    """
    moves = 2 if relation == "replace_one" else 1
    l1 = float(moves * (number_columns + word_columns) * at_most)
    scale = calibrate.pure_scale(epsilon, l1)
    event = Laplace(scale, l1, gap=l1 if moves == 2 else None, relation=relation)
    most = 0.5 / scale
    if word_columns and not 0.0 < delta <= most:
        allowed = f"must be above 0, and at most {most:.3g} here: words nobody declared need it"
        raise InputError("delta", delta, allowed)
    spent = delta if word_columns else 0.0
    plan = PreparationPlan(number_columns, word_columns, at_most, epsilon, spent, relation, event)
    check_grid(event, plan.grid, MOST_RECORDS)
    return plan


def release_counts(
    plan: PreparationPlan, bins: np.ndarray, words: Sequence[Mapping[str, int]], gate: Gate
) -> tuple[np.ndarray, list[dict[str, float]]]:
    """All counts with noise; of the words, those alone that pass the threshold.

    Args:
        plan: of ``plan_preparation``.
        bins: [number_columns, 2, BINS] counts, of negative and positive numbers.
        words: of each column, how often each word occurs.
        gate: that holds the event of the plan, for one trial.

    Returns:
        Noisy bins, and the noisy counts of the words that passed.
    """
    kept = [sorted(counts) for counts in words]  # an order of their own, not that of the records
    exact = [float(n) for names, counts in zip(kept, words, strict=True)
             for n in (counts[name] for name in names)]  # fmt: skip
    vector = np.concatenate([bins.ravel().astype(float), np.array(exact, dtype=float)])
    noisy = gate.stream(plan.event, len(vector)).add(vector[None], 0)[0]
    found, place = [], bins.size
    for names in kept:
        part = noisy[place : place + len(names)]
        place += len(names)
        passed = zip(names, part.tolist(), strict=True)
        found.append({name: n for name, n in passed if n >= plan.word_threshold})
    return noisy[: bins.size].reshape(bins.shape), found


def find_bin(value: float) -> tuple[int, int] | None:
    """(0 or 1 for its sign, place of its power of 2) of a number; None for 0, tiny ones and none.

    >>> find_bin(-3.0), find_bin(1e300), find_bin(0.0)
    ((0, 33), (1, 63), None)
    """
    if math.isnan(value) or value == 0.0:
        return None
    power = HIGHEST if math.isinf(value) else min(math.frexp(abs(value))[1] - 1, HIGHEST)
    return None if power < LOWEST else (int(value > 0.0), power - LOWEST)


def read_bounds(
    noisy: np.ndarray, threshold: float, positive: bool = False
) -> tuple[float, float] | None:
    """Bounds from one column's noisy bins [2, BINS]: the tops of the highest that are taken.

    Args:
        noisy: counts with noise.
        threshold: from which on a bin is taken.
        positive: whether both bounds have to be above 0; the lower one is then the foot of the
            lowest bin that is taken.

    Returns:
        [low, high], or None where no bin is taken.
    """
    taken = [np.flatnonzero(side >= threshold) for side in noisy]
    tops = [2.0 ** (LOWEST + int(side[-1]) + 1) if len(side) else 0.0 for side in taken]
    if positive:
        return (2.0 ** (LOWEST + int(taken[1][0])), tops[1]) if len(taken[1]) else None
    return (0.0 - tops[0], tops[1]) if any(tops) else None
