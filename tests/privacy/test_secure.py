"""Noise on a grid: exact draws, exact sums, the events that cover rounding, and what leaks without.

``Words`` from a seeded generator stand in for the operating system's where bytes must repeat.
"""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from dperm_cli.core import registry
from dperm_cli.core.errors import InputError, PrivacyError, Unsupported
from dperm_cli.core.rng import seed_sequence
from dperm_cli.loops import exact
from dperm_cli.mechanisms._secure import secured
from dperm_cli.mechanisms._views import CentralView, GridView
from dperm_cli.mechanisms.noisy_gd import NoisyGd
from dperm_cli.mechanisms.noisy_sgd import NoisySgd
from dperm_cli.privacy import _exact
from dperm_cli.privacy.accountant import account
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Gaussian, Laplace, SampledGaussian
from dperm_cli.privacy.noise import Gate
from dperm_cli.privacy.secure import Grid, grid_for, noisy, on_grid
from tests.conftest import small_problem

BUDGET = Budget(1.0, 1e-6)
KINDS = {"gaussian": Gaussian, "laplace": Laplace}
RATIOS = (2.0**8 + 1 / 3, 1.37 * 2.0**30, 2.0**31, 0.999 * 2.0**45)


def source(seed=0, first=()):
    """Words of a seeded generator after the given ones."""
    rng, ahead = np.random.default_rng(seed), list(first)

    def words(count):
        begun, ahead[:] = ahead[:count], ahead[count:]
        rest = rng.integers(0, 2**64, count - len(begun), dtype=np.uint64)
        return np.concatenate([np.array(begun, np.uint64), rest])

    return words


def replayed(kind, ratio, count, words):
    """The draws of the reference, which looks at as many bits as it needs."""
    tape = _exact.Words(np.empty(0, np.uint64), words)
    return [_exact.draw(kind, tape, *_exact._parts(ratio)) for _ in range(count)]


# --- the sampler ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ratio", RATIOS)
def test_kernels_and_reference_make_the_same_draws_of_the_same_words(kind, ratio):
    pool = np.random.default_rng(3).integers(0, 2**64, 40_000, dtype=np.uint64)

    def words():
        return source(first=pool)

    drawn = _exact.rounded(kind, ratio, 700, words())
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

    whole = _exact.rounded(kind, 2.0**30, 300, source(first=pool))
    assert np.array_equal(_exact.rounded(kind, 2.0**30, 300, trickle), whole)


@pytest.mark.parametrize(("next_words", "even"), [((1, 2), False), ((2, 1), True)])
def test_a_tie_is_decided_by_the_next_words(next_words, even):
    """x and z share 64 bits: the draw is made again with longer strings, not by a guess.

    ``z < x`` (next words 1 < 2 in the order z, x) lengthens the run, which rejects this x.
    """
    x, top, sign = 2**63 + 12345, 2**64 - 1, 2**63
    # Uniform.below asks for the next word of z first, then for that of x
    words = [x, x, *next_words, *([] if even else [top]), sign]
    kernel = exact.fill(
        False, np.array(words, np.uint64), np.uint64(2**52), 22, np.empty(1, int), 0
    )
    assert kernel == (0, 0, exact.UNDECIDED)
    if even:
        assert _exact.rounded("laplace", 2.0**30, 1, source(first=words))[0] == -(2**29)
    else:
        rejected = _exact.rounded("laplace", 2.0**30, 1, source(first=words))
        assert abs(int(rejected[0])) >= 2**30  # the integer part has gone up


