"""What is particular to kernel_non_interactive: TDIL [JT13, Alg. 3], its nets and its choices."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from dperm_cli.audit.statistical_attack import ManyTrialsGate
from dperm_cli.bounds import jt13
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.kernels.shared.feature_maps import Explicit
from dperm_cli.mechanisms.kernel.kernel_non_interactive import (
    KernelNonInteractive,
    SelectionParameters,
    ball_net,
    error_bound,
)
from dperm_cli.mechanisms.shared import kernel_queries
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.views.kernel import KernelView
from tests.contract.test_kernel_mechanisms import problem

BUDGET = Budget(1.0, 1e-6)


@pytest.mark.parametrize(("columns", "spacing"), [(1, None), (2, None), (3, 0.3), (2, 0.4)])
def test_a_net_covers_the_ball(columns, spacing):
    points, nu = ball_net(columns, 1.5, spacing)
    assert np.all(np.linalg.norm(points, axis=1) <= 1.5 * (1.0 + 1e-12))
    rng = np.random.default_rng(0)
    tried = rng.standard_normal((400, columns))
    tried *= 1.5 * rng.uniform(0.0, 1.0, (400, 1)) / np.linalg.norm(tried, axis=1, keepdims=True)
    tried[:50] *= 1.5 / np.linalg.norm(tried[:50], axis=1, keepdims=True)
    apart = np.linalg.norm(tried[:, None] - points[None], axis=-1).min(axis=1)
    assert 0.3 * nu < apart.max() <= nu * (1.0 + 1e-9)


def test_a_net_of_many_dimensions_is_refused():
    with pytest.raises(Unsupported, match="log_concave"):
        ball_net(9, 1.0, None)


def test_the_printed_exponent_is_refused():
    with pytest.raises(Unsupported, match="corrected"):
        KernelNonInteractive(calibration="paper").plan(problem().spec(), BUDGET)


def test_corrected_numbers():
    """eps_0, sigma, eta and B; the choice costs eps_0 s / 4, and all of it far below epsilon."""
    spec = dataclasses.replace(problem("linear").spec(), n=10**5)
    plan = KernelNonInteractive(calibration="corrected").plan(spec, BUDGET)
    logs, steps = math.log(4e6), plan.settings["steps"]
    top = spec.radius * spec.n * spec.ridge
    assert steps == math.floor(top / (100.0 * spec.lipschitz * spec.bound * logs)) > 1
    rate = spec.n * spec.ridge / (10.0 * spec.lipschitz * spec.bound**2 * math.sqrt(steps) * logs)
    assert plan.settings["exponent"] == pytest.approx(rate / 8.0)
    assert plan.noise_scale == pytest.approx(0.5 / rate)
    assert plan.settings["threshold"] == pytest.approx(4.0 / rate * math.log(2.0 * steps / 0.05))
    assert plan.guarantee.epsilon < 0.2
    again = account(plan.events, delta=1e-6, relation="replace_one")
    assert again.epsilon == plan.guarantee.epsilon


def test_the_design_is_the_best_of_its_kind_and_spends_the_budget():
    spec = dataclasses.replace(problem("linear").spec(), n=10**5)
    mechanism = KernelNonInteractive()
    plan = mechanism.plan(spec, BUDGET)
    assert 0.99 < plan.guarantee.epsilon <= 1.0
    promised = plan.settings["error_bound"]
    for steps in (plan.settings["steps"] // 4, plan.settings["steps"] * 4):
        other = dataclasses.replace(mechanism, steps=min(4096, max(1, steps))).plan(spec, BUDGET)
        assert other.settings["error_bound"] > 0.99 * promised
    by_hand = jt13.non_interactive(
        spec.radius, spec.bound, plan.settings["steps"], plan.noise_scale,
        plan.settings["exponent"], (spec.columns + 1.0) / 2.0,
    )  # fmt: skip
    assert promised == pytest.approx(by_hand)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_errors_stay_within_what_is_promised(kernel):
    """The mean over 20 runs of the largest error on the net or the ball, against its bound."""
    found = problem(kernel, n=3000, queries=20)
    spec = found.spec()
    mechanism = KernelNonInteractive(spacing=0.25)
    plan = mechanism.plan(spec, BUDGET)
    seeds = [seed_sequence(0, "test", trial) for trial in range(20)]
    out = mechanism.release(KernelView(found), plan, Gate(seeds))
    points = mechanism.net(spec)[0]
    wanted = found.solve(kernel_queries.bound_moves(spec).distance).values(points)
    steps = plan.settings["steps"]
    alpha = out.info["alpha"]
    given = np.stack(
        [a @ spec.kernel_of(z, points) for a, z in zip(alpha, out.info["points"], strict=True)]
    )
    assert alpha.shape == (20, steps)
    assert np.mean(np.max(np.abs(given - wanted), axis=1)) <= plan.settings["error_bound"]


def test_choices_have_the_law_of_their_weights():
    """From the net: chi-square at 1e-5; with half the exponent it fails."""
    found = problem("linear", n=200)
    mechanism = KernelNonInteractive(sampling="net", spacing=0.8, steps=1)
    spec = found.spec()
    plan = mechanism.plan(spec, Budget(2.0, 1e-6))
    out = mechanism.release(
        KernelView(found), plan, ManyTrialsGate(seed_sequence(2, "test"), 20_000)
    )
    net = mechanism.net(spec)[0]
    scores = np.abs(found.solve(kernel_queries.bound_moves(spec).distance).values(net))
    index = np.argmin(((out.info["points"][:, 0, None] - net[None]) ** 2).sum(-1), axis=1)
    counts = np.bincount(index, minlength=len(net))

    def pvalue(exponent):
        chance = np.exp(exponent * scores)
        return stats.chisquare(counts, 20_000 * chance / chance.sum()).pvalue

    assert pvalue(plan.settings["exponent"]) > 1e-5
    assert pvalue(plan.settings["exponent"] / 2.0) < 1e-5


def test_choices_from_the_ball_have_the_law_of_the_mixture():
    """<z, v> in two dimensions: density prop. to cosh(c <z, v>) sqrt(1 - u^2), by quadrature."""
    found = problem("linear", n=200)
    mechanism = KernelNonInteractive(steps=1)
    plan = mechanism.plan(found.spec(), Budget(60.0, 1e-6))
    out = mechanism.release(KernelView(found), plan, ManyTrialsGate(seed_sequence(3, "test"), 4000))
    v = found.solve(kernel_queries.bound_moves(found.spec()).distance).values(np.eye(2))
    along = out.info["points"][:, 0] @ v / np.linalg.norm(v)
    u = np.linspace(-1.0, 1.0, 20_001)

    def law(exponent):
        density = np.cosh(exponent * np.linalg.norm(v) * u) * np.sqrt(1.0 - u**2)
        below = np.cumsum(density)
        return lambda x: np.interp(x, u, below / below[-1])

    assert stats.kstest(along, law(plan.settings["exponent"])).pvalue > 1e-5
    assert stats.kstest(along, law(plan.settings["exponent"] / 3.0)).pvalue < 1e-5


def test_what_needs_another_kernel_or_design_is_said():
    with pytest.raises(Unsupported, match="kernel=linear"):
        KernelNonInteractive(sampling="log_concave").plan(problem("rbf").spec(), BUDGET)
    paper = SelectionParameters(3, 1.0, 1.0, 0.1, 0.1)
    assert error_bound(problem().spec(), paper, 1.0, 0.0) == math.inf


def test_small_balls_are_walked_alike_with_an_explicit_map():
    """A finite map shortens unit vectors to the ball of inputs: the linear function must not be."""
    found = problem("linear", n=60, ridge=0.5)
    short = dataclasses.replace(
        found.data, x=0.3 * found.data.x, row_bound=0.3, fingerprint="short"
    )
    exact = dataclasses.replace(found, data=short, queries=0.3 * found.queries)
    finite = dataclasses.replace(exact, features=Explicit(exact.kernel, 2, 0.3))
    mechanism, alphas = KernelNonInteractive(steps=4), []
    for one in (exact, finite):
        plan = mechanism.plan(one.spec(), BUDGET)
        seeds = [seed_sequence(1, "test", trial) for trial in range(3)]
        out = mechanism.release(KernelView(one), plan, Gate(seeds))
        alphas.append(out.info["alpha"])
    np.testing.assert_allclose(alphas[0], alphas[1], rtol=1e-6, atol=1e-6)
