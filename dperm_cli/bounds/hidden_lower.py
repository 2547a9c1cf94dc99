"""Lower bounds by hidden directions: what a release cannot show of them (``hidden_directions``).

Each is the largest over the number k of records behind a direction and, on a ball, over the number
of coordinates b of a block. ``find_*`` also give b and k; the bounds of result rows are for any
mechanism with the guarantee, and those with ``mu`` for mechanisms whose events are Gaussian.
Proofs: docs/proofs/_hidden_directions.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dperm_cli.bounds import hidden_directions as shares
from dperm_cli.bounds.base import Setting, check, lower_bound
from dperm_cli.core.memo import MIB, memoise
from dperm_cli.core.spaced_numbers import drop_repeats, list_integers_by_ratio, space_evenly
from dperm_cli.privacy.budget import Budget
from dperm_cli.sets.shared.ball_image import Quadric


class Found(NamedTuple):
    """A lower bound with the block size b and the records k at which it is largest.

    >>> max(Found(1.2, "cap", 5, 3), Found(1.4, "signs", 1, 1)).name
    'signs'
    """

    value: float
    name: str
    b: int
    k: int


class Privacy(NamedTuple):
    """What binds the releases: (epsilon, delta) with ``mu`` 0, or mu-Gaussian privacy.

    >>> Privacy(1.0, 0.0, 0.0).sides(np.array([1])).round(3)
    array([0.462])
    """

    epsilon: float
    delta: float
    mu: float
    relation: str = "replace_one"

    @classmethod
    def of(cls, budget: Budget, gaussian: bool = False) -> Privacy:
        """The privacy of a budget, of Gaussian events alone or of any."""
        mu = shares.find_mu(budget.epsilon, budget.delta) if gaussian else 0.0
        return cls(budget.epsilon, budget.delta, mu, budget.relation)

    def count_steps(self, k: np.ndarray) -> np.ndarray:
        """How many steps apart data sets are that differ in k replaced records."""
        return k if self.relation == "replace_one" else 2 * k

    def square(self, b: int, k: np.ndarray) -> np.ndarray:
        """V of blocks of b coordinates with k records each."""
        k = self.count_steps(k) if b == 1 else k
        if self.mu:
            return shares.gaussian_square_share(b, k * self.mu)
        return shares.square_share(b, *self._group(k))

    def cap(self, b: int, k: np.ndarray) -> np.ndarray:
        """The share of one direction of b coordinates with k records."""
        k = self.count_steps(k) if b == 1 else k
        if self.mu:
            return shares.gaussian_share(b, k * self.mu)
        return shares.share_of_cap(b, *self._group(k))

    def sides(self, k: np.ndarray) -> np.ndarray:
        """The total variation distance of data sets that differ in k replaced records."""
        if self.mu:
            return 2.0 * shares.ndtr(0.5 * self.count_steps(k) * self.mu) - 1.0
        a, d = self._group(self.count_steps(k))
        with np.errstate(over="ignore", invalid="ignore"):
            found = np.tanh(0.5 * a) + 2.0 * d / (np.exp(a) + 1.0)
        return np.minimum(found * (1.0 + shares.ROOM), 1.0)

    def axis(self, p: int, k: np.ndarray, signed: bool) -> np.ndarray:
        """The share of one of p axes, of both signs where ``signed``."""
        if self.mu:
            return shares.axes_share(p, k * self.mu, signed)
        if not signed:
            return shares.simplex_share(p, *self._group(k))

        def mean(q: np.ndarray) -> np.ndarray:
            return np.minimum(np.minimum(q, 0.5 / p), 1.0 - q)

        return shares.share_of(mean, *self._group(k))

    def last(self, n: int, p: int) -> int:
        """A number of records beyond which more of them hide nothing."""
        reach = (3.0 * p + 20.0) / self.epsilon
        if self.mu:
            reach = (4.0 * p**0.5 + 10.0) / self.mu
        return int(min(n, np.ceil(reach)))

    def _group(self, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        k = np.asarray(k, dtype=float)
        return k * self.epsilon, shares.group_delta(self.epsilon, self.delta, k)


@memoise(MIB)
def find_on_ball(
    privacy: Privacy, n: int, p: int, pull: float, radius: float, bend: float = 0.0
) -> Found:
    """Theorem A on a Euclidean ball: the best of one cap and of blocks of any size.

    Args:
        privacy: of the releases.
        n, p: records and parameters.
        pull: L, the Lipschitz constant of one record.
        radius: R.
        bend: n times the ridge.
    """
    k = _list_counts(privacy.last(n, p))
    best = Found(0.0, "none", p, 1)
    if bend == 0.0:  # with a ridge blocks of p coordinates take its place
        best = _choose("cap", p, k, pull * radius * k * (1.0 - privacy.cap(p, k)))

    def try_size(b: int, k: np.ndarray) -> Found:
        count = np.minimum(p // b, n // k)
        held = pull * k * np.sqrt(count)
        gained = _gain(held, held * np.sqrt(privacy.square(b, k)), bend, radius)
        return _choose("signs" if b == 1 else "blocks", b, k, gained)

    numbers = _list_numbers(1, p)
    found = [try_size(p // blocks, k) for blocks in numbers]
    place = int(np.argmax([one.value for one in found]))
    low, high = numbers[max(place - 1, 0)], numbers[min(place + 1, len(numbers) - 1)]
    near = _list_counts_near(found[place].k, n)
    again = (try_size(p // blocks, near) for blocks in _list_numbers(low, high))
    return max(best, found[place], *again)


@memoise(MIB)
def find_on_box(privacy: Privacy, n: int, p: int, pull: float, half_side: float) -> Found:
    """The cube [-c, c]^p: k L p' c (1 - TV_k) for k p' <= n, each coordinate by itself."""
    k = _list_counts(n)
    values = pull * half_side * k * np.minimum(p, n // k) * (1.0 - privacy.sides(k))
    return _choose("sides", 1, k, values)


@memoise(MIB)
def find_on_axes(
    privacy: Privacy, n: int, p: int, pull: float, radius: float, signed: bool
) -> Found:
    """The L1 ball (``signed``) or the simplex: k L r (1 - share of the right vertex)."""
    k = _list_counts(privacy.last(n, p))
    return _choose("axes", 1, k, pull * radius * k * (1.0 - privacy.axis(p, k, signed)))


@memoise(MIB)
def find_on_ellipsoid(privacy: Privacy, n: int, pull: float, axes: tuple[float, ...]) -> Found:
    """L (1 - sqrt V_1(k)) k sqrt(sum of the m largest squared axes), for k m <= n."""
    k = _list_counts(n)
    lengths = np.sqrt(np.cumsum(np.sort(np.square(axes))[::-1]))
    longest = lengths[np.minimum(len(axes), n // k) - 1]
    return _choose("signs", 1, k, pull * k * longest * (1.0 - np.sqrt(privacy.square(1, k))))


def find_for(spec, privacy: Privacy) -> Found | None:
    """The bound for a problem's set; None for sets and penalties without one."""
    body, n, p, pull = spec.constraint, spec.n, spec.p, spec.lipschitz
    if spec.lasso > 0.0:
        return None
    if body.is_ball:
        return find_on_ball(privacy, n, p, pull, body.radius, n * spec.ridge)
    if spec.ridge > 0.0:
        return None
    if body.half_side is not None:
        return find_on_box(privacy, n, p, pull, float(body.half_side))
    if body.axis_hull is not None:
        hull = body.axis_hull
        return find_on_axes(privacy, n, p, pull, float(hull.radius), hull.signed)
    if isinstance(body.inner_body, Quadric):
        return find_on_ellipsoid(privacy, n, pull, tuple(body.inner_body.axes.tolist()))
    return None


