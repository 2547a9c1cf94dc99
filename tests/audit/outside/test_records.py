"""Declared records, and the neighbouring tables that are made of them."""

from __future__ import annotations

import numpy as np
import pytest

from dperm_cli.audit.outside.neighbours import list_pairs, list_variants
from dperm_cli.audit.outside.records import RecordKind, Table, read_kind
from dperm_cli.core.errors import InputError

RELATIONS = ("replace_one", "add_remove")


@pytest.mark.parametrize(
    "word",
    ["numeric:p=3,norm=2,labels=-1|1,n=5", "numeric:p=2,low=0,high=1,n=8",
     "numeric:p=1,norm=1,targets=-1|1,n=3"],
)  # fmt: skip
def test_a_declaration_is_its_own_words(word):
    assert read_kind(word).words() == word


def test_a_file_has_the_same_keys(tmp_path):
    path = tmp_path / "records.yaml"
    path.write_text("p: 3\nnorm: 2\nlabels: [-1, 1]\nn: 5\n")
    assert read_kind(str(path)) == read_kind("numeric:p=3,norm=2,labels=-1|1,n=5")


@pytest.mark.parametrize(
    ("word", "key"),
    [
        ("words:p=1", "records"), ("numeric:q=1", "records.q"), ("numeric:p=0", "records.p"),
        ("numeric:p=x", "records.p"), ("numeric:norm=-1", "records.norm"),
        ("numeric:norm=1,low=0,high=1", "records.norm"), ("numeric:low=0", "records.low"),
        ("numeric:low=1,high=0", "records.low"), ("numeric:labels=1", "records.labels"),
        ("numeric:labels=1|1", "records.labels"), ("numeric:targets=0|1|2", "records.targets"),
        ("numeric:labels=0|1,targets=0|1", "records.targets"), ("none.yaml", "records"),
    ],
)  # fmt: skip
def test_a_wrong_declaration_is_refused(word, key):
    with pytest.raises(InputError) as caught:
        read_kind(word)
    assert caught.value.key == key


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    "kind",
    [RecordKind(p=1), RecordKind(p=3, norm=2.0, labels=(-1.0, 1.0)),
     RecordKind(p=2, norm=None, low=0.0, high=1.0)],
)  # fmt: skip
def test_pairs_are_neighbours_within_what_is_declared(kind, relation):
    pairs = list_pairs(kind, relation, np.random.default_rng(0))
    assert len({pair.digest for pair in pairs}) == len(pairs) > 4
    pairs += list_variants(pairs[0], kind, relation, np.random.default_rng(1))
    for pair in pairs:
        assert pair.is_within
        assert len(pair.first.rows) - len(pair.second.rows) == (relation == "add_remove")
        shared = len(pair.first.rows) - 1
        assert np.array_equal(pair.first.rows[:shared], pair.second.rows[:shared])
        for table in (pair.first, pair.second):
            assert (table.labels is None) == (not kind.answers)
            if kind.norm is not None:
                assert np.all(np.linalg.norm(table.rows, axis=1) <= kind.norm * (1 + 1e-12))
            assert np.all((table.rows >= kind.low) & (table.rows <= kind.high))
            if kind.labels:
                assert set(table.labels) <= set(kind.labels)


def test_the_structured_pairs_are_there():
    kind = RecordKind(p=2, labels=(-1.0, 1.0))
    pairs = {p.name: p for p in list_pairs(kind, "replace_one", np.random.default_rng(0))}
    turned = pairs["one_class/flip"]
    assert len(set(turned.first.labels) | {turned.second.labels[-1]}) == 2
    assert len(set(turned.second.labels)) == 1
    opposite = pairs["zeros/opposite"]
    assert np.array_equal(opposite.first.rows[-1], -opposite.second.rows[-1])
    assert not np.any(opposite.first.rows[:-1])
    removed = list_pairs(RecordKind(p=2), "add_remove", np.random.default_rng(0))
    assert any(len(pair.second.rows) == 0 for pair in removed)


def test_records_beyond_the_declaration_are_tried_on_demand():
    kind = RecordKind(p=2, labels=(-1.0, 1.0))
    found = list_pairs(kind, "replace_one", np.random.default_rng(0), beyond=True)
    beyond = {pair.name: pair for pair in found if not pair.is_within}
    assert set(beyond) == {
        f"beyond/{n}" for n in ("just_beyond", "far_beyond", "nan", "inf", "label")
    }
    assert np.isnan(beyond["beyond/nan"].first.rows).sum() == 1
    assert np.linalg.norm(beyond["beyond/far_beyond"].first.rows[-1]) > 1e7


def test_a_table_is_written_and_read_back():
    table = Table(np.array([[0.1, 2.0], [-0.0, 1e-300]]), np.array([1.0, -1.0]))
    again = Table.of_lists(table.to_lists())
    assert again.digest == table.digest
    assert table.format_lines() == "0.1,2.0,1.0\n-0.0,1e-300,-1.0\n"
    empty = Table(np.zeros((0, 2)))
    assert Table.of_lists(empty.to_lists()).rows.shape == (0, 2)
