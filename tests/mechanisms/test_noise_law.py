"""The law of noise=auto: of a Gamma norm where that is the smaller, and then no delta is spent."""

from __future__ import annotations

import numpy as np
import pytest

from dperm_cli.core.errors import Unsupported
from dperm_cli.losses.logistic import Logistic
from dperm_cli.mechanisms import (
    ApproximateMinimaPerturbation,
    ObjectivePerturbation,
    OnePassSgd,
    OutputPerturbation,
)
from dperm_cli.mechanisms.shared import noise_law
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.budget import Budget
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem, Regulariser, bare_spec
from dperm_cli.sets import make_ball

# (epsilon, delta): p below which a Gamma norm is smaller, of one release and of an objective's term
CROSSINGS = {(1.0, 1e-6): (16.85, 18.05), (0.1, 1e-9): (24.21, 25.46), (10.0, 1e-6): (28.28, 29.57)}
STRONG = 1e5  # a regulariser whose Jacobian costs next to nothing


def logistic(p: int, radius: float):
    labels = np.array([1.0, -1.0])
    data = Data.of_records(
        "toy", "classification", np.ones((2, p)) / p, labels, 1.0, 1.0, fingerprint=""
    )
    return Problem(data, Logistic(), make_ball(radius, p)).spec()


def plan_at(mechanism, spec, level, relation="replace_one"):
    return mechanism.plan(spec, Budget(*level, relation))


@pytest.mark.parametrize("level", CROSSINGS)
@pytest.mark.parametrize(
    "mechanism", [OutputPerturbation(), OnePassSgd()], ids=lambda one: type(one).__name__
)
def test_one_release_crosses_where_the_scales_say(mechanism, level):
    below, above = int(CROSSINGS[level][0]), int(CROSSINGS[level][0]) + 1
    taken = [
        plan_at(
            mechanism, bare_spec(10**6, 1.0, make_ball(1.0, p), regulariser=Regulariser(0.1)), level
        )
        for p in (below, above)
    ]
    assert [made.settings["noise"] for made in taken] == ["gamma", "gaussian"]
    assert [(made.guarantee.kind, made.guarantee.delta) for made in taken] == [
        ("pure", 0.0), ("approx", level[1])
    ]  # fmt: skip
    assert all(made.guarantee.epsilon <= level[0] for made in taken)


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize("level", CROSSINGS)
def test_an_objective_crosses_where_its_gaussian_form_says(level, relation):
    """Without a Jacobian; on a wide ball the gap of two gradients is twice their bound."""
    below, above = int(CROSSINGS[level][1]), int(CROSSINGS[level][1]) + 1
    mechanism = ObjectivePerturbation(strength=STRONG)
    taken = [plan_at(mechanism, logistic(p, 1e3), level, relation) for p in (below, above)]
    assert [made.settings["noise"] for made in taken] == ["gamma", "gaussian"]
    assert [made.guarantee.kind for made in taken] == ["pure", "approx"]


def test_a_small_gap_of_gradients_speaks_for_the_gamma_norm():
    """Its sensitivity is the gap G <= 2 L of two gradients, the Gaussian form's is 2 L."""
    level, spec = (1.0, 1e-6), logistic(2, 1.0)
    share = 2.0 * spec.lipschitz / spec.gradient_gap
    assert share > 1.3
    crossing = int(share**2 * (CROSSINGS[level][1] + 1.0) - 1.0)
    mechanism = ObjectivePerturbation(strength=STRONG)
    taken = [plan_at(mechanism, logistic(p, 1.0), level) for p in (crossing, crossing + 1)]
    assert [made.settings["noise"] for made in taken] == ["gamma", "gaussian"]


@pytest.mark.parametrize("kind", [ObjectivePerturbation, ApproximateMinimaPerturbation])
@pytest.mark.parametrize("p", [4, 100])
def test_auto_takes_the_smaller_noise_after_each_split(kind, p):
    spec, budget = logistic(p, 10.0), Budget(1.0, 1e-6)
    moments = {
        law: noise_law.noise_moment(p, kind(law).plan(spec, budget).noise_scale, law == "gamma")
        for law in ("gamma", "gaussian")
    }
    assert kind().plan(spec, budget).settings["noise"] == min(moments, key=moments.__getitem__)


@pytest.mark.parametrize(
    "mechanism",
    [OutputPerturbation("gamma"), OnePassSgd("gamma"), ObjectivePerturbation("gamma")],
    ids=lambda one: type(one).__name__,
)
def test_a_gamma_norm_spends_no_delta(mechanism):
    """What is asked for with a delta is the same release as without one."""
    spec = bare_spec(10**4, 1.0, make_ball(1.0, 40), regulariser=Regulariser(0.1), smoothness=0.25)
    asked, pure = (mechanism.plan(spec, Budget(0.5, delta)) for delta in (1e-5, 0.0))
    assert asked == pure
    assert (pure.guarantee.kind, pure.guarantee.delta) == ("pure", 0.0)


def test_the_rule_of_one_release():
    budget = Budget(1.0, 1e-6)
    crossing = (1.0 / calibrate.mu(1.0, 1e-6)) ** 2 - 1.0
    assert crossing == pytest.approx(16.84791, abs=1e-4)
    found = [noise_law.is_gamma_smaller(p, budget) for p in range(1, 40)]
    assert found == [p < crossing for p in range(1, 40)]


def test_a_law_without_a_plan_leaves_the_other():
    def plan(gamma):
        if gamma:
            raise Unsupported("none")
        return 3.0

    assert noise_law.choose_least((True, False), plan, float) == 3.0
    with pytest.raises(Unsupported):
        noise_law.choose_least((True,), plan, float)
