"""Worked examples of local channels and of the mechanisms that learn from their answers."""

from __future__ import annotations

import math

import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.special import betaincinv
from scipy.stats import binom, norm

from dperm_cli.bounds import djw12
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.channels import by_epsilon, by_information, sign_bit
from dperm_cli.privacy.channels.caps import PrivUnit, PrivUnitG, Split
from tests.theory.worked_examples.formulas import make_plan
from tests.theory.worked_examples.pages import Worked, agree, works_out


def find_cap(d: int, side: float, epsilon: float) -> dict[str, float]:
    """PrivUnit with the part ``side`` of epsilon for the chance of the cap."""
    chance = 1 / (1 + math.exp(-side))
    mass = 1 / (1 + math.exp(epsilon - side))
    constant = math.gamma(d / 2) / (math.sqrt(math.pi) * math.gamma((d - 1) / 2))
    square = betaincinv((d - 1) / 2, 0.5, 2 * mass)  # 1 - t^2
    component = constant * square ** ((d - 1) / 2) / (d - 1)
    tilt = chance / mass - (1 - chance) / (1 - mass)
    mean = component * tilt
    return {
        "chance": chance, "mass": mass, "component": component, "tilt": tilt, "mean": mean,
        "error": 1 / mean**2 - 1,
    }  # fmt: skip


def find_gaussian_error(d: int, side: float, epsilon: float) -> float:
    """The squared error of PrivUnitG."""
    chance, mass = 1 / (1 + math.exp(-side)), 1 / (1 + math.exp(epsilon - side))
    edge = norm.isf(mass)
    tilt = chance / mass - (1 - chance) / (1 - mass)
    mean = norm.pdf(edge) / math.sqrt(d) * tilt
    return float((1 + edge * norm.pdf(edge) * tilt / d) / mean**2 - 1)


def find_least(error, epsilon: float) -> tuple[float, float]:
    """Where a function of the split is least, and its value there."""
    found = minimize_scalar(error, bounds=(0.0, epsilon), method="bounded", options={"xatol": 1e-9})
    return float(found.x), float(found.fun)


@works_out("_cap_channels")
def answer_from_cap() -> Worked:
    found, split = find_cap(10, 1.52, 4.0), Split(1.52, 2.48)
    agree(found["chance"], 1.0 - split.flip / 2.0**64)
    agree(found["mass"], split.mass)
    agree(found["tilt"], split.tilt)
    agree(found["mean"], PrivUnit.find_mean(10, split))
    side, least = find_least(lambda a: find_cap(10, a, 4.0)["error"], 4.0)
    agree(side, PrivUnit(10, 2.0).split.side, 1e-6)
    agree(least, by_epsilon("privunit", 10, 4.0).second_moment - 1)
    wide = find_gaussian_error(10, 1.44, 4.0)
    agree(wide + 1, PrivUnitG.find_second_moment(10, Split(1.44, 2.56)))
    _, best = find_least(lambda a: find_gaussian_error(10, a, 4.0), 4.0)
    agree(best, by_epsilon("privunit_g", 10, 4.0).second_moment - 1)
    length = math.sqrt(math.pi) * math.gamma(5.5) / math.gamma(5) / math.tanh(2)
    sphere = agree(length**2 - 1, by_epsilon("l_2", 10, 4.0).second_moment - 1)
    results = (*found.values(), side, least, wide, best, sphere)
    return Worked((0.38, 1.52, 2.48, 0.36), results)


@works_out("_channels")
def disguise_signs() -> Worked:
    gain = float(brentq(lambda g: 100 * (g * math.tanh(g) - math.log(math.cosh(g))) - 1, 0.01, 1))
    channel = by_information("l_inf", 100, 1.0)
    epsilon = agree(200 * gain, channel.epsilon, 1e-7)
    length = agree(1 / math.tanh(gain), channel.multiplier, 1e-7)
    kept = math.exp(gain) / (math.exp(gain) + math.exp(-gain))
    agree(1 - kept, sign_bit.flip_chance(gain) / 2.0**64)
    second = agree(100 * length**2, channel.second_moment, 1e-7)
    return Worked((100,), (gain, kept, 1 - kept, epsilon, length, 100 / (2 * length**2), second))


@works_out("local_sgd")
def learn_from_answers() -> Worked:
    plan = make_plan("local_sgd", Budget(2.0, 0.0))
    length = agree((math.cosh(1) + 4) / math.sinh(1), plan.settings["multiplier"])
    told = agree(1 / length - math.log((math.cosh(1) + 4) / 5), plan.settings["information"])
    size = agree(math.sqrt(5) * length, plan.settings["gradient_norm"])
    step = agree(1 / (size * math.sqrt(1000)), plan.settings["step"])
    bound = size / math.sqrt(1000)
    agree(bound, djw12.sgd_risk(1.0, 2.0, size**2, step, 1000, "constant"))
    return Worked((1000, 5), (math.sqrt(5), length, told, size, step, bound))


@works_out("local_mirror_descent")
def learn_by_entropy() -> Worked:
    channel = by_epsilon("l_inf", 100, 2.0)
    length = agree(1 / math.tanh(0.01), channel.multiplier)
    distance, n = math.log(200), 1_000_000
    step = math.sqrt(2 * distance / n) / length
    bound = length * math.sqrt(2 * distance / n)
    agree(bound, djw12.mirror_risk(distance, length, step, n))
    fewer = length * math.sqrt(2 * distance / 100_000)
    return Worked((100, 200, 0.01, n, 100_000), (length, distance, step, bound, fewer))


@works_out("_djw12")
def bound_risk_of_answers() -> Worked:
    # n = 10,000, d = 10, M = 5: the majority of n signs of mean delta / M is wrong
    def lose(delta: float) -> float:
        chance = 0.5 + delta / 10
        wrong = binom.cdf(4999, 10_000, chance) + binom.pmf(5000, 10_000, chance) / 2
        return float(-delta * wrong)

    found = minimize_scalar(lose, bounds=(0.001, 0.5), method="bounded", options={"xatol": 1e-9})
    assert djw12.corners(10_000, 5.0) == pytest.approx(-found.fun, rel=2e-4)
    lower, printed = -10 * found.fun, 5 * 10 / (163 * 100)
    agree(printed, djw12.assouad_as_printed(1.0, 5.0, 10, 10_000))
    size = math.sqrt(10 * 25)
    upper = math.sqrt(10) * size / 100
    step = math.sqrt(10) / (size * 100)
    agree(upper, djw12.sgd_risk(math.sqrt(10), 0.0, size**2, step, 10_000, "constant"))
    results = (found.x, -found.fun, lower, printed, size, math.sqrt(10), upper, upper / lower)
    return Worked((10_000, 163), results)
