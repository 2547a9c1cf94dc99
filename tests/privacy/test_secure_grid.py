"""Noise on a grid: exact draws, exact sums, and what leaks without.

``Words`` from a seeded generator stand in for the operating system's where bytes must repeat.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from dperm_cli.core.errors import PrivacyError
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.loops import exact_noise, reduced_sgd
from dperm_cli.privacy import secure_noise
from dperm_cli.privacy.events import Channel, Exponential, Gaussian
from dperm_cli.privacy.gate import Gate
from dperm_cli.privacy.secure_grid import Grid, grid_for, put_on_grid
from dperm_cli.views.grid import GridView
from tests.conftest import small_problem
from tests.privacy._secure import KINDS, off_grid, source, with_rows

RATIOS = (2.0**8 + 1 / 3, 1.37 * 2.0**30, 2.0**31, 0.999 * 2.0**45)


def replayed(kind, ratio, count, words):
    """The draws of the reference, which looks at as many bits as it needs."""
    tape = secure_noise.read_words(np.empty(0, np.uint64), words)
    return [secure_noise.draw(kind, tape, *secure_noise.split_ratio(ratio)) for _ in range(count)]


# --- the sampler ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ratio", RATIOS)
def test_kernels_and_reference_make_the_same_draws_of_the_same_words(kind, ratio):
    pool = np.random.default_rng(3).integers(0, 2**64, 40_000, dtype=np.uint64)

    def words():
        return source(first=pool)

    drawn = secure_noise.draw_rounded_noise(kind, ratio, 700, words())
    assert drawn.dtype == np.int64
    assert drawn.tolist() == replayed(kind, ratio, 700, words())
    assert abs(np.median(np.abs(drawn)) / ratio - 0.68) < 0.1


@pytest.mark.parametrize("kind", KINDS)
def test_words_that_run_out_are_read_again_with_more(kind):
    """A source in small pieces gives what one long one gives."""
    pool = np.random.default_rng(4).integers(0, 2**64, 20_000, dtype=np.uint64)
    served = 0

    def trickle(count):
        nonlocal served
        served += min(count, 40)
        return pool[served - min(count, 40) : served]

    whole = secure_noise.draw_rounded_noise(kind, 2.0**30, 300, source(first=pool))
    assert np.array_equal(secure_noise.draw_rounded_noise(kind, 2.0**30, 300, trickle), whole)


@pytest.mark.parametrize(("next_words", "even"), [((1, 2), False), ((2, 1), True)])
def test_a_tie_is_decided_by_the_next_words(next_words, even):
    """x and z share 64 bits: the draw is made again with longer strings, not by a guess.

    ``z < x`` (next words 1 < 2 in the order z, x) lengthens the run, which rejects this x.
    """
    x, top, sign = 2**63 + 12345, 2**64 - 1, 2**63
    # Uniform.below asks for the next word of z first, then for that of x
    words = [x, x, *next_words, *([] if even else [top]), sign]
    kernel = exact_noise.fill(
        False, np.array(words, np.uint64), np.uint64(2**52), 22, np.empty(1, int), 0
    )
    assert kernel == (0, 0, exact_noise.UNDECIDED)
    if even:
        assert secure_noise.draw_rounded_noise("laplace", 2.0**30, 1, source(first=words))[0] == -(
            2**29
        )
    else:
        rejected = secure_noise.draw_rounded_noise("laplace", 2.0**30, 1, source(first=words))
        assert abs(int(rejected[0])) >= 2**30  # the integer part has gone up


@pytest.mark.parametrize(("later", "up"), [(0, False), (2**64 - 1, True)])
def test_rounding_reads_as_many_bits_as_it_needs(later, up):
    """s (k + x) + 1/2 passes an integer between two neighbouring 64-bit values of x."""
    mantissa, shift = secure_noise.split_ratio(1.37 * 2.0**30)
    jump = (2 * 5_000_000 - 1) << (63 + shift)  # where floor(s x + 1/2) becomes 5,000,000
    x = jump // mantissa
    assert mantissa * x < jump < mantissa * (x + 1)
    words = [x, 2**64 - 1, 2**63 - 1, later]
    out = np.empty(1, np.int64)
    kernel = exact_noise.fill(False, np.array(words, np.uint64), np.uint64(mantissa), shift, out, 0)
    assert kernel == (0, 0, exact_noise.UNDECIDED)
    drawn = secure_noise.draw_rounded_noise("laplace", 1.37 * 2.0**30, 1, source(first=words))
    assert drawn[0] == 5_000_000 - (not up)


def test_nearest_is_exact_rounding():
    rng = np.random.default_rng(1)
    for ratio in RATIOS:
        mantissa, shift = secure_noise.split_ratio(ratio)
        assert Fraction(mantissa, 2**shift) == Fraction(ratio)
        for k in (0, 1, 7):
            x = int(rng.integers(0, 2**64, dtype=np.uint64))
            tape = secure_noise.read_words(np.array([x], np.uint64), source())
            got = secure_noise.find_nearest(k, secure_noise.Uniform(tape), mantissa, shift)
            exactly = Fraction(ratio) * (k + Fraction(2 * x + 1, 2**65)) + Fraction(1, 2)
            assert got == exactly.__floor__()


def test_system_words_differ_and_a_ratio_off_the_range_is_refused():
    assert not np.array_equal(secure_noise.system_words(8), secure_noise.system_words(8))
    for ratio in (2.0**7, 2.0**46, float("inf")):
        with pytest.raises(ValueError, match="grid steps"):
            secure_noise.draw_rounded_noise("laplace", ratio, 1)


# --- every output is a multiple of the grid ------------------------------------------------------


def outputs(gate, event, value, count):
    stream = gate.stream(event, 100)
    return stream.add(np.full((count // 100, 100), value), 0).ravel()


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_are_multiples_of_the_grid_for_both_neighbours(kind):
    """100,000 outputs of neighbours 0.1 and 1: none off the grid. Plain float noise has outputs off
    it, and tells the neighbours apart by them: a sum with 1 is always a multiple of 2^-53."""
    event = KINDS[kind](3.0, 0.5)
    grid = grid_for([event], 10.0)
    event = put_on_grid(event, 100, grid, "replace_one")
    plain, apart = 0, []
    for value in (0.1, 1.0):
        gate = Gate.secure(500, grid, ([event], "replace_one"))
        drawn = outputs(gate, event, value, 50_000)
        assert off_grid(drawn, grid.step) == 0
        assert len(np.unique(drawn)) > 49_000
        assert abs(np.median(drawn) - value) < 0.1
        seeds = [seed_sequence(0, "leak", value, k) for k in range(500)]
        plain += off_grid(outputs(Gate(seeds), event, value, 50_000), grid.step)
    for value in (0.0, 1.0):
        seeds = [seed_sequence(1, "leak", value, k) for k in range(500)]
        apart.append(off_grid(outputs(Gate(seeds), event, value, 50_000), 2.0**-53))
    assert plain > 99_000
    assert apart[1] == 0
    assert apart[0] > 2_000


def test_a_secure_gate_rounds_what_it_is_given_and_refuses_no_value():
    event = put_on_grid(Gaussian(3.0, 0.5), 2, Grid(-20), "replace_one")
    gate = Gate.secure(3, Grid(-20), ([event], "replace_one"))
    noise = gate.stream(event, 2)
    wild = np.array([[np.nan, np.inf], [-np.inf, 1e300], [1e-300, 0.3]])
    drawn = noise.add(wild, 0)
    assert np.all(np.isfinite(drawn))
    assert off_grid(drawn, 2.0**-20) == 0
    with pytest.raises(PrivacyError, match="second time"):
        noise.add(wild, 0)


def test_a_secure_gate_has_no_keys_and_no_seeded_streams():
    event = put_on_grid(Gaussian(3.0, 0.5), 2, Grid(-20), "replace_one")
    law = Exponential(0.02, 3.0, 2)
    gate = Gate.secure(3, Grid(-20), ([event, law], "replace_one"))
    assert not gate.can_run_compiled
    with pytest.raises(PrivacyError, match="seeded"):
        gate.stream(law, 2)
    with pytest.raises(PrivacyError, match="no event"):
        gate.stream(event.change_fields(scale=3.0), 2)
    noise = gate.stream(event, 2)
    with pytest.raises(PrivacyError, match="no keys"):
        noise.add_in_frame(np.zeros((3, 2)), 0, 1, 4)
    with pytest.raises(PrivacyError, match="no keys"):
        noise.draw_direction(reduced_sgd.frame(np.eye(1, 6)))
    assert not hasattr(noise, "sealed_draws")


def test_a_secure_gate_for_channels_has_no_keys():
    channel = Channel(1.0, 1, "l_inf", 3)
    gate = Gate.secure(3, None, ([channel, Gaussian(3.0, 0.5)], "replace_one"))
    with pytest.raises(PrivacyError, match="seeded"):
        gate.stream(Gaussian(3.0, 0.5), 2)
    users = gate.stream(channel, 3, bound=1.0, users=4)
    with pytest.raises(PrivacyError, match="no keys"):
        _ = users.sealed_draws


# --- exact sums ----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("loss", ["logistic", "squared", "hinge"])
def test_sums_are_exact_whatever_the_order_of_the_records(loss, form):
    problem = small_problem(loss=loss, n=57, p=7)
    make = sparse.csr_array if form == "csr" else np.ascontiguousarray
    order = np.random.default_rng(2).permutation(57)
    x, y = problem.data.x, problem.data.y
    one, other = with_rows(problem, make(x), y), with_rows(problem, make(x[order]), y[order])
    grid, theta = Grid(-30), np.random.default_rng(3).standard_normal((4, 7)) / 4
    total = GridView(one, grid).gradient_sum(theta)
    assert off_grid(total, grid.step) == 0
    assert np.array_equal(total, GridView(other, grid).gradient_sum(theta))
    # it is the gradient, up to half a step for every record
    assert np.max(np.abs(total - problem.data_gradient(theta))) <= 57 * 0.5 * grid.step * 1.01
    parts = [
        GridView(with_rows(one, make(x[i : i + 1]), y[i : i + 1]), grid).gradient_sum(theta)
        for i in range(57)
    ]
    assert np.array_equal(total, np.sum(parts, axis=0))


def test_float_sums_do_depend_on_the_order():
    """What the exact sums are for: a neighbour's float sum may differ in every other bit."""
    records = np.array([2.0**53, 1.0, -(2.0**53)])
    assert np.cumsum(records)[-1] == 0.0  # added one after the other, on any processor
    assert np.cumsum(records[::-1])[-1] == 1.0


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_a_record_over_the_norm_is_shortened_and_no_number_is_dropped(form):
    problem = small_problem(n=3, p=4, loss="linear")
    make = sparse.csr_array if form == "csr" else np.ascontiguousarray
    rows = np.array([[3.0, 4.0, 0.0, 0.0], [1e300, 1e300, 0.0, 0.0], [0.1, 0.0, 0.0, 0.0]])
    grid = Grid(-30)
    view = GridView(with_rows(problem, make(rows), np.array([1.0, 1.0, -1.0])), grid)
    total = view.gradient_sum(np.zeros((1, 4)))[0]
    # the second row's square is infinite: it gives nothing
    assert total == pytest.approx([-0.6 + 0.1, -0.8, 0.0, 0.0], abs=2 * grid.step)


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_record_that_is_no_number_gives_nothing(form, bad):
    """Loaders refuse such rows; were one to come through, it must not move the sum."""
    problem = small_problem(n=2, p=3, loss="linear")
    make = sparse.csr_array if form == "csr" else np.ascontiguousarray
    rows = np.array([[0.25, 0.0, 0.5], [bad, 0.5, 0.0]])
    view = GridView(with_rows(problem, make(rows), np.ones(2)), Grid(-30))
    assert view.gradient_sum(np.zeros((1, 3)))[0].tolist() == [-0.25, 0.0, -0.5]


