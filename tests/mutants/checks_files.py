"""The checks of ``patches_files``: data preparation, runs, model files and logs.

Most are tests of this suite, called with the arguments that matter here.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest


@contextmanager
def folder():
    """An empty working folder with a cache of its own, for tests that ask for ``tmp_path``."""
    before, cache = Path.cwd(), os.environ.get("DPERM_CACHE_DIR")
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        os.environ["DPERM_CACHE_DIR"] = str(Path(name) / "cache")
        try:
            yield Path(name)
        finally:
            os.chdir(before)
            os.environ.pop("DPERM_CACHE_DIR")
            if cache is not None:
                os.environ["DPERM_CACHE_DIR"] = cache


# --- data preparation


def preparation():
    from tests.datasets import test_datasets_rows as ours

    ours.test_each_row_is_scaled_without_the_others()
    for make in (np.array, ours.sparse.csr_array):
        ours.test_intercept_counts_in_the_norm(make)
    ours.test_split_is_a_permutation_of_the_records()
    ours.test_targets_are_mapped_and_clipped()
    ours.test_the_euclidean_bound_that_follows_from_another_norm()
    rows = np.array([[0.3, 0.4], [1.2, 0.9], [30.0, 40.0]])
    for rule in ("clip", "none", "unit"):
        found = ours.row_rules.bound_rows(ours.sparse.csr_array(rows), rule, 1.0)
        assert np.all(ours.row_rules.row_norms(found) <= 1.0)


def readers():
    from tests.datasets import test_datasets_files as files
    from tests.datasets import test_datasets_svmlight as svmlight
    from tests.problem import test_record_names as ours

    with folder() as path:
        svmlight.test_svmlight_width_is_declared_never_measured(path)
    for kind in ("csv", "svmlight"):
        with folder() as path:
            files.test_classes_are_declared_and_not_read_from_the_labels(kind, path)
        for rule in (1, 3):
            with folder() as path:
                ours.test_readers_and_row_rules_give_the_same_names(kind, rule, path)
    ours.test_a_split_keeps_names()


# --- runs, files and logs


def seeds():
    """Trials, seeds and data sets have noise of their own."""
    from dataclasses import replace

    from dperm_cli.runner.cells import prepared_cell, run_cell
    from dperm_cli.runner.compose import study_plan
    from dperm_cli.runner.compose.command_line import parse
    from tests.conftest import small_problem

    data = small_problem(n=30).data
    found = []
    for seed, rows in ((0, data), (1, data), (0, replace(data, fingerprint="another"))):
        words = ["loss=logistic", "mechanism=noisy_gd", "mechanism.steps=3", "delta=1e-5",
                 "dataset=synthetic_logistic", "trials=3", f"seed={seed}"]  # fmt: skip
        item = prepared_cell.prepare(study_plan.plan_study(parse(words)).cells[0], rows)
        made = run_cell.plan_with_reserve(
            item.cell.mechanism, item.spec, prepared_cell.budget_of(item, "approx")
        )
        view, made, gate = run_cell.open_release(
            item, made, prepared_cell.budget_of(item, "approx"), None
        )
        found.append(item.cell.mechanism.release(view, made, gate).theta)
    points = np.concatenate(found)
    assert len(np.unique(points[:, 0])) == len(points) == 9


def model_files():
    from tests.runner import test_publishable as ours

    for way in ("plain", "exact"):
        with folder():
            ours.write("h.csv", ours.HELD)
            ours.test_a_replaced_record_changes_nothing_but_theta(way, next(iter(ours.REPLACED)))
    with folder():
        ours.write("h.csv", ours.HELD)
        ours.test_a_record_more_changes_nothing_but_theta("plain")
    for test in (ours.test_add_remove_needs_a_declared_population,
                 ours.test_a_record_whose_claim_does_not_follow_is_not_saved,
                 ours.test_held_out_landmarks_are_named_as_published_inputs,
                 ours.test_the_guarantee_is_that_of_the_events):  # fmt: skip
        with folder():
            ours.write("h.csv", ours.HELD)
            test()


def logs():
    from tests.results import test_release_log as ours

    for test in (ours.test_a_record_that_is_written_over_still_counts,
                 ours.test_a_session_is_logged, ours.test_the_log_holds_no_point_and_no_risk,
                 ours.test_lines_are_only_added, ours.test_equal_points_are_two_releases,
                 ours.test_a_lost_log_takes_nothing_from_the_ledger,
                 ours.test_a_torn_line_spoils_no_other_and_is_told):  # fmt: skip
        with folder() as path:
            test(path)
    with folder() as path, pytest.MonkeyPatch.context() as patched:
        ours.test_the_log_is_written_before_the_record(path, patched)


def ledgers():
    from dperm_cli.privacy.events import Gaussian
    from tests.results import test_ledger as ours

    ours.test_all_releases_about_one_data_set_are_added_up()
    ours.test_relations_and_data_sets_are_kept_apart_and_versions_of_a_name_are_joined()
    (entry,) = ours.made(ours.cell(population_source="declared", population=50))["releases"]
    assert entry["data"]["n"] is None
    assert Gaussian(1.0, 1.0, 3).repeat(4).count == 12


CHECKS = {
    "preparation": preparation,
    "readers": readers,
    "seeds": seeds,
    "model files": model_files,
    "logs": logs,
    "ledgers": ledgers,
}
