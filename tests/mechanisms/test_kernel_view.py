"""Mechanisms on parameters whose rows are a kernel's features take the kernel's own minimiser."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dperm_cli.audit import replay as audit
from dperm_cli.audit.replay import neighbour
from dperm_cli.core import registry
from dperm_cli.core.rng import generator, seed_sequence
from dperm_cli.mechanisms._kernel_view import FeatureView
from dperm_cli.mechanisms.output_perturbation import OutputPerturbation
from dperm_cli.privacy.budget import Budget
from dperm_cli.problem.constraints.l2_ball import L2Ball
from dperm_cli.problem.data import Data
from dperm_cli.problem.kernel_problem import KernelProblem
from dperm_cli.problem.kernels._features import Explicit
from dperm_cli.problem.kernels.linear import Linear
from dperm_cli.problem.problem import Problem

N, P, RIDGE = 8, 3, 0.3


def kernel_of(problem):
    """The kernel problem of which ``problem`` is the one in coordinates, a linear kernel's."""
    features = Explicit(Linear(), P, 1.0)
    return KernelProblem(problem.data, problem.loss, Linear(), RIDGE, np.eye(P), features)


def neighbours(loss, task, number):
    rng = generator(seed_sequence(number, "kernel view", loss))
    x = rng.standard_normal((N + 1, P))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = rng.choice([-1.0, 1.0], N + 1)
    name = f"view {loss} {number}"
    data = Data(name, task, x[:N], y[:N], row_bound=1.0, target_bound=1.0, fingerprint=name)
    first = Problem(data, registry.load("loss", loss)(), L2Ball(1.0, P), RIDGE)
    first = replace(first, constraint=L2Ball(kernel_of(first).spec().radius, P))
    row = x[N] if number % 2 else -x[0]  # the farthest a record can go, or any
    return first, neighbour(first, 0, row, float(y[N]))


class Far(FeatureView):
    """The mutant: its minimiser is another one than was asked for."""

    def minimiser(self, gap):
        return 3.0 * super().minimiser(gap)


@pytest.mark.parametrize(
    ("loss", "task"), [("logistic", "binary"), ("hinge", "binary"), ("squared", "regression")]
)
def test_what_is_noised_moves_by_no_more_than_it_says(loss, task, monkeypatch):
    mechanism = OutputPerturbation()
    asked = []

    def view(kind):
        def opened(problem, seen):
            asked.append(kind)
            return kind(problem, kernel_of(problem))

        return opened

    worst = 0.0
    for number in range(12):
        first, second = neighbours(loss, task, number)
        plan = mechanism.plan(first.spec(), Budget(2.0, 1e-5))
        monkeypatch.setattr(audit, "watched", view(FeatureView))
        found = audit.replay(mechanism, plan, first, second)
        assert found.private, found.faults
        assert found.calls > 0
        worst = max(worst, found.worst)
    assert 0.05 < worst <= 1.0 + 1e-9
    monkeypatch.setattr(audit, "watched", view(Far))
    found = [audit.replay(mechanism, plan, *neighbours(loss, task, k)) for k in range(12)]
    assert len(asked) == 48
    assert not all(one.private for one in found)
