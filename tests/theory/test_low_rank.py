"""Theorem 4 of docs/proofs/noisy_gd.md: rows of low rank, and the numbers of its experiment."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dperm_cli
from dperm_cli.core.errors import InputError
from dperm_cli.datasets.lower_bounds.few_directions import FewDirections
from dperm_cli.privacy.accounting import gaussian_profile
from dperm_cli.runner.studies import experiment_file

N, EPSILON, DELTA = 256, 4.0, 1e-6


def choose_steps(rank, n=N, epsilon=EPSILON):
    """T, eta and the bound of Theorem 4 for L = R_0 = 1 and S = 2."""
    mu = gaussian_profile.mu(epsilon, DELTA)
    steps = max(1, round((n * mu / 2.0) ** 2 / rank))
    sigma = 2.0 * math.sqrt(steps) / mu
    moment = n**2 + rank * sigma**2
    return steps, 1.0 / math.sqrt(steps * moment), math.sqrt(moment / steps)


def test_the_experiment_has_the_numbers_of_the_theorem():
    found = experiment_file.load("glm_rank", "full")
    parts = {part.name: list(part.cells()) for part in found.parts}
    seen = []
    for cell in [*parts["ranks"], *parts["dimensions"]]:
        steps, eta, _ = choose_steps(cell["dataset.rank"])
        assert cell["mechanism.steps"] == steps
        assert float(cell["mechanism.step_size"]) == pytest.approx(eta, rel=5e-6)
        assert (cell["dataset.n"], cell["epsilon"], float(cell["delta"])) == (N, EPSILON, DELTA)
        seen.append(cell["dataset.rank"])
    assert seen[:5] == [2, 4, 8, 16, 32]
    (claim,) = [claim for claim in found.claims if claim.id == "rank_bound"]
    for entry in claim.values:
        bound = choose_steps(entry["at"]["dataset.rank"])[2]
        assert entry["expect"] == pytest.approx(bound, rel=2e-5)


def test_the_worked_example_of_the_proof_page():
    assert gaussian_profile.mu(EPSILON, DELTA) == pytest.approx(0.837859, abs=5e-7)
    assert 2.0 / gaussian_profile.mu(EPSILON, DELTA) == pytest.approx(2.38704, abs=5e-6)
    steps, eta, bound = choose_steps(8)
    assert steps == 1438
    assert eta == pytest.approx(7.28356e-5, rel=5e-6)
    assert bound == pytest.approx(9.5477, abs=5e-5)
    # half of n L R_0's way: both terms of the bound are alike, up to the rounding of T
    assert bound == pytest.approx(math.sqrt(16.0) * 2.38704, rel=1e-3)


@pytest.mark.parametrize("p", [4, 200])
def test_descent_without_a_set_keeps_to_the_bound_of_the_rank(p, tmp_path):
    """64 records of rank 4: half the bound, in 4 and in 200 dimensions."""
    steps, eta, bound = choose_steps(4, 64, 8.0)
    study = dperm_cli.run(
        "dataset=few_directions", "dataset.n=64", f"dataset.p={p}", "dataset.rank=4",
        "constraint=l2_ball", "constraint.radius=1000", "mechanism=noisy_gd",
        f"mechanism.steps={steps}", f"mechanism.step_size={eta}", "mechanism.momentum=0",
        "mechanism.averaging=uniform", "epsilon=8", f"delta={DELTA}", "trials=40",
        out=tmp_path / "study", progress=False,
    )  # fmt: skip
    risks = study.trials()["excess_risk"]
    assert 0.3 * bound < np.mean(risks) < 0.75 * bound


def test_the_minimiser_is_as_far_as_it_says():
    data = FewDirections(n=12, p=9, rank=3, signal=1.5).load()
    target = np.zeros(9)
    target[:3] = 1.5 / math.sqrt(3.0) * np.array([-1.0, 1.0, -1.0])
    assert np.linalg.norm(target) == pytest.approx(1.5)
    assert np.allclose(data.x @ target, data.y)
    assert np.linalg.matrix_rank(data.x.toarray()) == 3
    with pytest.raises(InputError, match=r"^dataset.signal=2"):
        FewDirections(n=12, p=9, rank=3, signal=2.0)
    with pytest.raises(InputError, match=r"^dataset.rank"):
        FewDirections(n=12, p=9, rank=10)
