"""Gaussian widths: closed forms against simulation through the support function, and the listing.

Each comparison is at 3 standard errors of its own simulation with a fixed seed (2.7 in 1000 for a
fresh one); a width that is 5 % off fails it, which is a test of its own.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from dperm_cli.core import catalogue, registry
from dperm_cli.core.fields import configure
from dperm_cli.sets.base import ConvexSet
from dperm_cli.sets.lp_ball import LpBall

DRAWS = 8192
NAMED = ("l2_ball", "l1_ball", "box", "simplex")


def named(name: str, p: int):
    cls = registry.load("constraint", name)
    return configure(cls, "constraint", {"radius": 1.0}, p=p)


CASES = {f"{name} {p}": named(name, p) for name in NAMED for p in (2, 30, 300)}
CASES |= {f"l{s:g} 50": LpBall(reach=2.0, p=50, power=s) for s in (1.0, 1.2, 1.5, 2.0, 4.0)}


def simulated(body) -> tuple[float, float]:
    return ConvexSet.width(body, np.random.default_rng(11), DRAWS)


@pytest.mark.parametrize("case", CASES)
def test_closed_form_is_within_3_standard_errors_of_simulation(case):
    exact, none = CASES[case].width()
    mean, error = simulated(CASES[case])
    assert none == 0.0
    assert error > 0.0
    assert abs(mean - exact) <= 3 * error


@pytest.mark.parametrize("case", CASES)
def test_that_comparison_has_power(case):
    exact, _ = CASES[case].width()
    mean, error = simulated(CASES[case])
    assert abs(mean - 1.05 * exact) > 3 * error


def test_a_set_without_a_closed_form_has_a_standard_error():
    from dperm_cli.sets.intersection import Intersection

    body = Intersection(ball=0.8, p=20, inner={"name": "l1_ball", "radius": 1.0})
    mean, error = body.width(np.random.default_rng(0), 2000)
    assert 0.0 < error < 0.05 * mean
    assert mean <= named("l1_ball", 20).width()[0] + 3 * error


@pytest.mark.parametrize("name", NAMED)
def test_the_list_prints_what_the_code_computes(name):
    text = catalogue.choices("constraint")[name].width
    found = re.findall(r"([\d.]+) at p=(\d+)", text)
    assert len(found) == 2
    for value, p in found:
        assert named(name, int(p)).width()[0] == pytest.approx(float(value), rel=5e-4)


def test_every_set_says_what_its_width_is(capsys):
    from dperm_cli.core.help import list_text

    assert all(choice.width for choice in catalogue.choices("constraint").values())
    page = list_text(["constraint"])
    assert page.count("Gaussian width") == len(catalogue.choices("constraint"))
    assert "Gaussian width" not in list_text(["loss"])
