"""Sparse answers: the bound on kappa, its vectors, what is composed with it, and its stream."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad

from dperm_cli.audit.statistical_attack import ManyTrialsGate
from dperm_cli.core.errors import InputError, PrivacyError
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.privacy.accounting import sparse_vector
from dperm_cli.privacy.accounting.accountant import account, delta_of
from dperm_cli.privacy.accounting.calibrate import scale_for
from dperm_cli.privacy.events import Gaussian, Laplace, SparseAnswers
from dperm_cli.privacy.gate import Gate

RELATION, DELTA = "replace_one", 1e-6


def event(reach, updates, queries, failure=0.05, scale=1.0):
    """A query moves by ``reach`` scales, and the threshold is the paper's."""
    threshold = 4.0 * scale * math.log(2.0 * queries / failure)
    return SparseAnswers(scale, reach * scale / 2.0, threshold, updates, queries)


def epsilon(*events):
    return account(events, delta=DELTA, relation=RELATION).epsilon


@pytest.mark.parametrize(("updates", "reach"), [(10, 0.03147), (100, 0.01332)])
def test_calibrated_reach_vectors(updates, reach):
    """e' of [JT13, Alg. 1] at (1, 1e-6) by the numeric sup: .03147 at B = 10, .01332 at 100."""
    found = scale_for(
        lambda scale: (event(1.0 / scale, updates, 10_000, scale=scale),),
        epsilon=1.0, delta=DELTA, relation=RELATION,
    )  # fmt: skip
    assert reach <= 1.0 / found <= 1.002 * reach
    assert epsilon(event(1.0 / found, updates, 10_000)) <= 1.0


def test_the_stated_reach_spends_little():
    """epsilon / (100 sqrt(B) ln(4 / delta)) = .00020802 at B = 10: not a sixtieth of epsilon."""
    stated = 1.0 / (100.0 * math.sqrt(10.0) * math.log(4e6))
    assert stated == pytest.approx(0.00020802, rel=1e-4)
    assert epsilon(event(stated, 10, 10_000)) < 0.0173


def brute(order, x, other, threshold):
    """log(U / (1 - N)) by quadrature."""

    def density(y):
        return math.exp(-order * abs(y - x) + (order - 1.0) * abs(y - other)) / 2.0

    def chance(centre):
        kinks = [centre] if abs(centre) < threshold else None
        return quad(
            lambda y: math.exp(-abs(y - centre)) / 2.0, -threshold, threshold, points=kinks
        )[0]

    outside = 0.0
    for side in (-1.0, 1.0):
        edges = sorted({threshold, threshold + 40.0, *(c for c in (side * x, side * other)
                        if c > threshold)})  # fmt: skip
        for low, high in itertools.pairwise(edges):
            outside += quad(lambda y, s=side: density(s * y), low, high)[0]
    return math.log(outside / (1.0 - chance(x) ** order * chance(other) ** (1.0 - order)))


def test_ratio_is_the_integral_wherever_the_points_lie():
    rng, tried = np.random.default_rng(0), 0
    for _ in range(60):
        threshold = rng.uniform(0.3, 4.0)
        x = rng.uniform(-1.5 * threshold, 1.5 * threshold)
        other, order = x + rng.uniform(-0.3, 0.3), 1.0 + rng.uniform(0.01, 2.0)
        found = float(sparse_vector.ratio(order, x, other, threshold))
        if math.isfinite(found):
            tried += 1
            assert found == pytest.approx(brute(order, x, other, threshold), abs=1e-7)
    assert tried > 50


@pytest.mark.parametrize("threshold", [0.5, 1.0, 5.0, 12.0])
@pytest.mark.parametrize("reach", [0.01, 0.1, 0.5])
def test_kappa_is_above_every_pair_and_just_so(threshold, reach):
    """The search over two families finds the worst of 10^5 pairs, and is 1e-3 above it at most."""
    rng = np.random.default_rng(1)
    far = rng.uniform(-threshold - 3 * reach, threshold + 3 * reach, 30_000)
    near = threshold + rng.uniform(-2 * reach, 2 * reach, 30_000)
    x = np.concatenate([far, near, near])
    apart = np.concatenate([rng.uniform(-1, 1, 60_000), rng.choice([-1.0, 1.0], 30_000)])
    for tilt in (0.05 / reach, 0.3 / reach, 0.55 / reach):
        bound = sparse_vector.kappa(tilt, reach, threshold)
        found = sparse_vector.ratio(1.0 + tilt, x, x + reach * apart, threshold)
        # where nearly nothing is outside, N is 1 in floating point and the ratio unknown
        known = np.abs(x) > threshold - 12.0
        worst = float(np.max(found[known]))
        assert worst <= bound <= worst * (1.0 + 2e-3)


def test_kappa_is_up_to_twice_its_leading_order():
    """a (a - 1) e'^2 is the leading order of the sup; inside the threshold it is half of that."""
    e = 1e-3
    assert sparse_vector.kappa(1.0, e, 20.0) == pytest.approx(2.0 * e * e, rel=5e-3)
    inside = float(sparse_vector.ratio(2.0, 12.0, 12.0 + e, 20.0))
    assert inside == pytest.approx(e * e, rel=5e-3)
    # and at the orders that are used, more than the leading order
    assert sparse_vector.kappa(17.0, 0.03147, 40.0) > 1.2 * 17.0 * 18.0 * 0.03147**2


