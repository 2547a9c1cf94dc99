"""A loss or a set from outside the package is as good as a shipped one.

A twin is a shipped class under another name. It offers whatever the class offers, so it has to be
solved, certified, planned and sampled in the same way; only a table of names can tell them apart.
``Quantile`` and ``NonnegativeBall`` are whole classes of somebody else, with what a class has to
give and nothing more.
"""

from __future__ import annotations

import dataclasses
import math
import re
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from dperm_cli.audit.replay import replace_record, replay
from dperm_cli.core import registry
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.losses.shared.margin_loss import Glm
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.sets.base import ConvexSet
from dperm_cli.solvers import optimum
from dperm_cli.views.central import CentralView
from tests.conftest import small_problem

LOSSES = sorted(set(registry.names("loss")) - {"auto"})
SETS = ["box", "l1_ball", "l2_ball", "lp_ball", "simplex"]
MECHANISMS = [
    "exponential", "frank_wolfe", "huberized", "localization", "mirror_descent", "newton",
    "noisy_gd", "noisy_sgd", "objective_perturbation", "one_pass_sgd",
]  # fmt: skip
MOST_SECONDS = 1.0  # of a slower way, which ends at a wider gap


def make_twin(plugin):
    """The same plug-in by another name, of a class that the package has never seen."""
    cls = type(plugin)
    body = {"name": "somebody_elses", "__module__": "elsewhere"}
    fields = {f.name: getattr(plugin, f.name) for f in dataclasses.fields(plugin) if f.init}
    return dataclass(frozen=True)(type(f"Outside{cls.__name__}", (cls,), body))(**fields)


def describe_plan(problem, mechanism: str) -> str:
    """All of a plan in words, or why there is none; a set or a loss has no name in it."""
    budget = Budget(1.0, 0.0 if mechanism == "exponential" else 1e-5)
    try:
        plan = registry.load("mechanism", mechanism)().plan(problem.spec(), budget)
    except Unsupported as error:
        words = str(error)
    else:
        words = repr((plan.events, plan.settings, plan.guarantee))
    for plugin in (problem.loss, problem.constraint):
        words = re.sub(rf"\b{type(plugin).__name__}\b", "Plugin", words)
        words = re.sub(rf"\b{plugin.name}\b", "plugin", words)  # huberized_hinge stays
    return words


def assert_same_optimum(problem, twin):
    found, other = optimum.solve(problem), optimum.solve(twin, seconds=MOST_SECONDS)
    assert other.method == found.method
    assert other.gap == found.gap
    assert np.array_equal(other.theta, found.theta)


def assert_same_plans(problem, twin):
    assert twin.spec().compiled == problem.spec().compiled
    pairs = {name: (describe_plan(twin, name), describe_plan(problem, name)) for name in MECHANISMS}
    assert {name: found for name, (found, _) in pairs.items()} == {
        name: shipped for name, (_, shipped) in pairs.items()
    }


class TestTwins:
    """Twins of shipped losses and sets."""

    @pytest.mark.parametrize("loss", LOSSES)
    def test_optimum_of_a_loss(self, loss):
        problem = small_problem(loss=loss)
        assert_same_optimum(problem, replace(problem, loss=make_twin(problem.loss)))

    @pytest.mark.parametrize("constraint", SETS)
    def test_optimum_on_a_set(self, constraint):
        problem = small_problem(constraint=constraint)
        assert_same_optimum(problem, replace(problem, constraint=make_twin(problem.constraint)))

    @pytest.mark.parametrize("loss", LOSSES)
    def test_plans_for_a_loss(self, loss):
        problem = small_problem(loss=loss)
        assert_same_plans(problem, replace(problem, loss=make_twin(problem.loss)))

    @pytest.mark.parametrize("constraint", SETS)
    def test_plans_on_a_set(self, constraint):
        problem = small_problem(constraint=constraint)
        assert_same_plans(problem, replace(problem, constraint=make_twin(problem.constraint)))


@dataclass(frozen=True)
class Quantile(Glm):
    """The pinball loss max(tau (y - z), (1 - tau) (z - y)); no slope code, no pieces."""

    tau: float = 0.5
    name: ClassVar[str] = "quantile"
    tasks: ClassVar[tuple[str, ...]] = ("regression",)
    code: ClassVar[None] = None
    smoothness: ClassVar[None] = None

    def value(self, z, y):
        return np.maximum(self.tau * (y - z), (1 - self.tau) * (z - y))

    def slope(self, z, y):
        return np.where(z > y, 1 - self.tau, np.where(z < y, -self.tau, 0.0))

    def slope_bound(self, margin, target):
        return max(self.tau, 1 - self.tau)

    def span(self, margin, target):
        return self.slope_bound(margin, target) * min(2 * margin, margin + target)

    def conjugate(self, a, y):
        return np.where((a >= -self.tau) & (a <= 1 - self.tau), a * y, np.inf)


