"""Channels of local privacy: what they send, tell and promise, by enumeration too."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from dperm_cli.audit.channel_loss import list_law, share
from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.loops import local_channels as loops
from dperm_cli.privacy import channels
from dperm_cli.privacy.channels import sign_bit
from dperm_cli.privacy.channels.capacity import capacity
from dperm_cli.privacy.channels.caps import PrivUnit, PrivUnitG, Split
from dperm_cli.privacy.events import Channel

LISTED = ("l_inf", "l_1")
EPSILONS = (0.01, 1.0, 5.0, 30.0)


def corners(shape, dim):
    if shape == "l_1":
        return np.vstack([np.eye(dim), -np.eye(dim)])
    return np.array(list(itertools.product((-1.0, 1.0), repeat=dim)))


def inside(channel, count, seed=0):
    """Random points of the unit ball, some on its surface."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((count, channel.dim))
    x /= np.linalg.norm(x, ord=channel.norm, axis=1, keepdims=True)
    x[::2] *= rng.uniform(0.0, 1.0, (len(x[::2]), 1))
    return x


def words(channel, count, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 2**64, (count, 2, channel.blocks), dtype=np.uint64)


def test_the_cube_in_ten_dimensions():
    found = channels.by_multiplier("l_inf", 10, 2.0)
    assert found.information == pytest.approx(1.30812, abs=5e-6)
    assert found.epsilon == pytest.approx(10.9861, abs=5e-5)


def test_the_cross_polytope_in_ten_dimensions():
    found = channels.by_multiplier("l_1", 10, 2.0)
    assert found.gain == pytest.approx(2.8995, abs=5e-5)
    assert found.information == pytest.approx(0.855868, abs=5e-7)
    assert found.epsilon == pytest.approx(5.79901, abs=5e-6)


def test_a_hundred_dimensions_and_one_nat_are_no_small_epsilon():
    """What information promises is an average: the epsilon beside it is 28.4."""
    found = channels.by_information("l_inf", 100, 1.0)
    assert found.epsilon == pytest.approx(28.4, abs=0.05)
    assert found.information == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("dim", [1, 2, 3, 7])
@pytest.mark.parametrize("multiplier", [1.05, 2.0, 9.0])
def test_formulas_of_the_propositions(dim, multiplier):
    """[DJW12, Prop. 1 and 2, Eq. 9], as they stand but for the unit of h."""
    cube = channels.by_multiplier("l_inf", dim, multiplier)
    p = 0.5 + 0.5 / multiplier
    entropy = -p * math.log(p) - (1.0 - p) * math.log(1.0 - p)
    assert cube.information == pytest.approx(dim * (math.log(2.0) - entropy), rel=1e-10)
    log = math.log((multiplier + 1.0) / (multiplier - 1.0))
    assert cube.epsilon == pytest.approx(dim * log, rel=1e-10)
    assert cube.second_moment == pytest.approx(dim * multiplier**2)
    cross = channels.by_multiplier("l_1", dim, multiplier)
    rest = 2.0 * dim - 2.0
    root = math.sqrt(rest**2 + 4.0 * (multiplier**2 - 1.0))
    gamma = math.log((rest + root) / (2.0 * (multiplier - 1.0)))
    assert cross.gain == pytest.approx(gamma, rel=1e-10)
    whole = math.exp(gamma) + math.exp(-gamma) + rest
    told = gamma * (math.exp(gamma) - math.exp(-gamma)) / whole
    told += math.log(2.0 * dim) - math.log(whole)
    assert cross.information == pytest.approx(told, rel=1e-9)
    assert cross.epsilon == pytest.approx(2.0 * gamma, rel=1e-10)
    assert cross.second_moment == pytest.approx(multiplier**2)


@pytest.mark.parametrize("shape", LISTED)
@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("multiplier", [1.2, 2.0, 6.0])
def test_information_is_the_capacity_over_the_corners(shape, dim, multiplier):
    """Blahut-Arimoto's bracket holds it."""
    found = channels.by_multiplier(shape, dim, multiplier)
    low, high = capacity(found.law(corners(shape, dim)))
    assert low - 1e-9 <= found.information <= high + 1e-9
    assert high - low < 1e-6


