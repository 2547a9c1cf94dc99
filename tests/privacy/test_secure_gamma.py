"""Noise of a Gamma norm on a grid: bits read lazily, rounded exactly, and of the law it claims."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import stats

from dperm_cli.core.errors import PrivacyError
from dperm_cli.privacy import secure_gamma, secure_noise
from dperm_cli.privacy.bit_strings import BitString, draw_strings
from dperm_cli.privacy.events import GammaNorm
from dperm_cli.privacy.gate import Gate
from dperm_cli.privacy.secure_grid import Grid, grid_for, put_on_grid
from dperm_cli.privacy.secure_noise import Uniform
from tests.privacy._secure import off_grid, source

LEVEL = 1e-6


def string(whole, words, negative=0):
    """A number whose bits are these words, and then none: asking for more fails."""
    return BitString(whole, Uniform(iter(words)), negative)


def exact_size(radii, axes, ratio):
    """ratio R Z_j / |Z| to 80 digits, from the first three words of every string."""
    with mpmath.workdps(80):
        numbers = [[mpmath.mpf(s.head(3)) / 2**192 for s in part] for part in (radii, axes)]
        norm = mpmath.sqrt(sum(z * z for z in numbers[1]))
        return [
            mpmath.nint(mpmath.floor(ratio * sum(numbers[0]) * z / norm + 0.5)) for z in numbers[1]
        ]


@pytest.mark.parametrize("dim", [1, 2, 7])
@pytest.mark.parametrize("ratio", [2.0**8 + 1 / 3, 1.37 * 2.0**30, 0.999 * 2.0**45])
def test_every_coordinate_is_the_rounded_real_number(dim, ratio):
    rng = np.random.default_rng(dim)
    mantissa, shift = secure_noise.split_ratio(ratio)
    for _ in range(40):
        words = rng.integers(0, 2**64, (2 * dim, 3), dtype=np.uint64).tolist()
        wholes, signs = rng.integers(0, 4, 2 * dim).tolist(), rng.integers(0, 2, dim).tolist()
        radii = [string(wholes[j], words[j]) for j in range(dim)]
        axes = [string(wholes[dim + j], words[dim + j], signs[j]) for j in range(dim)]
        drawn = secure_gamma.round_vector(radii, axes, mantissa, shift)
        assert drawn == [
            -int(size) if sign else int(size)
            for size, sign in zip(exact_size(radii, axes, ratio), signs, strict=True)
        ]


@pytest.mark.parametrize(("later", "up"), [(0, False), (2**64 - 1, True)])
def test_more_bits_of_the_same_strings_decide_where_the_first_do_not(later, up):
    """In one dimension the size is R: one between two 64-bit values where the result jumps."""
    mantissa, shift = secure_noise.split_ratio(1.37 * 2.0**30)
    jump = (2 * 5_000_000 - 1) << (63 + shift)
    first = jump // mantissa
    radius, axis = string(0, [first, later, later, later]), string(1, [5, 6, 7, 8], negative=1)
    drawn = secure_gamma.round_vector([radius], [axis], mantissa, shift)
    assert drawn == [-5_000_000 + (not up)]
    # one word more of each, after the first, and the first is what it was
    assert radius.fraction._digits == [first, later]
    assert axis.fraction._digits == [5, 6]


def test_one_word_is_enough_nearly_always():
    """An end rounded up by one unit too much would never decide."""
    rng = np.random.default_rng(0)
    mantissa, shift = secure_noise.split_ratio(2.0**30)
    for _ in range(200):
        words = rng.integers(0, 2**64, 20, dtype=np.uint64).tolist()
        radii, axes = ([string(1, [w]) for w in part] for part in (words[:10], words[10:]))
        assert len(secure_gamma.round_vector(radii, axes, mantissa, shift)) == 10


def test_an_axis_of_zero_bits_has_no_bound_above():
    mantissa, shift = secure_noise.split_ratio(2.0**10)
    drawn = secure_gamma.round_vector(
        [string(1, [0, 0, 0])], [string(0, [0, 5, 0], 0)], mantissa, shift
    )
    assert drawn == [1024]


@pytest.mark.parametrize("seed", [1, 2])
def test_in_one_dimension_it_is_laplace_noise(seed):
    """P(0) = 1 - e^(-g / 2 s), P(k) = sinh(g / 2 s) e^(-|k| g / s) at s / g = 2, not at 2.1."""
    count = 100_000
    radii = draw_strings("laplace", count, source(seed))
    axes = draw_strings("gaussian", count, source(seed + 100))
    expected = np.array([0.22120, 0.15322, 0.02074])

    def level(mantissa, shift):
        drawn = np.array(
            [
                secure_gamma.round_vector([r], [z], mantissa, shift)[0]
                for r, z in zip(radii, axes, strict=True)
            ]
        )
        counts = [np.sum(drawn == k) for k in (0, 1, 5)]
        tests = [stats.binomtest(int(c), count, q) for c, q in zip(counts, expected, strict=True)]
        assert abs(np.sum(drawn == -1) - counts[1]) < 6 * np.sqrt(2 * counts[1])
        return 3 * min(test.pvalue for test in tests)

    assert np.isclose(-np.expm1(-0.25), 0.22120, atol=5e-6)
    assert np.allclose(np.sinh(0.25) * np.exp([-0.5, -2.5]), [0.15322, 0.02074], atol=5e-6)
    assert level(1 << 52, 51) > LEVEL
    assert level(int(1.05 * 2**52), 51) < LEVEL


def test_a_tie_inside_a_draw_is_decided_by_longer_strings():
    """The same words as in the tests of the other noises: x and z share 64 bits."""
    x, top, sign = 2**63 + 12345, 2**64 - 1, 2**63
    (drawn,) = draw_strings("laplace", 1, source(first=[x, x, 2, 1, sign]))
    assert (drawn.whole, drawn.negative, drawn.head(1)) == (0, 1, x)
    assert drawn.fraction._digits[:2] == [x, 1]  # what was compared is kept
    (gone,) = draw_strings("laplace", 1, source(first=[x, x, 1, 2, top, sign]))
    assert gone.whole >= 1


def test_words_that_run_out_are_read_again_with_more():
    pool = np.random.default_rng(4).integers(0, 2**64, 20_000, dtype=np.uint64)
    served = 0

    def trickle(count):
        nonlocal served
        served += min(count, 40)
        return pool[served - min(count, 40) : served]

    def seen(words):
        drawn = draw_strings("gaussian", 300, words)
        return [(one.whole, one.head(1), one.negative) for one in drawn]

    assert seen(trickle) == seen(source(first=pool))


def test_every_output_of_the_gate_is_on_the_grid_and_pays_for_the_rounding():
    event = GammaNorm(100.0, 0.5, count=2)
    grid = grid_for([event], 500.0)
    moved = put_on_grid(event, 7, grid, "replace_one")
    assert moved.sensitivity("replace_one") > 1.0 + 2 * np.sqrt(7) * grid.step
    assert (
        moved.ratio("replace_one")
        <= event.ratio("replace_one")
        < 1.000001 * moved.ratio("replace_one")
    )
    gate = Gate.secure(300, grid, ([moved], "replace_one"), source=source(3))
    stream = gate.stream(moved, 7)
    drawn = stream.add(np.full((300, 7), np.pi), 0)
    assert off_grid(drawn, grid.step) == 0
    assert len(np.unique(drawn)) == 2100
    with pytest.raises(PrivacyError, match="second time"):
        stream.add(np.zeros((300, 7)), 0)
    other = Gate.secure(2, Grid(-10), ([moved], "replace_one"))
    with pytest.raises(PrivacyError, match="no event of the plan"):
        other.stream(GammaNorm(99.0, 0.5, count=2), 7)
