"""Private Frank-Wolfe on rows bounded in L-infinity, and its pure risk theorem."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dperm_cli.audit.replay import replace_record, replay
from dperm_cli.bounds import ttz14
from dperm_cli.bounds.base import Setting, list_bounds
from dperm_cli.core import registry
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.datasets.shared.row_pipeline import Raw, RowOptions, make_data, prepare
from dperm_cli.losses.hinge import Hinge
from dperm_cli.losses.logistic import Logistic
from dperm_cli.losses.squared import Squared
from dperm_cli.mechanisms.combinators.huberized import Huberized
from dperm_cli.mechanisms.gradient import frank_wolfe
from dperm_cli.mechanisms.gradient.frank_wolfe import FrankWolfe
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.problem import Problem
from dperm_cli.sets.l1_ball import L1Ball
from dperm_cli.sets.l2_ball import L2Ball
from dperm_cli.sets.simplex import Simplex
from dperm_cli.views.central import CentralView

N, P = 40, 16
PURE = Budget(2.0, 0.0, "replace_one")


def problem(body=None, loss=None, entry: float | None = 1.0, n: int = N) -> Problem:
    """Rows of signs: |x|_inf = 1 and |x|_2 = sqrt(p)."""
    rng = np.random.default_rng(3)
    x = rng.choice([-1.0, 1.0], size=(n, P))
    y = np.sign(x[:, 0] + 0.5 * x[:, 1])
    data = make_data(
        "signs", "binary", x, y, None, None, row_bound=math.sqrt(P), entry_bound=entry,
        preprocessing=(),
    )  # fmt: skip
    shape: Any = L1Ball(1.0, P) if body is None else body
    chosen: Any = loss or Logistic()
    return Problem(data, chosen, shape)


def test_files_declare_it():
    raw = Raw(np.array([[3.0, -1.0], [0.5, 0.25]]), np.array([1.0, -1.0]))
    for norm, expected in (("inf", 1.0), (2, None)):
        data = prepare("d", "binary", RowOptions(norm=norm, rows="clip", test_fraction=0.0), raw)
        assert data.entry_bound == expected
        assert np.max(np.abs(data.x)) <= 1.0


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_the_exponent_gains_the_root_of_p(relation):
    budget = replace(PURE, relation=relation)
    fixed = FrankWolfe(steps=4)
    plain = fixed.plan(problem(entry=None).spec(), budget)
    better = fixed.plan(problem().spec(), budget)
    sigmoid = 1.0 / (1.0 + math.exp(-1.0))  # slopes at margins up to 1
    moves = (2.0 if relation == "replace_one" else 1.0) * 2.0 * sigmoid
    assert better.noise_scale == pytest.approx(moves * 4 / 2.0)
    assert better.guarantee.epsilon <= 2.0
    assert plain.noise_scale > math.sqrt(P / 2) * better.noise_scale
    assert better.settings["rows_bounded_in"] == "linf"
    assert "rows_bounded_in" not in plain.settings


@pytest.mark.parametrize("make", [L1Ball, Simplex])
@pytest.mark.parametrize("loss", [Logistic(), Squared()])
def test_scores_move_no_more_than_declared(make, loss):
    """Replay on neighbours whose rows are corners of the cube; half the number would not do."""
    found = problem(make(1.5, P), loss)
    mechanism = FrankWolfe(steps=3, oracle="choice")
    plan = mechanism.plan(found.spec(), PURE)
    rng, worst = np.random.default_rng(0), 0.0
    for index in range(40):
        row = rng.choice([-1.0, 1.0], size=P)
        other = replace_record(found, index % N, row, float(rng.choice([-1.0, 1.0])))
        seen = replay(mechanism, plan, found, other, seed=index)
        assert seen.private, seen.faults
        worst = max(worst, seen.worst)
    # the difference of two gradients comes near what is declared
    assert worst <= 1.0 + 1e-9
    spec = found.spec()
    entries = frank_wolfe.bound_entries(spec)
    assert entries is not None
    gaps = [abs_range(found, row, make) for row in rng.choice([-1.0, 1.0], size=(200, P))]
    assert max(gaps) <= entries.slope * (1 + 1e-12)
    assert max(gaps) > 0.45 * entries.slope


def abs_range(found: Problem, row: np.ndarray, make) -> float:
    """The range over vertices of <v, gradient of one record> at a vertex or the centre."""
    data, largest = found.data, 0.0
    body: Any = found.constraint
    for y in (-1.0, 1.0):
        one = data.with_records(row[None, :], np.array([y]))
        for theta in (body.centre(), body.lmo(y * row), body.lmo(-y * row)):
            g = found.loss.gradient(theta, one)
            largest = max(largest, float(body.support(g) + body.support(-g)))
    return largest


def test_other_sets_and_mapped_rows_know_nothing_of_it():
    ball: Any = L2Ball(1.0, P)
    assert frank_wolfe.bound_entries(problem(ball).spec()) is None
    view = CentralView(problem())
    body: Any = L1Ball(1.0, 4)
    mapped = view.map_rows(lambda x: 3.0 * x[:, :4], 2.0, body)
    assert view.spec.entry_bound == 1.0
    assert mapped.spec.entry_bound is None


def test_a_rounded_loss_leaves_the_bound_on_entries_as_it_is():
    """What the plan knows of the rows is what the release knows: the gate takes nothing else."""
    found, mechanism = problem(loss=Hinge()), Huberized(inner="frank_wolfe")
    plan = mechanism.plan(found.spec(), PURE)
    assert plan.settings["inner"]["rows_bounded_in"] == "linf"
    gate = Gate([seed_sequence(0, "test", 0)], plan=(plan.events, PURE.relation))
    out = mechanism.release(CentralView(found), plan, gate)
    assert np.all(found.constraint.contains(out.theta))


def test_theorem_3_is_above_the_best_number_of_steps():
    for curvature, each in ((10.0, 0.3), (1e6, 2.0), (0.01, 5.0)):
        best = min(
            ttz14.frank_wolfe_risk(curvature, steps, steps * each) for steps in range(1, 4000)
        )
        limit = ttz14.frank_wolfe_pure_risk(curvature, each, math.e, 1.0)
        assert best <= limit
        assert limit <= 3.2 * best + 2 * each


def test_theorem_3_grows_like_the_root_of_n():
    values = [ttz14.frank_wolfe_pure_risk(2.0 * n, 3.0, 2000.0, 1.0) for n in (10**8, 10**12)]
    assert values[1] / values[0] == pytest.approx(100.0, rel=2e-2)


def test_theorem_2_holds_and_uses_the_curvature_in_entries():
    found = problem(n=400)
    mechanism = FrankWolfe(steps="theory")
    plan = mechanism.plan(found.spec(), replace(PURE, epsilon=20.0))
    seeds = [seed_sequence(1, "noise", trial) for trial in range(200)]
    theta = mechanism.release(CentralView(found), plan, Gate(seeds)).theta
    from dperm_cli.solvers import optimum

    lower = optimum.solve(found, relative_gap=1e-4, seconds=20.0).lower
    risks = found.objective(theta) - lower
    spec = found.spec()
    at = Setting(
        spec, PURE, "pure", "frank_wolfe", plan.noise_scale, plan.steps, plan.settings
    )  # fmt: skip
    bound = next(b for b in list_bounds(ttz14) if b.id == "frank_wolfe Thm 2").value(at)
    assert np.mean(risks) <= bound
    without = {k: v for k, v in plan.settings.items() if k != "curvature"}
    larger = next(b for b in list_bounds(ttz14) if b.id == "frank_wolfe Thm 2").value(
        replace(at, settings=without)
    )
    assert bound < larger


def test_the_registry_builds_it_from_a_file_with_that_norm():
    assert "norm" in {f for f in registry.load("dataset", "npz").__dataclass_fields__}
