"""What is particular to kernel_release [HRW13]: its noise, and sessions of adaptive queries."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dperm_cli.audit.replay import Player, Recorder
from dperm_cli.audit.statistical_attack import ManyTrialsGate
from dperm_cli.core.errors import PrivacyError, Unsupported
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.kernels.rbf import Rbf
from dperm_cli.kernels.shared.feature_maps import Landmarks
from dperm_cli.mechanisms.kernel.kernel_interactive import KernelInteractive
from dperm_cli.mechanisms.kernel.kernel_release import KernelRelease
from dperm_cli.mechanisms.shared import kernel_queries
from dperm_cli.mechanisms.shared.secure_plan import make_secure_plan
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.problem import Problem
from dperm_cli.sets import make_ball
from dperm_cli.views.grid import GridView
from dperm_cli.views.kernel import KernelView
from tests.conftest import small_problem
from tests.contract.test_kernel_mechanisms import problem

BUDGET = Budget(1.0, 1e-6)


def session(found, tape=None, seed=0, queries=50):
    mechanism = KernelRelease(queries=queries)
    plan = mechanism.plan(found.spec(), BUDGET)
    gate = Gate([seed_sequence(seed, "test")], tape, (plan.events, "replace_one"))
    return mechanism.session(KernelView(found), plan, gate)


def test_a_prediction_gets_s_over_mu():
    """4.22468 s at (1, 1e-6) for any T, but for what a distance to the minimiser costs."""
    for queries in (1, 30):
        spec = problem(queries=queries).spec()
        plan = KernelRelease().plan(spec, BUDGET)
        ratio = plan.settings["prediction_noise"] / spec.prediction_sensitivity
        assert ratio == pytest.approx(4.22468 * (1.0 + 2.0e-3), rel=1e-5)


def test_noise_on_the_queries_is_the_kernels():
    """Covariance tau^2 K_ZZ of 40000 releases, to 5 standard errors; 5 % more noise fails."""
    found = problem(queries=4)
    spec = found.spec()
    plan = KernelRelease().plan(spec, BUDGET)
    gate = ManyTrialsGate(seed_sequence(1, "test"), 40_000)
    theta = KernelRelease().release(KernelView(found), plan, gate).theta
    values = theta @ spec.rows.T - found.solve(spec.close).values(spec.queries)
    wanted = plan.noise_scale**2 * spec.gram
    seen = values.T @ values / len(values)
    error = np.sqrt((wanted**2 + np.outer(np.diag(wanted), np.diag(wanted))) / len(values))
    assert np.all(np.abs(seen - wanted) < 5.0 * error)
    assert np.any(np.abs(1.05**2 * seen - wanted) > 5.0 * error)


def test_a_session_has_the_law_of_a_batch():
    """Answers in three rounds, the last repeated: marginal and joint laws, false alarms 1e-5."""
    found = problem(queries=4)
    spec = found.spec()
    truth = found.solve(kernel_queries.bound_moves(spec).distance).values(spec.queries)
    rows, scale = spec.queries, KernelRelease().plan(spec, BUDGET).noise_scale
    answers = []
    for seed in range(400):
        open_ = session(found, seed=seed, queries=4)
        parts = [open_.ask(rows[:2])[0], open_.ask(rows[2:])[0]]
        again, looked = open_.ask(rows[1:2])
        assert again[0] == parts[0][1]
        assert not looked[0]
        answers.append(np.concatenate(parts))
    errors = np.array(answers) - truth
    factor = np.linalg.cholesky(spec.gram + 1e-9 * np.eye(4))
    white = np.linalg.solve(factor, errors.T).ravel() / scale
    assert stats.kstest(white, "norm").pvalue > 1e-5
    assert stats.kstest(1.4 * white, "norm").pvalue < 1e-5


def test_equal_queries_in_other_words_are_answered_alike():
    """Ten nearly equal rows: the conditional variance stays positive, the answers stay together."""
    open_ = session(problem(), queries=12)
    row = np.array([0.3, 0.4])
    rows = row + 1e-12 * np.arange(10)[:, None]
    answers, looked = open_.ask(rows)
    assert looked.all()
    assert np.all(np.isfinite(answers))
    # the jitter is 1e-9 R^2: answers differ by its root times the noise, and no more
    scale = KernelRelease().plan(problem().spec(), BUDGET).noise_scale
    assert np.ptp(answers) < 20.0 * math.sqrt(1e-9) * scale


def test_a_session_ends_and_says_so():
    open_ = session(problem(), queries=2)
    open_.ask(np.eye(2))
    assert open_.has_ended
    assert open_.ask(np.eye(2))[0].shape == (2,)  # known already
    with pytest.raises(PrivacyError):
        open_.ask(np.array([[0.1, 0.2]]))


QUERIES = {
    "nan": ([[np.nan, 0.0]], "nan or infinite"),
    "infinite": ([[0.1, 0.2], [np.inf, 0.0]], "nan or infinite"),
    "too long": ([[0.8, 0.8]], "row bound"),
    "beyond squares": ([[1e200, 0.0]], "row bound"),
    "another width": ([[0.1, 0.2, 0.3]], "rows of 2 columns"),
    "no row": ([0.1, 0.2], "rows of 2 columns"),
}


@pytest.mark.parametrize("name", list(QUERIES))
def test_a_session_checks_its_queries_itself(name):
    """A query that no record could be is refused before anything of its batch is answered."""
    rows, words = QUERIES[name]
    for made in (KernelRelease(queries=5), KernelInteractive(queries=5)):
        found = problem()
        plan = made.plan(found.spec(), BUDGET)
        recorder = Recorder()
        gate = Gate([seed_sequence(0, "test")], recorder, (plan.events, "replace_one"))
        open_ = made.session(KernelView(found), plan, gate)
        before = len(recorder.calls)
        with pytest.raises(PrivacyError, match=words):
            open_.ask(np.array(rows))
        assert len(recorder.calls) == before
        assert open_.ask(np.array([[0.1, 0.2]]))[0].shape == (1,)


def test_signs_of_zero_do_not_make_two_queries():
    open_ = session(problem(), queries=1)
    (answer,), _ = open_.ask(np.array([[0.0, 0.5]]))
    (again,), (looked,) = open_.ask(np.array([[-0.0, 0.5]]))
    assert answer == again
    assert not looked


def test_a_session_replays_on_neighbours():
    """All of its coordinates together move by the sensitivity at most, queries adaptive."""
    from dperm_cli.audit.replay import replace_record

    found = problem("rbf", n=5)
    rng = np.random.default_rng(0)
    worst = 0.0
    for index in range(5):
        row = rng.standard_normal(2)
        other = replace_record(found, index, row / np.linalg.norm(row), -float(found.data.y[index]))
        recorder = Recorder()
        _adaptive(session(found, recorder))
        player = Player(recorder.calls)
        _adaptive(session(other, player))
        assert player.faults == []
        assert player.position == len(recorder.calls) == 12
        worst = max(worst, player.worst)
    assert 0.1 < worst <= 1.0


def _adaptive(open_):
    row = np.array([0.5, 0.0])
    for _ in range(12):
        answer = float(open_.ask(row[None, :])[0][0])
        row = 0.7 * np.array([math.cos(3.0 * answer), math.sin(5.0 * answer)])


def test_pure_privacy_is_refused_with_the_alternative():
    with pytest.raises(Unsupported, match="kernel_semi_interactive"):
        KernelRelease().plan(problem().spec(), Budget(1.0, 0.0))


RBF = Rbf(gamma=0.5)


def in_coordinates(points: int = 6) -> Problem:
    """A ridge problem whose rows were mapped one by one onto the span of public points."""
    found = small_problem(n=60, p=3, ridge=0.3)
    rng = np.random.default_rng(5)
    features = Landmarks(RBF, rng.standard_normal((points, 3)), 1.0)
    mapped = found.data.with_rows(features.apply_alone(found.data.x), row_bound=1.0)
    return replace(found, data=mapped, constraint=make_ball(2.0, features.dim))


def test_secure_noise_is_output_perturbation_in_coordinates():
    found = in_coordinates()
    mechanism = KernelRelease(on_grid=True)
    assert (mechanism.space, mechanism.secure, mechanism.on_queries) == ("parameters", True, True)
    plan, grid = make_secure_plan(mechanism, found.spec(), BUDGET, found.loss)
    assert account(plan.events, delta=1e-6, relation="replace_one").epsilon <= 1.0 + 1e-12
    assert plan.settings["prediction_noise"] == plan.noise_scale * found.spec().row_bound
    gate = Gate.secure(50, grid, (plan.events, "replace_one"))
    theta = mechanism.release(GridView(found, grid), plan, gate).theta
    assert theta.shape == (50, 6)
    assert np.all(np.linalg.norm(theta, axis=1) <= 2.0 + 1e-12)


def test_neighbours_in_coordinates_are_within_the_event_on_the_grid():
    """Record on D, freeze, run on D': the minimisers are no further apart than was paid for."""
    found, worst = in_coordinates(), 0.0
    mechanism, rng = KernelRelease(on_grid=True), np.random.default_rng(7)
    plan, grid = make_secure_plan(mechanism, found.spec(), BUDGET, found.loss)
    for _ in range(10):
        recorder = Recorder()
        gate = Gate.secure(2, grid, (plan.events, "replace_one"), recorder)
        first = mechanism.release(GridView(found, grid), plan, gate).theta
        x, y = found.data.x.copy(), found.data.y.copy()
        row = rng.standard_normal(6)
        x[4], y[4] = row / np.linalg.norm(row), rng.choice([-1.0, 1.0])
        other = GridView(replace(found, data=found.data.with_records(x, y)), grid)
        player = Player(recorder.calls)
        again = mechanism.release(other, plan, Gate.secure(2, grid, (plan.events, "replace_one"),
                                                           player)).theta  # fmt: skip
        assert player.faults == []
        assert np.array_equal(first, again)
        worst = max(worst, player.worst)
    assert 0.05 < worst <= 1.0


@pytest.mark.parametrize(("budget", "words"), [
    (Budget(1.0, 0.0), "delta > 0"), (Budget(1.0, 1e-6, "add_remove"), "replace_one alone"),
])  # fmt: skip
def test_what_the_secure_form_is_not_proved_for_is_refused(budget, words):
    found = in_coordinates()
    with pytest.raises(Unsupported, match=words):
        make_secure_plan(KernelRelease(on_grid=True), found.spec(), budget, found.loss)


def test_without_a_grid_it_works_on_the_kernels_minimiser_and_has_no_secure_form():
    found = in_coordinates()
    assert KernelRelease().space == "kernel"
    with pytest.raises(Unsupported, match="no secure form"):
        make_secure_plan(KernelRelease(), found.spec(), BUDGET, found.loss)
