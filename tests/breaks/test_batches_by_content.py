"""Break 2: a record's batch follows from the record alone, under every view of the records.

The last bits of a library product of many rows with a matrix may depend on the other rows. Two
neighbours are made, one record is dropped, and every other record must be in the batch it was in,
whatever features, projections and row rules it went through on its way.
"""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from tests.breaks._doors import (
    batches_of_records,
    disturb_products,
    prepare,
    record_names,
    replay,
)
from tests.breaks._files import make_rows, write_table, write_table_with_test

N, DROPPED = 90, 40
BUDGET = ["privacy.relation=add_remove", "privacy.population=100", "ridge=0.1", "delta=1e-6"]
ONE_PASS = "mechanism.inner=one_pass_sgd"
KERNEL = ["kernel=rbf", "kernel.size=8"]
VIEWS = {
    "plain": ["mechanism=one_pass_sgd"],
    "scaled columns": ["mechanism=one_pass_sgd", "dataset.scaling=bounds",
                       "dataset.bounds=[-3,3]", "dataset.intercept=true"],
    "clipped": ["mechanism=one_pass_sgd", "dataset.rows=clip", "dataset.row_bound=0.5"],
    "random_features": ["mechanism=random_features", ONE_PASS, *KERNEL],
    "random_features of a laplacian": ["mechanism=random_features", ONE_PASS, "kernel=laplacian",
                                       "kernel.size=8"],
    "fourier features": ["mechanism=one_pass_sgd", *KERNEL, "kernel.features=fourier"],
    "landmarks": ["mechanism=one_pass_sgd", *KERNEL, "kernel.features=landmarks"],
    "explicit features": ["mechanism=one_pass_sgd", "kernel=polynomial", "kernel.degree=2",
                          "kernel.features=explicit"],
    "projected": ["mechanism=projected", ONE_PASS, "mechanism.m=2"],
    "projected by cosines": ["mechanism=projected", ONE_PASS, "mechanism.m=2",
                             "mechanism.phi=fast"],
    "standard_projection": ["mechanism=standard_projection", ONE_PASS, "mechanism.m=2"],
    "huberized": ["mechanism=huberized", ONE_PASS, "loss=hinge"],
    "high_probability": ["mechanism=high_probability", ONE_PASS],
    "projected features": ["mechanism=projected", ONE_PASS, "mechanism.m=4", *KERNEL,
                           "kernel.features=fourier"],
    "huberized features": ["mechanism=huberized", ONE_PASS, "loss=hinge", *KERNEL,
                           "kernel.features=fourier"],
    "high_probability of features": ["mechanism=high_probability", ONE_PASS, *KERNEL,
                                     "kernel.features=fourier"],
    "random_features of projected": ["mechanism=random_features", *KERNEL,
                                     "mechanism.inner={name: projected, inner: one_pass_sgd}"],
}  # fmt: skip


def neighbours(folder, words, n=N, p=3, dropped=DROPPED, seed=0):
    """Two cells whose training files are one record apart, with the same held-out file."""
    rows, test = make_rows(n, p, seed), make_rows(60, p, seed=9)
    asked = [*BUDGET, *words]
    if not any(word.startswith("loss=") for word in words):
        asked.append("loss=logistic")
    both = []
    for name, side in (("one", rows), ("other", np.delete(rows, dropped, axis=0))):
        data = write_table_with_test(folder / name, side, test)
        both.append(prepare([*data, *asked]))
    return both


@pytest.mark.in_turn
@pytest.mark.parametrize("view", VIEWS)
def test_common_records_keep_their_batches(view, tmp_path, monkeypatch):
    """The replay's verdict on the sums that pass the gate: one record's worth at most.

    Products are those of a library whose last bits follow the number of rows.
    """
    disturb_products(monkeypatch)
    one, other = neighbours(tmp_path, VIEWS[view])
    plan = one.plan
    assert plan.events == other.plan.events
    found = replay(one.mechanism, plan, one.problem, other.problem)
    assert found.private, found.faults[:2]
    assert found.worst > 0.01  # the record that is gone is seen


