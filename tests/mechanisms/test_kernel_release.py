"""What is particular to kernel_release [HRW13]: its noise, and sessions of adaptive queries."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dperm_cli.audit.replay import Player, Recorder
from dperm_cli.audit.statistical_attack import ManyTrialsGate
from dperm_cli.core.errors import PrivacyError, Unsupported
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.mechanisms.kernel.kernel_interactive import KernelInteractive
from dperm_cli.mechanisms.kernel.kernel_release import KernelRelease
from dperm_cli.mechanisms.shared import kernel_queries
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.views.kernel import KernelView
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
