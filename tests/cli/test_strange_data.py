"""Data nobody would keep on purpose: fitted like any other, and never a reason to refuse."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import os
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dperm_cli.audit.random_neighbours import shorten_steps
from dperm_cli.core import registry
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.datasets.shared import row_rules
from dperm_cli.losses.shared.margin_loss import Glm
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem
from dperm_cli.results.records.store import Store
from dperm_cli.runner.cells import run_cell
from dperm_cli.runner.compose import cell_schema
from dperm_cli.runner.verbs import run
from dperm_cli.solvers.optimum import solve
from dperm_cli.views.choose import open_view
from tests.cli.test_hostile_values import CONFIG, INF, TINY, archive

RNG = np.random.default_rng(0)
BALL = RNG.standard_normal((12, 3)) / 4
STRANGE = {
    "one class": (BALL, np.ones(12)),
    "the other class": (BALL, -np.ones(12)),
    "zeros": (np.zeros((12, 3)), np.resize([1.0, -1.0], 12)),
    "zeros of one class": (np.zeros((12, 3)), np.ones(12)),
    "constant column": (np.c_[BALL[:, :2], np.full(12, 0.3)], np.resize([1.0, -1.0], 12)),
    "duplicate columns": (np.c_[BALL[:, :1], BALL[:, :1], BALL[:, :1]], np.resize([1.0, -1], 12)),
    "one record many times": (np.tile(BALL[:1], (12, 1)), np.ones(12)),
    "one row, two labels": (np.tile(BALL[:1], (12, 1)), np.resize([1.0, -1.0], 12)),
    "one record": (BALL[:1], np.ones(1)),
    "two records": (BALL[:2], np.array([1.0, -1.0])),
    "p > n": (RNG.standard_normal((4, 50)), np.resize([1.0, -1.0], 4)),
    "huge rows": (np.full((12, 3), 1e308), np.resize([1.0, -1.0], 12)),
    "tiny rows": (np.full((12, 3), 5e-324), np.resize([1.0, -1.0], 12)),
    "mixed rows": (np.diag([1e308, 1.0, 1e-308]), np.array([1.0, -1.0, 1.0])),
    "separated": (np.c_[np.resize([1.0, -1.0], 12), np.zeros((12, 2))], np.resize([1.0, -1.0], 12)),
}


@pytest.mark.parametrize("name", list(STRANGE))
def test_strange_files_are_fitted(tmp_path, name):
    x, y = STRANGE[name]
    (tmp_path / "t.npz").write_bytes(archive(x=x, y=y))
    for rule in ("unit", "clip", "none"):
        config = copy.deepcopy(CONFIG) | {"trials": 1, "delta": 1e-5}
        config["dataset"] = {"name": "npz", "path": str(tmp_path / "t.npz"), "rows": rule,
                             "row_bound": 1.0, "test_fraction": 0.0}  # fmt: skip
        config["mechanism"] = config["mechanism"] | {"steps": 3}
        (prepared,) = run.prepare((cell_schema.build_cell(config),))
        (row,) = run_cell.run(prepared, solve, debug=True)
        assert row["status"] == "ok"
        assert row["n"] == len(x)
        assert np.all(np.isfinite(row["theta"]))
        for value in row.values():
            assert not (isinstance(value, float) and not math.isfinite(value))


def test_one_class_through_the_command_line(dperm, figures, tmp_path):
    (tmp_path / "t.csv").write_text("a,b,y\n0.5,0.1,1\n3,4,1\n0.2,0.1,1\n")
    done = dperm("run", *TINY, "dataset=csv", "dataset.path=t.csv", "dataset.rows=clip")
    assert done.code == 0, done.err
    assert done.rows[0]["status"] == "ok"


@pytest.mark.parametrize("rule", ["unit", "clip", "none"])
@given(
    x=hnp.arrays(
        np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=5),
        elements=st.floats(allow_nan=False, allow_infinity=False),
    ),
    bound=st.sampled_from([1e-3, 1.0, 1e3]),
    norm=st.sampled_from([1.0, 2.0, INF]),
)  # fmt: skip
@settings(max_examples=100, deadline=None, database=None, derandomize=True)
def test_rows_are_held_to_their_norm_whatever_they_are(rule, x, bound, norm):
    held = row_rules.bound_rows(x, rule, bound, norm)
    assert np.all(np.isfinite(held))
    assert np.all(row_rules.row_norms(held, norm) <= bound)
    # one row never decides what becomes of another
    assert held[:1].tobytes() == row_rules.bound_rows(x[:1], rule, bound, norm).tobytes()


def degenerate(task: str, kind: str, n: int = 6, p: int = 3) -> tuple[np.ndarray, np.ndarray]:
    row = np.eye(p)[0]
    x = {
        "zeros": np.zeros((n, p)),
        "equal": np.tile(row, (n, 1)),
        "opposite": np.outer(np.resize([1.0, -1.0], n), row),
        "tiny": np.full((n, p), 1e-300),
    }[kind]
    low, high = {"binary": (-1, 1), "regression": (-1, 1), "multiclass": (0, 2)}.get(task, (0, 0))
    return x, np.full(n, float(low if kind == "equal" else high))


KINDS = ("zeros", "equal", "opposite", "tiny")


# those of a kernel: tests/contract/test_kernel_mechanisms.py
MECHANISMS = [
    name
    for name in registry.list_protective()
    if getattr(registry.load("mechanism", name), "space", "") != "kernel"
]
BUDGET = Budget(1.0, 1e-5)


def mechanism_of(name):
    """A few steps: what may be refused is decided before the first."""
    mechanism = shorten_steps(registry.load("mechanism", name)(), 5)
    if mechanism.sampler is not None:
        soon = registry.load("sampler", "auto")(most_seconds=2.0)
        return dataclasses.replace(mechanism, sampler=soon)
    return mechanism


def planned(name, spec):
    """The plan, or None where the mechanism has none for these public facts."""
    try:
        return mechanism_of(name).plan(spec, BUDGET)
    except Unsupported:
        return None


@pytest.mark.in_turn
@pytest.mark.parametrize("loss", registry.names("loss"))
@pytest.mark.parametrize("name", MECHANISMS)
def test_no_mechanism_refuses_because_of_the_records(name, loss):
    """The plan is the same for every data set of these bounds, and the release always comes."""
    found = registry.load("loss", loss)()
    for n, ridge in ((6, 0.1), (1, 0.0)):
        problems = [made(found, *degenerate(found.tasks[0], kind, n), ridge) for kind in KINDS]
        spec = problems[0].spec()
        plan = planned(name, spec)
        # without a ridge, a margin, or with kinks, some have no plan: for none of these data sets
        needed = getattr(mechanism_of(name), "requires", ())
        missing = spec.smoothness is None or ("margin" in needed and not isinstance(found, Glm))
        missing = missing or ("quadratic" in needed and not (found.quadratic and found.smoothness))
        assert plan is not None or n == 1 or missing
        for problem in problems if plan is not None else ():
            assert problem.spec() == spec
            gate = Gate([seed_sequence(0, "test", trial) for trial in range(2)])
            mechanism = mechanism_of(name)
            theta = mechanism.release(open_view(mechanism, problem), plan, gate).theta
            assert np.all(np.isfinite(theta))
            assert np.all(problem.constraint.contains(theta))
            # what is printed beside the release must not fail either: a failed cell is an output
            assert np.isfinite(solve(problem).value)


def made(loss, x, y, ridge) -> Problem:
    data = Data.of_records(
        name="strange", task=loss.tasks[0], x=np.ascontiguousarray(x), y=y, row_bound=1.0,
        target_bound=1.0, fingerprint=json.dumps([x.tolist(), y.tolist()]),
        classes=3 if loss.tasks[0] == "multiclass" else 2,
    )  # fmt: skip
    constraint = registry.load("constraint", "l2_ball")(radius=1.0, p=loss.dimension(data.facts()))
    return Problem(data, loss, constraint, ridge)


LOGISTIC, SQUARED = (registry.load("loss", name)() for name in ("logistic", "squared"))
RIDGE = 0.1
SPECS = {
    loss.name: made(loss, np.zeros((4, 2)), np.ones(4), RIDGE).spec()
    for loss in (LOGISTIC, SQUARED)
}


@pytest.mark.in_turn
@pytest.mark.parametrize("name", MECHANISMS)
@given(
    x=hnp.arrays(np.float64, (4, 2), elements=st.floats(-1e308, 1e308)),
    y=hnp.arrays(np.float64, 4, elements=st.sampled_from([-1.0, 1.0])),
)
@settings(max_examples=20, deadline=None, database=None, derandomize=True)
def test_no_release_fails_on_any_records(name, x, y):
    loss = SQUARED if "quadratic" in mechanism_of(name).requires else LOGISTIC
    problem = made(loss, row_rules.bound_rows(x, "clip", 1.0), y, RIDGE)
    assert problem.spec() == SPECS[loss.name]
    plan = plan_of(name, loss.name)
    gate = Gate([seed_sequence(0, "test", 0)])
    theta = mechanism_of(name).release(open_view(mechanism_of(name), problem), plan, gate).theta
    assert np.all(np.isfinite(theta))
    assert np.all(problem.constraint.contains(theta))


@cache
def plan_of(name, loss):
    return mechanism_of(name).plan(SPECS[loss], BUDGET)


EXTREME = {
    ("epsilon=1e308",): 2, ("epsilon=1e-308",): 2, ("ridge=1e308",): 2,
    ("constraint.radius=1e300",): 2, ("constraint.radius=1e-300",): 2,
    ("dataset.row_bound=1e300",): 2, ("dataset.row_bound=1e-300",): 2,
    ("dataset.row_bound=1e200", "constraint.radius=1e-200"): 2,
    ("epsilon=1e6",): 0, ("epsilon=1e-9",): 0, ("delta=0",): 0, ("delta=0.999999",): 0,
}  # fmt: skip


@pytest.mark.parametrize("words", list(EXTREME))
def test_extreme_numbers_are_planned_or_refused(dperm, tmp_path, words, monkeypatch):
    """Numbers in range but beyond reach: one line or a row, and never a traceback."""
    quiet = SimpleNamespace(faults=(), summary=(), broken=(), gaps=())
    for name in ("report_run", "print_report"):
        monkeypatch.setattr(run.study_report, name, lambda *_, **__: quiet)
    done = dperm("run", *TINY[:4], *words, "out=here")
    assert "Traceback" not in done.err
    assert done.code == EXTREME[words], done.err
    if done.code == 2:
        assert len(done.err.splitlines()) == 1
        assert os.listdir(tmp_path) == []
        return
    (row,) = Store(tmp_path / "here").read_all()
    assert row["status"] == "ok" or (row["status"] == "unsupported" and row["reason"])
    if row["status"] == "ok":
        assert row["epsilon_accounted"] <= row["epsilon"]
