"""The checks of ``patches_paths``: every loop, samplers, mechanisms and feature maps.

Most are tests of this suite, called with the arguments that matter here.
"""

from __future__ import annotations

import numpy as np
import pytest

# --- loops


def loudness(*paths):
    """The noise of these paths of noisy_sgd is that of the event."""
    from tests.mechanisms import test_noise_of_paths as ours

    for path in paths:
        ours.test_stochastic_steps(path)


def loud_full_gradients():
    from tests.mechanisms import test_noise_of_paths as ours

    for averaging in ("last", "uniform"):
        ours.test_full_gradients("few rows", averaging)


def loud_grid():
    from tests.mechanisms import test_noise_of_paths as ours

    ours.test_full_gradients("grid", "last")


def loud_passes():
    from tests.mechanisms import test_noise_of_paths as ours

    for delta in (0.0, 1e-3):
        ours.test_one_pass("replace_one", delta)


def compiled_steps():
    """The compiled loops have the bits of the plain one: wide rows, CSR, batches and a lasso."""
    from dataclasses import replace

    from scipy import sparse

    from dperm_cli.mechanisms.gradient.noisy_sgd import NoisySgd
    from tests.conftest import small_problem
    from tests.mechanisms import test_noisy_sgd as ours

    dense = small_problem(n=12, p=21, ridge=0.01)
    csr = replace(dense, data=dense.data.with_rows(sparse.csr_array(dense.data.x)))
    ways = ({}, {"batch": 4}, {"batch": 4, "sampling": "poisson"})
    for problem in (dense, csr, replace(dense, lasso=0.3)):
        for fields in ways:
            mechanism = NoisySgd(steps=40, **fields)
            fast = ours.released(mechanism, problem)
            assert np.array_equal(fast, ours.released(mechanism, problem, ours.Silent()))


def shapes_of_few_rows():
    from tests.mechanisms import test_row_span as ours

    ours.test_the_shapes_are_decided_by_public_facts()


def local_loops():
    from dperm_cli.mechanisms.local.local_sgd import LocalSgd
    from tests.loops import test_local_learning as loop
    from tests.mechanisms import test_local_sgd as ours

    for shape in ("l_inf", "l_1", "l_2"):
        ours.test_several_answers_compiled_and_plain(LocalSgd(channel=shape), "logistic")
    for csr in (False, True):
        loop.test_rows_are_shortened_in_the_channels_norm("l_1", 1, csr)
    ours.test_neither_a_second_view_of_the_stream_nor_a_second_stream()


def too_long_for_a_channel():
    from tests.privacy import test_channels as ours

    ours.test_what_is_too_long_or_no_number_is_shortened()


def spent_once():
    """No step twice, by whatever way it is drawn, and no compiled loop past a tape."""
    from dperm_cli.core.errors import PrivacyError
    from dperm_cli.core.seeds import seed_sequence
    from dperm_cli.privacy.events import Gaussian, SampledGaussian
    from dperm_cli.privacy.gate import Gate
    from tests.mechanisms.test_noisy_sgd import Silent

    sampled, sums = SampledGaussian(1.0, 1.0, 1, 4, "fixed", 2), Gaussian(1.0, 0.5, 2)
    zero, turned = np.zeros((1, 3)), np.zeros((1, 6))

    def stream(event, tape=None):
        gate = Gate([seed_sequence(0, "mutants")], tape, ((event,), "replace_one"))
        return gate.stream(event, 3)

    def refused(call, *given):
        with pytest.raises(PrivacyError):
            call(*given)

    sealed = stream(sampled)
    assert sealed.sealed_draws.steps == 2
    refused(lambda: sealed.sealed_draws)
    refused(sealed.add, zero, 0)
    added = stream(sums)
    added.add(zero, 1)
    refused(added.add, zero, 1)
    framed = stream(sums)
    framed.add_in_frame(turned, 1, 3, 5)
    refused(framed.add_in_frame, turned, 1, 3, 5)
    refused(lambda: stream(sampled, Silent()).sealed_draws)
    refused(stream(sums, Silent()).add_in_frame, turned, 0, 3, 5)


