"""Worked examples of local channels and of the mechanisms that learn from their answers."""

from __future__ import annotations

import math

from scipy.optimize import minimize_scalar
from scipy.special import betaincinv
from scipy.stats import norm

from dperm_cli.privacy.channels import by_epsilon
from dperm_cli.privacy.channels.caps import PrivUnit, PrivUnitG, Split
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
