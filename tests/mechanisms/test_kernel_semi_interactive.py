"""What is particular to kernel_semi_interactive: TDDL [JT13, Alg. 2] and its perturbations."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from dperm_cli.core.errors import Unsupported
from dperm_cli.core.rng import seed_sequence
from dperm_cli.mechanisms import _kernels
from dperm_cli.mechanisms._kernel_view import KernelView
from dperm_cli.mechanisms.kernel_semi_interactive import KernelSemiInteractive, explicit_scale
from dperm_cli.privacy.accountant import account
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Laplace
from dperm_cli.privacy.noise import Gate
from tests.contract.test_kernel_mechanisms import problem

BUDGET = Budget(1.0, 1e-6)


@pytest.mark.parametrize(
    ("count", "least", "explicit"),
    [(10, 9.98979, 33.245), (100, 41.4875, 105.13), (1000, 133.242, 332.45)],
)
def test_laplace_vectors(count, least, explicit):
    """nu / s at (1, 1e-6), by the composition of T steps and by the explicit constant."""
    spec = dataclasses.replace(problem(queries=5).spec(), n=10**6)
    spec = dataclasses.replace(spec, queries=np.zeros((count, 2)))
    moves = _kernels.moves(spec)
    plan = KernelSemiInteractive(queries=count).plan(spec, BUDGET)
    assert plan.noise_scale / moves.value == pytest.approx(least, rel=1e-5)
    plan = KernelSemiInteractive(queries=count, calibration="paper").plan(spec, BUDGET)
    assert plan.noise_scale / moves.value == pytest.approx(explicit, rel=1e-4)


@pytest.mark.parametrize("count", [1, 10, 1000])
@pytest.mark.parametrize("delta", [0.3, 1e-2, 1e-9])
@pytest.mark.parametrize("epsilon", [1.0, 0.05])
def test_the_explicit_constant_is_private(count, delta, epsilon):
    budget = Budget(epsilon, delta)
    event = Laplace(explicit_scale(1.0, count, budget), 0.5, count)
    assert account([event], delta=delta, relation="replace_one").epsilon <= epsilon


def test_gaussian_noise_follows_the_spectral_norm():
    """At most sqrt(T) s / mu, and that only where all points are one."""
    spec = problem(queries=12).spec()
    plan = KernelSemiInteractive("gaussian", queries=12).plan(spec, BUDGET)
    top = np.linalg.eigvalsh(spec.gram)[-1]
    sigma = _kernels.moves(spec).weight * math.sqrt(top) * 4.22468
    assert plan.noise_scale == pytest.approx(sigma, rel=1e-5)
    same = dataclasses.replace(spec, queries=np.tile(spec.queries[:1], (12, 1)))
    plan = KernelSemiInteractive("gaussian", queries=12).plan(same, BUDGET)
    worst = math.sqrt(12.0) * _kernels.moves(spec).value * 4.22468
    assert plan.noise_scale == pytest.approx(worst, rel=1e-5)
    assert sigma < worst


def test_t_is_theorem_5s():
    spec = dataclasses.replace(problem(queries=40).spec(), n=150)
    found = KernelSemiInteractive().points(spec, BUDGET)
    wanted = spec.radius * 150 * spec.ridge / (spec.lipschitz * math.sqrt(math.log(1e6)))
    assert found == math.floor(wanted) < 40
    assert KernelSemiInteractive().points(dataclasses.replace(spec, n=10**6), BUDGET) == 40
    with pytest.raises(Unsupported, match="raise kernel"):
        KernelSemiInteractive(queries=41).plan(spec, BUDGET)


@pytest.mark.parametrize("perturbation", ["laplace", "gaussian", "interactive"])
def test_the_function_is_in_the_ball_and_in_the_span(perturbation):
    found = problem(n=100, queries=20)
    spec = found.spec()
    mechanism = KernelSemiInteractive(perturbation, queries=8, radius=0.3)
    plan = mechanism.plan(spec, BUDGET)
    seeds = [seed_sequence(0, "test", trial) for trial in range(4)]
    gate = Gate(seeds, plan=(plan.events, "replace_one"))
    theta = mechanism.release(KernelView(found), plan, gate).theta
    assert np.all(np.linalg.norm(theta, axis=1) <= 0.3 * (1.0 + 1e-9))
    # orthogonal to what the first eight points do not span
    basis = np.linalg.qr(spec.rows[:8].T)[0]
    np.testing.assert_allclose(theta @ basis @ basis.T, theta, atol=1e-6)


def test_the_papers_radius_and_refusals():
    spec = problem().spec()
    assert KernelSemiInteractive(radius="paper").ball(spec) == pytest.approx(
        2.0 * spec.lipschitz * spec.bound / spec.ridge
    )
    with pytest.raises(Unsupported):
        KernelSemiInteractive("gaussian").plan(spec, Budget(1.0, 0.0))
    with pytest.raises(Unsupported):
        KernelSemiInteractive(calibration="paper").plan(spec, Budget(2.0, 1e-6))
    with pytest.raises(Unsupported):
        KernelSemiInteractive("gaussian", calibration="paper").plan(spec, BUDGET)
    pure = KernelSemiInteractive(queries=4).plan(spec, Budget(2.0, 0.0))
    assert pure.noise_scale == pytest.approx(2.0 * _kernels.moves(spec).value)
