"""Mechanisms on parameters whose rows are a kernel's features take the kernel's own minimiser."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from dperm_cli.audit import replay as audit
from dperm_cli.audit.replay import replace_record
from dperm_cli.core import registry
from dperm_cli.core.errors import PrivacyError
from dperm_cli.core.seeds import generator, seed_sequence
from dperm_cli.kernels.linear import Linear
from dperm_cli.kernels.shared.feature_maps import Explicit
from dperm_cli.kernels.shared.kernel_problem import KernelProblem
from dperm_cli.mechanisms.perturbation.output_perturbation import OutputPerturbation
from dperm_cli.privacy.budget import Budget
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem
from dperm_cli.sets.l2_ball import L2Ball
from dperm_cli.views import central
from dperm_cli.views.central import CentralView
from dperm_cli.views.kernel import FeatureView, KernelView

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
    data = Data.of_records(
        name, task, x[:N], y[:N], row_bound=1.0, target_bound=1.0, fingerprint=name
    )
    first = Problem(data, registry.load("loss", loss)(), L2Ball(1.0, P), RIDGE)
    first = replace(first, constraint=L2Ball(kernel_of(first).spec().radius, P))
    row = x[N] if number % 2 else -x[0]  # the farthest a record can go, or any
    return first, replace_record(first, 0, row, float(y[N]))


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
        def opened(problem, seen, outside):
            asked.append(kind)
            return kind(problem, kernel_of(problem))

        return opened

    worst = 0.0
    for number in range(12):
        first, second = neighbours(loss, task, number)
        plan = mechanism.plan(first.spec(), Budget(2.0, 1e-5))
        monkeypatch.setattr(audit, "watch_view", view(FeatureView))
        found = audit.replay(mechanism, plan, first, second)
        assert found.private, found.faults
        assert found.calls > 0
        worst = max(worst, found.worst)
    assert 0.05 < worst <= 1.0 + 1e-9
    monkeypatch.setattr(audit, "watch_view", view(Far))
    found = [audit.replay(mechanism, plan, *neighbours(loss, task, k)) for k in range(12)]
    assert len(asked) == 48
    assert not all(one.private for one in found)


def test_a_failure_does_not_say_how_near_the_minimiser_was_found(monkeypatch):
    """It stands in records and in the ledger; how far a solver got follows from the records."""
    first, _ = neighbours("logistic", "binary", 0)
    own, told = kernel_of(first), []
    views = (CentralView(first), FeatureView(first, own), KernelView(own))
    for far in (0.123, 4.56):
        found = SimpleNamespace(theta=np.zeros(P), gap=far, lower=0.0, distance=far)
        monkeypatch.setattr(central.optimum, "solve", lambda *_, far=found, **__: far)
        monkeypatch.setattr(
            central.perturbed_minimiser,
            "locate",
            lambda *_, far=far: (np.zeros((1, P)), np.array([far])),
        )
        monkeypatch.setattr(KernelProblem, "solve", lambda *_, far=found, **__: far)
        for ask in (
            lambda: views[0].minimiser(1e-3),
            lambda: views[0].find_perturbed_minimisers(np.zeros((1, P)), 1.0, 1e-3),
            lambda: views[1].minimiser(1e-3),
            lambda: views[2].find_minimiser(1e-3),
        ):
            with pytest.raises(PrivacyError, match=r"0\.001.*nothing is released") as failure:
                ask()
            told.append(str(failure.value))
    assert told[:4] == told[4:]