def own_gates():
    """The gates of single trials draw what the whole gate would, and each another number."""
    from dperm_cli.core.seeds import seed_sequence
    from dperm_cli.privacy.events import Gaussian
    from dperm_cli.privacy.gate import Gate

    seeds = [seed_sequence(3, "mutants", trial) for trial in range(3)]
    whole = Gate(seeds).stream(Gaussian(1.0, 0.5), 4).add(np.zeros((3, 4)), 0)
    event = Gaussian(1.0, 0.5)
    parts = [gate.stream(event, 4).add(np.zeros((1, 4)), 0)
             for gate in Gate(seeds).each((event,))]  # fmt: skip
    np.testing.assert_array_equal(np.vstack(parts), whole)
    assert len(np.unique(whole)) == 12


def laws():
    """20,000 Laplace numbers and norms of Gamma vectors, Kolmogorov-Smirnov at level 1e-6."""
    from scipy import stats

    from dperm_cli.core.seeds import seed_sequence
    from dperm_cli.privacy.events import GammaNorm, Laplace
    from dperm_cli.privacy.gate import Gate

    gate = Gate([seed_sequence(4, "mutants", trial) for trial in range(5000)])
    zero = np.zeros((5000, 4))
    found = gate.stream(Laplace(2.0, 0.5), 4).add(zero, 0)
    assert stats.kstest(found.ravel(), "laplace", (0.0, 2.0)).pvalue > 1e-6
    found = gate.stream(GammaNorm(2.0, 0.5), 4).add(zero, 0)
    assert stats.kstest(np.linalg.norm(found, axis=1), "gamma", (4.0, 0.0, 2.0)).pvalue > 1e-6


def normals():
    from tests.loops import test_gaussian_noise as ours

    ours.test_neighbours_are_uncorrelated()
    ours.test_words_name_every_counter_once()
    ours.test_marginal_law()


def draws_of_records():
    from tests.loops import test_batch_indices as ours

    ours.test_one_record_is_uniform()
    ours.test_poisson_batches_are_independent_records(5, 2)
    ours.test_poisson_edges()


def empty_batches():
    """Poisson batches of one record of 9 on average are empty a third of the time."""
    from dperm_cli.mechanisms.gradient.noisy_sgd import NoisySgd
    from dperm_cli.mechanisms.gradient.one_pass_sgd import OnePassSgd
    from dperm_cli.privacy.budget import Budget
    from tests.conftest import small_problem
    from tests.mechanisms import test_noisy_sgd as ours

    mechanism = NoisySgd(sampling="poisson", steps=30)
    for loss in ("hinge", "multinomial"):
        assert np.all(np.isfinite(ours.released(mechanism, small_problem(loss=loss, n=9))))
    budget = Budget(1.0, 1e-4, "add_remove")
    theta = ours.released(OnePassSgd(batches=9), small_problem(n=9), budget=budget)
    assert np.all(np.isfinite(theta))


# --- noise on a grid


def grid():
    """Whatever is added, what comes out is a multiple of the grid, and so is what a tape hears."""
    from dperm_cli.privacy.events import Gaussian
    from dperm_cli.privacy.gate import Gate
    from dperm_cli.privacy.secure_grid import Grid
    from tests.privacy import test_secure_grid as ours

    heard = []

    class Tape:
        def take_draw(self, stream, value, drawn, public):
            heard.append(value)
            return drawn

    step = Grid(-20).step
    gate = Gate.secure(50, Grid(-20), ((Gaussian(1.0, 0.5),), "replace_one"), Tape())
    found = gate.stream(Gaussian(1.0, 0.5), 3).add(np.pi * np.ones((50, 3)), 0)
    heard.append(found)
    assert all(np.all(np.rint(x / step) == x / step) for x in heard)
    for kind in ("gaussian", "laplace"):
        ours.test_kernels_and_reference_make_the_same_draws_of_the_same_words(kind, 2.0**30)
    for form in ("dense", "csr"):
        ours.test_a_record_over_the_norm_is_shortened_and_no_number_is_dropped(form)
        ours.test_sums_are_exact_whatever_the_order_of_the_records("logistic", form)