_check_set = check(
    lambda at: find_for(at.spec, Privacy(1.0, 0.0, 0.0)) is not None,
    "is for l2_ball (with a ridge or without), box, l1_ball, simplex or ellipsoid",
)


@lower_bound("hidden directions", _check_set)
def hidden_directions(at: Setting) -> float:
    """Any mechanism with the guarantee, on linear losses that hide a direction (Theorem A)."""
    found = find_for(at.spec, Privacy.of(at.budget))
    return 0.0 if found is None else max(0.0, found.value)


@lower_bound(
    "hidden directions (Gaussian)",
    _check_set,
    check(lambda at: at.mu > 0.0, "is for plans whose events are all Gaussian"),
    quantity="gaussian_excess_risk",
)
def hidden_directions_gaussian(at: Setting) -> float:
    """Any mechanism that is as private as the plan by Gaussian events alone (Theorem A)."""
    law = Privacy(at.budget.epsilon, at.budget.delta, at.mu, at.budget.relation)
    found = find_for(at.spec, law)
    return 0.0 if found is None else max(0.0, found.value)


def _list_counts(last: int) -> np.ndarray:
    """Numbers of records to try, from 1 to ``last``."""
    return list_integers_by_ratio(1, max(last, 1), 120)


def _list_counts_near(k: int, n: int) -> np.ndarray:
    """Numbers of records to try about one that was best on a coarse grid."""
    return drop_repeats(space_evenly(max(1, 0.8 * k), min(n, 1.25 * k + 1), 60).astype(np.int64))


def _list_numbers(low: int, high: int) -> list[int]:
    """Numbers of blocks to try, from ``low`` to ``high``; each takes the largest blocks it can."""
    return list_integers_by_ratio(low, high, 14).tolist()


def _gain(held: np.ndarray, shown: np.ndarray, bend: float, radius: float) -> np.ndarray:
    """h(held) - h(shown), h(s) the largest s t - bend t^2 / 2 over 0 <= t <= radius."""

    def depth(s: np.ndarray) -> np.ndarray:
        reach = np.full_like(s, radius) if bend == 0.0 else np.minimum(radius, s / bend)
        return s * reach - 0.5 * bend * reach**2

    return depth(np.asarray(held, dtype=float)) - depth(np.asarray(shown, dtype=float))


def _choose(name: str, b: int, k: np.ndarray, values: np.ndarray) -> Found:
    place = int(np.argmax(values))
    return Found(float(values[place]), name, b, int(k[place]))
