"""Bounds of [JT13]: the page against the code, and the explicit ones against simulations."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

from dperm_cli.bounds import jt13
from dperm_cli.bounds.jt13 import Setting
from dperm_cli.mechanisms.shared.kernel_queries import fit_in_ball
from tests.contract.test_proof_pages import resolve

PAGE = Path(__file__).resolve().parents[2] / "docs" / "proofs" / "_jt13.md"
LINES = re.findall(r"^\| (.+?) \| `([\w.]+)` \| (explicit|order) \|", PAGE.read_text(), re.M)
STATEMENTS = {"Thm 2", "Thm 3", "Thm 4", "Thm 5", "Cor. 6", "Thm 7", "Thm 8", "Thm 13"}
AT = Setting(n=1e4, epsilon=1.0, delta=1e-6, ridge=0.1)


def test_every_statement_has_its_line():
    assert {statement for statement, *_ in LINES} == STATEMENTS


@pytest.mark.parametrize(("statement", "name", "constant"), LINES)
def test_a_line_names_an_object_with_that_constant(statement, name, constant):
    found = resolve(name)
    assert callable(found)
    assert (found.__doc__ or "").startswith("order") == (constant == "order")


def test_printed_bounds_fall_and_grow_as_they_say():
    more = Setting(n=4e4, epsilon=1.0, delta=1e-6, ridge=0.1)
    assert jt13.theorem_3(AT, 100, 0.1) == pytest.approx(2.0 * jt13.theorem_3(more, 100, 0.1))
    assert jt13.theorem_3(AT, 10**6, 0.1) / jt13.theorem_3(AT, 10**3, 0.1) == pytest.approx(
        math.sqrt(math.log(10**7) / math.log(10**4))
    )
    assert jt13.theorem_5(AT, 50, 0.1) == pytest.approx(2.0 * jt13.theorem_5(more, 50, 0.1))
    assert jt13.theorem_13(AT, 50, 0.1) == jt13.theorem_5(AT, 50, 0.1)
    ratio = jt13.theorem_8(AT, 8, 3.0, 0.1) / jt13.theorem_8(AT, 1, 3.0, 0.1)
    assert ratio == pytest.approx(2.0)
    ratio = jt13.theorem_8(AT, 8, 3.0, 0.1) / jt13.theorem_8(more, 8, 3.0, 0.1)
    assert ratio == pytest.approx(4.0 ** (2.0 / 3.0))
    assert jt13.corollary_6(AT, 0.1, 0.1) == pytest.approx(4.0 * jt13.corollary_6(AT, 0.2, 0.1))
    assert jt13.theorem_5_queries(more) == pytest.approx(4.0 * jt13.theorem_5_queries(AT))


def test_the_step_of_fewest_updates():
    """3 sigma / (4 R^2): 16 C^2 R^2 / (9 sigma^2); the printed one needs 9 / 5 of it."""
    found = [jt13.interactive_updates(2.0, 1.5, 0.3, k * 0.3 / 1.5**2) for k in (0.25, 0.75, 1.6)]
    unit = (2.0 * 1.5 / 0.3) ** 2
    assert found[0] == pytest.approx(16.0 / 5.0 * unit)
    assert found[1] == pytest.approx(16.0 / 9.0 * unit)
    assert found[2] == math.inf
    steps = np.linspace(0.02, 0.19, 40)
    assert min(jt13.interactive_updates(2.0, 1.5, 0.3, s) for s in steps) >= found[1] * 0.999


@pytest.mark.parametrize("share", [0.25, 0.75])
def test_updates_and_errors_of_the_interactive_learner_stay_within_their_bounds(share):
    """Adversarial order: the farthest of many queries is asked next, the noise up to sigma / 4."""
    rng, sigma, ball = np.random.default_rng(0), 0.2, 1.0
    wanted = rng.standard_normal(30)
    wanted *= ball / np.linalg.norm(wanted)
    queries = rng.standard_normal((300, 30))
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    w, updates, worst = np.zeros(30), 0, 0.0
    step = share * sigma
    for _ in range(3000):
        z = queries[np.argmax(np.abs(queries @ (wanted - w)))]
        noise = rng.uniform(-sigma / 4.0, sigma / 4.0)
        seen = z @ wanted + noise - z @ w
        if abs(seen) <= sigma:
            worst = max(worst, abs(z @ (wanted - w)))
            break
        w, updates = w + step * np.sign(seen) * z, updates + 1
    assert 0 < updates <= jt13.interactive_updates(ball, 1.0, sigma, step)
    assert 0.0 < worst <= jt13.interactive_error(sigma)


def test_noise_fails_no_oftener_than_its_bound():
    """4000 runs: the bound is beta / 2 at the printed threshold, and half of it is too little."""
    rng, queries, beta = np.random.default_rng(1), 20, 0.2
    threshold = 4.0 * math.log(2.0 * queries / beta)
    assert jt13.noise_failure(queries, threshold, 1.0) == pytest.approx(beta / 2.0)
    far = np.abs(rng.laplace(size=(4000, queries))).max(axis=1) > threshold / 4.0
    assert 0.05 < far.mean() < 0.115  # four standard errors; nearly the bound itself


@pytest.mark.parametrize("noise", [0.05, 0.5, 5.0])
def test_least_squares_in_the_ball_stay_within_their_bound(noise):
    """E mean square over Z, of 200 runs, for two kernels."""
    rng, count, ball = np.random.default_rng(2), 40, 1.0
    for width in (1.0, 30.0):
        z = rng.standard_normal((count, 2))
        z /= np.linalg.norm(z, axis=1, keepdims=True)
        gram = np.exp(-width * ((z[:, None] - z[None]) ** 2).sum(-1))
        alpha = rng.standard_normal(count)
        alpha *= ball / math.sqrt(alpha @ gram @ alpha)
        noisy = gram @ alpha + rng.laplace(size=(200, count)) * noise / math.sqrt(2.0)
        found = fit_in_ball(gram, noisy, ball)
        assert np.all(np.einsum("ti,ij,tj->t", found, gram, found) <= ball**2 * (1.0 + 1e-9))
        square = np.mean((found @ gram - gram @ alpha) ** 2)
        assert square <= jt13.fitted_square(ball, 1.0, noise, count)


def test_least_squares_are_the_minimum():
    """No point of the ball, and no multiplier, does better (a convex problem: local is enough)."""
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((8, 8))
    gram = rows @ rows.T / 8.0
    values = 3.0 * rng.standard_normal(8)
    found = fit_in_ball(gram, values, 0.7)
    best = np.sum((gram @ found - values) ** 2)
    assert math.sqrt(found @ gram @ found) == pytest.approx(0.7, rel=1e-9)
    for _ in range(300):
        other = found + 0.05 * rng.standard_normal(8)
        other *= min(1.0, 0.7 / math.sqrt(other @ gram @ other))
        assert np.sum((gram @ other - values) ** 2) >= best - 1e-9
    inside = fit_in_ball(gram, gram @ np.full(8, 0.01), 0.7)
    np.testing.assert_allclose(gram @ inside, gram @ np.full(8, 0.01), atol=1e-9)


def test_the_whole_bounds_hold_together():
    noise = AT.sensitivity * math.sqrt(2.0) * 41.4875
    assert jt13.semi_interactive(AT, noise, 100) >= AT.lipschitz * math.sqrt(
        jt13.fitted_square(AT.ball, 1.0, noise, 100)
    )
    few, many = (jt13.non_interactive(1.0, 1.0, b, 0.01, 50.0, 8.0) for b in (4, 400))
    assert few > many > 8.0 / 50.0
    assert AT.sensitivity == pytest.approx(2e-3)
    one = jt13.gaussian_process(AT, 0.2367, 1)
    assert one == pytest.approx(AT.sensitivity / 0.2367 * math.sqrt(2.0 * math.log(2.0)))
    # 1 / n against 1 / sqrt(n): the process wins by far once n is large
    large = Setting(n=1e8, epsilon=1.0, delta=1e-6, ridge=0.1)
    assert jt13.gaussian_process(large, 0.2367, 10**4) < 1e-3 * jt13.theorem_3(large, 10**4, 0.05)
