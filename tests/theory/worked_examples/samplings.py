"""Worked examples of draws from exponential laws, and of their samplers."""

from __future__ import annotations

import math

from dperm_cli.bounds import bst14_upper
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.problem.problem import bare_spec
from dperm_cli.samplers import proximal, rejection
from dperm_cli.samplers.base import Target
from dperm_cli.sets import make_ball
from tests.theory.worked_examples.formulas import BOTH, PURE, find_mu, make_plan, state_facts
from tests.theory.worked_examples.pages import Worked, agree, works_out


@works_out("exponential")
def draw_point() -> Worked:
    plan = make_plan("exponential", PURE, state_facts(p=1))
    exponent = agree(1 / 4, plan.events[0].exponent)
    agree(exponent, calibrate.exponent(1.0, 4.0))
    risk = agree(1 / exponent, bst14_upper.exponential_risk(1, exponent))
    # 1000 records -x on [-1, 1], one of which becomes +x: the log ratio at x = 1
    worst = 2 * exponent + math.log(math.sinh(250) / 1000) - math.log(math.sinh(249.5) / 998)
    return Worked((1000, 998), (exponent, math.exp(-1), risk, risk / 1000, worst))


@works_out("regularized_exponential")
def draw_regularised_point() -> Worked:
    mu = agree(find_mu(1.0, 1e-6), calibrate.mu(1.0, 1e-6))
    convexity = 2 * math.sqrt(2) / mu
    exponent = mu**2 * convexity / 4
    plan = make_plan("regularized_exponential", BOTH, state_facts(p=1))
    sampler = plan.settings["sampler"]
    agree(exponent, sampler["exponent"])
    kappa = agree(exponent * convexity, sampler["kappa"])
    risk = 1 / exponent + kappa / exponent / 2
    agree(risk, bst14_upper.exponential_risk(1, exponent, kappa / 2))
    agree(risk, convexity)
    return Worked((1000, 1e-6), (mu, convexity, exponent, kappa, mu, risk, risk / 1000))


def state_target() -> Target:
    """100 records, the unit ball in two dimensions, exponent 0.025: F = 5."""
    target = Target(bare_spec(100, 1.0, make_ball(1.0, 2)), 0.025)
    agree(5.0, target.oscillation)
    return target


@works_out("_proximal")
def walk_by_proximal_steps() -> Worked:
    target = state_target()
    shrink = min(1.0, 2 * 1 / 2.0**2)
    bound = agree(5 - 2 * math.log(shrink) + shrink * 4, proximal.log_density_bound(target, 1.0))
    gap = agree(math.pi**2 / 4, proximal.poincare(target))
    left = -math.log(1 - math.exp(-0.01))
    whole, each = 2.5 + bound / 2 + left, math.log(1 + gap)
    steps = 1 + math.ceil(whole / each)
    assert proximal.count_needed_steps(target, 1.0, 0.01) == steps
    fixed = 2 + math.ceil((bound + left) / each)
    assert proximal.count_needed_steps(target, 1.0, 0.01, "point") == fixed
    inputs = (100, 0.025, 0.01)
    return Worked(inputs, (shrink, bound, gap, left, whole, each, steps, fixed))


@works_out("_samplers")
def try_a_fixed_number_of_times() -> Worked:
    target = state_target()
    share = 2 / 5
    kept = agree(
        share**2 * math.exp(-share * 5 - 0.02), math.exp(rejection.log_fixed_acceptance(target))
    )
    miss = math.expm1(0.01) * math.exp(-5)
    tries = math.ceil(math.log(miss) / math.log(1 - kept))
    assert rejection.count_needed_tries(target, 0.01) == tries
    left = (1 - kept) ** tries
    distance = max(-math.log(1 - left), math.log(1 + left * math.exp(5)))
    agree(distance, rejection.fixed_distance(target, tries), 1e-8)
    inputs = (100, 0.025, 0.01, 0.02)
    return Worked(inputs, (share, kept, miss, tries, left, distance))