def members(problem, batches, n):
    """The batch [n] of each of the first n records."""
    found = np.full(problem.data.n, -1)
    for number, part in enumerate(batches_of_records(problem, batches)):
        found[part] = number
    return found[:n]


@pytest.mark.in_turn
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("batches", [2, 7, 50])
def test_the_batches_themselves(view, batches, tmp_path, monkeypatch):
    """Of the rows as the mechanism's view has them before it makes views of its own."""
    disturb_products(monkeypatch)
    one, other = neighbours(tmp_path, VIEWS[view])
    before = np.delete(members(one.problem, batches, N), DROPPED)
    after = members(other.problem, batches, N - 1)
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("shift", [1, 17])
def test_the_order_of_the_file_does_not_matter(shift, tmp_path):
    rows, test = make_rows(N), make_rows(60, seed=9)
    found = []
    for name, side in (("one", rows), ("other", np.roll(rows, shift, axis=0))):
        data = write_table_with_test(tmp_path / name, side, test)
        cell = prepare([*data, *BUDGET, *VIEWS["plain"], "loss=logistic"])
        found.append(members(cell.problem, 11, N))
    np.testing.assert_array_equal(np.roll(found[0], shift), found[1])


@pytest.mark.slow
def test_the_sizes_of_the_issue(tmp_path, monkeypatch):
    """n = 32,770, p = 30, kernel.size = 250, and a library as it is allowed to be.

    Two batch sums move by 22 L where the event says L: claimed (0.5, 1e-6), shown 1.94.
    """
    n = 32_770
    disturb_products(monkeypatch)
    words = ["mechanism=random_features", ONE_PASS, "kernel=rbf", "kernel.size=250"]
    words += ["mechanism.inner.batches=50", "epsilon=0.5", f"privacy.population={n}"]
    one, other = neighbours(tmp_path, words, n=n, p=30, dropped=17)
    found = replay(one.mechanism, one.plan, one.problem, other.problem)
    assert found.private, found.faults[:2]


# --- the name of a record ----------------------------------------------------------------------


def test_the_vector_of_the_specification():
    """BLAKE2b-64 with the key, over the columns and then the label, little-endian float64."""
    content = np.array([1.0, -2.5, 1.0], dtype="<f8").tobytes()
    digest = hashlib.blake2b(content, digest_size=8, key=b"dperm-record-1").digest()
    assert digest.hex() == "1f0d532de58e4635"
    name = int.from_bytes(digest, "little")
    assert name == 3838912847338999071
    assert (name * 10 >> 64, name * 7 >> 64) == (2, 1)


def test_records_are_named_by_the_vector():
    names = record_names(np.array([[1.0, -2.5], [0.0, -0.0]]), np.array([1.0, 1.0]))
    assert int(names[0]) == 3838912847338999071
    zero, one = np.zeros((1, 2)), np.array([1.0])
    assert names[1] == record_names(zero, one)[0]  # -0 is 0


@pytest.mark.parametrize("rows", ["unit", "clip"])
@pytest.mark.parametrize(("batches", "expected"), [(10, 2), (7, 1)])
def test_a_record_of_a_file_is_in_the_batch_of_its_raw_bytes(rows, batches, expected, tmp_path):
    """(1, -2.5, label 1), before its row is scaled: batch 2 of 10 and batch 1 of 7."""
    table = np.array([[1.0, -2.5, 1.0], [0.5, 0.25, -1.0], [3.0, 1.0, 1.0], [0.1, 0.2, -1.0]])
    write_table(tmp_path / "rows.csv", table)
    words = ["dataset=csv", f"dataset.path={tmp_path}/rows.csv", "dataset.test_fraction=0"]
    cell = prepare([*words, f"dataset.rows={rows}", "mechanism=one_pass_sgd", "loss=logistic",
                    "privacy.relation=add_remove", "privacy.population=4"])  # fmt: skip
    assert members(cell.problem, batches, 4)[0] == expected
