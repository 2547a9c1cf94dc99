"""Worked examples of the kernel mechanisms and of what they share."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import laplace

from dperm_cli.bounds import jt13
from dperm_cli.mechanisms.kernel.kernel_semi_interactive import explicit_scale
from dperm_cli.privacy import events
from dperm_cli.privacy.accounting import accountant, calibrate
from tests.theory.worked_examples.formulas import BOTH, compose_laws, find_mu
from tests.theory.worked_examples.pages import Worked, agree, works_out

MOVE = 2 / (0.1 * 50_000)  # s for L = R = 1, lambda = 0.1 and 50,000 records


AT = jt13.Setting(n=50_000, epsilon=1.0, delta=1e-6, ridge=0.1, radius=1.0)


@works_out("_kernels")
def move_prediction() -> Worked:
    move = agree(
        2 / (0.1 * 500), jt13.Setting(n=500, epsilon=1.0, delta=0.0, ridge=0.1).sensitivity
    )
    scale = move / 0.1
    up = scale * math.log(1 / (2 * 0.001))
    agree(up, -float(laplace.ppf(0.001, scale=scale)))
    return Worked((500, 0.1, 0.001), (move, scale, up))


@works_out("kernel_release")
def release_predictions() -> Worked:
    move = agree(MOVE, AT.sensitivity)
    mu = find_mu(1.0, 1e-6)
    noise = agree(move / mu, calibrate.gaussian_scale(1.0, 1e-6, move))
    largest = noise * math.sqrt(2 * math.log(2e6))
    agree(largest, jt13.gaussian_process(AT, mu, 1_000_000))
    return Worked((50_000, 0.1, 1e-6, 1_000_000), (move, mu, noise, largest))


def find_kappa(order: float, reach: float, threshold: float) -> float:
    """The sup of Lemma 3 on 9 pairs of each family, by quadrature."""
    worst = 0.0
    tail = threshold + 1e-3 * (np.arange(20_000) + 0.5)
    for a in np.linspace(0.0, reach, 9):
        pairs = ((threshold - a, threshold + reach - a), (threshold + a, threshold - reach + a))
        for x, other in pairs:
            log = -order * np.abs(tail - x) - (1 - order) * np.abs(tail - other)
            outside = 0.5e-3 * float(np.exp(log).sum())
            inside = [float(laplace.cdf(threshold - v)) for v in (x, other)]
            kept = inside[0] ** order * inside[1] ** (1 - order)
            worst = max(worst, math.log(outside / (1 - kept)))
    return worst


@works_out("kernel_interactive")
def answer_queries() -> Worked:
    ratio = 4 * math.log(2 * 100 / 0.05)
    reach = calibrate.sparse_reach(10, 100, 1.0, 1e-6, ratio)

    def spend(order: float) -> float:
        spent = 10 * find_kappa(order, reach, ratio) / (order - 1)
        return spent + math.log(1 - 1 / order) - (math.log(1e-6) + math.log(order)) / (order - 1)

    epsilon = minimize_scalar(
        spend, bounds=(8.0, 20.0), method="bounded", options={"xatol": 0.1}
    ).fun
    assert epsilon == pytest.approx(1.0, rel=5e-3)
    scale = MOVE / reach
    threshold = ratio * scale
    error = agree(1.25 * threshold, jt13.interactive_error(threshold))
    step = 0.75 * threshold
    updates = 16 / (9 * threshold**2)
    agree(updates, jt13.interactive_updates(1.0, 1.0, threshold, step))
    assert 9 < updates < 10
    inputs = (50_000, 0.1, 1e-6, 100, 0.05, 0.95, 16)
    results = (MOVE, reach, scale, ratio, threshold, error, step, updates)
    return Worked(inputs, results)


@works_out("kernel_non_interactive")
def build_function() -> Worked:
    scale, exponent = 8 * MOVE, 1 / (16 * MOVE)
    steps = [
        events.Exponential(exponent, MOVE, 4),
        events.Laplace(scale, MOVE / 2, 4),
    ]
    total = accountant.account(steps, delta=0.0, relation="replace_one").epsilon
    agree(4 * 2 * exponent * MOVE + 4 * MOVE / scale, total)
    walk = math.sqrt((1 + 10 * scale**2) / 4)
    miss = math.log(100) / exponent
    agree(walk + miss, jt13.non_interactive(1.0, 1.0, 4, scale, exponent, math.log(100)))
    inputs = (50_000, 0.1, 100, 0.5, 16)
    return Worked(inputs, (MOVE, scale, exponent, walk, miss, walk + miss))


def compose_laplace(reach: float, count: int, epsilon: float) -> float:
    """Delta of Laplace releases whose values move by ``reach`` scales."""
    x = (np.arange(2000) + 0.5) / 2000 * reach
    losses = np.concatenate([[reach, -reach], 2 * x - reach])
    inner = np.exp(-x) / 2 * (reach / 2000)  # density of the noisy value between the two centres
    chances = np.concatenate([[0.5, 0.5 * math.exp(-reach)], inner[::-1]])
    return compose_laws(losses, chances / chances.sum(), count, epsilon)


@works_out("kernel_semi_interactive")
def fit_noisy_predictions() -> Worked:
    steps = [events.Laplace(41.5, 0.5, 100)]
    epsilon = accountant.account(steps, delta=1e-6, relation="replace_one").epsilon
    assert compose_laplace(1 / 41.5, 100, epsilon) == pytest.approx(1e-6, rel=5e-3)
    explicit = agree(math.sqrt(800 * math.log(1e6)), explicit_scale(1.0, 100, BOTH))
    gaussian = 10 / agree(find_mu(1.0, 1e-6), calibrate.mu(1.0, 1e-6))
    noise = 41.5 * MOVE
    square = agree(
        4 * math.sqrt(2) * noise / 10, jt13.fitted_square(1.0, 1.0, math.sqrt(2) * noise, 100)
    )
    inputs = (50_000, 0.1, 1e-6, 100, 41.5)
    results = (MOVE, epsilon, explicit, gaussian, noise, square, math.sqrt(square))
    return Worked(inputs, results)
