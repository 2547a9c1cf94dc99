"""Bounds of [DJW12]: printed against proved, formulas by other means, and runs between them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from dperm_cli.bounds import all_bounds, djw12
from dperm_cli.bounds.base import Setting, list_bounds
from dperm_cli.core import registry
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.privacy import channels
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.problem import Problem
from dperm_cli.views.choose import open_view
from tests.theory.bounds_data import bare

SIZES = (1, 2, 3, 10, 101, 10**4, 10**6)


def local(
    n=10**4, p=10, multiplier=4.0, channel="l_inf", constraint="box", mechanism="local_sgd", **more
):
    """A setting of one answer a record, L = 1."""
    told = channels.by_multiplier(channel, p, multiplier).information
    found = {"channel": channel, "channel_bound": 1.0, "multiplier": multiplier, "answers": 1}
    found |= {"information": told, "output": "average", "step_rule": "constant", **more}
    return bare(n=n, p=p, constraint=constraint, mechanism=mechanism, steps=n, **found)


def named(name):
    (found,) = [bound for bound in list_bounds(djw12) if bound.id == name]
    return found


# --- what no method can do


@pytest.mark.parametrize("n", SIZES)
def test_majority_error_is_the_binomial_tail(n):
    bias = np.array([0.0, 0.003, 0.1, 0.7, 1.0])
    wrong = binom(n, 0.5 * (1.0 - bias))
    tie = 0.5 * wrong.pmf(n // 2) if n % 2 == 0 else 0.0
    exact = wrong.sf(n // 2) + tie
    assert djw12.majority_error(n, bias) == pytest.approx(exact, rel=1e-8, abs=1e-300)
    # ties and the rest: (1 - TV) / 2 of the two laws
    counts = np.arange(min(n, 2000) + 1)
    if n <= 2000:
        two = np.abs(binom(n, 0.55).pmf(counts) - binom(n, 0.45).pmf(counts)).sum() / 2.0
        assert djw12.majority_error(n, [0.1])[0] == pytest.approx((1.0 - two) / 2.0, rel=1e-9)


@pytest.mark.parametrize("multiplier", [1.0, 2.0, 50.0])
def test_constants_for_many_records(multiplier):
    """0.17, 0.135 and the constant of Fano for large d, once n is far above M^2."""
    n = 10**9
    unit = multiplier / math.sqrt(n)
    assert djw12.corners(n, multiplier) / unit == pytest.approx(0.16997, rel=1e-4)
    assert djw12.cross(n, multiplier, 10) / unit == pytest.approx(0.13506 * 10**0.5, rel=1e-3)
    large = djw12.one_corner(n, multiplier, 10**8) / (unit * math.sqrt(math.log(2e8)))
    assert large == pytest.approx(0.5 * np.max(fano(np.linspace(0.1, 1.5, 4000), 2e8)), rel=2e-3)


def fano(c, sides):
    return np.sqrt(c) * (1.0 - c / 2.0 - math.log(2.0) / math.log(sides))


@pytest.mark.parametrize("p", [1, 2, 3, 10, 100])
@pytest.mark.parametrize("multiplier", [1.0001, 2.0, 50.0])
@pytest.mark.parametrize("n", SIZES)
def test_printed_bounds_are_proved_where_they_are_claimed(n, multiplier, p):
    """Each printed bound is below the one that docs/proofs/_djw12.md proves."""
    told = 0
    for name, channel, shape in (
        ("DJW12 Thm 1(a)", "l_inf", "box"),
        ("DJW12 Thm 1(b)", "l_inf", "l1_ball"),
        ("DJW12 Thm 2", "l_1", "box"),
        ("DJW12 Cor 1 (lower)", "l_inf", "l1_ball"),
        ("DJW12 Cor 2 (lower)", "l_1", "box"),
    ):
        at = local(n, p, multiplier, channel, shape)
        if named(name).applies(at) is None:
            sharp = {"DJW12 Cor 1 (lower)": "DJW12 Thm 1(b)", "DJW12 Cor 2 (lower)": "DJW12 Thm 2"}
            proved = named(f"{sharp.get(name, name)} (sharp)")
            assert proved.applies(at) is None
            assert named(name).value(at) <= proved.value(at)
            told += 1
    assert told >= (3 if n >= 10**4 * max(1.0, (multiplier / 50) ** 2) else 0)


def test_a_corollary_is_below_its_theorem():
    for p, multiplier in ((2, 2.0), (5, 7.0), (5, 500.0), (40, 40.0)):
        at = local(10**8, p, multiplier, "l_1")
        assert named("DJW12 Cor 2 (lower)").value(at) <= named("DJW12 Thm 2").value(at)
        at = local(10**8, p, multiplier, "l_inf", "l1_ball")
        assert named("DJW12 Cor 1 (lower)").value(at) <= named("DJW12 Thm 1(b)").value(at)
    reason = named("DJW12 Cor 2 (lower)").applies(local(10**8, 40, 39.0, "l_1"))
    assert reason == "needs M >= 40 L"


def test_information_against_the_multiplier():
    """I* M^2 / d: within the corollaries' constants, and far outside for M_1 below d."""
    for p in (1, 2, 3, 10, 1000, 10**5):
        for multiplier in np.geomspace(2.0, 1e6, 200):
            told = channels.by_multiplier("l_inf", p, multiplier).information
            spread = told * multiplier**2 / p
            assert djw12.SPREAD_LOW <= spread * (1 + 1e-9) <= djw12.SPREAD_HIGH * (1 + 2e-9)
            told = channels.by_multiplier("l_1", p, multiplier).information
            spread = told * multiplier**2 / p
            assert spread <= djw12.SPREAD_HIGH * (1 + 1e-9)
            if multiplier >= p:
                assert spread >= djw12.SPREAD_LOW_L1
    told = channels.by_multiplier("l_1", 10**6, 2.0).information
    assert told * 4.0 / 10**6 < 3e-5


