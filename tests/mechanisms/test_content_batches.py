"""Batches by content: a record that comes or goes moves no other one, whatever the view is made of.

Common records of two neighbouring data sets keep their batches under every view and combinator,
also where the last bits of what is computed from their rows follow the other rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from dperm_cli.core import registry
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.data import Data, pad_with_zeros
from dperm_cli.problem.problem import Problem
from dperm_cli.runner.cells import kernel_cells, prepared_cell
from dperm_cli.runner.compose import study_plan
from dperm_cli.runner.compose.command_line import parse
from dperm_cli.sets.l2_ball import L2Ball
from dperm_cli.views.central import CentralView
from dperm_cli.views.choose import open_view
from dperm_cli.views.kernel import FeatureView
from tests.conftest import small_problem

INNER = {"name": "one_pass_sgd", "batches": 7, "noise": "gamma"}
BUDGET = Budget(2.0, 0.0, "add_remove")
COMBINATORS = [
    name for name in registry.names("mechanism")
    if "inner" in getattr(registry.load("mechanism", name), "__dataclass_fields__", ())
]  # fmt: skip


def without(data: Data, index: int) -> Data:
    """The neighbour that has one record less."""
    return data.take(np.delete(np.arange(data.n), index))


def batches(view: Any, count: int) -> dict[int, int]:
    """The batch of each record, by its name."""
    return placed(view._problem.data.names, view.parts(count, by_content=True))


def placed(names: np.ndarray, parts: list[np.ndarray]) -> dict[int, int]:
    return {int(names[i]): number for number, part in enumerate(parts) for i in part}


def assert_only_one_moves(more: dict[int, int], less: dict[int, int]) -> None:
    assert len(more) == len(less) + 1
    assert less == {name: more[name] for name in less}


def wide(n: int, p: int = 30) -> Data:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, p))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = rng.choice([-1.0, 1.0], n)
    return Data.of_records("wide", "binary", x, y, 1.0, 1.0, f"wide {n} {p}")


def a_cell(*words: str):
    given = ["loss=logistic", "ridge=0.05", "delta=0", "privacy=pure", "trials=1",
             "privacy.relation=add_remove", *words]  # fmt: skip
    return study_plan.plan_study(parse(given)).cells[0]


KERNEL_WORDS = ("mechanism=random_features", "mechanism.inner=one_pass_sgd", "kernel=rbf",
                "kernel.radius=2", "dataset=synthetic_logistic", "dataset.p=30")  # fmt: skip


def in_features(data: Data, *words: str) -> tuple[CentralView, Problem]:
    """The view of a cell of random features, as a run opens it."""
    one = a_cell(*KERNEL_WORDS, *words)
    item = prepared_cell.make_feature_rows(prepared_cell.prepare(one, data))
    return open_view(one.mechanism, item.padded_problem, item.kernel), item.padded_problem


@pytest.fixture(autouse=True)
def _nothing_kept():
    kernel_cells._MAPPED_ROWS.clear()
    kernel_cells._PROBLEMS.clear()


@pytest.mark.parametrize("n", [64, 4096, 4097, 8193])
@pytest.mark.parametrize("form", ["dense", "csr"])
def test_every_view_keeps_the_batches_of_common_records(n, form):
    data = wide(n)
    if form == "csr":
        data = data.with_rows(sparse.csr_array(data.x))
    table = np.random.default_rng(1).standard_normal((30, 40))
    loss, ball = registry.load("loss", "logistic")(), L2Ball(1.0, 30)
    hinge, image = registry.load("loss", "hinge")(), L2Ball(1.0, 40)

    def views(one: Data) -> list[CentralView]:
        view = CentralView(Problem(one, loss, ball, 0.1))
        lifted = view.map_rows(lambda x: np.asarray(x @ table), 2.0, image)
        filled = CentralView(Problem(pad_with_zeros(one, n + 3), loss, ball, 0.1))
        kernel: Any = None
        return [view, view.replace_set(loss=hinge), view.replace_set(constraint=L2Ball(2.0, 30)),
                lifted, lifted.replace_set(loss=hinge).map_rows(np.cos, 1.0, image), filled,
                FeatureView(Problem(one, loss, ball, 0.1), kernel)]  # fmt: skip

    for gone in (0, n // 2, n - 1):
        for more, less in zip(views(data), views(without(data, gone)), strict=True):
            assert_only_one_moves(batches(more, 11), batches(less, 11))


@pytest.mark.parametrize(
    ("n", "size"), [(4097, 20), pytest.param(32_770, 250, marks=pytest.mark.slow)]
)
def test_random_features_move_one_batch_by_one_gradient(n, size):
    """What was found: psi(x) of the last rows of a block has other last bits in a smaller one, and
    batches that were named by psi(x) moved by 22 gradients where the event says one."""
    data, words = wide(n), (f"kernel.size={size}",)
    more, problem = in_features(data, *words)
    less, fewer = in_features(without(data, 1), *words)
    assert problem.p == 2 * size
    assert_only_one_moves(batches(more, 12), batches(less, 12))
    point = np.full(problem.p, 0.5 / np.sqrt(problem.p))
    sums = [
        np.stack([view.batch_gradient(point, part) for part in view.parts(12, by_content=True)])
        for view in (more, less)
    ]
    moved = np.linalg.norm(sums[0] - sums[1], axis=1)
    assert np.sum(moved) <= fewer.spec().lipschitz * (1.0 + 1e-9)


def test_records_that_fill_up_are_in_no_batch():
    data = wide(50)
    view, problem = in_features(data, "kernel.size=5", "privacy.population=80")
    assert problem.data.n == 80
    parts = view.parts(6, by_content=True)
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(50))
    less, _ = in_features(without(data, 9), "kernel.size=5", "privacy.population=80")
    assert_only_one_moves(batches(view, 6), batches(less, 6))


@contextmanager
def watched_batches(monkeypatch) -> Iterator[list[dict[int, int]]]:
    """What every call for batches by content gives while the block runs."""
    found: list[dict[int, int]] = []
    plain = CentralView.parts

    def parts(self, batches, *, by_content):
        given = plain(self, batches, by_content=by_content)
        if by_content:
            found.append(placed(self._problem.data.names, given))
        return given

    with monkeypatch.context() as patched:
        patched.setattr(CentralView, "parts", parts)
        yield found


@pytest.mark.parametrize("name", COMBINATORS)
@pytest.mark.parametrize("n", [40, 4097])
def test_every_combinator_keeps_the_batches_of_common_records(name, n, monkeypatch):
    mechanism = registry.load("mechanism", name)(inner=INNER)
    problem = small_problem(loss="logistic", constraint="l2_ball", n=n, p=8, ridge=0.1)
    if name == "huberized":
        hinge = registry.load("loss", "hinge")()
        problem = Problem(problem.data, hinge, problem.constraint, problem.ridge)
    sides = []
    for data in (problem.data, without(problem.data, 2)):
        # the declared population, so that both have the same plan
        one = Problem(pad_with_zeros(data, n + 1), problem.loss, problem.constraint, problem.ridge)
        try:
            made = mechanism.plan(one.spec(), BUDGET)
        except Unsupported as reason:
            pytest.skip(str(reason))
        gate = Gate([seed_sequence(0, "test", 0)], plan=(made.events, BUDGET.relation))
        with watched_batches(monkeypatch) as found:
            mechanism.release(CentralView(one), made, gate)
        assert found
        sides.append(found)
    for more, less in zip(*sides, strict=True):
        assert_only_one_moves(more, less)


def test_there_are_combinators_to_try():
    assert {"projected", "standard_projection", "random_features", "huberized"} <= set(COMBINATORS)