def secure_plans():
    """Rounding is paid for: the noise is more than that of the plan, and hides one cell more."""
    from dperm_cli.core import registry
    from dperm_cli.mechanisms.shared.secure_plan import secure_plan
    from dperm_cli.privacy.budget import Budget
    from tests.conftest import small_problem

    problem = small_problem()
    for relation in ("replace_one", "add_remove"):
        budget = Budget(1.0, 1e-5, relation)
        mechanism = registry.load("mechanism", "noisy_gd")()
        plan = mechanism.plan(problem.spec(), budget)
        made, grid = secure_plan(mechanism, plan, problem.spec(), problem.loss)
        (before,), (after,) = plan.events, made.events
        cell = np.sqrt(problem.p) * grid.step
        assert after.record_norm >= before.record_norm + cell
        ratio = after.sensitivity(relation) / after.scale
        assert ratio <= before.sensitivity(relation) / before.scale
        assert made.noise_scale == after.scale


def secure_curvature():
    """A record's matrix on the grid is no larger than its event says, whatever its weight."""
    from tests.privacy import test_secure_sums as ours

    ours.test_a_weight_of_a_moment_is_held_to_its_bounds(0.5, 0.5)
    ours.test_a_weight_of_a_moment_is_held_to_its_bounds(3.0, 1.0)
    for relation in ours.RELATIONS:
        ours.test_curvature_of_neighbours_stays_within_the_event_and_nearly_reaches_it(relation)


def secure_wishart():
    """Joint moments on the grid keep to their event, and their noise is exact."""
    from tests.privacy import test_secure_sums as sums
    from tests.privacy import test_secure_wishart as ours

    for relation in sums.RELATIONS:
        sums.test_joint_moments_of_neighbours_stay_within_the_event_and_nearly_reach_it(relation)
    ours.test_every_entry_is_the_rounded_real_number(2, 1.37 * 2.0**30)
    ours.test_one_word_is_enough_nearly_always()


def rows_alone():
    """A row of a kernel's features has the same bits whatever rows stand beside it."""
    from tests.kernels import test_rows_alone as ours

    for kernel in ours.KERNELS[:3]:
        ours.test_landmark_features_made_alone_are_the_features(kernel)
    ours.test_explicit_features_made_alone_are_the_features(ours.KERNELS[3])


# --- mechanisms


def replay_passes():
    from tests.mutants.checks import replay

    replay("one_pass_sgd")


def contents():
    """By content: what a replaced record costs, who is in a batch, and what a view passes on."""
    from tests.mechanisms import test_content_batches as views
    from tests.mechanisms import test_one_pass_sgd as ours

    for noise in ("gaussian", "gamma_norm"):
        ours.test_a_replaced_record_costs_both_batches_that_its_content_names(noise)
    ours.test_a_removed_record_moves_no_other_one()
    ours.test_every_record_is_in_one_batch()
    ours.test_the_gate_refuses_shared_records_and_second_draws()
    views.test_random_features_move_one_batch_by_one_gradient(4097, 20)
    views.test_records_that_fill_up_are_in_no_batch()
    with pytest.MonkeyPatch.context() as patched:
        name = "standard_projection"
        views.test_every_combinator_keeps_the_batches_of_common_records(name, 40, patched)


def mechanism(name, attacked=None):
    """The replay of a mechanism's own pair and of others, and an attack at an epsilon."""
    from tests.mutants import checks

    checks.replay(name)
    if attacked is not None:
        checks.attack(name, attacked)


def sufficient_statistics():
    from tests.mechanisms import test_sufficient_statistics as ours

    mechanism("sufficient_statistics", attacked=10.0)
    for relation in ours.RELATIONS:
        ours.test_pure_noise_is_that_of_the_nuclear_norm(relation)
    ours.test_a_record_that_is_not_there_counts_for_nothing()


