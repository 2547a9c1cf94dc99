"""Shuffled answers: the bound against enumeration, random protocols, 50 digits and known limits."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy.stats import binom

from dperm_cli.privacy.accounting import gaussian_profile, shuffling
from dperm_cli.privacy.accounting.shuffling import amplify, delta_of, find_local_epsilon


def enumerate_counts(local_epsilon, users, bit):
    """The law of (zeros, ones): a label of every user, one by one."""
    keep = math.exp(local_epsilon) / (1.0 + math.exp(local_epsilon))
    clone = 0.5 * math.exp(-local_epsilon)
    law = {(1 - bit, bit): keep, (bit, 1 - bit): 1.0 - keep}
    for _ in range(users - 1):
        moved: dict[tuple[int, int], float] = {}
        for (zeros, ones), chance in law.items():
            for step, share in (((1, 0), clone), ((0, 1), clone), ((0, 0), 1.0 - 2.0 * clone)):
                place = (zeros + step[0], ones + step[1])
                moved[place] = moved.get(place, 0.0) + chance * share
        law = moved
    return law


def hockey_stick(first, second, epsilon):
    """delta(epsilon) of two laws on a finite set."""
    places = set(first) | set(second)
    return sum(max(0.0, first.get(p, 0.0) - math.exp(epsilon) * second.get(p, 0.0)) for p in places)


@pytest.mark.parametrize("users", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("local_epsilon", [0.1, 1.0, 4.0])
def test_all_labels_one_by_one(users, local_epsilon):
    laws = [enumerate_counts(local_epsilon, users, bit) for bit in (0, 1)]
    for share in (0.0, 0.1, 0.3, 0.5, 0.8, 0.99):
        epsilon = share * local_epsilon
        bound = delta_of(local_epsilon, users, epsilon)
        for first, second in (laws, laws[::-1]):
            assert bound == pytest.approx(hockey_stick(first, second, epsilon), rel=1e-9, abs=1e-13)


def sum_in_digits(local_epsilon, users, epsilon):
    """The same hockey stick in 50 digits, over all numbers of clones."""
    with mpmath.workdps(50):
        share = mpmath.exp(-mpmath.mpf(local_epsilon))
        keep, price = 1 / (1 + share), mpmath.exp(mpmath.mpf(epsilon))
        total = mpmath.mpf(0)
        for c in range(users):
            weight = mpmath.binomial(users - 1, c) * share**c * (1 - share) ** (users - 1 - c)
            chance, before = mpmath.mpf(2) ** -c, mpmath.mpf(0)
            for k in range(c + 2):
                now = chance if k <= c else mpmath.mpf(0)
                first, second = keep * before + (1 - keep) * now, (1 - keep) * before + keep * now
                total += weight * max(first - price * second, 0)
                before, chance = now, chance * (c - k) / (k + 1)
        return total


DIGIT_CASES = [
    (0.1, 50, 0.01), (3.0, 60, 0.5), (3.0, 60, 2.9), (8.0, 60, 3.0), (2.0, 80, 0.0),
    (2.0, 100, 1.0), (1e-3, 50, 1e-4), (20.0, 40, 19.0), (1.0, 70, math.log(1.5)),
]  # fmt: skip


@pytest.mark.parametrize("case", DIGIT_CASES)
def test_the_bound_is_above_fifty_digits_and_near_them(case):
    """One-sided: rounding never takes the bound below the truth."""
    exact = sum_in_digits(*case)
    assert exact <= delta_of(*case) <= exact * (1 + mpmath.mpf("1e-11"))


def test_what_is_left_out_is_added(monkeypatch):
    """Windows and blocks that are far too small still give upper bounds."""
    case = (2.0, 90, 0.5)
    exact = sum_in_digits(*case)
    found = []
    for exponent in (0.5, 3.0, 12.0, 92.0):
        monkeypatch.setattr(shuffling, "TAIL_EXPONENT", exponent)
        found.append(delta_of(*case))
    assert min(found) >= exact
    assert found[0] > 10.0 * found[-1]
    for blocks in (1, 3, 20):
        monkeypatch.setattr(shuffling, "BLOCKS", (blocks, blocks))
        assert delta_of(*case) > found[-1]
    assert delta_of(*case) == pytest.approx(found[-1], rel=0.5)


def draw_channel(rng, inputs, outputs, local_epsilon):
    """Laws [inputs, outputs] whose chances are apart by a factor of e^epsilon_0 at most."""
    sizes = np.exp(local_epsilon / 2.0 * rng.choice([-1.0, 0.0, 0.3, 1.0], (inputs, outputs)))
    laws = sizes / np.sum(sizes, axis=1, keepdims=True)
    apart = np.max(np.log(np.max(laws, axis=0) / np.min(laws, axis=0)))
    return laws, float(apart)


@pytest.mark.parametrize("seed", range(6))
def test_no_random_protocol_in_random_order_exceeds_it(seed):
    """Three users, a channel that depends on place and on the answers before: all orders, all
    answers."""
    rng = np.random.default_rng(seed)
    outputs, records = 3, ((0, 2, 2), (1, 2, 2)) if seed % 2 else ((0, 2, 3), (1, 2, 3))
    channels: dict[tuple[int, ...], np.ndarray] = {}
    most = 0.0
    for length in range(3):
        for seen in itertools.product(range(outputs), repeat=length):
            channels[seen], apart = draw_channel(rng, 4, outputs, 2.0)
            most = max(most, apart)
    laws = []
    for people in records:
        law: dict[tuple[int, ...], float] = {}
        for order in itertools.permutations(people):
            for said in itertools.product(range(outputs), repeat=3):
                chance = math.prod(channels[said[:i]][order[i], said[i]] for i in range(3))
                law[said] = law.get(said, 0.0) + chance / 6.0
        laws.append(law)
    for share in (0.0, 0.2, 0.5, 0.8):
        bound = delta_of(most, 3, share * most)
        for first, second in (laws, laws[::-1]):
            assert hockey_stick(first, second, share * most) <= bound * (1.0 + 1e-12)
    assert hockey_stick(*laws, 0.0) > 0.02 * delta_of(most, 3, 0.0)


def shuffled_signs(local_epsilon, users, ones, bit):
    """The law of the number of ones that n users send by randomized response, exactly."""
    keep = 1.0 / (1.0 + math.exp(-local_epsilon))
    places = np.arange(users + 1)
    law = np.convolve(
        binom.pmf(places, ones, keep), binom.pmf(places, users - 1 - ones, 1.0 - keep)
    )[:users]
    own = (1.0 - keep, keep) if bit else (keep, 1.0 - keep)
    return np.convolve(law, own)


@pytest.mark.parametrize(("local_epsilon", "users"), [(0.5, 50), (1.0, 400), (3.0, 400)])
def test_randomized_response_is_within_it_and_not_far_below(local_epsilon, users):
    for share in (0.01, 0.1, 0.3):
        epsilon = share * local_epsilon
        exact = 0.0
        for ones in (0, users // 2, users - 1):
            laws = [shuffled_signs(local_epsilon, users, ones, bit) for bit in (0, 1)]
            for first, second in (laws, laws[::-1]):
                exact = max(exact, np.sum(np.maximum(first - math.exp(epsilon) * second, 0.0)))
        bound = delta_of(local_epsilon, users, epsilon)
        assert exact <= bound * (1.0 + 1e-9)
        # the count has 4 / (1 + e^-epsilon_0)^2 times the variance that the bound knows of
        assert exact >= delta_of(local_epsilon, 4 * users, epsilon)


def test_more_users_and_smaller_local_epsilons_are_better():
    for epsilon in (0.05, 0.5):
        by_users = [delta_of(1.0, users, epsilon) for users in (1, 2, 5, 20, 100, 1000, 10_000)]
        assert all(a > b for a, b in itertools.pairwise(by_users))
        levels = (0.6, 1.0, 2.0, 4.0, 8.0)
        by_level = [delta_of(level, 1000, epsilon) for level in levels]
        assert all(a < b for a, b in itertools.pairwise(by_level))


@pytest.mark.parametrize("local_epsilon", [0.2, 1.0, 3.0])
def test_many_users_have_the_limit_of_a_normal_law(local_epsilon):
    """Given c clones the counts differ by tanh(epsilon_0 / 2) in mean, with deviation sqrt(c)/2."""
    users, delta = 20_000, 1e-6
    clones = users * math.exp(-local_epsilon)
    mu = 2.0 * math.tanh(local_epsilon / 2.0) / math.sqrt(clones)
    limit = gaussian_profile.epsilon(delta, mu)
    assert amplify(local_epsilon, users, delta) == pytest.approx(limit, rel=0.02)


@pytest.mark.parametrize(("local_epsilon", "users"), [(0.5, 10_000), (2.0, 10_000), (4.0, 10**6)])
def test_the_printed_closed_form_is_larger(local_epsilon, users):
    """[FMT21, Thm 3.1], for epsilon_0 <= ln(n / (16 ln(2 / delta)))."""
    delta = 1.0 / users**2
    assert local_epsilon <= math.log(users / (16.0 * math.log(2.0 / delta)))
    size = math.exp(local_epsilon)
    spread = 8.0 * math.sqrt(size * math.log(4.0 / delta) / users) + 8.0 * size / users
    printed = math.log1p(math.tanh(local_epsilon / 2.0) * spread)
    found = amplify(local_epsilon, users, delta)
    assert printed / 4.0 < found < printed / 2.7


def test_the_ends_of_the_ranges():
    assert amplify(1.0, 1, 1e-12) == pytest.approx(1.0, rel=1e-9)  # one user hides behind nobody
    assert amplify(1.0, 10**6, 0.5) == 0.0
    assert amplify(20.0, 10**6, 1e-12) == 20.0
    assert amplify(1e-3, 10**5, 1e-10) < 1e-4
    assert 0.0 < delta_of(10.0, 10**9, 0.08) < 1e-18 < delta_of(10.0, 10**9, 0.07)
    assert find_local_epsilon(1.0, 1e-12, 1) == pytest.approx(1.0, rel=1e-9)
    assert find_local_epsilon(99.9, 0.5, 10) == shuffling.MOST_LOCAL
    assert delta_of(1.0, 10, 1.0) == delta_of(1.0, 10, 5.0) == 0.0


def test_both_searches_end_on_the_safe_side_and_agree():
    for users, delta in ((50, 1e-4), (10_000, 1e-8)):
        for epsilon in (0.3, 1.0, 3.0):
            local = find_local_epsilon(epsilon, delta, users)
            assert local >= epsilon
            assert delta_of(local, users, epsilon) <= delta
            assert delta_of(local * (1.0 + 1e-7), users, epsilon) > delta
            again = amplify(local, users, delta)
            assert delta_of(local, users, again) <= delta
            assert delta_of(local, users, again * (1.0 - 1e-7)) > delta
            assert again == pytest.approx(epsilon, rel=1e-7)


def test_the_worked_example_of_the_proof_page():
    counts, weights, left = shuffling._weigh_clones(1.0, 2)
    assert weights == pytest.approx([0.399576, 0.465088, 0.135335], abs=5e-7)
    alone = delta_of(1.0, 1, 0.5)
    given = shuffling._bound_given_clones(counts, 1.0, 0.5, alone)
    assert given == pytest.approx([0.287649, 0.143825, 0.0719123], rel=5e-6)
    assert (math.expm1(1.5)) / (math.expm1(1.0) * (1.0 + math.exp(0.5))) == pytest.approx(
        0.764996, abs=5e-7
    )
    assert left == 0.0
    assert delta_of(1.0, 3, 0.5) == pytest.approx(0.191561, abs=5e-7)
    mu = 2.0 * math.tanh(0.5) * math.exp(0.5) / 100.0
    assert gaussian_profile.epsilon(1e-6, mu) == pytest.approx(0.052992, abs=5e-7)
    for users, epsilon, local in (
        (1000, 0.182412, 2.72417),
        (10_000, 0.0530053, 4.43583),
        (10**6, 0.00433454, 8.49287),
    ):
        assert amplify(1.0, users, 1e-6) == pytest.approx(epsilon, rel=5e-6)
        assert find_local_epsilon(1.0, 1.0 / users**2, users) == pytest.approx(local, rel=5e-6)


def test_bad_values():
    for call in (
        lambda: delta_of(0.0, 5, 1.0),
        lambda: delta_of(101.0, 5, 1.0),
        lambda: delta_of(1.0, 0, 1.0),
        lambda: delta_of(1.0, 5, -0.1),
        lambda: delta_of(math.nan, 5, 0.5),
        lambda: amplify(1.0, 5, 0.0),
        lambda: amplify(1.0, 5, 1.0),
        lambda: find_local_epsilon(1.0, 1e-300, 5),
        lambda: find_local_epsilon(1.0, 1e-6, 10**10),
    ):
        with pytest.raises(ValueError, match=r"must be"):
            call()
