"""Work on the parts of stored rows gives the bits of work on the rows in memory."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from dperm_cli.core.errors import DpermError
from dperm_cli.core.npy_files import NotAnArray, map_rows
from dperm_cli.loops.record_parts import add_pairs, divide, is_one_part
from dperm_cli.losses.absolute import Absolute
from dperm_cli.losses.base import largest_eigenvalue, to_dense, weighted_gram
from dperm_cli.losses.hinge import Hinge
from dperm_cli.losses.huberized_hinge import HuberizedHinge
from dperm_cli.losses.logistic import Logistic
from dperm_cli.losses.multinomial import Multinomial
from dperm_cli.losses.shared import long_sums
from dperm_cli.losses.squared import Squared
from dperm_cli.problem.data import Data
from dperm_cli.problem.data_folder import read_folder, write_folder
from dperm_cli.problem.problem import Problem
from dperm_cli.problem.row_products import add_rows, multiply_rows
from dperm_cli.problem.split_rows import SplitRows, fill_rows, is_dense, map_parts
from dperm_cli.sets import make_ball
from dperm_cli.solvers import newton_system, optimum
from dperm_cli.views.central import has_entries

LOSSES = [Logistic(), Squared(), HuberizedHinge(0.5), Hinge(), Absolute(), Multinomial()]
KINDS = ["float64", "float32", "csr_array", "csr_matrix"]


def make_data(kind="float64", n=13_001, p=5):
    rng = np.random.default_rng(3)
    x = rng.standard_normal((n, p))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = np.sign(x @ rng.standard_normal(p) + 0.3 * rng.standard_normal(n))
    if kind.startswith("csr"):
        x *= rng.random((n, p)) < 0.4
        x[7_000] = 0.0
        rows = getattr(sparse, kind)(x)
    else:
        rows = x.astype(kind)
    return Data.of_records("toy", "binary", rows, y, 1.0, 1.0, fingerprint=kind)


def with_classes(data):
    """The same records with three classes."""
    labels = (data.y > 0.0) + (np.arange(data.n) % 3 == 0)
    return replace(data, task="multiclass", y=labels.astype(float), classes=3)


def fit_task(data, loss):
    return with_classes(data) if loss.softmax else data


class Elsewhere:
    """Computes each part from a pickled pass, the last part first, and keeps what was asked for."""

    def __init__(self):
        self.asked = []

    def run(self, one):
        found = {}
        for number in reversed(range(len(one.parts))):
            sent = pickle.dumps(one.take([number]))
            self.asked.append((one.parts[number], len(sent)))
            found[number] = pickle.loads(sent).compute()[0]
        return [found[number] for number in range(len(one.parts))]


@pytest.fixture(params=KINDS)
def both(request, tmp_path):
    """A data set in memory, and the same split; and who computes the parts."""
    here = make_data(request.param)
    write_folder(tmp_path / "kept", here)
    kept, elsewhere = read_folder(tmp_path / "kept"), Elsewhere()
    rows = SplitRows(tmp_path / "kept", kept.fingerprint, kept.x, kept.y, elsewhere.run)
    return here, kept.with_rows(rows), elsewhere


def list_bytes(found):
    return [np.ascontiguousarray(one).tobytes() for one in found]


def compute(loss, data):
    """What mechanisms and solvers ask of a loss."""
    theta = np.random.default_rng(1).standard_normal((6, loss.dimension(data.facts())))
    dual = loss.dual(theta[0], data)
    found = [
        loss.gradient(theta, data),
        loss.sum_values(theta, data),
        loss.sum_values(theta[1], data),
    ]
    found += [dual, *loss.minorant(dual, data), loss.dual_slope(dual, data)]
    if loss.hessian is not None:
        found.append(loss.hessian(theta[2], data))
    if loss.smoothness is not None:
        found.append(loss.majorant(theta[:2], data))
    return found


@pytest.mark.parametrize("many", [False, True], ids=["few records", "many records"])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_sums_and_products_have_the_same_bits(loss, many, both, monkeypatch):
    if many:
        monkeypatch.setattr(long_sums, "MANY", 100)
    here, split, elsewhere = both
    here, split = fit_task(here, loss), fit_task(split, loss)
    assert list_bytes(compute(loss, split)) == list_bytes(compute(loss, here))
    assert {part for part, _ in elsewhere.asked} == set(divide(here.n, here.p))
    assert len(divide(here.n, here.p)) == 3


def test_products_of_any_layout_have_the_same_bits(both):
    here, split, _ = both
    rng = np.random.default_rng(2)
    v, w = rng.standard_normal((3, 5)).T, rng.standard_normal((2, here.n)).T
    strided = rng.standard_normal((5, 4))[:, 1]
    for one in (v, v[:, 0], strided):
        assert list_bytes([multiply_rows(split.x, one)]) == list_bytes([multiply_rows(here.x, one)])
    for one in (w, w[:, 1], here.y):
        assert list_bytes([add_rows(split.x, one)]) == list_bytes([add_rows(here.x, one)])
    weights = np.abs(w[:, 0])
    assert list_bytes([weighted_gram(split.x, weights)]) == list_bytes(
        [weighted_gram(here.x, weights)]
    )
    assert largest_eigenvalue(split.x) == largest_eigenvalue(here.x)
    assert has_entries(split.x).tolist() == has_entries(here.x).tolist()
    assert has_entries(here.x).all() != sparse.issparse(here.x)


@pytest.mark.parametrize("many", [False, True], ids=["few records", "many records"])
@pytest.mark.parametrize("loss", [*LOSSES[:4], LOSSES[5]], ids=lambda loss: loss.name)
def test_the_certified_optimum_has_the_same_bits(loss, many, both, monkeypatch):
    if many:  # of records, or of the entries of sparse rows
        monkeypatch.setattr(long_sums, "MANY", 100)
        monkeypatch.setattr(newton_system, "_DENSE_ENTRIES", 100)
    here, split, _ = both
    here, split = fit_task(here, loss), fit_task(split, loss)
    ball = make_ball(3.0, loss.dimension(here.facts()))
    if many and loss.cone_cost is not None and loss.hessian is not None and is_dense(here.x):
        with pytest.raises(DpermError, match="split=rows"):
            optimum.solve(Problem(split, loss, ball))
        return
    found = [optimum.solve(Problem(one, loss, ball, ridge=1e-4)) for one in (split, here)]
    assert found[0].converged
    assert list_bytes([found[0].theta, found[0].dual]) == list_bytes(
        [found[1].theta, found[1].dual]
    )
    assert (found[0].value, found[0].lower) == (found[1].value, found[1].lower)


def test_labels_are_not_sent(both):
    here, split, elsewhere = both
    Logistic().gradient(np.zeros(5), split)
    assert max(size for _, size in elsewhere.asked) < 2000
    assert not sparse.issparse(here.x) or len(elsewhere.asked) == 3
    elsewhere.asked.clear()
    flipped = Logistic().gradient(np.zeros(5), split.with_rows(split.x, y=-here.y))
    assert np.array_equal(flipped, -Logistic().gradient(np.zeros(5), here))
    assert min(size for _, size in elsewhere.asked) > 30_000


def test_what_needs_the_whole_rows_is_refused(both):
    _, split, _ = both
    for use in (np.asarray, lambda x: x[:3], lambda x: x @ np.ones(5), lambda x: x.T, list):
        with pytest.raises(DpermError, match="split=rows"):
            use(split.x)


def test_sparse_rows_are_filled_where_they_are_read(both):
    here, split, _ = both
    filled = fill_rows(split.x)
    assert is_dense(filled)
    assert is_dense(split.x) == is_dense(here.x)
    v, w = np.arange(5.0), np.arange(float(here.n))
    for work in (lambda x: multiply_rows(x, v), lambda x: add_rows(x, w)):
        assert list_bytes([work(filled)]) == list_bytes([work(fill_rows(here.x))])


@pytest.mark.parametrize("kind", KINDS)
def test_parts_of_any_kind_are_the_rows(kind):
    here = make_data(kind)
    found = map_parts(here.x, lambda x, y: (to_dense(x), y), here.y)
    assert len(found) == 3
    assert np.array_equal(np.vstack([x for x, _ in found]), to_dense(here.x))
    assert np.array_equal(np.concatenate([y for _, y in found]), here.y)


def test_a_folder_of_other_records_is_refused(both, tmp_path):
    _, split, _ = both
    facts = (tmp_path / "kept" / "facts.json").read_text()
    kind = json.loads(facts)["fingerprint"]
    changed = facts.replace(f'"fingerprint": "{kind}"', '"fingerprint": "other"')
    (tmp_path / "kept" / "facts.json").write_text(changed)
    with pytest.raises(DpermError, match="other records"):
        multiply_rows(split.x, np.ones(5))


def test_only_the_rows_of_a_part_are_mapped(tmp_path):
    array = np.arange(40_000.0).reshape(10_000, 4)
    np.save(tmp_path / "x.npy", array)
    for begin, end in ((0, 1), (4999, 10_000), (3, 3)):
        found = map_rows(tmp_path / "x.npy", begin, end)
        assert np.array_equal(found, array[begin:end])
        found += 1.0  # a copy of this process
    for begin, end in ((-1, 3), (5, 10_001), (6, 5)):
        with pytest.raises(NotAnArray):
            map_rows(tmp_path / "x.npy", begin, end)
    with open(tmp_path / "x.npy", "r+b") as file:
        file.truncate(1000)
    with pytest.raises(NotAnArray, match="cut short"):
        map_rows(tmp_path / "x.npy", 5000, 10_000)


def test_pairs_are_added_in_a_fixed_order():
    assert add_pairs([np.ones(2)]).tolist() == [1.0, 1.0]
    assert add_pairs([1e16, 1.0, 1.0, -1e16]) == 0.0
    assert add_pairs(range(7)) == 21


@pytest.mark.parametrize("n", [0, 1, 4096, 8191])
def test_few_records_are_one_part_whatever_their_columns(n):
    assert is_one_part(n)
    assert {len(divide(n, p, entries)) for p in (1, 10**7) for entries in (0, 1, 10**9)} == {1}


def test_more_records_are_several_parts():
    assert not is_one_part(8192)
    assert len(divide(8192, 1)) == 2