def test_interior_points_cannot_tell_more():
    for shape in LISTED:
        found = channels.by_multiplier(shape, 2, 2.0)
        x = np.vstack([corners(shape, 2), inside(found, 40)])
        low, _ = capacity(found.law(x))
        assert low <= found.information + 1e-9


@pytest.mark.parametrize("shape", LISTED)
@pytest.mark.parametrize("dim", range(1, 11))
def test_unbiased_and_within_epsilon_by_enumeration(shape, dim):
    """Of all answers, for corners and points inside, in closed form and as the kernel has it."""
    for epsilon in EPSILONS:
        found = channels.by_epsilon(shape, dim, epsilon)
        assert found.epsilon <= epsilon
        assert found.epsilon == pytest.approx(epsilon, rel=1e-14)
        ends = np.vstack([corners(shape, dim), inside(found, 30, dim)])
        law = found.law(ends)
        np.testing.assert_allclose(np.sum(law, axis=1), 1.0, atol=1e-12)
        unit = found.outputs() / found.multiplier
        # in units of an answer: what rounding a chance can do
        assert np.max(np.abs(law @ unit - ends / found.multiplier)) < 1e-12
        ratios = np.log(np.max(law, axis=0)) - np.log(np.min(law, axis=0))
        assert 0.99 * epsilon <= np.max(ratios) <= epsilon * (1.0 + 1e-10) + 1e-13
        coding = found.coding()
        inputs, answers, exact = list_law(coding, dim)
        assert np.max(np.abs(np.exp(exact) @ answers - inputs)) < 1e-12 * found.multiplier
        assert np.max(exact.max(axis=0) - exact.min(axis=0)) <= epsilon + 2e-15 * dim
        assert coding.size == pytest.approx(found.multiplier, rel=1e-9)


@pytest.mark.parametrize("shape", channels.SHAPES)
@pytest.mark.parametrize("dim", [1, 4, 10])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 8.0, 40.0])
def test_the_exact_loss_is_the_claim(shape, dim, epsilon):
    """Tightness at least 0.99: the channel spends what it is charged for, and no more."""
    event = Channel(channels.by_epsilon(shape, dim, epsilon).epsilon, 1, shape, dim)
    assert 0.99 <= share(event) <= 1.0 + 1e-11


@pytest.mark.parametrize("gain", [1e-9, 1e-6, 0.01, 0.99, 1.0, 7.0, 21.0, 22.0, 30.0, 60.0])
def test_integers_are_on_the_private_side(gain):
    """Ratios of chances as they are compared with words of 64 bits, to all digits."""
    import mpmath

    with mpmath.workdps(60):
        most = mpmath.exp(2 * mpmath.mpf(gain))
        turned = sign_bit.flip_chance(gain)
        assert 1 <= turned <= 2**63
        assert mpmath.mpf(2**64 - turned) / turned <= most
        for dim in (1, 2, 5, 1000):
            same, back, others = sign_bit.corner(gain, dim)
            assert same + back + others == 2**64
            assert min(same, back) >= 1
            assert mpmath.mpf(same) / back <= most
            each = mpmath.mpf(others) / (2 * dim - 2) if dim > 1 else mpmath.mpf(same)
            assert mpmath.mpf(same) / each <= most
            assert each / back <= most
            mean = mpmath.sinh(gain) / (mpmath.cosh(gain) + dim - 1)
            got = (same - back) / mpmath.mpf(2) ** 64
            # what is lost to privacy; the size of an answer follows the integers
            assert abs(got - mean) <= 1e-15


