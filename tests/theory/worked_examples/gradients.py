"""Worked examples of the mechanisms that descend on noisy gradients."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from dperm_cli.bounds import bst14, one_pass, ttz14
from dperm_cli.mechanisms.gradient import noisy_gd, noisy_sgd
from dperm_cli.mechanisms.shared.mirror_maps import EntropyMap
from dperm_cli.mechanisms.shared.vertex_choice import list_vertices
from dperm_cli.privacy import events
from dperm_cli.privacy.accounting import accountant, calibrate
from dperm_cli.problem.problem import bare_spec
from dperm_cli.sets.l1_ball import L1Ball
from tests.theory.worked_examples.formulas import (
    BOTH,
    PURE,
    compose_laws,
    find_logistic_gap,
    find_mu,
    make_plan,
    state_facts,
    state_logistic,
)
from tests.theory.worked_examples.pages import Worked, agree, works_out


@works_out("noisy_gd")
def descend_on_full_gradients() -> Worked:
    mu = agree(find_mu(1.0, 1e-6), calibrate.mu(1.0, 1e-6))
    scale = agree(2 * math.sqrt(200) / mu, make_plan("noisy_gd", BOTH).noise_scale)
    size = math.sqrt(1000.0**2 + 5 * scale**2)
    bound = agree(size / math.sqrt(200), noisy_gd.theory_bound(state_facts(), scale, 200))
    slope, gap = 1 / (1 + math.exp(-1)), find_logistic_gap()
    plan = make_plan("noisy_gd", BOTH, state_logistic())
    less = agree(gap * math.sqrt(200) / mu, plan.noise_scale)
    logistic = (slope, gap, less, 2 * slope * math.sqrt(200) / mu)
    return Worked((1000, 5, 1, 1e-6, 200), (mu, scale, size, bound, bound / 1000, *logistic))


def compose_batches(scale: float, epsilon: float) -> float:
    """Delta of 100,000 batches of 10 of 1000 records."""
    q, s = 0.01, 2 * 100.0 / scale
    x = np.linspace(s / 2, 9.0, 10001)
    loss = np.log1p(q * np.expm1(s * x - s * s / 2))
    chances = norm.pdf(x) * (x[1] - x[0])
    losses, both = np.append(loss, -loss), np.append(chances * np.exp(loss), chances)
    return compose_laws(losses, both, 100_000, epsilon)


@works_out("noisy_sgd")
def descend_on_batches() -> Worked:
    steps = [events.SampledGaussian(2800.0, 100.0, 10, 1000, "fixed", count=100_000)]
    epsilon = accountant.account(steps, delta=1e-6, relation="replace_one").epsilon
    assert compose_batches(2800.0, epsilon) == pytest.approx(1e-6, rel=2e-3)
    size = math.sqrt(1000.0**2 + 5 * 2800.0**2)
    agree(size, noisy_sgd.gradient_bound(state_facts(), 2800.0, 10, "fixed"))
    bound = 1.5 * 2 * size * (2 + math.log(100_001)) / math.sqrt(100_001)
    agree(bound, bst14.last_iterate(2.0, size, 100_001))
    inputs = (1000, 5, 1e-6, 10, 100, 2800, 0.01, 100_000, 100_001)
    return Worked(inputs, (200 / 2800, epsilon, size, bound))


@works_out("frank_wolfe")
def choose_vertices() -> Worked:
    bend, logarithm = 1000 * 0.25 * 2.0**2, math.log(200)
    each = 2 * 2 * logarithm
    steps = math.ceil(math.sqrt(2 * bend / each))
    risk = 2 * bend / (steps + 2) + steps * each
    agree(risk, ttz14.frank_wolfe_risk(bend, steps, ttz14.choice_error(200, 1 / (steps * 4))))
    best = 2 * math.sqrt(2 * bend * each) + each
    agree(best, ttz14.frank_wolfe_pure_risk(bend, 4.0, 200, 1.0))
    spec = bare_spec(1000, 1.0, L1Ball(p=100, radius=1.0), smoothness=0.25)
    plan = make_plan("frank_wolfe", PURE, spec, steps=steps, oracle="choice")
    agree(steps * 4.0, plan.noise_scale, 2e-6)
    inputs = (1000, 100, 0.25, 200)
    return Worked(inputs, (bend, logarithm, each, steps, 1 / (4 * steps), risk, best))


@works_out("mirror_descent")
def descend_by_entropy() -> Worked:
    spec = bare_spec(1000, 1.0, L1Ball(p=100, radius=1.0))
    scale = agree(
        2 * math.sqrt(200) / find_mu(1.0, 1e-6),
        make_plan("mirror_descent", BOTH, spec).noise_scale,
    )
    distance, second = math.log(200), 1000.0**2 * 2**2 / 4 + scale**2
    step = math.sqrt(2 * distance / (200 * second))
    bound = math.sqrt(2 * distance * second / 200)
    agree(bound, ttz14.mirror_risk(distance, second, step, 200))
    facts = EntropyMap(list_vertices(spec.constraint)).facts(spec, scale)
    agree(bound, facts.step(200)[0])
    return Worked((1000, 100, 200, 1e-6), (scale, distance, second, step, bound))


@works_out("newton")
def share_between_gradients_and_curvature() -> Worked:
    mu = agree(find_mu(1.0, 1e-6), calibrate.mu(1.0, 1e-6))
    first, second = mu * math.sqrt(0.9), mu * math.sqrt(0.1)
    plan = make_plan("newton", BOTH, state_facts(smoothness=0.25))
    scale = agree(2 * math.sqrt(30) / first, plan.noise_scale)
    matrix = agree(math.sqrt(2) * 0.25 / second, plan.settings["curvature_scale"])
    spread, travel = 4 * math.sqrt(5) * matrix, scale * math.sqrt(5 * 30) / 2
    strength = agree(max(spread, travel), plan.settings["strength"])
    inputs = (1000, 5, 0.25, 30, 0.1, 0.9, 1e-6)
    return Worked(inputs, (mu, first, second, scale, matrix, spread, strength))


@works_out("one_pass_sgd")
def pass_once() -> Worked:
    moment = 5 * 6 * 2.0**2
    best = math.sqrt(moment)
    batches = math.floor(1000 / best)
    plan = make_plan("one_pass_sgd", PURE)
    assert plan.settings["batches"] == batches
    least = 1000 // batches
    size = agree(math.sqrt(1 + moment / least**2), plan.settings["gradient_bound"], 1e-5)
    bound = agree(2 * size / math.sqrt(batches), one_pass.convex(2.0, size, batches))
    agree(2.0, plan.noise_scale, 1e-5)
    return Worked((1000, 5, 30), (moment, best, batches, least, size, bound))
