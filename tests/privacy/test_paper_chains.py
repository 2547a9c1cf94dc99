"""The papers' chains: their lemmas as formulas, and where they stand against the accountant."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dperm_cli.core.errors import InputError
from dperm_cli.privacy.accounting import paper_chains
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.accounting.calibrate import bst14_stated_scale
from dperm_cli.privacy.events import Pure, SampledGaussian


def test_lemmas_are_their_formulas():
    assert paper_chains.amplify_as_printed(0.4, 0.01) == pytest.approx(0.008)
    assert paper_chains.amplify_by_sampling(0.4, 0.01) == pytest.approx(
        math.log(0.99 + 0.01 * math.exp(0.4))
    )
    expected = math.sqrt(2 * 50 * math.log(1e5)) * 0.1 + 50 * 0.1 * (math.exp(0.1) - 1)
    assert paper_chains.compose_strongly(0.1, 50, 1e-5) == pytest.approx(expected)


def test_amplification_limits_and_order():
    assert paper_chains.amplify_by_sampling(1000.0, 0.5) == 1000.0
    for epsilon in (0.01, 0.5, 1.0):
        assert paper_chains.amplify_by_sampling(epsilon, 1.0) == pytest.approx(epsilon)
        assert paper_chains.amplify_by_sampling(epsilon, 0.0) == 0.0
        rates = np.linspace(0.01, 1.0, 20)
        assert np.all(
            np.diff([paper_chains.amplify_by_sampling(epsilon, rate) for rate in rates]) > 0
        )
        # Lemma 2.2 is a true bound on this range, a factor of about 2 loose at small epsilon
        assert all(
            paper_chains.amplify_by_sampling(epsilon, r)
            <= paper_chains.amplify_as_printed(epsilon, r)
            for r in rates
        )


def test_strong_composition_bounds_optimal_composition():
    for epsilon, steps in ((0.01, 1000), (0.1, 30), (0.5, 5)):
        exact = account([Pure(epsilon, steps)], delta=1e-6, relation="replace_one").epsilon
        assert exact < paper_chains.compose_strongly(epsilon, steps, 1e-6)


@pytest.mark.parametrize("n", [100, 1000, 10_000])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_repaired_chain_bounds_the_certified_epsilon(n, epsilon):
    delta = n**-2.0
    scale = bst14_stated_scale(n, 1.0, epsilon, delta)
    event = SampledGaussian(scale, float(n), 1, n, "fixed", n * n)
    certified = account([event], delta=delta, relation="replace_one").epsilon
    repaired = paper_chains.bst14_repaired_chain(n, n * n, scale, 1.0, delta)
    printed = paper_chains.bst14_chain(n, n * n, scale, 1.0, delta)
    assert certified < repaired < epsilon < math.sqrt(2) * epsilon < printed


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"n": 0}, "n"),
        ({"steps": 0}, "steps"),
        ({"scale": 0.0}, "scale"),
        ({"delta": 0.0}, "delta"),
    ],
)
def test_bad_input(change, key):
    good = {"n": 10, "steps": 100, "scale": 50.0, "lipschitz": 1.0, "delta": 1e-3}
    for chain in (paper_chains.bst14_chain, paper_chains.bst14_repaired_chain):
        with pytest.raises(InputError) as caught:
            chain(**(good | change))
        assert caught.value.key == key
