"""docs/threats.md names tests that exist; and faults of other libraries, looked for here."""

from __future__ import annotations

import ast
import math
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from dperm_cli.core import registry
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.budget import RELATIONS, Budget, Guarantee
from dperm_cli.privacy.events import Gaussian, SampledGaussian
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.data import Bounds
from dperm_cli.views.central import CentralView
from tests.conftest import small_problem

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "threats.md").read_text()
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))
ELSEWHERE = {
    "jacobian", "intercept", "nan", "one-class", "reseeding", "calibration", "low-bits",
    "preprocessing", "best-row",
}  # fmt: skip


@cache
def functions(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_a_named_test_exists(path, name):
    assert name in functions(path)


def test_every_fault_of_the_list_has_a_test():
    rows = re.findall(r"^\| `([a-z-]+)` \|.*\| (.*) \|$", PAGE, re.MULTILINE)
    assert {name for name, _ in rows} == ELSEWHERE
    assert all("::test_" in tests for _, tests in rows)
    assert len(NAMED) > 20


def test_files_named_exist():
    for path in re.findall(r"`(tests/[\w/]+\.py)`", PAGE):
        assert (ROOT / path).exists()


@pytest.mark.parametrize("name", registry.names("loss"))
def test_curvature_grows_as_the_square_of_the_row_norm(name):
    loss = registry.load("loss", name)()
    if "location" in loss.tasks:
        return  # a row is not a factor there
    # rows q times longer and a set q times smaller have the same margins
    short, long = (Bounds(q, 1.0, 2.0 / q, 4, classes=3) for q in (1.0, 3.0))
    assert loss.lipschitz(long) == pytest.approx(3.0 * loss.lipschitz(short))
    curvature = loss.curvature_bound(short)
    if curvature:
        assert loss.curvature_bound(long) == pytest.approx(9.0 * curvature)


def test_an_intercept_is_a_coordinate_like_any_other():
    from dperm_cli.datasets.shared.row_rules import bound_rows, row_norms, with_constant

    x = with_constant(np.array([[3.0, 4.0], [0.0, 0.0]]))
    assert np.all(row_norms(bound_rows(x, "clip", 1.0)) <= 1.0)
    problem = small_problem(ridge=2.0)
    theta = np.array([0.0, 0.0, 0.5])  # whichever coordinate is the constant, it is regularised
    plain = small_problem(ridge=0.0)
    penalty = problem.objective(theta) - plain.objective(theta)
    assert penalty == pytest.approx(problem.data.n * 0.25)
    assert problem.spec().strong_convexity == 2.0


def test_nan_is_within_no_budget():
    budget = Budget(1.0, 1e-5)
    for epsilon, delta in ((math.nan, 1e-5), (1.0, math.nan), (math.inf, 1e-5)):
        assert not Guarantee("approx", epsilon, delta, "replace_one", "x").within(budget)
    nowhere = Guarantee("approx", 0.5, 1e-6, "replace_one", "x")
    assert not nowhere.within(Budget(math.nan, 1e-5))
    assert nowhere.within(budget)


def test_two_thousand_releases_are_two_thousand_outputs():
    problem = small_problem(n=5)
    mechanism = registry.load("mechanism", "noisy_gd")(steps=1, step_size=1e-6)
    plan = mechanism.plan(problem.spec(), Budget(1.0, 1e-5))
    seeds = [seed_sequence(0, "noise", "cell", trial) for trial in range(2000)]
    theta = mechanism.release(CentralView(problem), plan, Gate(seeds)).theta
    assert len(np.unique(theta, axis=0)) == 2000
    assert len({seed.generate_state(4).tobytes() for seed in seeds}) == 2000


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("relation", RELATIONS)
def test_calibration_is_exact_at_small_and_large_epsilon(epsilon, relation):
    def gaussian(scale):
        return (Gaussian(scale, 1.0, 10),)

    def sampled(scale):
        return (SampledGaussian(scale, 1.0, 5, 100, "poisson", 100),)

    # an ordinary composition at both ends; the closed form in between, too
    for events in (gaussian, sampled) if epsilon in (0.1, 10.0) else (gaussian,):
        level = {"epsilon": epsilon, "delta": 1e-6, "relation": relation}
        scale = calibrate.scale_for(events, **level)

        def certified(at, events=events):
            return account(events(at), delta=1e-6, relation=relation).epsilon

        assert certified(scale) <= epsilon
        # 1e-5 less noise is no longer enough: the search stopped at the root, whatever epsilon
        assert certified(scale * (1 - 1e-5)) > epsilon
