"""Records that fair coins decide, and what right guesses of the coins say of epsilon.

Many records of one table are canaries: a coin says which of two records each is, or whether it is
there at all. Whoever guesses the coins from one output is right about as often as randomised
response allows, and no more [Steinke, Nasr, Jagielski 2023, Thm 5.2].
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from scipy import stats

from dperm_cli.audit.outside.outputs import Output
from dperm_cli.audit.outside.records import RecordKind, Table
from dperm_cli.core.dataclass import dataclass

SHARES = (1.0, 0.5, 0.2, 0.05)  # of the canaries: for how many a coin is guessed
_RIDGE = 1e-3  # of the largest eigenvalue, where rows are made independent
_HALVINGS = 60
_MOST_EPSILON = 60.0
_WIDE = 1000  # terms of the part of delta that are added up at least


@dataclass(frozen=True)
class Canaries:
    """The records of one table, and the coins that decided them.

    Attributes
    ----------
    rows : of the records that heads stands for, [n, p].
    opposite_rows : of those that tails stands for, [n, p].
    labels, opposite_labels : of either, [n]; None without labels.
    leans : 1 or -1, [n]: whether heads moves a result along the row or against it.
    heads : the coins, [n].
    is_removed : whether tails stands for no record.
    """

    rows: np.ndarray
    opposite_rows: np.ndarray
    labels: np.ndarray | None
    opposite_labels: np.ndarray | None
    leans: np.ndarray
    heads: np.ndarray
    is_removed: bool

    def make_table(self) -> Table:
        """The table that the coins make."""
        if self.is_removed:
            labels = None if self.labels is None else self.labels[self.heads]
            return Table(self.rows[self.heads], labels)
        rows = np.where(self.heads[:, None], self.rows, self.opposite_rows)
        if self.labels is None or self.opposite_labels is None:
            return Table(rows)
        return Table(rows, np.where(self.heads, self.labels, self.opposite_labels))


def draw_canaries(kind: RecordKind, relation: str, rng: np.random.Generator) -> Canaries:
    """Rows in random directions, as far out as a record may be, and a fair coin for each.

    Under ``replace_one`` tails is the same row with the other label, or the opposite row where
    there are no labels. Under ``add_remove`` it is no record.
    """
    directions = rng.standard_normal((kind.n, kind.p))
    rows = np.array([kind.reach(direction) for direction in directions])
    opposite = rows
    heads = rng.random(kind.n) < 0.5
    is_removed = relation == "add_remove"
    labels = others = None
    leans = np.ones(kind.n)
    if kind.answers:
        low, high = kind.answers[0], kind.answers[-1]
        if is_removed:
            leans = np.where(rng.random(kind.n) < 0.5, 1.0, -1.0)
        labels = np.where(leans > 0, high, low)
        others = np.where(leans > 0, low, high)
    elif not is_removed:
        opposite = np.array([kind.reach(-direction) for direction in directions])
    return Canaries(rows, opposite, labels, others, leans, heads, is_removed)


@dataclass(frozen=True)
class Guess:
    """How coins are guessed from a result.

    Attributes
    ----------
    from_end : whether the last p numbers of the result are compared with rows, or the first.
    is_freed : whether the rows' products with one another are taken out.
    sign : 1 or -1: whether a large product speaks for heads or for tails.
    share : of the canaries: half of them, with the largest scores, are guessed heads, half tails.
    """

    from_end: bool
    is_freed: bool
    sign: float
    share: float

    def words(self) -> str:
        """What it does, in words."""
        which = "last" if self.from_end else "first"
        freed = ", rows made independent" if self.is_freed else ""
        against = "" if self.sign > 0 else "minus "
        return f"{against}product of the {which} numbers with the row{freed}, {self.share:.0%}"


def list_guesses(kind: RecordKind, width: int) -> list[Guess]:
    """The ways that are tried, for results of so many numbers."""
    ends = (False, True) if width > kind.p else (False,)
    return [
        Guess(end, freed, sign, share)
        for end in ends
        for freed in (False, True)
        for sign in (1.0, -1.0)
        for share in SHARES
    ]


def count_right(
    guesses: Sequence[Guess], kind: RecordKind, canaries: Canaries, output: Output
) -> Iterator[tuple[int, int]]:
    """(coins guessed, of them right) for each way; nothing is guessed from an error."""
    numbers = np.array(output.numbers, dtype=float)
    if output.is_error or not len(numbers) or not np.all(np.isfinite(numbers)):
        yield from ((0, 0) for _ in guesses)
        return
    middle = 0.5 * (kind.low + kind.high) if kind.norm is None else 0.0
    rows, scores = canaries.rows - middle, {}
    for guess in guesses:
        way = (guess.from_end, guess.is_freed)
        if way not in scores:
            scores[way] = _score(rows, numbers, *way) * canaries.leans
        score = guess.sign * scores[way]
        each = int(guess.share * len(score) / 2.0)
        order = np.argsort(score, kind="stable")
        right = np.count_nonzero(canaries.heads[order[len(order) - each :]])
        right += np.count_nonzero(~canaries.heads[order[:each]])
        yield 2 * each, int(right)


def _score(rows: np.ndarray, numbers: np.ndarray, from_end: bool, is_freed: bool) -> np.ndarray:
    """A number for each row [n, p], large where the result speaks for its presence."""
    width = min(rows.shape[1], len(numbers))
    rows = rows[:, :width]
    numbers = numbers[len(numbers) - width :] if from_end else numbers[:width]
    if is_freed:
        # least squares for coins c in: numbers = sum of c_i rows_i, with a ridge
        values, vectors = np.linalg.eigh(rows.T @ rows)
        kept = values + _RIDGE * max(float(values[-1]), 1e-300)
        numbers = vectors @ ((vectors.T @ numbers) / kept)
    return rows @ numbers


def find_chance(epsilon: float, delta: float, canaries: int, guesses: int, right: int) -> float:
    """The chance of so many right guesses or more, at most, where the claim holds.

    The right guesses W are like W* of law Binomial(guesses, e^eps / (1 + e^eps)) but for
    2 delta canaries max over i >= 1 of P(right - i <= W* < right) / i.
    """
    rate = 1.0 / (1.0 + math.exp(-epsilon))
    chance = float(stats.binom.sf(right - 1, guesses, rate))
    if delta > 0.0 and right > 0:
        most = min(right, int(20.0 * math.sqrt(guesses)) + _WIDE)
        below = np.cumsum(stats.binom.pmf(right - np.arange(1, most + 1), guesses, rate))
        worst = float(np.max(below / np.arange(1, most + 1)))
        if most < right:  # no sum exceeds 1
            worst = max(worst, 1.0 / most)
        chance += 2.0 * delta * canaries * worst
    return min(1.0, chance)


def find_bound(delta: float, canaries: int, guesses: int, right: int, error: float) -> float:
    """Epsilon is at least this much, but for a chance of ``error``."""
    if guesses == 0 or find_chance(0.0, delta, canaries, guesses, right) > error:
        return 0.0
    low, high = 0.0, _MOST_EPSILON
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        is_rare = find_chance(middle, delta, canaries, guesses, right) <= error
        low, high = (middle, high) if is_rare else (low, middle)
    return low


def find_refutable(claim: float, delta: float, canaries: int, error: float) -> float:
    """The least epsilon of randomised response with which its answers refute the claim, about.

    Infinite where even guesses that are never wrong would not.
    """
    for level in claim + np.geomspace(1e-2, 40.0, 100):
        right = math.floor(canaries / (1.0 + math.exp(-level)))
        if find_chance(claim, delta, canaries, canaries, right) <= error:
            return float(level)
    return math.inf
