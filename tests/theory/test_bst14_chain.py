"""The written proof of [BST14, Thm 2.1] at n = 1000, epsilon = 1, delta = 1/n^2, step by step."""

from __future__ import annotations

import math

import pytest
from scipy.special import ndtri

from dperm_cli.privacy.calibrate import bst14_stated_scale

N, EPSILON, DELTA = 1000, 1.0, 1e-6
STEPS = N * N


def strong_composition(step_epsilon: float, delta: float) -> float:
    """[BST14, Lemma 2.3]."""
    first = math.sqrt(2 * STEPS * math.log(1 / delta)) * step_epsilon
    return first + STEPS * step_epsilon * math.expm1(step_epsilon)


def loss_needed() -> float:
    """What one step's privacy loss exceeds with probability delta / (2 n^2), two-sided."""
    mu = 2 * N / bst14_stated_scale(N, 1.0, EPSILON, DELTA)
    return mu * -float(ndtri(DELTA / (4 * STEPS))) + mu * mu / 2


def test_one_step_exceeds_what_the_proof_allows():
    allowed = EPSILON / (2 * math.sqrt(math.log(1 / DELTA)))
    assert allowed == pytest.approx(0.1345, abs=5e-5)
    assert loss_needed() == pytest.approx(0.1512, abs=2e-4)
    assert loss_needed() / allowed > 1.12


def test_printed_chain_exceeds_epsilon():
    # Lemma 2.2 with gamma = 1/n and epsilon' = epsilon / (2 sqrt(ln(1/delta)))
    amplified = 2 / N * EPSILON / (2 * math.sqrt(math.log(1 / DELTA)))
    assert strong_composition(amplified, DELTA / 2) == pytest.approx(1.52, abs=5e-3)
    assert math.sqrt(2 * STEPS * math.log(2 / DELTA)) * amplified > math.sqrt(2) * EPSILON


def test_repaired_chain_stays_below_epsilon():
    amplified = math.log1p(math.expm1(loss_needed()) / N)
    assert strong_composition(amplified, DELTA / 2) == pytest.approx(0.906, abs=2e-3)
