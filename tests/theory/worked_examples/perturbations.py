"""Worked examples of mechanisms that put noise on a minimiser, an objective or moments."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import chi

from dperm_cli.bounds.fkt20 import PhaseFacts
from dperm_cli.losses.squared import Squared
from dperm_cli.mechanisms.combinators import localization
from dperm_cli.mechanisms.perturbation import sufficient_statistics
from dperm_cli.mechanisms.shared import moment_sensitivity, noisy_minimiser
from dperm_cli.privacy.accounting import calibrate, objective_perturbation
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem, Regulariser
from dperm_cli.sets import make_ball
from dperm_cli.solvers import perturbed_minimiser
from tests.theory.worked_examples.formulas import (
    BOTH,
    PURE,
    find_delta,
    find_logistic_gap,
    find_mu,
    make_plan,
    state_facts,
    state_logistic,
)  # fmt: skip
from tests.theory.worked_examples.pages import Worked, agree, works_out

RIDGE = {"regulariser": Regulariser(0.1)}
HALVES = [500, 250, 125, 62, 31, 15, 7, 3, 1]


def find_move() -> tuple[float, float, float]:
    """g + r, the distance of a minimiser that is found, and the sensitivity, at ridge 0.1."""
    spec = state_facts(**RIDGE)
    gap = noisy_minimiser.provable_gap(spec) + perturbed_minimiser.gap_error(spec, 100.0)
    distance = math.sqrt(2 * gap / 100)
    stable = noisy_minimiser.stability(spec)
    agree(distance, stable.error)
    return gap, distance, agree(2 / 100 + 2 * distance, stable.gap)


@works_out("output_perturbation")
def perturb_minimiser() -> Worked:
    gap, distance, move = find_move()
    plan = make_plan("output_perturbation", BOTH, state_facts(**RIDGE), noise="gaussian")
    scale = agree(move / find_mu(1.0, 1e-6), plan.noise_scale)
    agree(move, make_plan("output_perturbation", PURE, state_facts(**RIDGE)).noise_scale)
    gamma, gaussian = 5 * 6 * move**2, 5 * scale**2
    assert gamma < gaussian
    inputs = (1000, 5, 0.1, 0.02, 1e-6, 30)
    return Worked(inputs, (1000 * 0.1, gap, distance, move, gamma, scale, gaussian))


@works_out("objective_perturbation")
def perturb_objective() -> Worked:
    gap = agree(find_logistic_gap(), state_logistic().gradient_gap)
    jacobian = math.log(1 + 0.25 / 10)
    plan = make_plan("objective_perturbation", PURE, state_logistic(), strength=10.0)
    scale = agree(gap / (1 - jacobian - 0.001), plan.noise_scale)
    agree(jacobian, plan.settings["jacobian"])
    moment = 30 * scale**2
    ratio = find_mu(0.9, 5e-7)
    agree(ratio, objective_perturbation.noise_ratio(0.9, 1e-6, "replace_one"))
    agree(1e-6, 2 * find_delta(0.9, ratio))
    edge = ratio * math.sqrt(1 + ratio**2 / 4)
    assert edge < 0.9
    inputs = (1000, 5, 0.25, 0.001, 30, 0.1, 0.9, 1e-6)
    results = (gap, jacobian, 1 - jacobian - 0.001, scale, moment, moment / 20)
    return Worked(inputs, (*results, ratio, edge, 2 / ratio))


@works_out("approximate_minima_perturbation")
def split_between_two_noises() -> Worked:
    gap, jacobian = find_logistic_gap(), math.log(1 + 0.25 / 10)
    plan = make_plan("approximate_minima_perturbation", PURE, state_logistic(), strength=10.0)
    first = agree(gap / (0.99 - jacobian), plan.noise_scale)
    near = plan.settings["distance"]  # what rounding lets be proved: tests/solvers
    second = agree(2 * near / 0.01, plan.settings["second_scale"])
    one = make_plan("objective_perturbation", PURE, state_logistic(), strength=10.0)
    more = agree(first / (gap / (0.999 - jacobian)), first / one.noise_scale)
    inverse = 1 / agree(find_mu(0.01, 1e-8), calibrate.mu(0.01, 1e-8), 1e-6)
    inputs = (1000, 5, 0.25, 0.01, 0.99, 1e-6, 1e-8)
    return Worked(inputs, (gap, jacobian, first, near, second, 100 * (more - 1), inverse))


@works_out("sufficient_statistics")
def perturb_moments() -> Worked:
    mu = find_mu(1.0, 1e-6)
    move = agree(3 / math.sqrt(2), moment_sensitivity.joint_sensitivity("replace_one"))
    zeros = np.zeros((1000, 5))
    data = Data.of_records("toy", "regression", zeros, zeros[:, 0], 1.0, 1.0, fingerprint="")
    spec = Problem(data, Squared(), make_ball(1.0, 5)).spec()
    gaussian = make_plan("sufficient_statistics", BOTH, spec, noise="gaussian")
    wishart = make_plan("sufficient_statistics", BOTH, spec, noise="wishart")
    scale = agree(move / mu, gaussian.noise_scale)
    agree(2 * 1.5, wishart.noise_scale)
    edge = agree(scale * math.sqrt(10), sufficient_statistics.find_edge(gaussian.events[0], 5))
    first, second = scale**2 * 1.5, 2 * 1.5**2 * 7 * 3
    chosen = make_plan("sufficient_statistics", BOTH, spec)
    assert second < first
    assert chosen.events == wishart.events
    return Worked((1000, 5, 1e-6, 1.5), (move, mu, scale, edge, first, second))


@works_out("localization")
def localize() -> Worked:
    _, distance, move = find_move()
    whole = find_mu(1.0, 1e-6)
    mu = whole / math.sqrt(2)
    plan = make_plan("localization", BOTH, state_facts(**RIDGE))
    first = agree(move / mu, plan.settings["first_noise_scale"])
    chance = agree(min(1000.0**-3, 1e-3), localization.failure(1000))
    quantile = float(chi.isf(chance, 5))
    radius = agree(quantile * first + distance, plan.settings["radius"])
    second = agree(2 * math.sqrt(200) / mu, plan.noise_scale)
    inputs = (1000, 5, 0.1, 1e-6, 1e-3, 1e-9, 200)
    return Worked(inputs, (whole, move, mu, first, quantile, radius, 2 * radius, second))


def bound_phases(eta: float, sizes: list[int], root: float) -> float:
    """Theorem 2 for R = L = 1, G = 2 and exact minimisers; ``root`` is that of E|b|^2."""
    noise = sum(
        4.0 ** (2 - i) * eta * root**2 / (2 * size) for i, size in enumerate(sizes, 1) if i > 1
    )
    moves = 2 * eta * sum(4.0**-i for i in range(1, len(sizes) + 1))
    return 2 / (eta * sizes[0]) + noise + moves + eta * root * 4.0 ** -len(sizes)


@works_out("phased_erm")
def go_through_phases() -> Worked:
    mu = find_mu(1.0, 1e-6)
    scale = agree(2 / mu, calibrate.gaussian_scale(1.0, 1e-6, 2.0))
    root = math.sqrt(8) * scale
    facts, results = PhaseFacts(1.0, 1.0, 2.0, root, 0.0), [mu, scale, root]
    for sizes in (HALVES, HALVES[:3]):
        eta = math.sqrt(2 / sizes[0] / (bound_phases(1.0, sizes, root) - 2 / sizes[0]))
        agree(eta, facts.find_best_step(sizes))
        results += [eta, agree(bound_phases(eta, sizes, root), facts.add_up(eta, sizes))]
    return Worked((1000, 8, 1e-6, *HALVES), tuple(results))
