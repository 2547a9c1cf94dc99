"""Wishart differences on a grid: bits read lazily, rounded exactly, and of the law they claim."""

from __future__ import annotations

import itertools
from math import isqrt

import mpmath
import numpy as np
import pytest

from dperm_cli.audit import noise_laws
from dperm_cli.core.errors import PrivacyError
from dperm_cli.core.symmetric import triangle_size
from dperm_cli.privacy import secure_noise, secure_wishart
from dperm_cli.privacy.bit_strings import BitString, BitStrings
from dperm_cli.privacy.events import WishartDifference
from dperm_cli.privacy.gate import Gate
from dperm_cli.privacy.secure_grid import grid_for, put_on_grid
from dperm_cli.privacy.secure_noise import Uniform
from tests.privacy._secure import off_grid, source


def strings(words, wholes, signs) -> BitStrings:
    """Numbers whose bits are these words [count, k], and then none: asking for more fails."""
    made = BitStrings(len(words), iter(()))
    for place, (digits, whole, sign) in enumerate(zip(words, wholes, signs, strict=True)):
        made.put(place, BitString(whole, Uniform(iter(digits)), sign))
    return made


def exact_entries(normals, order, mantissa, shift):
    """ratio (G^T G - H^T H) / 2, packed, to 80 digits, from three words of every string."""
    with mpmath.workdps(80):
        numbers = [(-1) ** s.negative * mpmath.mpf(s.head(3)) / 2**192 for s in normals]
        ratio, found = mpmath.mpf(mantissa) / 2**shift, []
        for i, j in itertools.combinations_with_replacement(range(order), 2):
            products = [
                numbers[row * order + i] * numbers[row * order + j] for row in range(2 * order + 2)
            ]
            total = sum(products[: order + 1]) - sum(products[order + 1 :])
            size = ratio * total / 2 * (1 if i == j else mpmath.sqrt(2))
            found.append(int(mpmath.floor(size + 0.5)))
        return found


@pytest.mark.parametrize("order", [1, 2, 5])
@pytest.mark.parametrize("ratio", [2.0**8 + 1 / 3, 1.37 * 2.0**30, 0.999 * 2.0**45])
def test_every_entry_is_the_rounded_real_number(order, ratio):
    rng = np.random.default_rng(order)
    mantissa, shift = secure_noise.split_ratio(ratio)
    count = 2 * (order + 1) * order
    for highest in (4, 4, 4, 2**15, 2**17):
        words = rng.integers(0, 2**64, (count, 3), dtype=np.uint64).tolist()
        wholes, signs = rng.integers(0, highest, count), rng.integers(0, 2, count)
        normals = strings(words, wholes.tolist(), signs.tolist())
        drawn = secure_wishart.round_difference(normals, order, mantissa, shift)
        assert drawn == exact_entries(normals, order, mantissa, shift)


@pytest.mark.parametrize(("later", "up"), [(0, False), (2**64 - 1, True)])
def test_more_bits_of_the_same_strings_decide_where_the_first_do_not(later, up):
    """Order 1, one number that is not nearly 0: its square lies between two jumps."""
    mantissa, shift = secure_noise.split_ratio(1.37 * 2.0**30)
    # the least head whose square has a value behind the jump to 5,000,000; the one before it
    jump = -(-((2 * 5_000_000 - 1) << (shift + 128)) // mantissa)
    head = isqrt(jump)
    words = [[head, later, later, later], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    normals = strings(words, [0] * 4, [0] * 4)
    assert secure_wishart.round_difference(normals, 1, mantissa, shift) == [4_999_999 + up]
    assert normals[0].fraction._digits[:2] == [head, later]


def test_one_word_is_enough_nearly_always():
    """A bound on the error that is too wide would ask for more."""
    rng = np.random.default_rng(0)
    mantissa, shift = secure_noise.split_ratio(2.0**30)
    for _ in range(50):
        words = rng.integers(0, 2**64, (2 * 6 * 5, 1), dtype=np.uint64).tolist()
        normals = strings(words, [1] * 60, rng.integers(0, 2, 60).tolist())
        assert len(secure_wishart.round_difference(normals, 5, mantissa, shift)) == 15


def make_gate(event, order, trials, seed):
    grid = grid_for([event], 500.0)
    moved = put_on_grid(event, order - 1, grid, "replace_one")
    gate = Gate.secure(trials, grid, ([moved], "replace_one"), source=source(seed))
    return gate, moved, grid


def test_every_output_of_the_gate_is_on_the_grid_and_pays_for_the_rounding():
    event = WishartDifference(100.0, 0.5)
    gate, moved, grid = make_gate(event, 4, 300, 3)
    assert moved.sensitivity("replace_one") > 1.0 + 2.0 * 4.0**1.5 / 2.0 * grid.step
    assert moved.ratio("replace_one") <= event.ratio("replace_one")
    assert event.ratio("replace_one") < 1.000001 * moved.ratio("replace_one")
    stream = gate.stream(moved, triangle_size(4))
    drawn = stream.add(np.full((300, 10), np.pi), 0)
    assert off_grid(drawn, grid.step) == 0
    assert len(np.unique(drawn)) == 3000
    with pytest.raises(PrivacyError, match="second time"):
        stream.add(np.zeros((300, 10)), 0)


@pytest.mark.parametrize("order", [1, 2, 4])
def test_the_noise_has_the_law_of_its_event(order):
    """By the audit's own check of the law, which a scale off by a quarter does not pass."""
    event = WishartDifference(1.0, 0.5)
    gate, moved, _ = make_gate(event, order, 3000, 5)
    size = triangle_size(order)
    drawn = gate.stream(moved, size).add(np.zeros((3000, size)), 0)[None]
    unit = drawn / moved.scale
    assert noise_laws._check_wishart(unit) == []
    assert noise_laws._check_wishart(1.25 * unit) != []


def test_a_vector_that_is_no_triangle_is_refused():
    with pytest.raises(ValueError, match="no triangle"):
        secure_wishart.draw_wishart_differences(2.0**20, 1, 5)
