"""Mean logistic losses at known chances: the formula, to the last digits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from dperm_cli.loops import log_odds

MARGINS = np.concatenate(
    [np.linspace(-40.0, 40.0, 4001), [-700.0, -1e-300, 0.0, 1e-12, 700.0, 1e4]]
)


def test_chances_are_the_logistic_function():
    found = log_odds.find_chances(MARGINS)
    np.testing.assert_allclose(found, expit(MARGINS), rtol=1e-15, atol=1e-307)
    assert np.all((found >= 0.0) & (found <= 1.0))


@pytest.mark.parametrize("chance", [0.0, 0.25, 1.0])
def test_a_mean_loss_is_that_of_the_two_labels(chance):
    found = log_odds.find_mean_losses(MARGINS, np.full(len(MARGINS), chance))
    known = chance * np.logaddexp(0.0, -MARGINS) + (1.0 - chance) * np.logaddexp(0.0, MARGINS)
    np.testing.assert_allclose(found, known, rtol=1e-14, atol=1e-14)


def test_nothing_is_less_than_at_the_log_odds():
    rng = np.random.default_rng(3)
    best = 3.0 * rng.standard_normal(1000)
    chances = log_odds.find_chances(best)
    least = log_odds.find_mean_losses(best, chances)
    for move in (-1.0, -1e-3, 1e-3, 1.0):
        assert np.all(log_odds.find_mean_losses(best + move, chances) > least)


def test_bits_do_not_depend_on_the_neighbours():
    chances = np.full(len(MARGINS), 0.3)
    whole = log_odds.find_mean_losses(MARGINS, chances)
    for at in range(0, len(MARGINS), 97):
        one = log_odds.find_mean_losses(MARGINS[at : at + 1].copy(), chances[:1])
        assert one[0] == whole[at]


def test_lengths_have_to_fit():
    with pytest.raises(ValueError, match="do not fit"):
        log_odds.find_mean_losses(MARGINS, np.zeros(3))
