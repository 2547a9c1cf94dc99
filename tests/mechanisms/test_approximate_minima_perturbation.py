"""Approximate minima perturbation: the split, the second noise, the distance."""

from __future__ import annotations

import numpy as np
import pytest

from dperm_cli.core.errors import Unsupported
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.mechanisms.perturbation.approximate_minima_perturbation import (
    ApproximateMinimaPerturbation,
)
from dperm_cli.mechanisms.perturbation.objective_perturbation import ObjectivePerturbation
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.views.central import CentralView
from tests.conftest import small_problem

PURE, APPROX = Budget(1.0, 0.0), Budget(1.0, 1e-6)


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_pure_budgets_add_up(relation):
    plan = ApproximateMinimaPerturbation().plan(small_problem().spec(), Budget(1.0, 0.0, relation))
    first, second = plan.events
    assert first.epsilon(relation) == pytest.approx(0.99, rel=1e-9)
    assert second.sensitivity(relation) / second.scale == pytest.approx(0.01, rel=1e-9)
    assert second.sensitivity(relation) == pytest.approx(2.0 * plan.settings["distance"])


def test_second_noise_of_a_gaussian():
    """412.36 (2 r) at (.01, 1e-8)."""
    plan = ApproximateMinimaPerturbation("gaussian").plan(small_problem().spec(), APPROX)
    second = plan.events[1]
    assert second.scale / (2.0 * plan.settings["distance"]) == pytest.approx(412.36, rel=1e-4)
    assert calibrate.mu(0.01, 1e-8) == pytest.approx(1.0 / 412.36, rel=1e-4)


@pytest.mark.parametrize("budget", [PURE, APPROX])
def test_little_is_lost_against_exact_minimisers(budget):
    spec = small_problem().spec()
    exact = ObjectivePerturbation().plan(spec, budget).noise_scale
    ours = ApproximateMinimaPerturbation().plan(spec, budget).noise_scale
    assert 1.0 < ours / exact < 1.03


def test_distance_is_public_and_certified():
    spec = small_problem().spec()
    plan = ApproximateMinimaPerturbation(distance=0.01).plan(spec, PURE)
    assert plan.settings["distance"] == 0.01
    assert plan.events[1].scale == pytest.approx(2.0)
    with pytest.raises(Unsupported, match="certified"):
        ApproximateMinimaPerturbation(distance=1e-20).plan(spec, PURE)


def test_output_is_the_first_stage_plus_second_noise():
    """At a distance of 0.05 and share 0.5 the two stages differ by that noise: its mean norm is
    p scale, within five standard errors; half of it would be noticed."""
    problem = small_problem(radius=60.0)
    trials, chosen = 400, ApproximateMinimaPerturbation(share=0.5, distance=0.05)
    plan = chosen.plan(problem.spec(), Budget(8.0, 0.0))
    seeds = [seed_sequence(2, "minima", k) for k in range(trials)]
    first = []

    class Tape:
        def take_draw(self, stream, value, drawn, public):
            first.append(drawn)
            return drawn

    theta = chosen.release(CentralView(problem), plan, Gate(seeds, Tape())).theta
    norms = np.linalg.norm(theta - first[0], axis=1)
    scale = plan.events[1].scale
    assert np.mean(norms) == pytest.approx(3.0 * scale, abs=5.0 * np.sqrt(3.0 / trials) * scale)
