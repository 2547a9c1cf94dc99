"""The event of objective perturbation: vectors, limits, and the integral by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dperm_cli.core.errors import InputError
from dperm_cli.privacy.accounting import gaussian_profile
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.accounting.objective_perturbation import (
    half_normal,
    noise_delta,
    noise_epsilon,
    noise_ratio,
)
from dperm_cli.privacy.events import PerturbedObjective


def gamma(scale=2.0, **facts):
    return PerturbedObjective("gamma_norm", scale, 1.0, 0.25, 0.5, **facts)


@pytest.mark.parametrize(
    ("room", "replace", "add"), [(0.9, 9.63157, 4.81578), (0.5, 16.6966, 8.34832)]
)
def test_gaussian_vectors(room, replace, add):
    """sigma / L at (1, 1e-6) with J = 0.1 and 0.5."""
    assert 2.0 / noise_ratio(room, 1e-6, "replace_one") == pytest.approx(replace, rel=1e-5)
    assert 1.0 / noise_ratio(room, 1e-6, "add_remove") == pytest.approx(add, rel=1e-5)


def test_gamma_vector():
    """Lam = 2 beta at epsilon 1 leaves .594535 for the noise."""
    event = PerturbedObjective("gamma_norm", 2.0 / 0.594535, 1.0, 0.25, 0.5)
    assert event.jacobian == pytest.approx(1.0 - 0.594535, abs=1e-6)
    assert event.epsilon("replace_one") == pytest.approx(1.0, abs=1e-6)
    accounted = account((event,), delta=0.0, relation="replace_one")
    assert accounted.epsilon == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(("e", "m"), [(0.5, 0.3), (0.1, 1.0), (0.0, 2.0), (3.0, 1.5)])
def test_half_normal_is_the_expectation(e, m):
    g = np.linspace(-12.0, 12.0, 400_001)
    density = np.exp(-g * g / 2.0) / math.sqrt(2.0 * math.pi)
    spent = np.maximum(1.0 - np.exp(e - m * np.abs(g) - m * m / 2.0), 0.0)
    assert half_normal(e, m) == pytest.approx(np.trapezoid(spent * density, g), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("ratio", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.8, 1.0, 1.5])
def test_no_pair_of_directions_is_worse_than_the_bound(ratio, share):
    """E max over the two diagonals, by quadrature over both normals, at every angle."""
    e = share * ratio * math.sqrt(1.0 + ratio**2 / 4.0)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    bound = noise_delta(e, ratio, "replace_one")
    for angle in np.linspace(0.0, math.pi / 4.0, 9):
        spent = [
            np.maximum(1.0 - np.exp(e - m * np.abs(nodes) - m * m / 2.0), 0.0)
            for m in (ratio * math.cos(angle), ratio * math.sin(angle))
        ]
        found = weights @ np.maximum(spent[0][:, None], spent[1][None, :]) @ weights
        assert found <= bound * 1.1 + 1e-4  # the nodes are coarse at the kink
    assert bound <= 1.0
    if share >= 1.0:
        assert bound == pytest.approx(2.0 * gaussian_profile.delta(e, ratio), rel=1e-9)


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.3])
@pytest.mark.parametrize("e", [1e-3, 0.3, 4.0])
def test_inverses_return_the_private_side(relation, delta, e):
    ratio = noise_ratio(e, delta, relation)
    assert noise_delta(e, ratio, relation) <= delta
    assert noise_epsilon(delta, ratio, relation) <= e * (1.0 + 1e-8)
    if e >= 1.01 * ratio * math.sqrt(1.0 + ratio**2 / 4.0):
        assert noise_delta(e, ratio * 1.001, relation) > delta
    assert noise_delta(noise_epsilon(delta, ratio, relation), ratio, relation) <= delta * (1 + 1e-9)


def test_rank_and_strength_enter_the_jacobian():
    assert gamma(rank=3).jacobian == pytest.approx(3 * math.log(1.5))
    assert gamma(gap=1.2).epsilon("replace_one") < gamma().epsilon("replace_one")
    assert gamma(gap=1.2).epsilon("add_remove") == gamma().epsilon("add_remove")


@pytest.mark.parametrize(
    ("noise", "facts", "key"),
    [
        ("gaussian", {"delta": 0.0}, "delta"),
        ("gaussian", {"delta": 1e-6, "rank": 2}, "rank"),
        ("gamma_norm", {"delta": 1e-6}, "delta"),
        ("laplace", {}, "noise"),
    ],
)
def test_forms_that_are_not_proved_are_refused(noise, facts, key):
    with pytest.raises(InputError) as caught:
        PerturbedObjective(noise, 1.0, 1.0, 0.25, 1.0, **facts)
    assert caught.value.key == key
