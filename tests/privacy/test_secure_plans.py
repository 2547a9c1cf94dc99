"""Plans and runs of secure noise: events that cover rounding, rows that say so, and replay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dperm_cli.core import registry
from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.mechanisms.gradient.noisy_gd import NoisyGd
from dperm_cli.mechanisms.sampling.regularized_exponential import RegularizedExponential
from dperm_cli.mechanisms.shared.secure_plan import (
    make_secure_plan,
    secure_channel_plan,
    secure_plan,
)
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Exponential, Gaussian
from dperm_cli.privacy.gate import Gate
from dperm_cli.privacy.secure_grid import Grid, grid_for, list_noise_events, put_on_grid
from dperm_cli.views.central import CentralView
from dperm_cli.views.choose import open_view
from dperm_cli.views.grid import GridView
from tests.conftest import small_problem
from tests.privacy._secure import BUDGET, KINDS, off_grid, with_rows


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_rounding_is_counted_and_covered(kind, relation):
    event = KINDS[kind](50.0, 1.5, 3)
    grid = grid_for([event], 2000.0)
    assert grid.step == 2.0 ** (5 - 30)
    moved = put_on_grid(event, 16, grid, relation)
    diagonal = (16 if kind == "laplace" else 4) * grid.step
    assert moved.record_norm >= 1.5 * (1 + 16 * 2.0**-52) + diagonal
    assert moved.count == 3
    ratios = [e.sensitivity(relation) / e.scale for e in (event, moved)]
    assert ratios[1] <= ratios[0]
    assert ratios[1] == pytest.approx(ratios[0], rel=1e-14)
    assert moved.scale == pytest.approx(50.0, rel=1e-5)


def test_a_gap_is_given_up():
    moved = put_on_grid(Gaussian(50.0, 1.5, 3, gap=1.0), 2, Grid(-25), "replace_one")
    assert moved.gap is None
    assert moved.scale == pytest.approx(150.0, rel=1e-6)


def test_what_has_no_exact_form_is_unsupported():
    with pytest.raises(Unsupported, match="Exponential"):
        list_noise_events([Exponential(1.0, 1.0)])
    event, tiny = Gaussian(50.0, 1.5), Gaussian(1e-9, 1.0)
    with pytest.raises(Unsupported, match=r"grid 2\^11 is too coarse for a sum.* 1\.5; use"):
        put_on_grid(event, 5, grid_for([event], 2.0**60), "replace_one")
    with pytest.raises(Unsupported, match=r"too small for grid.*or less epsilon"):
        put_on_grid(tiny, 5, grid_for([tiny], 1e9), "replace_one")
    spec, mechanism = small_problem().spec(), RegularizedExponential()
    plan = mechanism.plan(spec, BUDGET)
    with pytest.raises(Unsupported, match="regularized_exponential has no secure form; use mech"):
        secure_plan(mechanism, plan, spec, small_problem().loss)
    plan, loss = NoisyGd().plan(spec, BUDGET), small_problem().loss
    without = type("Slow", (type(loss),), {"name": "slow", "code": None})()
    with pytest.raises(Unsupported, match="slow has no exact sum"):
        secure_plan(NoisyGd(), plan, spec, without)


@pytest.mark.parametrize("bound", [1e-7, 1e8])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0])
@pytest.mark.parametrize("name", ["newton", "localization"])
def test_values_of_two_sizes_on_one_grid_name_what_brings_them_together(name, epsilon, bound):
    """Less epsilon does not help where the bound of rows makes one value far larger than others."""
    mechanism, budget = registry.load("mechanism", name)(), Budget(epsilon, 1e-8)

    def plan(bound):
        problem = small_problem(ridge=0.1 * bound**2)
        data = replace(problem.data, x=problem.data.x * bound, row_bound=bound)
        problem = replace(problem, data=data)
        spec = replace(problem.spec(), n=10**6)
        return make_secure_plan(mechanism, spec, budget, problem.loss)

    with pytest.raises(Unsupported) as refused:
        plan(bound)
    told = str(refused.value)
    way = f"scale the records so that dataset.row_bound ({bound:.3g}) is near 1, or use noise"
    assert way in told
    assert "epsilon" not in told
    plan(1.0)


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 100.0])
def test_a_secured_plan_keeps_its_guarantee_at_nearly_no_cost(epsilon, relation):
    problem = small_problem(n=1000)
    budget = Budget(epsilon, 1e-6, relation)
    plan = NoisyGd().plan(problem.spec(), budget)
    moved, grid = secure_plan(NoisyGd(), plan, problem.spec(), problem.loss)
    accounted = account(moved.events, delta=1e-6, relation=relation)
    assert 0.999 * epsilon < accounted.epsilon <= epsilon
    assert plan.noise_scale < moved.noise_scale < plan.noise_scale * (1 + 1e-5)
    assert moved.events[0].scale == moved.noise_scale
    assert 2.0**20 <= moved.noise_scale / grid.step < 2.0**32


class Listener:
    """Keeps what passes the gate."""

    def __init__(self):
        self.values, self.drawn = [], []

    def take_draw(self, stream, value, drawn, public):
        self.values.append(value)
        self.drawn.append(drawn)
        return drawn


def test_all_that_noisy_gd_releases_lies_on_the_grid_for_both_neighbours():
    """120,000 numbers of two neighbours: none off the grid; the seeded run is off it."""
    problem = small_problem(n=30, p=30)
    plan = NoisyGd().plan(problem.spec(), BUDGET)
    moved, grid = secure_plan(NoisyGd(), plan, problem.spec(), problem.loss)
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
    moved, grid = secure_plan(NoisyGd(), plan, problem.spec(), problem.loss)

    def released():
        gate = Gate.secure(2, grid, (moved.events, "replace_one"))
        return NoisyGd().release(GridView(problem, grid), moved, gate).theta

    one, two = released(), released()
    assert len(np.unique(np.vstack([one, two]), axis=0)) == 4
    seeds = [seed_sequence(0, "plain", k) for k in range(2)]
    plain = NoisyGd().release(CentralView(problem), plan, Gate(seeds)).theta
    assert np.max(problem.objective(one)) < np.max(problem.objective(plain)) * 1.05


def cells(*words):
    from dperm_cli.runner.compose import study_plan
    from dperm_cli.runner.compose.command_line import parse

    return study_plan.plan_study(parse(list(words))).cells


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
    ("mechanism", "status"),
    [("noisy_gd", "ok"), ("noisy_sgd", "ok"), ("newton", "ok"), ("phased_erm", "unsupported")],
)
def test_a_secure_row_says_what_it_is(mechanism, status):
    from dperm_cli.results.records.schema import normalise
    from dperm_cli.runner.cells import prepared_cell
    from dperm_cli.runner.cells import run_cell as runner
    from dperm_cli.solvers.optimum import solve

    steps = [] if mechanism == "phased_erm" else ["mechanism.steps=20"]
    (cell,) = cells("noise=secure", f"mechanism={mechanism}", *steps, "trials=2")
    problem = small_problem(n=30)
    prepared = prepared_cell.prepare(cell, problem.data)
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
    moved, grid = secure_plan(mechanism, plan, problem.spec(), problem.loss)
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


def with_gaussian_noise(mechanism):
    """The mechanism, or the one inside it, with the noise that has a secure form."""
    if hasattr(mechanism, "noise"):
        return replace(mechanism, noise="gaussian")
    return replace(mechanism, inner=with_gaussian_noise(mechanism.inner))


@pytest.mark.parametrize("name", registry.names("mechanism"))
def test_every_mechanism_says_whether_it_is_secure_and_keeps_its_word(name):
    mechanism = registry.load("mechanism", name)()
    assert isinstance(mechanism.secure, bool)
    if mechanism.space == "kernel":  # plans on a kernel's facts
        assert not mechanism.secure
        return
    loss = "squared" if "quadratic" in mechanism.requires else "logistic"
    problem = small_problem(loss=loss, n=12, ridge=1.0)
    if not mechanism.secure:
        with pytest.raises(Unsupported, match="no secure form"):
            make_secure_plan(mechanism, problem.spec(), BUDGET, problem.loss)
        return
    if mechanism.guarantees == ("local",):
        plan = mechanism.plan(problem.spec(), BUDGET)
        moved, view = secure_channel_plan(plan), open_view(mechanism, problem)
        gate = Gate.secure(2, None, (moved.events, "replace_one"))
    else:
        moved, grid = make_secure_plan(mechanism, problem.spec(), BUDGET, problem.loss)
        gate, view = Gate.secure(2, grid, (moved.events, "replace_one")), GridView(problem, grid)
    theta = mechanism.release(view, moved, gate).theta
    assert np.all(problem.constraint.contains(theta))
