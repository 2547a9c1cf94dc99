"""Batches from the operating system's words: their law, and words that are drawn again."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from dperm_cli.core.errors import Unsupported
from dperm_cli.mechanisms.gradient import noisy_sgd
from dperm_cli.mechanisms.gradient.noisy_sgd import NoisySgd
from dperm_cli.mechanisms.shared.secure_plan import make_secure_plan
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import SampledGaussian
from dperm_cli.privacy.gate import Gate
from dperm_cli.privacy.secure_batches import SystemBatches
from dperm_cli.views.grid import GridView
from tests.conftest import small_problem
from tests.privacy._secure import source

ALPHA = 1e-6


def test_a_word_that_would_favour_some_records_is_drawn_again():
    """Of 2^64 words, 3 does not divide 2^64: the last one is refused."""
    last = 2**64 - 1
    assert 2**64 % 3 == 1
    drawn = SystemBatches(3, 1, False, source(0, [last, 4])).draw(0, 0)
    assert drawn.tolist() == [1]
    assert SystemBatches(4, 1, False, source(0, [last])).draw(0, 0).tolist() == [3]


def test_batches_of_a_fixed_size_are_uniform_over_subsets():
    batches, count = SystemBatches(5, 2, False, source(1)), 20_000
    found = Counter(frozenset(batches.draw(0, step).tolist()) for step in range(count))
    assert len(found) == math.comb(5, 2)
    assert stats.chisquare(list(found.values())).pvalue > ALPHA


@pytest.mark.stat
def test_poisson_batches_hold_each_record_on_its_own():
    batches, count = SystemBatches(6, 2, True, source(2)), 20_000
    held = np.zeros((count, 6))
    for step in range(count):
        held[step, batches.draw(0, step)] = 1.0
    sizes = np.bincount(held.sum(axis=1).astype(int), minlength=7)
    expected = count * stats.binom.pmf(np.arange(7), 6, 1 / 3)
    assert stats.chisquare(sizes, expected).pvalue > ALPHA
    for record in held.T:
        assert stats.binomtest(int(record.sum()), count, 1 / 3).pvalue > ALPHA
    # a chance that is 1.05 times as large would show
    assert stats.binomtest(int(held.sum()), held.size, 1.05 / 3).pvalue < ALPHA


def test_all_records_are_a_batch_too():
    assert sorted(SystemBatches(4, 4, False, source(3)).draw(0, 0).tolist()) == [0, 1, 2, 3]
    assert SystemBatches(4, 4, True, source(3)).draw(0, 0).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("keys", [{}, {"batch": 5}, {"batch": 5, "sampling": "poisson"}])
def test_the_plan_keeps_its_level_and_its_scale(keys):
    problem, budget = small_problem(n=50), Budget(1.0, 1e-6)
    mechanism = NoisySgd(steps=100, **keys)
    research = mechanism.plan(problem.spec(), budget)
    plan, _ = make_secure_plan(mechanism, problem.spec(), budget, problem.loss)
    level = account(plan.events, delta=1e-6, relation="replace_one").epsilon
    assert 0.999 < level <= 1.0
    assert research.noise_scale <= plan.noise_scale <= 1.0001 * research.noise_scale


class Listener:
    """Keeps the sums of batches and what the noise made of them."""

    def __init__(self):
        self.value = self.drawn = np.empty(0)

    def take_draw(self, stream, value, drawn, public):
        if value is not None:
            self.value, self.drawn = value, drawn
        return drawn


def test_a_step_scales_the_noisy_sum_of_its_batch():
    problem, budget = small_problem(n=50), Budget(1.0, 1e-6)
    mechanism = NoisySgd(steps=1, batch=5)
    plan, grid = make_secure_plan(mechanism, problem.spec(), budget, problem.loss)
    tape = Listener()
    gate = Gate.secure(4000, grid, (plan.events, "replace_one"), tape, source(4))
    theta = mechanism.release(GridView(problem, grid), plan, gate).theta
    (event,) = plan.events
    assert isinstance(event, SampledGaussian)
    noise = (tape.drawn - tape.value) / event.scale
    assert np.max(np.linalg.norm(tape.value, axis=1)) <= 5 * event.record_norm
    assert np.std(noise) == pytest.approx(1.0, abs=5.0 / math.sqrt(2.0 * noise.size))
    expected = problem.constraint.project(-plan.settings["eta0"] * 10.0 * tape.drawn)
    assert theta == pytest.approx(expected, rel=1e-12)


def test_too_many_steps_are_refused_with_what_to_type(monkeypatch):
    monkeypatch.setattr(noisy_sgd, "MOST_PLAIN_STEPS", 10)
    problem = small_problem(n=50)
    with pytest.raises(Unsupported, match=r"mechanism.steps to 10 or less"):
        make_secure_plan(NoisySgd(steps=11), problem.spec(), Budget(1.0, 1e-6), problem.loss)
