"""The audit opens cells as a run does: what is right passes on every path, a fault is found.

Every planted fault here is one that leaves the plain loop, the plan and the claim as they are.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dperm_cli.audit import declared_grid, release_checks, statistical_attack
from dperm_cli.audit.cell_checks import examine
from dperm_cli.audit.hard_pairs import ALONE, KINDS
from dperm_cli.core.errors import PrivacyError
from dperm_cli.loops import reduced_sgd
from dperm_cli.mechanisms.gradient import noisy_sgd
from dperm_cli.mechanisms.gradient.noisy_gd import NoisyGd
from dperm_cli.privacy.budget import Guarantee
from dperm_cli.runner.audits import audit_cells, audit_grid
from dperm_cli.runner.cells import kernel_cells, prepared_cell, run_cell
from dperm_cli.runner.compose.composer import Composer

COMPOSER = Composer()
FEW = {"p": 20, "radius": 1e12, "ridge": 0.0}  # noisy_sgd works in the coordinates of the rows
WIDE = {"p": declared_grid.VERY_WIDE, "radius": 1e12, "mechanism.step_size": 1e-3}  # and noisy_gd


def report_on(name, kinds=("alone", "label flip"), **settings):
    """The report on one row of the grid: the first value of every factor, but for ``settings``."""
    factors = declared_grid.factors(name)
    row = {factor: values[0] for factor, values in factors.items()} | settings
    subject = audit_cells.of_grid(name, row, COMPOSER)
    return examine(audit_cells.case(subject, kinds, 0))


@pytest.mark.in_turn
@pytest.mark.parametrize("kinds", [2, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("name", "settings", "paths"),
    [
        pytest.param("noisy_gd", {}, ["plain"], marks=pytest.mark.slow),
        ("noisy_gd", WIDE, ["plain", "few rows"]),
        ("noisy_gd", {"storage": "sparse", "loss": "hinge"}, ["plain", "sparse"]),
        ("noisy_gd", {"noise": "secure", "radius": 1e12}, ["secure", "seeded"]),
        ("noisy_sgd", FEW, ["plain", "few rows"]),
        ("noisy_sgd", {"mechanism.sampling": "poisson", "relation": "declared population"},
         ["plain"]),
        ("one_pass_sgd", {"relation": "declared population", "rows": "intercept"}, ["plain"]),
        ("random_features", {"relation": "declared population", "storage": "sparse"},
         ["plain", "sparse"]),
        ("local_sgd", {"mechanism.channel": "l_inf"}, ["plain"]),
        ("exponential", {"p": 1, "delta": 0.0}, ["plain"]),
        ("kernel_release", {"kernel": "polynomial", "features": "landmarks"}, ["plain"]),
    ],
)  # fmt: skip
def test_what_is_right_passes(name, settings, paths, kinds):
    found = report_on(name, KINDS[:kinds], **settings)
    assert found.faults == []
    assert found.paths == paths
    assert found.replay_calls > 0 or name == "noisy_gd"
    assert found.bound <= found.claim


def test_every_kind_of_neighbours_passes():
    assert report_on("noisy_gd", KINDS, row_bound=12.0, radius=1e6).faults == []


def plant(monkeypatch, place, name, change):
    """Put ``change(original)`` in the place of a function."""
    monkeypatch.setattr(place, name, change(getattr(place, name)))


def said(report, *words):
    return any(all(word in fault for word in words) for fault in report.faults)


def test_noise_over_n_in_the_few_rows_loop_is_found(monkeypatch):
    def change(run):
        return lambda frame, y, noise, **k: run(
            frame, y, noise._replace(scale=noise.scale / 6), **k
        )

    plant(monkeypatch, reduced_sgd, "run", change)
    assert said(report_on("noisy_sgd", **FEW), "loops on", "one law")


@pytest.mark.parametrize(
    "change",
    [
        lambda add: (
            lambda value, noise, *a: add(value, noise._replace(scale=0.85 * noise.scale), *a)
        ),
        pytest.param(
            lambda add: lambda value, noise, step, *a: add(value, noise, 0, *a),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["smaller", "the same at every step"],
)
def test_wrong_noise_in_the_frame_of_few_rows_is_found(change, monkeypatch):
    plant(monkeypatch, reduced_sgd, "add_noise", change)
    assert said(report_on("noisy_gd", **WIDE), "loops on", "one law")


def test_a_compiled_loop_of_its_own_is_found(monkeypatch):
    def change(run):
        return lambda x, y, start, noise, **k: run(
            x, y, start, noise._replace(scale=0.97 * noise.scale), **k
        )

    plant(monkeypatch, noisy_sgd.sgd, "run", change)
    assert said(report_on("noisy_sgd"), "compiled loop")


def test_a_seed_that_is_ignored_is_found_on_a_busy_machine(monkeypatch):
    monkeypatch.setattr(release_checks, "_SECONDS", 1e-6)  # as if every release took longer
    plant(
        monkeypatch, run_cell, "seed_sequence", lambda make: lambda seed, *path: make(0, *path)
    )  # fmt: skip
    report = report_on("noisy_gd")
    assert said(report, "two seeds drew the same noise")
    assert said(report, "two seeds gave the same releases")


def test_an_error_on_an_empty_batch_is_found(monkeypatch):
    def change(batch_gradient):
        def raises(rows, theta, batch, *rest):
            if not len(batch):
                raise ValueError("empty")
            return batch_gradient(rows, theta, batch, *rest)

        return raises

    plant(monkeypatch, noisy_sgd.sgd, "batch_gradient", change)
    report = report_on("noisy_sgd", **{"mechanism.sampling": "poisson"})
    assert said(report, "raised ValueError: empty")


def test_a_map_that_follows_the_records_is_found(monkeypatch):
    def change(prepare):
        def fitted(subject_cell, data):
            gamma = 1.0 + float(np.mean(np.abs(data.x)))
            own = dataclasses.replace(subject_cell.kernel, gamma=gamma)
            return prepare(dataclasses.replace(subject_cell, kernel=own), data)

        return fitted

    plant(monkeypatch, kernel_cells, "_prepare", change)
    report = report_on("random_features")
    assert said(report, "gamma", "differ on neighbours")


def test_a_plan_that_follows_the_records_is_found(monkeypatch):
    def change(plan_of):
        def fitted(prepared, budget):
            plan, step = plan_of(prepared, budget)
            longer = {"step_size": 1.0 + float(np.sum(np.abs(prepared.data.x)))}
            return dataclasses.replace(plan, settings={**plan.settings, **longer}), step

        return fitted

    plant(monkeypatch, run_cell, "plan_of", change)
    assert said(report_on("noisy_gd"), "plan.settings['step_size'] differ on neighbours")


def test_an_error_for_one_class_is_found(monkeypatch):
    def change(release):
        def picky(self, view, plan, gate):
            if len(np.unique(view.y)) < 2:
                raise PrivacyError("one class only")
            return release(self, view, plan, gate)

        return picky

    plant(monkeypatch, NoisyGd, "release", change)
    assert said(report_on("noisy_gd", ("label flip", "one class")), "on neighbours")


def test_a_claim_above_what_was_asked_is_found(monkeypatch):
    monkeypatch.setattr(Guarantee, "within", lambda self, budget: True)
    report = report_on("noisy_gd")
    assert said(report, "a claim above its epsilon is not refused")
    plant(
        monkeypatch, prepared_cell, "budget_of",
        lambda of: lambda *a: dataclasses.replace(of(*a), epsilon=2.0),
    )  # fmt: skip
    assert said(report_on("noisy_gd"), "is claimed and 1 was asked")


def test_noise_that_is_in_no_plan_is_found(monkeypatch):
    from dperm_cli.privacy.gate import Gate

    monkeypatch.setattr(Gate, "_spend", lambda self, event: event)
    assert said(report_on("noisy_gd"), "passes the gate")


def test_a_record_that_moves_others_is_found(monkeypatch):
    from dperm_cli.views import central

    def change(batch_of):
        def shifted(names, batches):
            return (batch_of(names, batches) + int(np.bitwise_xor.reduce(names)) % 7) % batches

        return shifted

    plant(monkeypatch, central, "batch_of", change)
    report = report_on("one_pass_sgd", ("label flip",), relation="declared population")
    assert said(report, "another record changes its batch")


def test_a_row_rule_that_lets_long_rows_pass_is_found(monkeypatch):
    from dperm_cli.datasets.shared import row_pipeline

    monkeypatch.setattr(row_pipeline.row_rules, "bound_rows", lambda x, *_, **__: x)
    report = report_on("noisy_gd", ("huge row",), loss="hinge")
    assert said(report, "above the bound")
    assert said(report, "moved by")


def test_noise_for_an_exact_minimiser_is_found(monkeypatch):
    from dperm_cli.audit.mechanism_audit import examine as examine_own
    from dperm_cli.mechanisms.perturbation.output_perturbation import OutputPerturbation
    from dperm_cli.mechanisms.shared import noisy_minimiser
    from dperm_cli.privacy.budget import Budget

    def change(stability):
        def exact(*a):
            found = stability(*a)
            left = 2.0 * found.error
            return dataclasses.replace(found, record=found.record - left, gap=found.gap - left)

        return exact

    budget = Budget(1.0, 1e-5)
    asked = {"seed": 0, "quick": True, "rounds": 4}
    monkeypatch.setattr(statistical_attack, "RUNS", {"gaussian": 8000})
    right = examine_own("output_perturbation", OutputPerturbation(), budget, **asked)
    assert 0.999 < right.replay.worst <= 1.0
    assert right.replay.faults == ()
    plant(monkeypatch, noisy_minimiser, "stability", change)
    wrong = examine_own("output_perturbation", OutputPerturbation(), budget, **asked)
    assert any("sensitivities" in fault for fault in wrong.replay.faults)


def test_a_minimiser_without_a_certificate_is_found(monkeypatch):
    from dperm_cli.views import central

    monkeypatch.setattr(
        central, "find_certified_minimiser",
        lambda problem, gap: central.optimum.solve(problem, relative_gap=1e-6).theta,
    )  # fmt: skip
    assert said(report_on("output_perturbation"), "released without a certificate")


def test_a_user_who_answers_too_often_is_found(monkeypatch):
    from dperm_cli.privacy import streams

    monkeypatch.setattr(
        streams.ChannelStream, "messages", property(lambda self: self.event.messages + 1)
    )
    assert said(report_on("local_sgd"), "answers once more")


@pytest.mark.parametrize("name", ["output_perturbation", "noisy_gd", "local_sgd", "projected"])
def test_the_quick_design_attacks_both_kinds_of_noise(name):
    """Seeded noise in most rows, secure noise in one of its own with nothing demanding beside."""
    rows = [stop.row for stop in audit_grid.walk(name, quick=True).stops]
    factors = declared_grid.factors(name)
    secure = [row for row in rows if row["noise"] == "secure"]
    assert 1 <= len(secure) <= len(rows) / 3
    first = next(row for row in secure if row["p"] == factors["p"][0])
    assert first["n"] == factors["n"][0]
    seeded = [row for row in rows if row["noise"] == "research"]
    assert {row["storage"] for row in seeded} == {"dense", "sparse"}
    assert {row["p"] for row in seeded} >= {*factors["p"][1:]}


def test_designs_and_kinds():
    walk = audit_grid.walk("newton", quick=True)
    assert {stop.row["p"] for stop in walk.stops} == {1, 3, 8, 20}
    assert {stop.row["radius"] for stop in walk.stops} == {1.0, 10.0, 1e6, 1e12}
    assert ("loss=hinge", dict(walk.missing)["loss=hinge"]) in walk.missing
    assert all(stop.kinds[0] in ALONE and len(stop.kinds) == 2 for stop in walk.stops)
    assert {stop.row["noise"] for stop in walk.stops} == {"research", "secure"}
    walk = audit_grid.walk("phased_erm", quick=True)  # it has no secure form
    assert {stop.row.get("noise", "research") for stop in walk.stops} == {"research"}
    rows = [{"a": k % 3, "b": k % 5} for k in range(30)]
    kinds = audit_grid.assign_kinds(rows, 4)
    assert {kind for chosen in kinds for kind in chosen} == set(KINDS)
    assert all(len(set(chosen)) == 4 for chosen in kinds)
