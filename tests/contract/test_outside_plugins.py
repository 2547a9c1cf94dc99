"""A loss and a set from outside: with their capabilities as good as shipped ones, honest without.

The pinball loss and the part of a ball where no coordinate is negative, each once with the
capabilities that it can offer and once with none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from dperm_cli.core.errors import Unsupported
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.losses.shared.margin_loss import Glm
from dperm_cli.mechanisms.gradient.frank_wolfe import FrankWolfe
from dperm_cli.mechanisms.gradient.noisy_gd import NoisyGd
from dperm_cli.mechanisms.perturbation.output_perturbation import OutputPerturbation
from dperm_cli.mechanisms.sampling.exponential import Exponential
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.cone_program import add_ball, add_nonnegative
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem
from dperm_cli.samplers.auto import Auto
from dperm_cli.sets.base import ConvexSet
from dperm_cli.solvers import optimum
from dperm_cli.views.central import CentralView

BUDGET = Budget(1.0, 1e-5)


@dataclass(frozen=True)
class BareQuantile(Glm):
    """tau (y - z) where z < y, (1 - tau) (z - y) above: what every loss of a margin must say."""

    tau: float = 0.3
    name: ClassVar[str] = "quantile"
    tasks: ClassVar[tuple[str, ...]] = ("regression",)

    def value(self, z, y):
        return np.maximum(self.tau * (y - z), (1.0 - self.tau) * (z - y))

    def slope(self, z, y):
        return np.where(z > y, 1.0 - self.tau, np.where(z < y, -self.tau, 0.0))

    def slope_bound(self, margin, target):
        return max(self.tau, 1.0 - self.tau)

    def span(self, margin, target):
        return self.slope_bound(margin, target) * min(2.0 * margin, margin + target)


@dataclass(frozen=True)
class Quantile(BareQuantile):
    """With its pieces."""

    def pieces(self, y):
        return np.ones_like(y), -y, 1.0 - self.tau, self.tau


@dataclass(frozen=True)
class BareNonnegativeBall(ConvexSet):
    """theta >= 0 with |theta|_2 <= reach: what every set must say."""

    reach: float
    p: int
    name: ClassVar[str] = "nonnegative_ball"
    symmetric: ClassVar[bool] = False

    @property
    def radius(self):
        return self.reach

    @property
    def size(self):
        return self.reach

    @property
    def diameter(self):
        return self.reach * (math.sqrt(2.0) if self.p > 1 else 1.0)

    @property
    def inner_radius(self):
        return self.reach / (math.sqrt(self.p) + 1.0)

    def centre(self):
        return np.full(self.p, self.inner_radius)

    def project(self, theta):
        return self._draw_in(np.maximum(theta, 0.0), self.reach)

    def lmo(self, g):
        return self._draw_in(np.maximum(-np.asarray(g), 0.0), 1e-300)

    def _draw_in(self, rows, least):
        length = np.linalg.norm(rows, axis=-1, keepdims=True)
        return rows * self.reach / np.maximum(length, least)


@dataclass(frozen=True)
class NonnegativeBall(BareNonnegativeBall):
    """With its rows of a cone program."""

    def add_cone_constraints(self, program, theta):
        add_nonnegative(program, theta)
        add_ball(program, theta, self.reach)


PAIRS = [
    (loss, body)
    for loss in (Quantile, BareQuantile)
    for body in (NonnegativeBall, BareNonnegativeBall)
]


def make_problem(loss, body, ridge=0.0, n=60, p=3):
    rng = np.random.default_rng(3)
    x = rng.standard_normal((n, p))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = np.clip(x @ np.array([0.8, -0.5, 0.3])[:p] + 0.3 * rng.standard_normal(n), -1.0, 1.0)
    data = Data.of_records(
        "own", "regression", x, y, row_bound=1.0, target_bound=1.0, fingerprint="own"
    )
    return Problem(data, loss, body(0.7, p), ridge)


def excess_of_the_centre(problem):
    best = optimum.solve(make_problem(Quantile(), NonnegativeBall, problem.ridge))
    return float(problem.objective(problem.constraint.centre())) - best.value


@pytest.mark.parametrize("ridge", [0.0, 0.01])
def test_capabilities_close_the_gap_of_the_optimum(ridge):
    problem = make_problem(Quantile(), NonnegativeBall, ridge)
    found = optimum.solve(problem)
    assert (found.method, found.converged) == ("conic", True)
    assert found.gap <= 1e-6 * excess_of_the_centre(problem)
    assert problem.constraint.contains(found.theta)


@pytest.mark.parametrize(("loss", "body"), PAIRS)
def test_what_is_certified_holds_with_and_without_them(loss, body):
    """The bound lies below the least that the conic solver finds, and the value above it."""
    problem = make_problem(loss(), body)
    best = optimum.solve(make_problem(Quantile(), NonnegativeBall))
    found = optimum.solve(problem, relative_gap=0.5, seconds=5.0)
    assert found.lower <= best.value
    assert found.value >= best.lower
    assert found.gap == pytest.approx(found.value - found.lower)
    assert found.converged
    assert problem.constraint.contains(found.theta)
    assert (found.method == "conic") == (loss is Quantile and body is NonnegativeBall)


def test_without_a_dual_a_tangent_is_what_certifies():
    problem = make_problem(BareQuantile(), BareNonnegativeBall)
    theta = problem.constraint.project(np.array([0.4, 0.1, 0.2]))
    dual = problem.loss.dual(theta, problem.data)
    assert dual == pytest.approx(theta)
    rng = np.random.default_rng(0)
    points = problem.constraint.project(rng.standard_normal((200, 3)))
    lower = optimum.certificate(problem, theta, dual)
    assert lower <= np.min(problem.objective(points))
    slope = problem.gradient(theta)
    tangent = float(problem.objective(theta) - slope @ theta - problem.constraint.support(-slope))
    assert lower == pytest.approx(tangent, abs=1e-9)


def test_the_conjugate_follows_from_the_pieces():
    loss, y = Quantile(), np.array([-0.4, 0.0, 0.9])
    z = np.linspace(-50.0, 50.0, 200_001)[:, None]
    for a in (-0.3, -0.1, 0.2, 0.7):
        expect = np.max(a * z - loss.value(z, y), axis=0)
        assert loss.conjugate(np.full(3, a), y) == pytest.approx(expect, abs=1e-3)
    assert np.all(np.isinf(loss.conjugate(np.array([-0.31, 0.71, 1.0]), y)))


def release(mechanism, problem, budget):
    plan = mechanism.plan(problem.spec(), budget)
    gate = Gate([seed_sequence(0, "t", i) for i in range(4)], plan=(plan.events, "replace_one"))
    return mechanism.release(CentralView(problem), plan, gate).theta


@pytest.mark.parametrize(("loss", "body"), PAIRS)
@pytest.mark.parametrize(
    ("mechanism", "budget"),
    [(NoisyGd(steps=20), BUDGET), (Exponential(sampler=Auto()), Budget(1.0, 0.0))],
)
def test_mechanisms_release_points_of_the_set(mechanism, budget, loss, body):
    problem = make_problem(loss(), body, ridge=0.05, n=4)
    theta = release(mechanism, problem, budget)
    assert theta.shape == (4, 3)
    assert np.all(problem.constraint.contains(theta))


@pytest.mark.parametrize("budget", [BUDGET, Budget(1.0, 0.0)])
@pytest.mark.parametrize("body", [NonnegativeBall, BareNonnegativeBall])
def test_a_minimiser_is_perturbed_where_it_can_be_certified(budget, body):
    problem = make_problem(Quantile(), body, ridge=0.05)
    assert np.all(problem.constraint.contains(release(OutputPerturbation(), problem, budget)))
    bare = make_problem(BareQuantile(), body, ridge=0.05).spec()
    with pytest.raises(Unsupported, match="quantile has kinks and offers no pieces"):
        OutputPerturbation().plan(bare, budget)


@pytest.mark.parametrize(("loss", "body"), PAIRS)
def test_frank_wolfe_says_what_it_misses(loss, body):
    with pytest.raises(Unsupported, match="needs a Lipschitz gradient, and loss quantile has none"):
        FrankWolfe().plan(make_problem(loss(), body).spec(), BUDGET)


def test_a_smooth_loss_from_outside_is_perturbed_and_walked():
    """The squared loss of y - z under another name: no code, no table knows it."""

    @dataclass(frozen=True)
    class Mine(Glm):
        name: ClassVar[str] = "mine"
        tasks: ClassVar[tuple[str, ...]] = ("regression",)
        smoothness: ClassVar[float] = 1.0

        def value(self, z, y):
            return 0.5 * np.square(z - y)

        def slope(self, z, y):
            return z - y

        def curvature(self, z, y):
            return np.ones(np.broadcast_shapes(np.shape(z), np.shape(y)))

        def slope_bound(self, margin, target):
            return margin + target

        def span(self, margin, target):
            return 0.5 * (margin + target) ** 2

        def conjugate(self, a, y):
            return a * (y + 0.5 * a)

    problem = make_problem(Mine(), NonnegativeBall, ridge=0.1)
    found = optimum.solve(problem)
    assert found.converged
    assert found.method == "conic"
    for mechanism in (OutputPerturbation(), FrankWolfe(steps=5), replace(NoisyGd(), steps=5)):
        theta = release(mechanism, problem, BUDGET)
        assert np.all(problem.constraint.contains(theta))
