"""Constants of the proof pages that have a closed form, proved in ball arithmetic.

A constant is proved where balls show that the exact number lies within half a unit of the last
digit that the page prints.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

pytest.importorskip("flint")

from flint import arb

from dperm_cli.privacy.accounting.rigorous_balls import compute_normal, make_ball, work_with
from dperm_cli.privacy.accounting.rigorous_profiles import compute_gaussian_delta

PAGES = Path(__file__).resolve().parents[2] / "docs" / "proofs"
DELTA = Fraction(1, 10**6)


def gaussian_delta(epsilon, mu):
    return compute_gaussian_delta(make_ball(Fraction(epsilon)), mu)


def has_epsilon(mu2):
    """Whether a Gaussian of that squared mu has an epsilon between two numbers at 1e-6."""
    mu = make_ball(Fraction(mu2)).sqrt()
    aim = make_ball(DELTA)
    return lambda low, high: gaussian_delta(high, mu) < aim < gaussian_delta(low, mu)


def has_mu(epsilon, delta, to_mu):
    """Whether the largest mu at (epsilon, delta) lies between those of two numbers."""
    aim = make_ball(Fraction(delta))

    def lies_between(low, high):
        one, other = (gaussian_delta(epsilon, to_mu(make_ball(x))) for x in (low, high))
        return bool(one < aim < other) or bool(other < aim < one)

    return lies_between


def is_near(compute: Callable[[], arb]):
    """Whether a number lies between two others."""
    return lambda low, high: bool(make_ball(low) < compute()) and bool(compute() < make_ball(high))


def find_largest(f, low, high):
    """A ball that holds the largest value of f on [low, high].

    It is no less than at some place, and on small enough intervals no more than a millionth above.
    """
    best, room = arb(0), make_ball(Fraction(1, 10**6))
    waiting = [(Fraction(low), Fraction(high))]
    for _ in range(100_000):
        if not waiting:
            return best.union(best + room)
        left, right = waiting.pop()
        middle = (left + right) / 2
        best = best.max(f(make_ball(middle)).lower())
        if not f(make_ball(left).union(make_ball(right))) <= best + room:
            waiting += [(left, middle), (middle, right)]
    raise AssertionError("the intervals do not become small enough")


def entropy(chance):
    return -chance * chance.log() - (1 - chance) * (1 - chance).log()


def noise_of_200_gradients(scale):
    return 2 * arb(200).sqrt() / scale


def keep_nats(epsilon):
    """What the l_inf channel in 100 dimensions tells, for its whole epsilon."""
    chance = 1 / (1 + (-epsilon / 100).exp())
    return 100 * (arb(2).log() - entropy(chance))


# page, digits as printed there, and whether the number lies between two others
CONSTANTS = [
    ("_accounting", "0.834", has_epsilon(Fraction(1, 25))),
    ("_accounting", "1.212", has_epsilon(Fraction(2, 25))),
    ("regularized_exponential", "0.2367", has_mu(1, DELTA, lambda mu: mu)),
    ("noisy_gd", "119.5", has_mu(1, DELTA, noise_of_200_gradients)),
    ("mirror_descent", "119.5", has_mu(1, DELTA, noise_of_200_gradients)),
    (
        "approximate_minima_perturbation",
        "412.36",
        has_mu(Fraction(1, 100), Fraction(1, 10**8), lambda x: 1 / x),
    ),
    (
        "_lower_bounds",
        "0.1034",
        is_near(
            lambda: find_largest(
                lambda k: k * (1 - (1 - (-2 * k).exp()).sqrt()), Fraction(1, 10), 4
            )
        ),
    ),
    ("_lower_bounds", "0.0677", is_near(lambda: (-arb(2)).exp() / 2)),
    ("_lower_bounds", "4.9e-5", is_near(lambda: arb(1) / (20 * 1024))),
    ("_lower_bounds", "9.8e-5", is_near(lambda: arb(2) / (20 * 1024))),
    (
        "_lower_bounds",
        "0.081",
        is_near(
            lambda: find_largest(
                lambda r: (arb(2).log() - entropy((1 + r) / 2)) * (1 - r),
                Fraction(1, 10),
                Fraction(99, 100),
            )
        ),
    ),
    (
        "_djw12",
        "0.16997",
        is_near(lambda: find_largest(lambda u: u * compute_normal(-u), 0, 3)),
    ),
    ("_djw12", "0.0416", is_near(lambda: 1 / (17 * arb(2).sqrt()))),
    (
        "_channels",
        "28.4",
        lambda low, high: bool(keep_nats(make_ball(low)) < 1 < keep_nats(make_ball(high))),
    ),
    ("local_mirror_descent", "5.07", is_near(lambda: 1 / (arb(1) / 5).tanh())),
    ("local_sgd", "4.72", is_near(lambda: (arb(1).cosh() + 4) / arb(1).sinh())),
    ("exponential", "4.0", is_near(lambda: arb(2) * 2)),
    ("output_perturbation", "0.02", is_near(lambda: arb(2) / 100)),
    ("huberized", "0.05", is_near(lambda: make_ball(Fraction(1, 5)) / 4)),
]


def spread(digits: str) -> tuple[Fraction, Fraction]:
    """The numbers that round to the digits: half a unit of the last one to both sides."""
    value = Fraction(digits)
    mantissa, _, power = digits.partition("e")
    places = len(mantissa.partition(".")[2]) - int(power or 0)
    half = Fraction(1, 2) / Fraction(10) ** places
    return value - half, value + half


@pytest.mark.parametrize(("page", "digits", "holds"), CONSTANTS, ids=lambda x: str(x)[:24])
def test_a_constant_is_what_its_page_prints(page, digits, holds):
    assert digits in (PAGES / f"{page}.md").read_text()
    low, high = spread(digits)
    with work_with(128):
        assert holds(low, high)
        width = high - low
        assert not holds(high, high + width)
        assert not holds(low - width, low)


def test_inequalities_that_proofs_of_lower_bounds_use():
    with work_with(128):
        u = arb(1) / 80
        assert u * (1 - u * make_ball(Fraction(10001, 10000))) / 2 > arb(1) / 163
        assert u * (1 - arb(2).sqrt() * u) / 2 > arb(1) / 163


def test_the_edges_of_printed_digits():
    assert spread("0.834") == (Fraction(8335, 10000), Fraction(8345, 10000))
    assert spread("4.9e-5") == (Fraction("4.85e-5"), Fraction("4.95e-5"))
