"""Worked examples of mechanisms around others, of their comparison, and without noise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.stats import chi2

from dperm_cli.bounds import bst14_lemmas, kj16_lemmas
from dperm_cli.core import registry
from dperm_cli.kernels.rbf import Rbf
from dperm_cli.kernels.shared.feature_maps import Fourier
from dperm_cli.losses.hinge import Hinge
from dperm_cli.losses.huberized_hinge import HuberizedHinge
from dperm_cli.losses.linear import Linear
from dperm_cli.mechanisms.compression import standard_projection
from dperm_cli.mechanisms.shared import predicted_risk
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.accounting.random_stopping import Poisson
from dperm_cli.problem import projection_dimension
from dperm_cli.problem.problem import bare_spec
from dperm_cli.sets import make_ball
from tests.theory.worked_examples.formulas import (
    BOTH,
    find_delta,
    find_logistic_gap,
    find_mu,
    make_plan,
    state_logistic,
)
from tests.theory.worked_examples.pages import Worked, agree, works_out


@works_out("high_probability")
def choose_among_runs() -> Worked:
    runs, exponent = math.ceil(math.log2(2 / 0.05)), 0.5 / 4
    whole = agree(find_mu(0.5, 1e-6), calibrate.mu(0.5, 1e-6))
    each = whole / math.sqrt(runs)
    plan = make_plan("high_probability", BOTH, rho=0.05)
    assert plan.settings["runs"] == runs
    scale = agree(2 * math.sqrt(200) / each, plan.noise_scale)
    assert plan.guarantee.epsilon < 1
    more = math.log(2 * runs / 0.05) / exponent
    agree(2 * 100 + more, bst14_lemmas.amplified_risk(100.0, exponent, 0.05))
    inputs = (1000, 5, 1e-6, 0.05, 0.5, 200, 100)
    results = (runs, whole, each, scale, exponent, 12 / 0.05, more, 200 + more)
    return Worked(inputs, results)


@works_out("huberized")
def round_kink() -> Worked:
    loss, hinge, one = HuberizedHinge(width=0.2), Hinge(), np.ones(1)
    values = [(0.2 - 0.1) ** 2 / 0.8, (0.2 + 0.1) ** 2 / 0.8, 0.2 / 4]
    for margin, value in zip((1.1, 0.9, 1.0), values, strict=True):
        agree(value, float(loss.value(np.array([margin]), one)[0]))
    assert float(hinge.value(np.array([0.9]), one)[0]) == pytest.approx(0.1)
    smooth = agree(1 / 0.4, float(loss.curvature(one, one)[0]))
    jacobian = math.log(1 + smooth / 100)
    return Worked((0.2, 0.1, 1.1, 0.9, 1000, 50, 100), (*values, smooth, jacobian))


def find_selection_epsilon(mu: float) -> float:
    """Epsilon at 1e-6 of a Poisson selection of mean 3, from [PS22, Thm 6]."""

    def bound(tilt: float) -> float:
        renyi = (tilt + 1) * mu**2 / 2 + 3 * find_delta(math.log1p(1 / tilt), mu)
        renyi += math.log(3) / tilt
        return renyi + math.log(tilt / (tilt + 1)) - (math.log(1e-6) + math.log(tilt + 1)) / tilt

    found = minimize_scalar(bound, bounds=(5.0, 100.0), method="bounded", options={"xatol": 1e-7})
    return float(found.fun)


@works_out("private_selection")
def choose_candidate() -> Worked:
    mu = calibrate.selection_mu(Poisson(3.0), 1.0, 1e-6)
    assert find_selection_epsilon(mu) == pytest.approx(1.0, abs=1e-6)
    factor = find_mu(1.0, 1e-6) / mu
    spec = bare_spec(1000, 1.0, make_ball(10.0, 2))
    candidates = {"constraint.radius": [1.0, 10.0]}
    plan = make_plan("private_selection", BOTH, spec, candidates=candidates)
    first, second = mu * math.sqrt(0.9), mu * math.sqrt(0.1)
    scale = agree(2 * math.sqrt(200) / first, plan.noise_scale, 1e-6)
    score = agree(40 / second, plan.settings["tuning"]["score_noise"], 1e-6)
    assert plan.steps == 3 * 201
    inputs = (1000, 1e-6, 0.9, 0.1, 200, 40, 20)
    results = (find_mu(1.0, 1e-6), mu, factor, first, scale, second, score, 603)
    return Worked(inputs, results)


@works_out("non_private")
def give_minimiser_away() -> Worked:
    plan = make_plan("non_private", BOTH)
    risk = agree(1e-9 * 1000 * 2, plan.settings["gap"] * 1000 * 2)
    slopes = [
        float(Linear().slope(np.zeros(3), np.array(labels)).sum())
        for labels in ([1.0, -1.0, 1.0], [1.0, -1.0, -1.0])
    ]
    assert slopes == [-1.0, 1.0]  # the minimisers are 1 and -1
    return Worked((1000, 1e-9, 1e-6), (risk,))


@works_out("auto")
def compare_predictions() -> Worked:
    spec, results = state_logistic(), []
    two = [registry.load("mechanism", name)() for name in ("noisy_gd", "objective_perturbation")]
    first, second = predicted_risk.rank(two, spec, BOTH).fits
    assert (first.name, second.name) == ("objective_perturbation", "noisy_gd")
    slope = agree(1 / (1 + math.exp(-1)), spec.lipschitz)
    assert first.plan.settings["noise"] == "gamma"
    scale = first.plan.noise_scale
    gap = find_logistic_gap()
    noise = agree(gap / find_mu(1.0, 1e-6), second.plan.noise_scale / math.sqrt(200))
    few = max(0.9, 3.2 / math.sqrt(5))
    for amount, factor, found in ((scale * math.sqrt(6), 1, first), (noise, few, second)):
        x = amount * math.sqrt(5) / (1000 * slope)
        log = -5.20 + 0.28 * math.log(x) - 1.80 * math.log1p(1 / (30 * x)) + 0.58 * math.log(5)
        results += [amount, x, -log, agree(factor * slope * math.exp(log), found.risk)]
    inputs = (1000, 5, 1e-6, 0.9, 3.2, 5.20, 0.28, 1.80, 0.58, 30)
    return Worked(inputs, (scale, slope, gap, few, *results))


@works_out("projected")
def project_rows() -> Worked:
    pure = agree(
        (10_000 * 4 / 2) ** (2 / 3), projection_dimension.balanced_dimension(10_000, 1.0, 0.0, 4.0)
    )
    approx = 10_000 * 4 / math.sqrt(math.log(1e6))
    agree(approx, projection_dimension.balanced_dimension(10_000, 1.0, 1e-6, 4.0))
    stretch = 1 + math.sqrt(100_000 / 737)
    chance = agree(float(chi2.sf(4 * 737, 737)), kj16_lemmas.clip_probability(737), 1e-6)
    assert chance < 1e-100
    return Worked((10_000, 1e-6, 100_000), (pure, 737, approx, stretch))


@works_out("standard_projection")
def draw_matrices() -> Worked:
    pilots = standard_projection.PILOTS
    mean = agree(quad(lambda u: 4 * u**3 / u, 0, 1)[0], pilots / (pilots - 1))
    first = agree(quad(lambda u: 4 * u**3 * u, 0, 1)[0], pilots / (pilots + 1))
    rest = agree(quad(lambda u: 4 * u**3 * (1 - u) ** 3, 0, 1)[0], 1 / 35)
    return Worked((35,), (mean, first, rest))


@works_out("random_features")
def map_record() -> Worked:
    features = Fourier(Rbf(gamma=0.5), columns=1, size=2)
    features._kept["w"] = np.array([[0.5], [1.5]])
    row, zero = features.raw(np.array([[1.0], [0.0]]))
    product = agree((math.cos(0.5) + math.cos(1.5)) / 2, float(row @ zero))
    agree(1.0, float(row @ row))
    entries = [math.cos(0.5), math.cos(1.5), math.sin(0.5), math.sin(1.5)]
    entries = [agree(e / math.sqrt(2), float(v)) for e, v in zip(entries, row, strict=True)]
    exact = agree(
        math.exp(-0.5), float(Rbf(gamma=0.5).gram(np.ones((1, 1)), np.zeros((1, 1)))[0, 0])
    )
    return Worked((0.5, 1.5), (*entries, product, exact))