@pytest.mark.parametrize("dim", [10**6, 10**7, 2 * 10**7, 10**8])
@pytest.mark.parametrize("gain", [1e-9, 3e-8, 1e-5, 1e-3, 0.5, 20.0, 45.0])
def test_corners_are_private_in_many_dimensions(dim, gain):
    """Chances rounded up 2 d - 2 times over left the corner itself less than each other one."""
    same, back, others = sign_bit.corner(gain, dim)
    assert same + back + others == 1 << 64
    assert same > back > 0
    # of 2^64 words, a part of ``others`` falls on each: the same but for one word in so many
    low = others * ((1 << 64) // (2 * dim - 2)) / 2.0**64
    high = others * ((1 << 64) // (2 * dim - 2) + 1) / 2.0**64
    assert math.log(max(same, high)) - math.log(min(back, low)) <= 2.0 * gain + 1e-14
    assert math.log(high / same) <= 2.0 * gain  # close numbers: to more digits
    assert math.log(same / back) <= 2.0 * gain * (1.0 + 1e-12) + 1e-15


def test_a_wrong_channel_would_be_noticed():
    """A turned sign 5 % too rare is beyond the claim."""
    coding = channels.by_epsilon("l_inf", 3, 2.0).coding()
    rare = coding._replace(flip=np.uint64(int(0.95 * int(coding.flip))))
    for made, private in ((coding, True), (rare, False)):
        _, _, law = list_law(made, 3)
        assert (np.max(law.max(axis=0) - law.min(axis=0)) <= 2.0) == private


def test_leading_terms():
    """d / (2 M^2), and not d / M^2 for the cube; the next term is d / (12 M^4)."""
    for shape in LISTED:
        for dim in (1, 3, 20):
            found = channels.by_multiplier(shape, dim, 3000.0)
            assert found.information == pytest.approx(found.expansion, rel=1e-5)
            assert found.expansion == pytest.approx(dim / (2.0 * 3000.0**2))
    found = channels.by_multiplier("l_inf", 5, 10.0)
    expected = 5 * (1 / (2 * 10**2) + 1 / (12 * 10**4) + 1 / (30 * 10**6))
    assert found.information == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("shape", channels.SHAPES)
@pytest.mark.parametrize("dim", [1, 3, 50])
def test_bijections_come_back(shape, dim):
    for epsilon in (1e-4, 0.3, 3.0, 20.0):
        first = channels.by_epsilon(shape, dim, epsilon)
        again = channels.by_multiplier(shape, dim, first.multiplier)
        told = channels.by_information(shape, dim, first.information)
        # at large gains M and I are flat
        slack = 1e-9 if epsilon < 5.0 else 1e-3
        assert again.gain == pytest.approx(first.gain, rel=slack)
        assert told.gain == pytest.approx(first.gain, rel=slack)
        assert again.multiplier >= first.multiplier
        assert told.information <= first.information
    assert channels.by_multiplier("l_inf", dim, 3.0).gain == pytest.approx(math.atanh(1.0 / 3.0))


@pytest.mark.parametrize("corners_", [1.0, 2.0, 30.0, 1e5])
def test_information_of_a_corner_loses_no_digits(corners_):
    import mpmath

    with mpmath.workdps(60):
        for gain in (1e-8, 1e-3, 0.5, 3.0, 16.0, 17.0, 40.0, 400.0):
            g, c = mpmath.mpf(gain), mpmath.mpf(corners_)
            whole = mpmath.cosh(g) + c - 1
            exact = g * mpmath.sinh(g) / whole - mpmath.log(whole / c)
            assert sign_bit.information(gain, corners_) == pytest.approx(float(exact), rel=1e-12)
            exact_mean = mpmath.sinh(g) / whole
            assert sign_bit.mean(gain, corners_) == pytest.approx(float(exact_mean), rel=1e-14)


@pytest.mark.parametrize("shape", LISTED)
@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_samples_have_the_law(shape, dim, epsilon):
    """chi2 over all answers for four inputs; false alarm 1e-6 for each, with fixed seeds."""
    found = channels.by_epsilon(shape, dim, epsilon)
    for number, x in enumerate(np.vstack([corners(shape, dim)[:1], inside(found, 3, 7)])):
        count = 20_000
        z = found.sample(np.tile(x, (count, 1)), words(found, count, number))
        seen = np.array([np.sum(np.all(np.isclose(z, o), axis=1)) for o in found.outputs()])
        assert seen.sum() == count
        expected = count * found.law(x)[0]
        statistic = np.sum((seen - expected) ** 2 / expected)
        limit = stats.chi2.isf(1e-6, len(seen) - 1)
        assert statistic < limit
        # and would notice another channel
        other = count * channels.by_epsilon(shape, dim, 1.4 * epsilon).law(x)[0]
        if number == 0:
            assert np.sum((seen - other) ** 2 / other) > limit


@pytest.mark.parametrize("dim", [1, 2, 5, 20])
def test_the_ball_is_unbiased_and_private(dim):
    """Mean within 5 standard errors (5.7e-7 a coordinate); the sides as often as they may be."""
    found, count = channels.by_epsilon("l_2", dim, 2.0), 60_000
    for x in (inside(found, 2, 3)[1], inside(found, 2, 3)[0]):
        z = found.sample(np.tile(x, (count, 1)), words(found, count))
        np.testing.assert_allclose(np.linalg.norm(z, axis=1), found.multiplier, rtol=1e-12)
        error = np.std(z, axis=0) / math.sqrt(count)
        assert np.all(np.abs(np.mean(z, axis=0) - x) < 5.0 * error)
        side = np.mean(z @ x > 0.0)
        chance = 0.5 + 0.5 * np.linalg.norm(x) * math.tanh(found.gain)
        assert side == pytest.approx(chance, abs=5.0 * 0.5 / math.sqrt(count))
    # all of the sphere's information is in the side
    assert found.information == pytest.approx(channels.by_epsilon("l_inf", 1, 2.0).information)


@pytest.mark.parametrize("shape", channels.SHAPES)
def test_distance_is_the_largest_log_ratio(shape):
    found = channels.by_epsilon(shape, 3, 1.5)
    x, other = inside(found, 50, 1), inside(found, 50, 2)
    distance = found.distance(x, other)
    assert np.all(distance <= 1.5 * (1.0 + 1e-12))
    assert np.all(found.distance(x, x) < 1e-12)
    if shape in LISTED:
        ratio = np.abs(np.log(found.law(x) / found.law(other)))
        np.testing.assert_allclose(distance, np.max(ratio, axis=1), rtol=1e-9)
    ends = corners("l_1", 3)
    assert np.max(found.distance(ends, -ends)) == pytest.approx(
        1.5 / (3.0 if shape == "l_inf" else 1.0)
    )


def test_what_is_too_long_or_no_number_is_shortened():
    for shape in channels.SHAPES:
        found = channels.by_epsilon(shape, 4, 3.0)
        drawn = words(found, 500)
        direction = inside(found, 2, 5)[1]
        long = found.sample(np.tile(1e100 * direction, (500, 1)), drawn)
        short = found.sample(np.tile(direction, (500, 1)), drawn)
        # the caps turn with the vector, to its last digits
        np.testing.assert_allclose(long, short, rtol=0.0 if found.compiled else 1e-9)
        nothing = found.sample(np.zeros((500, 4)), drawn)
        for strange in (np.nan, np.inf, -np.inf):
            x = np.zeros((500, 4))
            x[:, 1] = strange
            np.testing.assert_array_equal(found.sample(x, drawn), nothing)


@pytest.mark.parametrize("shape", channels.SHAPES)
@pytest.mark.parametrize("size", [1e-150, 1e-160, 3e-162, 1e-170, 5e-324])
def test_an_answer_does_not_tell_that_a_vector_is_short(shape, size):
    """Squares of such entries lose their digits; an answer of a cap had another length then."""
    found = channels.by_epsilon(shape, 3, 4.0)
    drawn = words(found, 500)
    x = np.tile([[size, 0.5 * size, 0.0]], (500, 1))
    short = found.sample(x, drawn)
    where = x / size / math.sqrt(1.25)
    expected = found.sample(1e-15 * where / np.linalg.norm(where, axis=1, keepdims=True), drawn)
    if shape == "privunit":
        np.testing.assert_allclose(np.linalg.norm(short, axis=1), found.multiplier, rtol=1e-12)
    if not found.compiled and size > 1e-320:  # there the direction has its digits
        np.testing.assert_allclose(short, expected, atol=1e-9)
    elif found.compiled:
        np.testing.assert_allclose(np.abs(short), np.abs(expected), rtol=1e-9)


def test_refusals():
    with pytest.raises(Unsupported, match="no limit"):
        channels.by_information("l_inf", 3, 3 * math.log(2.0))
    with pytest.raises(Unsupported, match="noise to all"):
        channels.by_epsilon("l_inf", 1000, 1e-7)
    with pytest.raises(Unsupported, match="noise to all"):
        channels.by_information("l_1", 5, 1e-30)
    for bad in (0.0, -1.0, math.nan, math.inf, True, "1"):
        with pytest.raises(InputError):
            channels.by_epsilon("l_1", 3, bad)
        with pytest.raises(InputError):
            channels.by_information("l_1", 3, bad)
    with pytest.raises(InputError):
        channels.by_multiplier("l_1", 3, 1.0)
    with pytest.raises(InputError):
        channels.by_epsilon("l_3", 3, 1.0)
    with pytest.raises(ValueError, match="words"):
        loops.send(channels.by_epsilon("l_1", 3, 1.0).coding(), np.zeros((2, 3)), np.zeros(3))


# --- the channels of caps -------------------------------------------------------------------------

CAPS = ("privunit", "privunit_g")


@pytest.mark.parametrize(
    ("kind", "dim", "epsilon", "share", "mean", "error"),
    [
        (PrivUnit, 10, 4.0, 0.38, 0.462515, 3.67463),
        (PrivUnit, 1000, 8.0, 0.28, 0.086595, 132.357),
        (PrivUnitG, 10, 4.0, 0.36, None, 4.33151),
        (PrivUnitG, 1000, 8.0, 0.28, None, 132.923),
    ],
)
def test_the_error_of_a_cap_at_a_given_split(kind, dim, epsilon, share, mean, error):
    """Numbers of another program, to their digits; the best split is no worse."""
    split = Split(share * epsilon, (1.0 - share) * epsilon)
    if mean is not None:
        assert kind.find_mean(dim, split) == pytest.approx(mean, abs=6e-7)
    assert kind.find_second_moment(dim, split) - 1.0 == pytest.approx(error, rel=3e-6)
    best = kind(dim, epsilon / 2.0)
    assert best.second_moment <= kind.find_second_moment(dim, split)
    for off in (0.99, 1.01):
        near = Split(off * best.split.side, epsilon - off * best.split.side)
        assert best.second_moment < kind.find_second_moment(dim, near)


@pytest.mark.parametrize("shape", CAPS)
@pytest.mark.parametrize("dim", [2, 5, 40])
def test_the_mean_of_a_cap_by_integration(shape, dim):
    """Of the component along the vector: its law is known, and cut at the edge."""
    found = channels.by_epsilon(shape, dim, 3.0)
    if shape == "privunit":
        law = stats.beta((dim - 1) / 2, (dim - 1) / 2, loc=-1.0, scale=2.0)
    else:
        law = stats.norm(scale=1.0 / math.sqrt(dim))
    edge, (inside, outside) = found.edge[0], found.split.densities
    ends = law.support() if shape == "privunit" else (-12.0, 12.0)
    above = quad(lambda t: t * law.pdf(t), edge, ends[1])[0]
    below = quad(lambda t: t * law.pdf(t), ends[0], edge)[0]
    assert law.sf(edge) == pytest.approx(found.split.mass, rel=1e-10)
    mean = inside * above + outside * below
    assert found.find_mean(dim, found.split) == pytest.approx(mean, rel=1e-7)
    if shape == "privunit_g":
        square = inside * quad(lambda t: t * t * law.pdf(t), edge, ends[1])[0]
        square += outside * quad(lambda t: t * t * law.pdf(t), ends[0], edge)[0]
        whole = (square + (dim - 1.0) / dim) / mean**2
        assert found.second_moment == pytest.approx(whole, rel=1e-7)


@pytest.mark.parametrize("shape", CAPS)
@pytest.mark.parametrize("dim", [1, 2, 5, 20])
def test_caps_are_unbiased_and_private(shape, dim):
    """Means within 5 standard errors, squares within 5; densities within e^epsilon."""
    found, count = channels.by_epsilon(shape, dim, 2.0), 60_000
    most = math.exp(2.0 * (1.0 + 1e-12))
    for x in inside(found, 2, 3):
        z = found.sample(np.tile(x, (count, 1)), words(found, count))
        error = np.std(z, axis=0) / math.sqrt(count)
        assert np.all(np.abs(np.mean(z, axis=0) - x) < 5.0 * error + 1e-12)
        square = np.sum(z**2, axis=1)
        slack = 5.0 * np.std(square) / math.sqrt(count) + 1e-9 * found.second_moment
        assert abs(np.mean(square) - found.second_moment) < slack
        ratio = found.density(np.tile(x, (count, 1)), z)
        other = found.density(np.tile(-x, (count, 1)), z)
        assert np.max(ratio / other) <= most
        # E of 1 / density is the mass of the law that depends on no input
        assert np.mean(1.0 / ratio) == pytest.approx(
            1.0, abs=5.0 * np.std(1.0 / ratio) / math.sqrt(count)
        )


@pytest.mark.parametrize("shape", CAPS)
def test_a_cap_of_another_size_would_be_noticed(shape, monkeypatch):
    """Answers from a cap of half the mass are beyond the claim."""
    event = Channel(2.0, 1, shape, 5)
    assert 0.99 <= share(event) <= 1.0 + 1e-11
    kept = channels.by_epsilon(shape, 5, 2.0).split
    monkeypatch.setattr(Split, "mass", property(lambda self: 0.5 / (1.0 + math.exp(self.size))))
    assert kept.mass < 0.5
    assert share(event) > 1.05


def test_the_worked_example_of_the_proof_page():
    split = Split(1.52, 2.48)
    assert 1.0 - split.flip / 2.0**64 == pytest.approx(0.820538, abs=5e-7)
    assert split.mass == pytest.approx(0.0772722, abs=5e-8)
    assert split.tilt == pytest.approx(10.4243, abs=5e-5)
    assert split.tilt == pytest.approx(
        (1.0 - math.exp(-4.0)) * (1.0 + math.exp(2.48)) / (1.0 + math.exp(-1.52))
    )
    mean = PrivUnit.find_mean(10, split)
    assert mean / split.tilt == pytest.approx(0.0443689, abs=5e-8)
    assert mean == pytest.approx(0.462515, abs=5e-7)
    best = PrivUnit(10, 2.0)
    assert best.split.side == pytest.approx(1.50206, abs=5e-6)
    assert best.second_moment - 1.0 == pytest.approx(3.67430, abs=5e-6)
    assert PrivUnitG(10, 2.0).second_moment - 1.0 == pytest.approx(4.32991, abs=5e-6)
    half = channels.by_epsilon("l_2", 10, 4.0)
    assert half.second_moment - 1.0 == pytest.approx(15.0791, abs=5e-5)


def test_a_cap_is_never_worse_than_the_half_sphere():
    for dim in (1, 2, 10, 1000):
        for epsilon in (0.1, 1.0, 4.0, 16.0):
            cap = channels.by_epsilon("privunit", dim, epsilon).second_moment
            assert cap <= channels.by_epsilon("l_2", dim, epsilon).second_moment * (1.0 + 1e-12)


@pytest.mark.parametrize("shape", CAPS)
def test_what_a_cap_does_not_offer(shape):
    found = channels.by_epsilon(shape, 3, 1.0)
    for call in (found.outputs, lambda: found.law(np.zeros(3))):
        with pytest.raises(ValueError, match="continuum"):
            call()
    with pytest.raises(Unsupported, match="no compiled kernel"):
        found.coding()
    with pytest.raises(ValueError, match="words"):
        found.sample(np.zeros(3), np.zeros((1, 2, 1), np.uint64))
    assert not Channel(1.0, 1, shape, 3).discrete


def test_printed_rounding_is_biased_inside_the_ball():
    """|x_j| / |x|_1 has mean x / |x|_1: the paper's rounding is right on the sphere alone."""
    found = channels.by_epsilon("l_1", 2, 3.0)
    x = np.array([[0.3, 0.0]])
    printed = found.law(x / np.sum(np.abs(x)))  # what sampling from x / |x|_1 does
    assert (printed @ found.outputs())[0, 0] == pytest.approx(1.0)
    assert (found.law(x) @ found.outputs())[0, 0] == pytest.approx(0.3)