def test_expansion_of_the_cross_channel():
    """d / (2 M^2) - d^2 (d - 3) / (24 M^4) to the next order, in long arithmetic."""
    import mpmath as mp

    with mp.workdps(60):
        for d in (1, 2, 3, 10, 100):
            m = mp.mpf(10) ** 8
            rest = mp.mpf(2 * d - 2)
            gamma = mp.log((rest + mp.sqrt(rest**2 + 4 * (m * m - 1))) / (2 * (m - 1)))
            total = mp.exp(gamma) + mp.exp(-gamma) + rest
            told = mp.log(2 * d) - mp.log(total) + gamma / m
            off = (told - mp.mpf(d) / (2 * m * m)) * m**4
            assert float(off) == pytest.approx(djw12.next_information(1.0, d), rel=1e-6, abs=1e-6)
            assert djw12.gamma_of(1e8, d) == pytest.approx(float(gamma), rel=1e-9)


@pytest.mark.parametrize("p", [1, 2, 10])
@pytest.mark.parametrize("multiplier", [1.5, 2.0, 60.0])
def test_equation_9(p, multiplier):
    gamma = djw12.gamma_of(multiplier, p)
    assert djw12.delta_of(gamma, p) == pytest.approx(1.0 / multiplier, rel=1e-12)
    assert 2.0 * gamma == pytest.approx(channels.by_multiplier("l_1", p, multiplier).epsilon)
    assert djw12.delta_of(djw12.gamma_of(1.0, p), p) == 1.0
    printed = djw12.cross_as_printed(2.0, 3.0, multiplier, p, 400)
    assert printed == pytest.approx(2.0 * 3.0 * multiplier * p**0.5 / (163.0 * 20.0))


def test_they_are_for_one_answer_a_record_and_no_regulariser():
    def applying(at):
        return {b.id for b in list_bounds(djw12) if b.applies(at) is None}

    facts = {"step": 0.01, "distance": 1.0, "gradient_norm": 4.0, "map": "entropy"}
    assert applying(local(answers=2, **facts)) == set()
    assert "DJW12 Thm 1(a)" in applying(local(**facts))
    at = bare(p=10, ridge=0.1, constraint="box", mechanism="local_sgd", **local().settings)
    assert applying(at) == set()
    assert applying(bare()) == set()
    assert "DJW12 SGD" not in applying(local(**{**facts, "output": "last"}))
    # far fewer records than M^2: no bias is large enough to tell
    few = local(n=1, multiplier=100.0)
    assert "is proved for n" in str(named("DJW12 Thm 1(a)").applies(few))
    assert named("DJW12 Thm 1(a)").value(few) > 0.5 * named("DJW12 Thm 1(a) (sharp)").value(few)


def test_inner_boxes():
    for name, expect in (("box", 2.0), ("l2_ball", 1.0), ("l1_ball", 0.5)):
        shape = bare(p=4, radius=2.0, constraint=name).spec.constraint
        assert shape.inner_cube == pytest.approx(expect)
        corner = np.full(4, expect)
        assert shape.contains(corner)
        assert not shape.contains(1.001 * corner)
    assert bare(constraint="simplex").spec.constraint.inner_cube is None


# --- what the methods do


def plan_of(mechanism, n, p, constraint, **keys):
    found = registry.load("mechanism", mechanism)(**keys)
    spec, budget = bare(n=n, p=p, constraint=constraint).spec, Budget(1.0, 0.0, trust="local")
    plan = found.plan(spec, budget)
    return Setting(spec, budget, "local", mechanism, plan.noise_scale, plan.steps, plan.settings)