def test_neighbouring_sums_stay_within_the_event():
    """Records at the declared norm, opposite gradients: sums differ by no more than declared."""
    problem = small_problem(n=2, p=5, loss="linear")
    row = np.full(5, 1 / np.sqrt(5))
    worst = 0.0
    for exponent in (-30, -6, -4):
        grid = Grid(exponent)
        event = Gaussian(1e3, problem.spec().lipschitz)
        declared = put_on_grid(event, 5, Grid(-30), "replace_one").sensitivity("replace_one")
        bound = declared + np.sqrt(5) * grid.step
        sums = [
            GridView(
                with_rows(problem, np.vstack([row, turn * row]), np.ones(2)), grid
            ).gradient_sum(np.zeros((1, 5)))
            for turn in (1.0, -1.0)
        ]
        moved = float(np.linalg.norm(sums[0] - sums[1]))
        worst = max(worst, moved / bound)
        assert moved <= bound
    assert worst > 0.9


def test_a_grid_view_shows_no_records():
    view = GridView(small_problem(), Grid(-20))
    for name in ("x", "y"):
        with pytest.raises(PrivacyError):
            getattr(view, name)
    with pytest.raises(PrivacyError):
        view.curvature_sum(np.zeros((1, 3)))
    for name in ("objective", "minimiser", "potential", "map_rows", "clipped_losses"):
        with pytest.raises(PrivacyError):
            getattr(view, name)(np.zeros((1, 3)))
