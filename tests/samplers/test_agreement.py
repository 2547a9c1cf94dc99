"""Samplers against exact probabilities, in one, two and three dimensions.

The false-alarm rate is 1e-5 a case. Each case shows its power: at an exponent off by a factor 1.7
(1,500 draws) or by 5 % (200,000) the same draws fail.
"""

from __future__ import annotations

import pytest

from dperm_cli.core import registry
from tests.samplers.laws import Bins, case, colder, draw, p_value

ALARM = 1e-5
BINS = {1: 14, 2: 5, 3: 3}
SETS = (("l2_ball", 1), ("l2_ball", 2), ("l2_ball", 3), ("box", 3))
CASES = [(s, {}, c, p) for s in ("tangent_cells", "rejection") for c, p in SETS]
CASES += [
    ("rejection", {"fixed_tries": "auto"}, "l2_ball", 1),
]
SLOW = [("proximal", {}, c, p) for c, p in SETS]
SLOW += [("grid_walk", {"steps": "spectral"}, "l2_ball", 1)]


def checked(sampler, options, constraint, p, count, off):
    _, target, potential = case("logistic", constraint, p, f=16.0, radius=2.0)
    distance = 0.1 if sampler == "grid_walk" else 0.01
    made = registry.load("sampler", sampler)(**options)
    theta = draw(made, target, potential, count, dist_inf=distance)
    bins = Bins(target, BINS[p])
    right = p_value(bins, bins.probabilities(potential), theta)
    assert right > ALARM
    for factor in (off, 1.0 / off):
        assert p_value(bins, bins.probabilities(colder(potential, factor)), theta) < 1e-6


@pytest.mark.in_turn
@pytest.mark.stat
@pytest.mark.parametrize(("sampler", "options", "constraint", "p"), CASES)
def test_law(sampler, options, constraint, p):
    checked(sampler, options, constraint, p, 1_500, 1.7)


@pytest.mark.stat
def test_the_proximal_sampler_agrees():
    checked("proximal", {}, "l2_ball", 2, 400, 3.0)


@pytest.mark.stat_full
@pytest.mark.parametrize(("sampler", "options", "constraint", "p"), CASES + SLOW)
def test_law_with_many_draws(sampler, options, constraint, p):
    checked(sampler, options, constraint, p, 200_000, 1.05)