def test_no_bound_beyond_its_order_or_reach():
    assert sparse_vector.kappa(1.0, 0.0, 1.0) == 0.0
    assert sparse_vector.kappa(200.0, 0.01, 1.0) == math.inf  # order above 1 / (1 - e^-e')
    assert sparse_vector.kappa(0.1, 1.5, 9.0) == math.inf
    assert sparse_vector.kappa(0.1, 0.5, 0.4) == math.inf


def test_cost_is_free_of_the_queries_and_never_above_all_of_them_shown():
    assert epsilon(event(0.03, 10, 10**5)) == pytest.approx(epsilon(event(0.03, 10, 10**4)), 1e-6)
    few = event(0.03, 100, 5)
    assert epsilon(few) == pytest.approx(epsilon(few.full_release()), rel=1e-9)
    # large steps have no Renyi bound and cost what all noisy values cost
    large = event(2.0, 3, 4)
    assert epsilon(large) == pytest.approx(epsilon(Laplace(1.0, 1.0, 4)), rel=1e-9)


def test_pure_cost_is_that_of_every_query():
    found = account([event(0.01, 3, 70)], delta=0.0, relation=RELATION)
    assert found.epsilon == pytest.approx(0.7)


def test_composes_with_other_steps():
    sparse, normal = event(0.03147, 10, 10**4), Gaussian(20.0, 1.0)
    both = epsilon(sparse, normal)
    assert max(epsilon(sparse), epsilon(normal)) < both < epsilon(sparse) + epsilon(normal)
    assert delta_of([sparse, normal], epsilon=both, relation=RELATION) <= DELTA * 1.05
    assert epsilon(sparse, sparse) == pytest.approx(
        epsilon(SparseAnswers(1.0, sparse.record_norm, sparse.threshold, 10, 10**4, 2)), rel=1e-6
    )


@pytest.mark.parametrize(
    ("change", "key"),
    [({"threshold": 0.0}, "threshold"), ({"updates": 0}, "updates"), ({"queries": 0.5}, "queries")],
)
def test_bad_fields_are_named(change, key):
    facts = {"scale": 1.0, "record_norm": 1.0, "threshold": 2.0, "updates": 3, "queries": 4}
    with pytest.raises(InputError) as caught:
        SparseAnswers(**{**facts, **change})
    assert caught.value.key == key


def stream(trials=3, updates=2, queries=50, plan=None, **changes):
    event = SparseAnswers(0.5, 0.05, 3.0, updates, queries)
    seeds = [seed_sequence(4, "test", trial) for trial in range(trials)]
    return Gate(seeds, plan=plan).stream(event.change_fields(**changes), 1)


def test_one_draw_serves_test_and_answer_and_a_run_ends():
    asked = stream()
    for step in range(50):
        value = np.array([0.0, 10.0, 0.0 if step < 10 else -9.0])
        answer, far = asked.answer(value, np.zeros(3), step)
        assert np.all((np.abs(answer) > 3.0) == far)
        assert np.all(answer[~far] == 0.0)
        if step == 1:
            assert asked.has_ended.tolist() == [False, True, False]
    assert asked.has_ended.tolist() == [False, True, True]


def test_the_value_of_a_finished_run_is_not_looked_at():
    one, other = stream(1, 1), stream(1, 1)
    for asked in (one, other):
        asked.answer(np.array([50.0]), np.zeros(1), 0)
    first, _ = one.answer(np.array([70.0]), np.ones(1), 1)
    second, _ = other.answer(np.array([-70.0]), np.ones(1), 1)
    assert first.tolist() == second.tolist() == [1.0]


def test_nan_values_show_as_updates_and_end():
    asked = stream(1, 1)
    assert asked.answer(np.array([np.nan]), np.zeros(1), 0)[1].tolist() == [True]
    assert asked.has_ended.tolist() == [True]


def test_a_query_is_asked_once_and_of_the_right_shape():
    asked = stream(queries=2)
    asked.answer(np.zeros(3), np.zeros(3), 0)
    for step in (0, 2):
        with pytest.raises(PrivacyError):
            asked.answer(np.zeros(3), np.zeros(3), step)
    with pytest.raises(PrivacyError):
        asked.answer(np.zeros((3, 2)), np.zeros(3), 1)


@pytest.mark.parametrize(
    "change",
    [{"scale": 0.4}, {"record_norm": 0.1}, {"threshold": 2.0}, {"updates": 3}, {"queries": 51}],
)
def test_the_stream_must_be_an_event_of_the_plan(change):
    plan = ((SparseAnswers(0.5, 0.05, 3.0, 2, 50),), RELATION)
    stream(plan=plan)
    with pytest.raises(PrivacyError):
        stream(plan=plan, **change)


def test_shares_of_noise_are_laplace():
    """Far values are all shown; P(a right law fails) = 1e-6, and 5 % more noise does fail."""
    from scipy.stats import kstest

    trials = 100_000
    gate = ManyTrialsGate(seed_sequence(4, "test"), trials)
    asked = gate.stream(SparseAnswers(0.5, 0.05, 3.0, 10, 1), 1)
    answer, far = asked.answer(np.full(trials, 100.0), np.zeros(trials), 0)
    assert far.all()
    assert kstest((answer - 100.0) / 0.5, "laplace").pvalue > 1e-6
    assert kstest(1.05 * (answer - 100.0) / 0.5, "laplace").pvalue < 1e-6
