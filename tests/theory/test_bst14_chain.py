"""The written proof of [BST14, Thm 2.1] at n = 1000, epsilon = 1, delta = 1/n^2, step by step."""

from __future__ import annotations

import math

import pytest

from dperm_cli.privacy.accounting import paper_chains
from dperm_cli.privacy.accounting.calibrate import bst14_stated_scale

N, EPSILON, DELTA = 1000, 1.0, 1e-6
STEPS = N * N
SCALE = bst14_stated_scale(N, 1.0, EPSILON, DELTA)


def test_one_step_exceeds_what_the_proof_allows():
    allowed = EPSILON / (2 * math.sqrt(math.log(1 / DELTA)))
    assert paper_chains.bst14_step_as_printed(N, SCALE, 1.0, DELTA) == pytest.approx(allowed)
    assert allowed == pytest.approx(0.1345, abs=5e-5)
    needed = paper_chains.bst14_step(N, STEPS, SCALE, 1.0, DELTA)
    assert needed == pytest.approx(0.1512, abs=2e-4)
    assert needed / allowed > 1.12


def test_printed_chain_exceeds_epsilon():
    assert paper_chains.bst14_chain(N, STEPS, SCALE, 1.0, DELTA) == pytest.approx(1.52, abs=5e-3)
    # its first term alone: sqrt(2 n^2 ln(2/delta)) epsilon / (n sqrt(ln(1/delta)))
    amplified = EPSILON / (N * math.sqrt(math.log(1 / DELTA)))
    assert math.sqrt(2 * STEPS * math.log(2 / DELTA)) * amplified > math.sqrt(2) * EPSILON


def test_repaired_chain_stays_below_epsilon():
    repaired = paper_chains.bst14_repaired_chain(N, STEPS, SCALE, 1.0, DELTA)
    assert repaired == pytest.approx(0.906, abs=2e-3)
