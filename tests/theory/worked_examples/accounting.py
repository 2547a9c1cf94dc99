"""Worked examples of the pages on accounting, budgets and noise on a grid."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import binom

from dperm_cli.privacy import events
from dperm_cli.privacy.accounting import (
    accountant,
    budget_filter,
    group_privacy,
    hidden_state,
)
from dperm_cli.privacy.intervals import accuracy
from dperm_cli.privacy.intervals.rounded_noise import RoundedNoise
from dperm_cli.privacy.secure_choice import find_weights
from dperm_cli.privacy.secure_grid import grid_for, put_on_grid
from tests.theory.worked_examples.formulas import BOTH, find_delta, find_mu
from tests.theory.worked_examples.pages import Worked, agree, works_out


def bound_last(count: int, c: float) -> float:
    """Theorem 1 of the page for S = 2, steps of 0.01, noise of 100 and D = 1."""
    found = [2 * math.sqrt(count) / 100]
    for k in range(1, count + 1):
        total = k if c == 1 else (1 - c**k) / (1 - c)
        square = k if c == 1 else (1 - c ** (2 * k)) / (1 - c * c)
        if k == count:
            found.append(2 * total / (100 * math.sqrt(square)))
        found.append((c**k + 0.02 * total) / (math.sqrt(square)))
    return min(found)


@works_out("_hidden_state")
def hide_iterates() -> Worked:
    results = [50.0]
    for count, c in ((100, 1.0), (1000, 1.0), (10, 0.9), (30, 0.9), (100, 0.9)):
        last = hidden_state.bound_last_iterate(count, 0.01, 2.0, 100.0, 1.0, c)
        every = hidden_state.compose_steps(count, 2.0, 100.0)
        results += [agree(bound_last(count, c), last), agree(2 * math.sqrt(count) / 100, every)]
    assert results[0] == 1 / (2 * 0.01)
    return Worked((0.01, 100, 1000, 0.9, 30), tuple(results))


@works_out("_accounting")
def add_up_releases() -> Worked:
    results = []
    for count in (1, 2):
        mu = math.sqrt(count) / 5
        epsilon = brentq(lambda e, mu=mu: find_delta(e, mu) - 1e-6, 0.1, 5.0, xtol=1e-13)
        event = events.Gaussian(5.0, 1.0, count, gap=1.0)
        found = accountant.account([event], delta=1e-6, relation="replace_one").epsilon
        results += [mu, agree(epsilon, found)]
    draw = events.Exponential(0.25, 2.0, gap=4.0)  # a loss within an interval of length 1
    delta = (math.exp(0.5) - math.exp(0.25)) ** 2 / (math.e - 1)
    half = accountant.account([draw], delta=delta, relation="replace_one").epsilon
    assert agree(0.5, half, 1e-6) == 0.5
    steps = math.expm1(1) / math.expm1(1 / 3)
    agree(1e-6 / steps, group_privacy.budget_for_record(BOTH, 3).delta)
    inputs = (1e-6, 0.5, 0.25)
    return Worked(inputs, (*results, 2 * results[1], delta, 1 / 3, steps, 1e-6 / steps))


@works_out("_budgets")
def let_releases_pass() -> Worked:
    def find_room(order: float) -> float:
        logs = (math.log(1e-6) + math.log(order)) / (order - 1)
        return 1 - math.log(1 - 1 / order) + logs

    found = minimize_scalar(
        lambda order: -find_room(order) / order, bounds=(5.0, 60.0), method="bounded",
        options={"xatol": 1e-9},
    )  # fmt: skip
    order, room = budget_filter.choose_order(1.0, 1e-6)
    agree(found.x, order, 1e-6)
    agree(find_room(order), room)
    mu = find_mu(1.0, 1e-6)
    assert math.floor(mu**2 / 0.01) == 5
    each = order * 0.01 / 2
    assert math.floor(room / each) == 4
    pure = budget_filter.renyi_of_pure(0.1, order)
    ratio = math.sinh(order * 0.1) - math.sinh((order - 1) * 0.1)
    agree(math.log(ratio / math.sinh(0.1)) / (order - 1), pure)
    most = math.sqrt(2 * room / order)
    left = room - 4 * each
    results = (order, room, most, most / mu, mu, mu**2, each, 4 * each, left, pure)
    return Worked((1e-6, 0.1, 0.01), results)


def find_noise_tail(k: np.ndarray) -> np.ndarray:
    """P(N >= k) of rounded Laplace noise of scale 10."""
    edge = k - 0.5
    return np.where(edge >= 0, np.exp(-np.abs(edge) / 10) / 2, 1 - np.exp(-np.abs(edge) / 10) / 2)


@works_out("_evaluation")
def find_interval() -> Worked:
    counts = np.arange(1001)

    def reach(y: int, a: float) -> float:
        return float(binom.pmf(counts, 1000, a) @ find_noise_tail(y - counts))

    low = brentq(lambda a: reach(850, a) - 0.025, 0.7, 0.9, xtol=1e-10)
    high = brentq(lambda a: 1 - reach(851, a) - 0.025, 0.8, 0.95, xtol=1e-10)
    found = accuracy.find_population_interval(850, 1000, RoundedNoise("laplace", 10.0))
    agree(low, found[0], 1e-8)
    agree(high, found[1], 1e-8)
    chances = [float(2 * find_noise_tail(np.array(k))) for k in (30, 31)]
    assert RoundedNoise("laplace", 10.0).bound(0.05) == 30
    assert chances[1] <= 0.05 < chances[0]
    own = accuracy.find_interval_on_records(850, 1000, RoundedNoise("laplace", 10.0))
    results = (low, high, chances[1], agree(0.82, own[0]), agree(0.88, own[1]))
    return Worked((1000, 850, 0.1, 0.95, 0.05, 30, 0.025, 95), results)


@works_out("_secure_noise")
def put_noise_on_grid() -> Worked:
    noise = RoundedNoise("laplace", 2.0)  # s = 2 g
    zero = 1 - math.exp(-0.25)
    results = [agree(zero, float(noise.chance(0)))]
    for k in (1, 5):
        results.append(agree(math.sinh(0.25) * math.exp(-k / 2), float(noise.chance(k))))
    event = events.Gaussian(119.491964, 1.0, 200)
    grid = grid_for([event], 1.0)
    agree(2.0**-24, grid.step)
    secure = put_on_grid(event, 5, grid, "replace_one")
    more = 21 * 2.0**-52 + 2.0**-24 * math.sqrt(5)
    agree(1 + more, secure.record_norm, 1e-15)
    agree(119.491964 * (1 + more), secure.scale, 1e-15)
    even = sum((-0.5) ** j / math.factorial(j) for j in range(30))
    agree(math.exp(-0.5), even)
    inputs = (0.5, 200, 119.492, 24, 30, 21, 52)
    return Worked(inputs, (*results, 119.491964 / 2**30, 2.0**-24, more, even))


def flip(scores: tuple[int, ...]) -> list[float]:
    """The chances of permute and flip at rate 1, over all orders."""
    found = [0.0] * len(scores)
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        left = 1.0
        for j in order:
            taken = math.exp(-(scores[j] - min(scores)))
            found[j] += left * taken / len(orders)
            left *= 1 - taken
    return found


@works_out("_secure_selections")
def choose_exactly() -> Worked:
    error = 8 * (30 + 16) * 2.0**-53 * (10 + 10)
    scores = np.array([0, 3, 5, 5, 9])
    weights = np.exp(-scores / 4)
    found, _ = find_weights(scores, Fraction(1, 4))
    chances = [
        agree(a, b) for a, b in zip(weights / weights.sum(), found / found.sum(), strict=True)
    ]
    plain = np.exp(-np.arange(5.0))
    mean = float(np.arange(5) @ plain / plain.sum())
    # the same by coins thrown first: an entry is taken if it shows heads and comes first of those
    heads = np.exp(-np.arange(5.0))
    coins = [0.0] * 5
    for shown in itertools.product((0, 1), repeat=5):
        chance = math.prod(h if s else 1 - h for h, s in zip(heads, shown, strict=True))
        for j in range(5):
            coins[j] += chance * shown[j] / max(1, sum(shown))
    better = [agree(a, b) for a, b in zip(flip((0, 1, 2, 3, 4)), coins, strict=True)]
    least = float(np.arange(5) @ better)
    inputs = (30, 16, 53, 20, 0.25)
    return Worked(inputs, (error, *weights, weights.sum(), *chances, mean, least))
