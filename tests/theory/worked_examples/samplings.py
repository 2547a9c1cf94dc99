"""Worked examples of draws from exponential laws, and of their samplers."""

from __future__ import annotations

import math

from dperm_cli.bounds import bst14_upper
from dperm_cli.privacy.accounting import calibrate
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
