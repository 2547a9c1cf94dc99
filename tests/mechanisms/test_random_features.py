"""random_features: the inner mechanism on public Fourier features, and nothing more."""

from __future__ import annotations

import numpy as np
import pytest

from dperm_cli.core import registry
from dperm_cli.core.errors import InputError
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.kernels.shared.feature_maps import Fourier
from dperm_cli.mechanisms.kernel.random_features import RandomFeatures
from dperm_cli.mechanisms.perturbation.objective_perturbation import ObjectivePerturbation
from dperm_cli.mechanisms.perturbation.output_perturbation import OutputPerturbation
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.views.central import CentralView
from tests.conftest import small_problem

BUDGET = Budget(1.0, 1e-6)


@pytest.mark.parametrize("inner", [ObjectivePerturbation(), OutputPerturbation()])
def test_plans_and_releases_are_the_inner_ones(inner):
    problem = small_problem(ridge=0.1)
    outer = RandomFeatures(inner=inner)
    plan, own = outer.plan(problem.spec(), BUDGET), inner.plan(problem.spec(), BUDGET)
    assert plan.events == own.events
    assert plan.guarantee == own.guarantee
    seeds = [seed_sequence(0, "test", trial) for trial in range(2)]
    view = CentralView(problem)
    given = outer.release(view, plan, Gate(seeds)).theta
    assert given.tobytes() == inner.release(view, own, Gate(seeds)).theta.tobytes()
    assert plan.settings["inner"]["name"] in ("objective_perturbation", "output_perturbation")


def test_asks_for_fourier_features():
    assert RandomFeatures.features == "fourier"


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_features_are_public_of_norm_one_and_near_the_kernel(kernel):
    """Frequencies follow the seed alone; the kernel is met to 5 / sqrt(size)."""
    rows = np.random.default_rng(0).standard_normal((20, 3))
    made = registry.load("kernel", kernel)()
    one, same = (Fourier(made, 3, 4000).apply(rows) for _ in range(2))
    assert one.tobytes() == same.tobytes()
    assert np.all(np.linalg.norm(one, axis=1) <= 1.0)
    other = Fourier(registry.load("kernel", kernel)(seed=1), 3, 4000).apply(rows)
    assert not np.allclose(one, other)
    assert np.max(np.abs(one @ one.T - made.gram(rows, rows))) < 5.0 / np.sqrt(4000.0)


def test_an_inner_mechanism_without_a_guarantee_is_refused():
    with pytest.raises(InputError):
        RandomFeatures(inner="non_private")