@pytest.mark.parametrize(("later", "up"), [(0, False), (2**64 - 1, True)])
def test_rounding_reads_as_many_bits_as_it_needs(later, up):
    """s (k + x) + 1/2 passes an integer between two neighbouring 64-bit values of x."""
    mantissa, shift = _exact._parts(1.37 * 2.0**30)
    jump = (2 * 5_000_000 - 1) << (63 + shift)  # where floor(s x + 1/2) becomes 5,000,000
    x = jump // mantissa
    assert mantissa * x < jump < mantissa * (x + 1)
    words = [x, 2**64 - 1, 2**63 - 1, later]
    out = np.empty(1, np.int64)
    kernel = exact.fill(False, np.array(words, np.uint64), np.uint64(mantissa), shift, out, 0)
    assert kernel == (0, 0, exact.UNDECIDED)
    drawn = _exact.rounded("laplace", 1.37 * 2.0**30, 1, source(first=words))
    assert drawn[0] == 5_000_000 - (not up)


def test_nearest_is_exact_rounding():
    rng = np.random.default_rng(1)
    for ratio in RATIOS:
        mantissa, shift = _exact._parts(ratio)
        assert Fraction(mantissa, 2**shift) == Fraction(ratio)
        for k in (0, 1, 7):
            x = int(rng.integers(0, 2**64, dtype=np.uint64))
            tape = _exact.Words(np.array([x], np.uint64), source())
            got = _exact._nearest(k, _exact.Uniform(tape), mantissa, shift)
            exactly = Fraction(ratio) * (k + Fraction(2 * x + 1, 2**65)) + Fraction(1, 2)
            assert got == exactly.__floor__()


def test_system_words_differ_and_a_ratio_off_the_range_is_refused():
    assert not np.array_equal(_exact.system_words(8), _exact.system_words(8))
    for ratio in (2.0**7, 2.0**46, float("inf")):
        with pytest.raises(ValueError, match="grid steps"):
            _exact.rounded("laplace", ratio, 1)


# --- every output is a multiple of the grid ------------------------------------------------------