def private_selection():
    from tests.mechanisms import test_private_selection as ours
    from tests.privacy import test_random_stopping as accounting

    mechanism("private_selection", attacked=1.0)
    ours.TestBudget().test_a_run_and_its_score_share_the_mu_of_a_run()
    ours.TestRelease().test_losses_are_held_to_the_bound_of_the_score()
    ours.TestRelease().test_nothing_but_released_values_decides()
    accounting.test_the_certified_delta_is_above_the_one_of_an_example(0.5, 1.0)
    accounting.test_of_pure_runs_a_selection_is_two_and_eta_times_as_much()
    accounting.TestGate().test_runs_and_trials_share_no_noise_and_are_the_same_again()


def frank_wolfe():
    """Its own attack hides the record among others; here it is alone, and its label turns."""
    from tests.runner.test_audit_cells import report_on

    mechanism("frank_wolfe", attacked=1.0)
    settings = {"mechanism.oracle": "choice", "constraint": "l1_ball", "delta": 0.0}
    report = report_on("frank_wolfe", ("alone, label flip", "alone"), **settings)
    assert report.status == "ok"
    assert report.faults == [], report.faults


def kernel(name):
    """The contract's replay of a mechanism on a kernel's minimiser."""
    from tests.contract import test_kernel_mechanisms as ours

    for loss in ours.LOSSES:
        ours.test_replay_for_every_loss(name, loss)
    ours.test_replay_on_random_neighbours(name)


def kernel_sessions():
    from tests.mechanisms import test_kernel_interactive as sparse
    from tests.mechanisms import test_kernel_release as ours

    ours.test_a_session_replays_on_neighbours()
    ours.test_equal_queries_in_other_words_are_answered_alike()
    ours.test_a_session_ends_and_says_so()
    sparse.test_a_run_stops_at_its_updates()
    sparse.test_answers_are_near_or_are_updates()
    sparse.test_queries_beyond_the_bound_are_refused("linear")


# --- feature maps


def feature_maps():
    from tests.contract import test_public_facts as ours
    from tests.kernels import test_kernels as maps

    for kernel in ("rbf", "histogram_intersection"):
        for name in ("random_features", "noisy_gd", "kernel_release"):
            for population in (None, 64):
                ours.test_maps_and_points_are_the_same_bytes_for_neighbours(
                    kernel, name, population
                )
    maps.test_rows_are_held_to_the_bound()
    ours.test_a_declared_population_is_the_public_number_of_records()


CHECKS = {
    "few rows of noisy_sgd": lambda: loudness("few rows", "few rows, batches"),
    "dense steps": lambda: loudness("dense", "dense batches"),
    "full gradients of few rows": loud_full_gradients,
    "noise on the grid": loud_grid,
    "noise of passes": loud_passes,
    "compiled steps": compiled_steps,
    "shapes of few rows": shapes_of_few_rows,
    "local loops": local_loops,
    "too long for a channel": too_long_for_a_channel,
    "spent once": spent_once,
    "own gates": own_gates,
    "laws": laws,
    "normals": normals,
    "draws of records": draws_of_records,
    "empty batches": empty_batches,
    "grid": grid,
    "secure plans": secure_plans,
    "curvature on a grid": secure_curvature,
    "Wishart noise on a grid": secure_wishart,
    "rows alone": rows_alone,
    "replay one_pass_sgd": replay_passes,
    "contents": contents,
    "mirror_descent": lambda: mechanism("mirror_descent", attacked=10.0),
    "newton": lambda: mechanism("newton", attacked=10.0),
    "sufficient_statistics": sufficient_statistics,
    "frank_wolfe": frank_wolfe,
    "private_selection": private_selection,
    "high_probability": lambda: mechanism("high_probability"),
    "regularized_exponential": lambda: mechanism("regularized_exponential"),
    "kernel_release": lambda: kernel("kernel_release"),
    "kernel_semi_interactive": lambda: kernel("kernel_semi_interactive"),
    "kernel sessions": kernel_sessions,
    "feature maps": feature_maps,
}
