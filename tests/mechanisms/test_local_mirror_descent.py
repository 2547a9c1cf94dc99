"""Local mirror descent: maps, their facts, steps and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dperm_cli.core.errors import Unsupported
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.mechanisms.local.local_mirror_descent import (
    LocalMirrorDescent,
    answer_norm,
    facts_of,
    l1_power,
)
from dperm_cli.mechanisms.local.local_sgd import LocalSgd
from dperm_cli.privacy import channels
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.views.choose import open_view
from tests.conftest import small_problem

BUDGET = Budget(4.0, 0.0, trust="local")


def released(mechanism, problem, trials=4):
    plan = mechanism.plan(problem.spec(), BUDGET)
    seeds = [seed_sequence(2, "test", trial) for trial in range(trials)]
    gate = Gate(seeds, plan=(plan.events, "replace_one"))
    return mechanism.release(open_view(mechanism, problem), plan, gate).theta


def test_the_paper_s_pairing():
    """Mirror descent with the cube's channel, SGD with the cross-polytope's."""
    assert (LocalMirrorDescent().channel, LocalSgd().channel) == ("l_inf", "l_1")


def test_each_set_has_its_map():
    plan = LocalMirrorDescent().plan(small_problem(constraint="l1_ball").spec(), BUDGET)
    assert (plan.settings["map"], plan.settings["power"]) == ("entropy", None)
    plan = LocalMirrorDescent().plan(small_problem(constraint="l2_ball").spec(), BUDGET)
    assert (plan.settings["map"], plan.settings["power"]) == ("power", 2.0)
    chosen = LocalMirrorDescent(map="power")
    plan = chosen.plan(small_problem(constraint="l1_ball", p=50).spec(), BUDGET)
    assert plan.settings["power"] == l1_power(50)
    own = LocalMirrorDescent(map="power", power=1.4)
    plan = own.plan(small_problem(constraint="l1_ball").spec(), BUDGET)
    assert plan.settings["power"] == 1.4
    for mechanism, constraint in (
        (LocalMirrorDescent(), "box"),
        (LocalMirrorDescent(), "simplex"),
        (LocalMirrorDescent(map="entropy"), "l2_ball"),
        (LocalMirrorDescent(power=1.5), "l2_ball"),
    ):
        with pytest.raises(Unsupported):
            mechanism.plan(small_problem(constraint=constraint).spec(), BUDGET)


def test_powers_on_the_l1_ball():
    """The conjugate is 2 ln p: |z|_s of a cube's corner is within sqrt(e) of |z|_inf."""
    assert l1_power(2) == 2.0
    for p in (20, 1000):
        dual = l1_power(p) / (l1_power(p) - 1.0)
        assert dual == pytest.approx(2.0 * math.log(p))
        assert p ** (1.0 / dual) == pytest.approx(math.exp(0.5))


def test_the_entropic_step_is_the_best_of_its_bound():
    """ln(2 d) / (a T) + a (r G)^2 / 2 is least at a = sqrt(2 ln(2 d) / T) / (r G)."""
    problem = small_problem("l1_median", constraint="l1_ball", radius=1.5, n=400)
    plan = LocalMirrorDescent().plan(problem.spec(), BUDGET)
    step, size = plan.settings["step"], 1.5 * plan.noise_scale

    def bound(a):
        return math.log(6.0) / (a * 400) + a * size**2 / 2.0

    assert bound(step) == pytest.approx(math.sqrt(2.0 * math.log(6.0) / 400) * size)
    for other in (0.9, 1.1):
        assert bound(step) < bound(other * step)
    ridge = small_problem("l1_median", constraint="l1_ball", radius=1.5, n=400, ridge=2.0)
    smaller = LocalMirrorDescent().plan(ridge.spec(), BUDGET).settings["step"]
    assert smaller == pytest.approx(step / (1.0 + 3.0 / plan.noise_scale))


@pytest.mark.parametrize("shape", channels.SHAPES)
@pytest.mark.parametrize("norm", [2.0, 3.0, 7.0, math.inf])
def test_the_norm_of_an_answer(shape, norm):
    """Above the mean of 4,000 draws, and the value itself where all answers are as long."""
    for dim in (1, 3, 40):
        found = channels.by_epsilon(shape, dim, 2.0)
        words = np.random.default_rng(1).integers(
            0, 2**64, (4000, 2, found.blocks), dtype=np.uint64
        )
        z = found.sample(np.zeros((4000, dim)), words)
        seen = math.sqrt(np.mean(np.linalg.norm(z, ord=norm, axis=1) ** 2))
        claimed = answer_norm(found, norm)
        # the lengths of privunit_g vary: five standard errors of 4,000 squares
        assert seen <= claimed * (1.06 if shape == "privunit_g" else 1.0 + 1e-9)
        if shape in ("l_inf", "l_1") or (norm == 2.0 and shape != "privunit_g"):
            assert seen == pytest.approx(claimed)


def test_facts_of_a_power_map():
    """B(u, 0) = |u|_q^2 / (2 (q - 1)) <= r^2 / (2 (q - 1)); the regulariser's slope is added."""
    spec = small_problem("hinge", constraint="l2_ball", radius=1.5, ridge=0.2).spec()
    channel = channels.by_epsilon("l_inf", 3, 2.0)
    distance, length = facts_of(spec, channel, 0.5, 2.0)
    assert distance == pytest.approx(1.5**2 / 2.0)
    assert length == pytest.approx(0.5 * channel.multiplier * math.sqrt(3.0) + 0.3)


@pytest.mark.parametrize("how", [{}, {"map": "power"}, {"step_rule": "decreasing"}])
@pytest.mark.parametrize("loss", ["l1_median", "hinge", "logistic"])
def test_it_learns_on_the_l1_ball(how, loss):
    """Within half of the floor: 20,000 users of epsilon 4 in three dimensions, one seed."""
    problem = small_problem(loss, constraint="l1_ball", n=20_000, radius=1.0)
    if loss == "l1_median":  # whose cloud lies around the centre
        x = 0.5 * problem.data.x + np.array([0.4, -0.2, 0.1])
        problem = replace(problem, data=replace(problem.data, x=x))
    theta = released(LocalMirrorDescent(**how), problem)
    assert np.all(problem.constraint.contains(theta))
    start = float(problem.objective(np.zeros(3)))
    shift = np.linspace(-1.0, 1.0, 9)
    grid = np.stack(np.meshgrid(shift, shift, shift), axis=-1).reshape(-1, 3)
    best = np.min(problem.objective(grid[np.sum(np.abs(grid), axis=1) <= 1.0]))
    assert np.all(problem.objective(theta) - best < 0.5 * (start - best))
