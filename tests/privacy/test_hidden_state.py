"""The last iterate of noisy gradient descent: vectors, a brute-force search, exact laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import ndtr

from dperm_cli.core.errors import InputError
from dperm_cli.privacy.accounting import gaussian_profile
from dperm_cli.privacy.accounting.hidden_state import (
    bound_last_iterate,
    bound_varied_steps,
    compose_steps,
)
from dperm_cli.runner.cells.last_iterate_rows import make_rows


@pytest.mark.parametrize(
    ("count", "contraction", "expected", "composed"),
    [
        (100, 1.0, 0.2, 0.2),
        (1000, 1.0, 0.28284, 0.63246),
        (10, 0.9, 0.060583, 0.063246),
        (30, 0.9, 0.083558, 0.109545),
        (100, 0.9, 0.087176, 0.2),
    ],
)
def test_the_worked_example_of_the_proof_page(count, contraction, expected, composed):
    found = bound_last_iterate(count, 0.01, 2.0, 100.0, 1.0, contraction)
    assert found == pytest.approx(expected, rel=2e-5)
    assert compose_steps(count, 2.0, 100.0) == pytest.approx(composed, rel=2e-5)


def test_the_short_form_is_too_small_for_steps_that_fall():
    """S = 2, D = 1, steps 1 and 0.4: over both steps 3.6056, the short form has 3.5282."""
    from dperm_cli.privacy.accounting.hidden_state import _add_slopes

    steps = np.array([1.0, 0.4])
    assert math.sqrt(_add_slopes(steps, 2.0, 1.0)) == pytest.approx(3.6056, abs=5e-5)
    assert (1.0 + 2.0 * 1.4) / math.sqrt(1.16) == pytest.approx(3.5282, abs=5e-5)
    assert bound_varied_steps(steps, 2.0, 1.0, 1.0) == pytest.approx(math.sqrt(8.0))


@pytest.mark.parametrize("seed", range(5))
def test_the_minorant_is_the_least_energy(seed):
    """Against a solver that shifts freely, with the distance never below 0."""
    from dperm_cli.privacy.accounting.hidden_state import _add_slopes

    rng = np.random.default_rng(seed)
    steps, apart = rng.uniform(0.2, 2.0, 5), float(rng.uniform(0.0, 2.0))
    reach = apart + 2.0 * np.cumsum(steps)
    limits = [
        {"type": "ineq", "fun": lambda s, k=k: reach[k] - np.sum(s[: k + 1])} for k in range(4)
    ]
    limits.append({"type": "eq", "fun": lambda s: reach[-1] - np.sum(s)})
    start = np.diff(reach, prepend=0.0)
    found = minimize(lambda s: np.sum((s / steps) ** 2), start, constraints=limits)
    assert _add_slopes(steps, 2.0, apart) == pytest.approx(found.fun, rel=1e-5)


def test_equal_steps_agree_with_the_closed_form():
    for count in (1, 2, 7, 40):
        for diameter in (0.01, 1.0, 30.0, math.inf):
            varied = bound_varied_steps([0.3] * count, 2.0, 5.0, diameter)
            same = bound_last_iterate(count, 0.3, 2.0, 5.0, diameter)
            assert varied == pytest.approx(same, rel=1e-12)
            assert same <= compose_steps(count, 2.0, 5.0) * (1.0 + 1e-12)
            nearly = bound_last_iterate(count, 0.3, 2.0, 5.0, diameter, 1.0 - 1e-9)
            assert nearly == pytest.approx(same, rel=1e-6)


@pytest.mark.parametrize("contraction", [0.5, 0.9, 0.99])
def test_a_quadratic_attains_the_bound(contraction):
    """Both last iterates are normal: their means and their variance by the recursion."""
    eta, move, sigma = 0.2, 2.0, 3.0
    apart, variance = 0.0, 0.0
    for count in range(1, 60):
        apart = contraction * apart + eta * move
        variance = contraction**2 * variance + (eta * sigma) ** 2
        bound = bound_last_iterate(count, eta, move, sigma, math.inf, contraction)
        assert apart / math.sqrt(variance) == pytest.approx(bound, rel=1e-9)


def law_on_a_line(slope, count, eta, sigma, cells=801):
    """The law of the last iterate in [-1/2, 1/2] from 0: chances of cells, ends included."""
    points = np.linspace(-0.5, 0.5, cells)
    edges = np.concatenate([[-np.inf], 0.5 * (points[1:] + points[:-1]), [np.inf]])
    ahead = (edges[None, :] - (points - eta * slope)[:, None]) / (eta * sigma)
    turn = np.diff(ndtr(ahead), axis=1)
    law = np.zeros(cells)
    law[cells // 2] = 1.0
    for _ in range(count):
        law = law @ turn
    return law


@pytest.mark.parametrize(("eta", "sigma", "count"), [(0.05, 4.0, 60), (0.1, 3.0, 100)])
def test_no_event_tells_more_on_an_interval(eta, sigma, count):
    """Opposite linear losses on an interval: the exact delta is within the profile of mu, and
    beyond that of two thirds of mu: the bound is not idle."""
    bound = bound_last_iterate(count, eta, 2.0, sigma, 1.0)
    assert bound < 0.9 * compose_steps(count, 2.0, sigma)
    first, second = (law_on_a_line(slope, count, eta, sigma) for slope in (1.0, -1.0))
    seen = [
        float(np.sum(np.maximum(first - math.exp(epsilon) * second, 0.0)))
        for epsilon in (0.0, 0.5, 1.0, 2.0)
    ]
    for epsilon, delta in zip((0.0, 0.5, 1.0, 2.0), seen, strict=True):
        assert delta <= gaussian_profile.delta(epsilon, bound) * (1.0 + 1e-3)
    assert (
        max(
            delta / gaussian_profile.delta(epsilon, bound / 3.0)
            for epsilon, delta in zip((0.0, 0.5, 1.0, 2.0), seen, strict=True)
        )
        > 1.0
    )


def test_hidden_iterates_pay_beyond_four_roots_of_p_only():
    for epsilon, p in ((1.0, 1), (10.0, 1), (10.0, 16)):
        (row,) = make_rows({"epsilon": epsilon, "delta": 1e-6, "p": p, "n": 100})
        assert row["settings"]["mu"] < 4.0 * math.sqrt(p)
        assert row["settings"]["gain"] == pytest.approx(1.0, abs=1e-9)
        expected = 2.0 * math.sqrt(p) / row["settings"]["mu"]
        assert row["settings"]["risk_all"] == pytest.approx(expected, rel=1e-3)
    (row,) = make_rows({"epsilon": 100.0, "delta": 1e-6, "p": 1, "n": 1000})
    facts = row["settings"]
    assert facts["gain"] == pytest.approx(facts["mu"] / 4.0, rel=0.01)
    assert facts["risk_last"] == pytest.approx(8.0 / facts["mu"] ** 2, rel=0.01)


def test_bad_values():
    for bad in ({"contraction": 1.5}, {"contraction": 0.0}, {"eta": 0.0}, {"count": 0}):
        values = {"count": 3, "eta": 1.0, "move": 1.0, "sigma": 1.0, "diameter": 1.0} | bad
        with pytest.raises(ValueError, match=r"must be above 0"):
            bound_last_iterate(**values)
    for steps in ([], [1.0, -1.0], [1.0] * 6000):
        with pytest.raises(ValueError, match="steps must be"):
            bound_varied_steps(steps, 1.0, 1.0, 1.0)
    for settings, key in (
        ({"steps": 0}, "last_iterate.steps"),
        ({"steps": 3, "sigma": -1}, "last_iterate.sigma"),
        ({"steps": 3, "noise": 1}, "last_iterate.noise"),
        ({"epsilon": 1, "delta": 0, "p": 1, "n": 9}, "last_iterate.delta"),
    ):
        with pytest.raises(InputError) as error:
            make_rows(settings)
        assert str(error.value).startswith(key)