@pytest.mark.parametrize(
    ("mechanism", "constraint", "channel", "best", "name"),
    [
        ("local_sgd", "box", "l_1", "sgd", "DJW12 SGD"),
        ("local_sgd", "l2_ball", "l_inf", "sgd", "DJW12 SGD"),
        ("local_sgd", "l2_ball", "l_2", "sgd", "DJW12 SGD"),
        ("local_mirror_descent", "l1_ball", "l_inf", "entropy", "DJW12 mirror descent"),
    ],
)
def test_the_plans_step_is_the_bounds_best(mechanism, constraint, channel, best, name):
    at = plan_of(mechanism, 1000, 6, constraint, channel=channel)
    bound = named(name)
    assert bound.applies(at) is None
    gradient = at.settings["gradient_norm"]
    if best == "sgd":
        expect = at.spec.constraint.radius * gradient / math.sqrt(1000)
    else:
        expect = gradient * math.sqrt(2.0 * math.log(12.0) / 1000)
    assert bound.value(at) == pytest.approx(expect, rel=1e-9)
    for corollary in ("DJW12 Cor 1 (upper)", "DJW12 Cor 2 (upper)"):
        if named(corollary).applies(at) is None:
            assert bound.value(at) <= named(corollary).value(at) * (1 + 1e-6)


def test_other_steps_and_the_power_map_have_bounds_too():
    at = plan_of("local_sgd", 1000, 6, "box", step_rule="decreasing")
    step, square = at.settings["step"], at.settings["gradient_norm"] ** 2
    expect = (at.spec.constraint.diameter**2 / (2 * step) + step * square) / math.sqrt(1000)
    assert named("DJW12 SGD").value(at) == pytest.approx(expect, rel=1e-9)
    at = plan_of("local_mirror_descent", 1000, 6, "l1_ball", map="power", step_size=0.01)
    facts = at.settings
    expect = facts["distance"] / 10.0 + 0.005 * facts["gradient_norm"] ** 2
    assert named("DJW12 mirror descent").value(at) == pytest.approx(expect, rel=1e-9)
    assert named("DJW12 Cor 1 (upper)").applies(at) is not None


def test_records_hold_the_best_of_them():
    at = plan_of("local_mirror_descent", 10**6, 6, "l1_ball")
    row = all_bounds.choose_best_bounds(at)
    assert row["population_bound_lower_id"] == "DJW12 Thm 1(b) (sharp)"
    assert row["population_bound_upper_id"] == "DJW12 mirror descent"
    assert 0.0 < row["population_bound_lower"] < row["population_bound_upper"]
    assert row["population_bound_upper"] / row["population_bound_lower"] < 9.0
    few = all_bounds.choose_best_bounds(plan_of("local_mirror_descent", 2, 6, "l1_ball"))
    assert few["population_bound_upper_id"] == all_bounds.RANGE


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "channel", "constraint", "corners", "favoured"),
    [
        ("local_sgd", "l_1", "box", "cross", "all"),
        ("local_sgd", "l_inf", "box", "cube", "all"),
        ("local_mirror_descent", "l_inf", "l1_ball", "cube", "one"),
    ],
)
def test_the_hard_family_lies_between_the_bounds(mechanism, channel, constraint, corners, favoured):
    """Largest mean risk over signals; 30 draws of the data, 5 standard errors allowed."""
    n, p, budget = 2000, 5, Budget(2.0, 0.0, trust="local")
    found = registry.load("mechanism", mechanism)(channel=channel, row_norm=1.0)
    shape = registry.load("constraint", constraint)(1.0, p)
    means = []
    for signal in (1.0, 3.0, 10.0, 30.0):
        risks = []
        for seed in range(30):
            law = registry.load("dataset", "djw12_corners")(
                n=n, p=p, corners=corners, favoured=favoured, signal=signal, seed=seed
            )
            problem = Problem(law.load(), registry.load("loss", "linear")(), shape)
            plan = found.plan(problem.spec(), budget)
            gate = Gate([seed_sequence(seed, "t")], plan=(plan.events, "replace_one"))
            theta = found.release(open_view(found, problem), plan, gate).theta
            risks.append(law.excess(problem.loss, theta[0], shape))
        means.append((np.mean(risks), np.std(risks) / math.sqrt(30)))
    at = Setting(problem.spec(), budget, "local", mechanism, plan.noise_scale, plan.steps,
                 plan.settings)  # fmt: skip
    row = all_bounds.choose_best_bounds(at)
    worst, error = max(means)
    assert worst + 5 * error >= row["population_bound_lower"]
    assert all(mean - 5 * off <= row["population_bound_upper"] for mean, off in means)