def outputs(gate, kind, scale, sensitivity, value, count):
    stream = getattr(gate, kind)(dim=100, count=1, scale=scale, sensitivity=sensitivity)
    return stream.add(np.full((count // 100, 100), value), 0).ravel()


def off_grid(values, step):
    units = values / step  # exact: the step is a power of two
    return int(np.sum(units != np.rint(units)))


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_are_multiples_of_the_grid_for_both_neighbours(kind):
    """100,000 outputs of neighbours 0.1 and 1: none off the grid. Plain float noise has outputs off
    it, and tells the neighbours apart by them: a sum with 1 is always a multiple of 2^-53."""
    event = KINDS[kind](3.0, 0.5)
    grid = grid_for([event], 10.0)
    event = on_grid(event, 100, grid, "replace_one")
    facts = (kind, event.scale, event.sensitivity("replace_one"))
    plain, apart = 0, []
    for value in (0.1, 1.0):
        gate = Gate.secure(500, grid, ([event], "replace_one"))
        drawn = outputs(gate, *facts, value, 50_000)
        assert off_grid(drawn, grid.step) == 0
        assert len(np.unique(drawn)) > 49_000
        assert abs(np.median(drawn) - value) < 0.1
        seeds = [seed_sequence(0, "leak", value, k) for k in range(500)]
        plain += off_grid(outputs(Gate(seeds), *facts, value, 50_000), grid.step)
    for value in (0.0, 1.0):
        seeds = [seed_sequence(1, "leak", value, k) for k in range(500)]
        apart.append(off_grid(outputs(Gate(seeds), *facts, value, 50_000), 2.0**-53))
    assert plain > 99_000
    assert apart[1] == 0
    assert apart[0] > 2_000


def test_a_secure_gate_rounds_what_it_is_given_and_refuses_no_value():
    event = on_grid(Gaussian(3.0, 0.5), 2, Grid(-20), "replace_one")
    gate = Gate.secure(3, Grid(-20), ([event], "replace_one"))
    noise = gate.gaussian(
        dim=2, count=1, scale=event.scale, sensitivity=event.sensitivity("replace_one")
    )
    wild = np.array([[np.nan, np.inf], [-np.inf, 1e300], [1e-300, 0.3]])
    drawn = noise.add(wild, 0)
    assert np.all(np.isfinite(drawn))
    assert off_grid(drawn, 2.0**-20) == 0
    with pytest.raises(PrivacyError, match="second time"):
        noise.add(wild, 0)


def test_a_secure_gate_has_no_keys_and_no_seeded_streams():
    event = on_grid(Gaussian(3.0, 0.5), 2, Grid(-20), "replace_one")
    sampled = SampledGaussian(3.0, 0.5, 1, 5, "fixed")
    gate = Gate.secure(3, Grid(-20), ([event, sampled], "replace_one"))
    assert not gate.compiled
    with pytest.raises(PrivacyError, match="seeded"):
        gate.choice(population=5, batch=1, sampling="fixed", count=1)
    facts = {"scale": event.scale, "sensitivity": event.sensitivity("replace_one")}
    with pytest.raises(PrivacyError, match="no event"):
        gate.gaussian(dim=2, count=1, scale=3.0, sensitivity=facts["sensitivity"])
    with pytest.raises(PrivacyError, match="no keys"):
        _ = gate.gaussian(dim=2, count=1, **facts).keys


# --- exact sums ----------------------------------------------------------------------------------


def with_rows(problem, x, y):
    return dataclasses.replace(problem, data=dataclasses.replace(problem.data, x=x, y=y))


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
    problem = small_problem(n=2000, p=7)
    theta = np.full(7, 0.1)
    x, y = problem.data.x, problem.data.y
    turned = with_rows(problem, np.ascontiguousarray(x[::-1]), y[::-1].copy())
    assert not np.array_equal(problem.data_gradient(theta), turned.data_gradient(theta))


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
        declared = on_grid(event, 5, Grid(-30), "replace_one").sensitivity("replace_one")
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
        view.batch_gradient(np.zeros(3), np.zeros(1, int))


# --- events, plans, runs -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_rounding_is_counted_and_covered(kind, relation):
    event = KINDS[kind](50.0, 1.5, 3)
    grid = grid_for([event], 2000.0)
    assert grid.step == 2.0 ** (5 - 30)
    moved = on_grid(event, 16, grid, relation)
    diagonal = (16 if kind == "laplace" else 4) * grid.step
    assert moved.record_norm >= 1.5 * (1 + 16 * 2.0**-52) + diagonal
    assert moved.count == 3
    ratios = [e.sensitivity(relation) / e.scale for e in (event, moved)]
    assert ratios[1] <= ratios[0]
    assert ratios[1] == pytest.approx(ratios[0], rel=1e-14)
    assert moved.scale == pytest.approx(50.0, rel=1e-5)


def test_a_gap_is_given_up():
    moved = on_grid(Gaussian(50.0, 1.5, 3, gap=1.0), 2, Grid(-25), "replace_one")
    assert moved.gap is None
    assert moved.scale == pytest.approx(150.0, rel=1e-6)


def test_what_has_no_exact_form_is_unsupported():
    with pytest.raises(Unsupported, match="SampledGaussian"):
        noisy([SampledGaussian(3.0, 0.5, 1, 5, "fixed")])
    event, tiny = Gaussian(50.0, 1.5), Gaussian(1e-9, 1.0)
    with pytest.raises(Unsupported, match=r"grid 2\^11 is the finest.*too coarse"):
        on_grid(event, 5, grid_for([event], 2.0**60), "replace_one")
    with pytest.raises(Unsupported, match="does not fit"):
        on_grid(tiny, 5, grid_for([tiny], 1e9), "replace_one")
    spec, mechanism = small_problem().spec(), NoisySgd(steps=10)
    plan = mechanism.plan(spec, BUDGET)
    with pytest.raises(Unsupported, match="noisy_sgd has no secure form"):
        secured(mechanism, plan, spec, small_problem().loss)
    problem = small_problem(loss="l2_median")
    plan = NoisyGd().plan(problem.spec(), BUDGET)
    with pytest.raises(Unsupported, match="l2_median has no exact sum"):
        secured(NoisyGd(), plan, problem.spec(), problem.loss)


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 100.0])
def test_a_secured_plan_keeps_its_guarantee_at_nearly_no_cost(epsilon, relation):
    problem = small_problem(n=1000)
    budget = Budget(epsilon, 1e-6, relation)
    plan = NoisyGd().plan(problem.spec(), budget)
    moved, grid = secured(NoisyGd(), plan, problem.spec(), problem.loss)
    accounted = account(moved.events, delta=1e-6, relation=relation)
    assert 0.999 * epsilon < accounted.epsilon <= epsilon
    assert plan.noise_scale < moved.noise_scale < plan.noise_scale * (1 + 1e-5)
    assert moved.events[0].scale == moved.noise_scale
    assert 2.0**20 <= moved.noise_scale / grid.step < 2.0**32


class Listener:
    """Keeps what passes the gate."""

    def __init__(self):
        self.values, self.drawn = [], []

    def noise(self, value, scale, sensitivity, drawn):
        self.values.append(value)
        self.drawn.append(drawn)
        return drawn


def test_all_that_noisy_gd_releases_lies_on_the_grid_for_both_neighbours():
    """120,000 numbers of two neighbours: none off the grid; the seeded run is off it."""
    problem = small_problem(n=30, p=30)
    plan = NoisyGd().plan(problem.spec(), BUDGET)
    moved, grid = secured(NoisyGd(), plan, problem.spec(), problem.loss)
    y = problem.data.y.copy()
    y[4] = -y[4]
    for one in (problem, with_rows(problem, problem.data.x, y)):
        tape = Listener()
        gate = Gate.secure(10, grid, (moved.events, "replace_one"), tape)
        theta = NoisyGd().release(GridView(one, grid), moved, gate).theta
        assert np.all(problem.constraint.contains(theta))
        drawn = np.concatenate([d.ravel() for d in tape.drawn])
        assert drawn.size == 60_000
        assert off_grid(drawn, grid.step) == 0
        assert off_grid(np.concatenate([v.ravel() for v in tape.values]), grid.step) == 0
    tape = Listener()
    seeds = [seed_sequence(0, "plain", k) for k in range(10)]
    NoisyGd().release(CentralView(problem), plan, Gate(seeds, tape))
    assert off_grid(np.concatenate([d.ravel() for d in tape.drawn]), grid.step) > 50_000


def test_secure_releases_do_not_repeat_and_reach_the_optimum_of_research_ones():
    problem = small_problem(n=60)
    plan = NoisyGd().plan(problem.spec(), Budget(1e4, 1e-6))
    moved, grid = secured(NoisyGd(), plan, problem.spec(), problem.loss)

    def released():
        gate = Gate.secure(2, grid, (moved.events, "replace_one"))
        return NoisyGd().release(GridView(problem, grid), moved, gate).theta

    one, two = released(), released()
    assert len(np.unique(np.vstack([one, two]), axis=0)) == 4
    seeds = [seed_sequence(0, "plain", k) for k in range(2)]
    plain = NoisyGd().release(CentralView(problem), plan, Gate(seeds)).theta
    assert np.max(problem.objective(one)) < np.max(problem.objective(plain)) * 1.05


def cells(*words):
    from dperm_cli.runner import plan
    from dperm_cli.runner.overrides import parse

    return plan.plan(parse(list(words))).cells


def test_the_noise_key_is_typed_and_a_seed_is_refused_beside_secure_noise():
    assert [(c.noise, c.seed) for c in cells()] == [("research", 0)]
    (secure,) = cells("noise=secure")
    assert (secure.noise, secure.seed) == ("secure", None)
    assert "seed" not in secure.config
    for words in (["noise=secure", "seed=0"], ["noise=[research,secure]", "seed=[1,2]"]):
        with pytest.raises(InputError, match=r"^seed=.*noise=secure, which has no seed"):
            cells(*words)
    with pytest.raises(InputError, match="noise=sekure: must be one of research, secure"):
        cells("noise=sekure")


def test_research_noise_is_named_as_before_the_key_existed():
    (cell,) = cells("seed=5")
    assert "noise" not in cell.identity()
    assert cell.identity()["seed"] == 5


@pytest.mark.parametrize(
    ("mechanism", "status"), [("noisy_gd", "ok"), ("noisy_sgd", "unsupported")]
)
def test_a_secure_row_says_what_it_is(mechanism, status):
    from dperm_cli.problem.optimum import solve
    from dperm_cli.results.schema import normalise
    from dperm_cli.runner import cell as runner

    (cell,) = cells("noise=secure", f"mechanism={mechanism}", "mechanism.steps=20", "trials=2")
    problem = small_problem(n=30)
    prepared = runner.prepare(cell, problem.data)
    rows = [normalise(row) for row in runner.run(prepared, solve, debug=True)]
    assert {row["status"] for row in rows} == {status}
    assert {(row["noise"], row["seed"]) for row in rows} == {("secure", None)}
    if status == "ok":
        assert len({row["arithmetic"] for row in rows}) == 1
        assert rows[0]["arithmetic"].startswith("grid 2^-")
        assert rows[0]["epsilon_accounted"] <= rows[0]["epsilon"]
        again = [normalise(row) for row in runner.run(prepared, solve, debug=True)]
        assert again[0]["theta"] != rows[0]["theta"]
    else:
        assert "no secure form" in rows[0]["reason"]


def other_record(problem, rng, relation):
    """The problem with one random record replaced by a random one, or by nothing."""
    index = int(rng.integers(problem.data.n))
    row = rng.standard_normal(problem.data.p)
    row *= 0.0 if relation == "add_remove" else 1.0 / np.linalg.norm(row)
    x, y = problem.data.x.copy(), problem.data.y.copy()
    x[index], y[index] = row, rng.choice([-1.0, 1.0])
    return with_rows(problem, x, y)


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize("loss", ["logistic", "squared", "hinge"])
def test_replay_on_the_grid(loss, relation):
    """Record on D, freeze, run on D': the same calls, and no value moves by more than declared."""
    from dperm_cli.audit.replay import Player, Recorder

    problem, mechanism = small_problem(loss=loss, n=6), NoisyGd(steps=40)
    plan = mechanism.plan(problem.spec(), Budget(1.0, 1e-6, relation))
    moved, grid = secured(mechanism, plan, problem.spec(), problem.loss)
    allowed, rng, worst = (moved.events, relation), np.random.default_rng(7), 0.0
    for _ in range(15):
        recorder = Recorder()
        gate = Gate.secure(2, grid, allowed, recorder)
        first = mechanism.release(GridView(problem, grid), moved, gate)
        player = Player(recorder.calls)
        other = GridView(other_record(problem, rng, relation), grid)
        again = mechanism.release(other, moved, Gate.secure(2, grid, allowed, player))
        assert player.faults == []
        assert player.position == len(recorder.calls) == 40
        assert np.array_equal(first.theta, again.theta)
        worst = max(worst, player.worst)
    assert 0.3 < worst <= 1.0


@pytest.mark.parametrize("name", registry.names("mechanism"))
def test_every_mechanism_says_whether_it_is_secure_and_keeps_its_word(name):
    mechanism = registry.load("mechanism", name)()
    assert isinstance(mechanism.secure, bool)
    problem = small_problem(n=12, ridge=1.0)
    plan = mechanism.plan(problem.spec(), BUDGET)
    if not mechanism.secure:
        with pytest.raises(Unsupported, match="no secure form"):
            secured(mechanism, plan, problem.spec(), problem.loss)
        return
    moved, grid = secured(mechanism, plan, problem.spec(), problem.loss)
    gate = Gate.secure(2, grid, (moved.events, "replace_one"))
    theta = mechanism.release(GridView(problem, grid), moved, gate).theta
    assert np.all(problem.constraint.contains(theta))