class QuantileInPieces(Quantile):
    """The same, saying that it is made of two straight pieces."""

    def pieces(self, y):
        return np.ones_like(y), -y, 1 - self.tau, self.tau


@dataclass(frozen=True)
class NonnegativeBall(ConvexSet):
    """{theta >= 0, |theta|_2 <= radius}; no vertices, no cone constraints."""

    radius: float
    p: int
    name: ClassVar[str] = "nonnegative_ball"
    symmetric: ClassVar[bool] = False
    code: ClassVar[None] = None

    @property
    def size(self):
        return self.radius

    @property
    def diameter(self):
        return self.radius * (math.sqrt(2) if self.p > 1 else 1.0)

    @property
    def inner_radius(self):
        return self.radius / (math.sqrt(self.p) + 1)

    def centre(self):
        return np.full(self.p, self.inner_radius)

    def gauge(self, theta):
        length = np.linalg.norm(theta, axis=-1) / self.radius
        return np.where(np.min(theta, axis=-1) < 0, np.inf, length)

    def project(self, theta):
        return self._shorten(np.maximum(theta, 0), self.radius)

    def lmo(self, g):
        return self._shorten(np.maximum(-np.asarray(g), 0), 1e-300)

    def _shorten(self, v, least):
        return v * self.radius / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), least)


class TestFromOutside:
    """A loss and a set with nothing but what the contract asks for."""

    @pytest.fixture
    def problem(self):
        problem = small_problem(loss="absolute")
        return replace(problem, loss=Quantile(0.3), constraint=NonnegativeBall(1.5, 3))

    def test_certificates_are_true(self, problem):
        """Whatever the way, no point of the set lies below what is proved of the minimum."""
        found = optimum.solve(problem, seconds=MOST_SECONDS)
        assert bool(problem.constraint.contains(found.theta))
        assert 0.0 <= found.gap < float(problem.objective(problem.constraint.centre()))
        rng = np.random.default_rng(0)
        points = problem.constraint.project(found.theta + 0.1 * rng.standard_normal((500, 3)))
        assert np.all(problem.objective(points) >= found.lower)

    def test_half_of_the_absolute_loss(self):
        shipped = small_problem(loss="absolute")
        best = optimum.solve(shipped)
        for loss in (Quantile(0.5), QuantileInPieces(0.5)):
            found = optimum.solve(replace(shipped, loss=loss), seconds=MOST_SECONDS)
            assert found.lower <= best.value / 2 + 1e-9
            assert found.value >= best.lower / 2 - 1e-9

    def test_a_loss_that_says_its_pieces_is_solved_as_well_as_a_shipped_one(self):
        shipped = small_problem(loss="absolute")
        found = optimum.solve(replace(shipped, loss=QuantileInPieces(0.5)), seconds=MOST_SECONDS)
        assert found.converged
        assert found.method == optimum.solve(shipped).method

    @pytest.mark.parametrize("mechanism", ["noisy_gd", "noisy_sgd", "one_pass_sgd"])
    def test_mechanisms_run_on_them_and_are_private(self, mechanism, problem):
        plugin = registry.load("mechanism", mechanism)()
        budget = Budget(1.0, 1e-5)
        plan = plugin.plan(problem.spec(), budget)
        assert plan.guarantee.within(budget)
        gate = Gate(
            [seed_sequence(0, "test", i) for i in range(2)], plan=(plan.events, "replace_one")
        )
        theta = plugin.release(CentralView(problem), plan, gate).theta
        assert theta.shape == (2, 3)
        assert np.all(problem.constraint.contains(theta))
        other = replace_record(problem, 0, np.array([-1.0, 0.0, 0.0]), -1.0)
        verdict = replay(plugin, plan, problem, other)
        assert verdict.private
        assert verdict.worst > 0

    @pytest.mark.parametrize("mechanism", ["exponential", "huberized", "frank_wolfe", "newton"])
    def test_others_say_why_not(self, mechanism, problem):
        words = describe_plan(problem, mechanism)
        assert words
        assert len(words.splitlines()) == 1
