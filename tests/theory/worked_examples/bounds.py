"""Worked examples of the pages on bounds and on constants of losses."""

from __future__ import annotations

import math

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit, lambertw
from scipy.stats import beta, chi2

from dperm_cli.bounds import (
    bst14_lemmas,
    bst14_lower,
    bst14_population,
    bst14_upper,
    hidden_directions,
    jt13,
    kj16_lemmas,
    random_directions,
)
from dperm_cli.bounds.hidden_lower import Privacy, find_on_ball
from dperm_cli.losses.logistic import Logistic
from dperm_cli.losses.squared import Squared
from dperm_cli.privacy.budget import Budget
from dperm_cli.problem.data import Bounds
from tests.theory.bounds_data import bare
from tests.theory.worked_examples.pages import PROOFS, Worked, agree, works_out


@works_out("_upper_bounds")
def bound_risks() -> Worked:
    draw = agree(5 / 0.25, bst14_upper.exponential_risk(5, 0.25))
    net = agree(math.log(10_000) / 0.25, bst14_upper.net_risk(10_000, 0.25, 0.0))
    length, square = bst14_upper.gamma_moments(5, 0.02)
    noise = agree(1000 * 5 * 0.02, 1000 * length)
    smooth = agree(1000 * 0.35 / 2 * 30 * 0.02**2, 1000 * 0.35 / 2 * square)
    size = math.sqrt(30 * 2.0**2)
    objective = agree(size, bst14_upper.perturbed_risk(size**2, size, size, 1.0))
    spread = math.expm1(1) / (math.e + 1)
    agree(spread, bst14_population.stability_gap(1.0, 0.0, 1.0))
    inputs = (1000, 5, 0.25, 0.02, 10_000, 0.1, 0.35, 30)
    return Worked(inputs, (draw, draw / 1000, net, noise, smooth, size, objective, spread))


@works_out("_statements")
def evaluate_statements() -> Worked:
    page = (PROOFS / "_statements.md").read_text()
    explicit, order = (page.count(f" | {word} |") for word in ("explicit", "order"))
    printed = 4 / 0.25 * (6 * math.log(3) + 1)
    agree(printed, bst14_upper.paper_exponential_risk(5, 0.25))
    sharp = agree(5 / 0.25, bst14_upper.exponential_risk(5, 0.25))
    amplified = agree(2 * 0.01 * 0.5, bst14_lemmas.amplify_as_printed(0.5, 0.01))
    sampled = agree(0.5 + 2 * 0.01, bst14_lemmas.sampled_epsilon(0.5, 0.01))
    results = (explicit + order, explicit, order, printed, sharp, printed / sharp)
    return Worked((0.25, 0.01, 0.5), (*results, amplified, sampled))


@works_out("_lower_bounds")
def bound_from_below() -> Worked:
    def lose(k: int) -> float:
        return k * (1 - math.tanh(k * 0.05))

    best = max(range(1, 1000), key=lose)
    agree(lose(best), bst14_lower.two_points.value(bare(n=1000, p=5, epsilon=0.1)))
    # a uniform point of the unit sphere in 30 dimensions: t = 2 B - 1, B of a beta law
    law = beta(14.5, 14.5)

    def gain(x: float) -> float:
        return quad(lambda t: (t - x) * law.pdf((t + 1) / 2) / 2, x, 1, epsabs=1e-15)[0]

    rho = brentq(lambda x: math.expm1(13) * gain(x) - x, 0.3, 0.99, xtol=1e-12)
    found = float(random_directions.bound_correlation(30, np.array(13.0)))
    agree(rho, found, 1e-7)
    limit = minimize_scalar(
        lambda k: -k * (1 - math.sqrt(-math.expm1(-2 * k))), bounds=(0.1, 2), method="bounded"
    )
    caps = 13 * (1 - rho)
    inputs = (1000, 0.1, 30, 13)
    results = (math.tanh(0.65), lose(13), rho, caps, -limit.fun, -30 * limit.fun)
    assert best == 13
    return Worked(inputs, results)


