"""Random batches: their exact laws, and what makes them reproducible."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from dperm_cli.loops import batch_indices

FALSE_ALARM = 1e-6
KEY = np.array([2**63 + 5, 77], np.uint64)


def draws(count, population, batch, poisson):
    return [batch_indices.batch(KEY, t, population, batch, poisson) for t in range(count)]


def p_value(counts, probabilities):
    counts, probabilities = np.asarray(counts, float), np.asarray(probabilities)
    return stats.chisquare(counts, probabilities * counts.sum()).pvalue


def masks(batches):
    """Each batch as the integer whose bits are its records."""
    return np.array([int(np.sum(1 << b)) for b in batches])


def subset_law(population, rate):
    sizes = np.array([bin(m).count("1") for m in range(2**population)])
    return rate**sizes * (1 - rate) ** (population - sizes)


@pytest.mark.stat
def test_one_record_is_uniform():
    """Chi-square over 11 records (false-alarm rate 1e-6); one record 10 % too likely fails it."""
    chosen = np.concatenate(draws(150_000, 11, 1, False))
    counts = np.bincount(chosen, minlength=11)
    assert p_value(counts, np.full(11, 1 / 11)) > FALSE_ALARM
    skewed = counts.astype(float)
    skewed[7] *= 1.10
    assert p_value(skewed, np.full(11, 1 / 11)) < FALSE_ALARM


@pytest.mark.stat
def test_fixed_batches_are_uniform_subsets():
    """Chi-square over all 35 subsets of 3 of 7 (false-alarm rate 1e-6). The usual slip in Floyd's
    method (drawing below j, not up to j) fails it."""
    batches = draws(100_000, 7, 3, False)
    assert all(len(set(b.tolist())) == 3 for b in batches[:1000])
    subsets = [sum(1 << i for i in c) for c in combinations(range(7), 3)]
    counts = np.bincount(masks(batches), minlength=128)
    assert counts[subsets].sum() == len(batches)
    assert p_value(counts[subsets], np.full(35, 1 / 35)) > FALSE_ALARM

    rng, wrong = np.random.default_rng(0), np.zeros(128)
    for _ in range(100_000):
        chosen: set[int] = set()
        for last in (4, 5, 6):
            pick = int(rng.integers(last))
            chosen.add(last if pick in chosen else pick)
        wrong[sum(1 << i for i in chosen)] += 1
    assert p_value(wrong[subsets], np.full(35, 1 / 35)) < FALSE_ALARM


@pytest.mark.stat
@pytest.mark.parametrize(("population", "batch"), [(5, 2), (6, 1)])
def test_poisson_batches_are_independent_records(population, batch):
    """Chi-square over all subsets (false-alarm rate 1e-6); a rate off by 1.05 fails it."""
    counts = np.bincount(masks(draws(100_000, population, batch, True)), minlength=2**population)
    rate = batch / population
    assert p_value(counts, subset_law(population, rate)) > FALSE_ALARM
    assert p_value(counts, subset_law(population, 1.05 * rate)) < FALSE_ALARM


@pytest.mark.stat
def test_poisson_batch_size_in_a_large_population():
    """Batch sizes are Binomial(1e5, 2e-4): mean within 5.3 standard errors (rate 1.2e-7), which
    a rate off by 1.05 leaves."""
    sizes = np.array([len(b) for b in draws(4000, 100_000, 20, True)])
    error = np.sqrt(20 / len(sizes))
    assert abs(sizes.mean() - 20) < 5.3 * error < 1.05 * 20 - 20


def test_poisson_edges():
    assert np.array_equal(batch_indices.batch(KEY, 3, 9, 9, True), np.arange(9))
    assert min(len(b) for b in draws(200, 50, 1, True)) == 0
    for b in draws(200, 50, 20, True):
        assert np.all(np.diff(b) > 0)
        assert np.all((b >= 0) & (b < 50))


def test_fixed_edges():
    assert sorted(batch_indices.batch(KEY, 0, 8, 8, False)) == list(range(8))
    assert np.array_equal(batch_indices.batch(KEY, 0, 1, 1, False), [0])
    top = batch_indices.MAX_POPULATION
    chosen = np.concatenate(draws(64, top, 1, False))
    assert chosen.min() < top // 8
    assert top > chosen.max() > top - top // 8


@pytest.mark.parametrize(("batch", "poisson"), [(1, False), (5, False), (5, True)])
def test_pure_function_of_key_and_step(batch, poisson):
    later = [batch_indices.batch(KEY, t, 90, batch, poisson) for t in (9, 4, 2**33)]
    again = [batch_indices.batch(KEY, t, 90, batch, poisson) for t in (9, 4, 2**33)]
    assert all(np.array_equal(a, b) for a, b in zip(later, again, strict=True))
    other = [batch_indices.batch(KEY + np.uint64(1), t, 90, batch, poisson) for t in range(20)]
    assert any(
        not np.array_equal(a, b) for a, b in zip(other, draws(20, 90, batch, poisson), strict=True)
    )


@pytest.mark.parametrize(("population", "batch"), [(5, 0), (5, 6), (2**32, 1), (0, 0)])
def test_refuses_impossible_batches(population, batch):
    with pytest.raises(ValueError, match="no batch"):
        batch_indices.batch(KEY, 0, population, batch, False)
