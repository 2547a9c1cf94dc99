"""The counter-based normals: published vectors, purity, accuracy, law."""

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from dperm_cli.loops import gaussian_noise

FALSE_ALARM = 1e-6


def keys(count: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**64, (count, 2), dtype=np.uint64)


def plain_philox(counter, key, rounds):
    """Philox4x32 in Python integers."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(rounds):
        a, b = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (b >> 32) ^ c1 ^ k0, b & 0xFFFFFFFF, (a >> 32) ^ c3 ^ k1, a & 0xFFFFFFFF
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0, c1, c2, c3


ZEROS, ONES = ((0,) * 4, (0,) * 2), ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2)
DIGITS = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0)


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        (ZEROS, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        (ONES, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (DIGITS, (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
    ],
)
def test_published_vectors(inputs, expected):
    """The plain version reproduces the published 10-round vectors, the compiled one agrees at 7."""
    assert plain_philox(*inputs, rounds=10) == expected
    first, second = gaussian_noise.philox(*(np.uint64(w) for part in inputs for w in part))
    c0, c1, c2, c3 = plain_philox(*inputs, rounds=7)
    assert (int(first), int(second)) == (c0 | c1 << 32, c2 | c3 << 32)


def test_words_name_every_counter_once():
    """Key, step and block all matter, in every one of their 64, 64, 64 and 32 bits."""
    base = [np.uint64(v) for v in (11, 13, 17, 19)]
    seen = {tuple(map(int, gaussian_noise.words(*base)))}
    for position, bits in enumerate((64, 64, 64, 32)):
        for bit in range(bits):
            changed = list(base)
            changed[position] = np.uint64(int(base[position]) ^ (1 << bit))
            seen.add(tuple(map(int, gaussian_noise.words(*changed))))
    # a flip of key word 1 below bit 32 equals a flip of the step 32 bits up: 32 shared values
    assert len(seen) == 1 + 64 + 64 + 64 + 32 - 32


def test_pure_function_of_key_step_coordinate():
    k = keys(3)
    for dim in (1, 2, 7, 10, 3000):
        whole = gaussian_noise.normals(k, 0, 40, dim)
        assert whole.shape == (3, 40, dim)
        part = gaussian_noise.normals(k[1:2], 23, 9, dim)
        assert part.tobytes() == np.ascontiguousarray(whole[1:2, 23:32]).tobytes()


def test_steps_beyond_32_bits():
    late = gaussian_noise.normals(keys(1), 2**32 - 1, 2, 4)
    assert late[0, 1].tobytes() == gaussian_noise.normals(keys(1), 2**32, 1, 4)[0, 0].tobytes()
    assert not np.array_equal(late[0, 1], gaussian_noise.normals(keys(1), 0, 1, 4)[0, 0])


def test_extreme_words_give_finite_normals():
    top = np.uint64(2**64 - 1)
    assert gaussian_noise.unit(top) == 2.0**-52
    assert gaussian_noise.unit(np.uint64(0)) == 1.0
    assert gaussian_noise.radius(np.uint64(0)) == 0.0
    assert gaussian_noise.radius(top) == pytest.approx(math.sqrt(128 * math.log(2)), rel=1e-15)
    assert gaussian_noise.radius(np.uint64(2**64 - 2)) == pytest.approx(
        math.sqrt(126 * math.log(2))
    )


def test_minus_log_accuracy():
    rng = np.random.default_rng(0)
    points = np.r_[rng.random(500), 2.0 ** -rng.uniform(0, 64, 500), 1 - 2.0**-52, 1 - 2.0**-30]
    exact = np.array([float(-mpmath.log(mpmath.mpf(u))) for u in points])
    ours = np.array([gaussian_noise.minus_log(u) for u in points])
    assert np.max(np.abs(ours / exact - 1)) < 4e-16


def test_half_turn_accuracy():
    points = np.r_[np.linspace(-0.5, 0.5, 999), 0.25, 1e-12]
    ours = np.array([gaussian_noise.half_turn(t) for t in points])
    angles = [mpmath.pi * mpmath.mpf(t) for t in points]
    exact = np.array([(float(mpmath.cos(a)), float(mpmath.sin(a))) for a in angles])
    assert np.max(np.abs(ours - exact)) < 4e-16


def chi2_p(sample: np.ndarray, bins: int = 256) -> float:
    """p-value of chi-square over bins of equal mass under N(0,1)."""
    edges = stats.norm.ppf(np.arange(1, bins) / bins)
    counts = np.bincount(np.searchsorted(edges, sample), minlength=bins)
    return stats.chisquare(counts).pvalue


@pytest.mark.stat
def test_marginal_law():
    """Chi-square over 256 bins, false-alarm rate 1e-6; a scale off by 1.05 or a shift fails it."""
    z = gaussian_noise.normals(keys(4), 0, 50_000, 5).ravel()
    assert chi2_p(z) > FALSE_ALARM
    assert chi2_p(1.05 * z) < FALSE_ALARM
    assert chi2_p(z / 1.05) < FALSE_ALARM
    assert chi2_p(z + 0.02) < FALSE_ALARM


@pytest.mark.stat
@pytest.mark.parametrize("threshold", [3.0, 4.0])
def test_tails(threshold):
    """Exceedances are binomial (false-alarm rate 1e-6); a scale off by 1.05 fails it."""
    z = np.abs(gaussian_noise.normals(keys(2, 3), 0, 4000, 1000).ravel())
    mass = 2 * stats.norm.sf(threshold)

    def p_value(sample):
        count = int(np.sum(sample > threshold))
        return 2 * min(
            stats.binom.cdf(count, z.size, mass), stats.binom.sf(count - 1, z.size, mass)
        )

    assert p_value(z) > FALSE_ALARM
    assert p_value(1.05 * z) < FALSE_ALARM


@pytest.mark.stat
def test_neighbours_are_uncorrelated():
    """Correlations of values, squares and products between coordinates of a pair, steps, and
    keys that differ by one: 15 z-scores, each beyond 5.7 with probability 1.2e-8. A correlation
    of 0.02 fails it."""
    k = np.array([[5, 9], [6, 9], [5, 10], [5 + 2**32, 9], [5, 9 + 2**32]], np.uint64)
    z = gaussian_noise.normals(k, 0, 200_001, 2)
    base = z[0, :-1, 0]
    others = [z[0, :-1, 1], z[0, 1:, 0], *(z[j, :-1, 0] for j in range(1, 5))]

    def scores(a, b):
        pairs = (a, b), (a * a - 1, b * b - 1), (np.abs(a) - math.sqrt(2 / math.pi), b)
        return [np.mean(u * v) / math.sqrt(np.mean(u * u * (v * v)) / len(u)) for u, v in pairs]

    assert max(abs(s) for b in others for s in scores(base, b)) < 5.7
    assert max(abs(s) for s in scores(base, others[0] + 0.02 * base)) > 5.7


@pytest.mark.stat
def test_direction_of_a_pair_is_uniform():
    """Chi-square of the angle over 64 bins (false-alarm rate 1e-6); a folded half-plane fails."""
    z = gaussian_noise.normals(keys(1, 4), 0, 200_000, 2)[0]
    for point, uniform in ((z, True), (np.abs(z[:, :1]) * [1, 0] + z * [0, 1], False)):
        angle = np.arctan2(point[:, 1], point[:, 0])
        counts = np.histogram(angle, bins=64, range=(-math.pi, math.pi))[0]
        assert (stats.chisquare(counts).pvalue > FALSE_ALARM) == uniform