def find_cap_share(k: int) -> float:
    """rho of Theorem A for one direction in 30 dimensions at (1, 4.81e-6)."""
    d = 4.81e-6 * math.expm1(k) / math.expm1(1)
    law, q = beta(14.5, 14.5), (1 - d) / (1 + math.exp(k))

    def mean(mass: float) -> float:
        height = 2 * law.isf(mass) - 1
        return quad(lambda t: t * law.pdf((t + 1) / 2) / 2, height, 1, epsabs=1e-15)[0]

    return d + (math.exp(k) - math.exp(-k)) * mean(q) + math.exp(-k) * mean(d)


@works_out("_hidden_directions")
def hide_direction() -> Worked:
    shares = {k: find_cap_share(k) for k in range(5, 13)}
    for k, share in shares.items():
        d = hidden_directions.group_delta(1.0, 4.81e-6, np.array([k]))
        found = hidden_directions.share_of_cap(30, np.array([float(k)]), d)
        agree(share, float(found[0]), 1e-7)
    best = max(shares, key=lambda k: k * (1 - shares[k]))
    law = Privacy.of(Budget(1.0, 4.81e-6, "replace_one"), False)
    whole = find_on_ball(law, 456, 30, 1.0, 10.0)
    bound = agree(10 * best * (1 - shares[best]), whole.value, 1e-6)
    d = 4.81e-6 * math.expm1(best) / math.expm1(1)
    assert best == 9
    return Worked((456, 30, 4.81e-6), (d, (1 - d) / (1 + math.exp(best)), shares[best], bound))


@works_out("_jt13")
def bound_kernel_errors() -> Worked:
    failure = agree(100 * math.exp(-33.176199 / 4), jt13.noise_failure(100, 33.176199, 1.0))
    error = agree(1.25 * 0.421643, jt13.interactive_error(0.421643))
    at = jt13.Setting(n=50_000, epsilon=1.0, delta=1e-6, ridge=0.1, radius=1.0)
    fitted = agree(4 * 0.6 / 100, jt13.fitted_square(1.0, 1.0, 0.6, 10_000))
    spread = agree(16 / 100, jt13.spread_square(1.0, 1.0, 10_000))
    risk = agree(math.sqrt(fitted + spread), jt13.semi_interactive(at, 0.6, 10_000))
    inputs = (100, 33.1762, 0.421643, 10_000, 0.6, 16, 50_000, 1e-6, 0.1)
    return Worked(inputs, (failure, error, fitted, spread, risk))


@works_out("_kj16")
def project_set() -> Worked:
    root = math.sqrt(737)
    wide = (4 + 1 + math.sqrt(2 * math.log(40))) / root
    agree(wide, kj16_lemmas.distortion(4.0, 1.0, 737, 0.05))
    row = agree((4 + math.sqrt(2)) / root, kj16_lemmas.mean_product_distortion(4.0, 1.0, 1.0, 737))
    loss = 10_000 * (4 + 2 * math.sqrt(2)) / root
    agree(loss, kj16_lemmas.projection_loss(10_000, 1.0, 4.0, 1.0, 737))
    clipped = agree(float(chi2.sf(36, 9)), kj16_lemmas.clip_probability(9), 1e-8)
    assert kj16_lemmas.lipschitz_rows(1000, 0.05) == 9
    lift = agree(10 / root, kj16_lemmas.lifting_error(4.0, 2.0, 737))
    inputs = (10_000, 737, 0.05, 1000, 36, 40)
    results = (wide, row, loss, loss / 10_000, clipped, 1000 * clipped, lift)
    return Worked(inputs, results)


@works_out("_losses")
def list_constants() -> Worked:
    one = Bounds(row=1.0, target=1.0, radius=1.0, columns=5)
    column = Bounds(row=1.0, target=1.0, radius=2.0, columns=1)
    slope = agree(float(expit(1)), Logistic().lipschitz(one))
    found = minimize_scalar(
        lambda c: -2 * math.sqrt(1 - c * c) * expit(c), bounds=(0.0, 1.0), method="bounded",
        options={"xatol": 1e-9},
    )  # fmt: skip
    gap = agree(float(-found.fun), Logistic().gradient_gap(one))
    kappa = float(lambertw(1 / math.e).real)
    single = agree(float(expit(2)) + kappa / 2, Logistic().gradient_gap(column))
    agree(3.0, Squared().gradient_gap(one))
    agree(2.0, Squared().lipschitz(one))
    results = (slope, 2 * slope, gap, gap / (2 * slope), kappa, float(expit(2)), single)
    return Worked((0.25, 5), results)
