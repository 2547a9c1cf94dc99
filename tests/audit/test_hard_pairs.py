"""Made-up neighbours differ in one record, and the user's own two are read or refused in a line."""

from __future__ import annotations

import numpy as np
import pytest

from dperm_cli.audit import hard_pairs, pair_file
from dperm_cli.audit.hard_pairs import KINDS, Shape
from dperm_cli.core.errors import InputError

SHAPES = [
    Shape(6, 3, "binary", 12.0),
    Shape(6, 1, "regression", 0.3),
    Shape(4, 20, "multiclass", 1.0, classes=3),
    Shape(5, 2, "location", 100.0),
    Shape(1, 3, "binary", 1.0),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape.task}-{shape.n}-{shape.p}")
def test_one_record_is_another_one(kind, shape):
    pair = hard_pairs.make(kind, shape, "replace_one", seed=3)
    one, other = pair.first, pair.second
    apart = np.any(one.x != other.x, axis=1) | (one.y != other.y)
    assert apart.sum() == 1
    assert apart[pair.index]
    longest = np.max(np.linalg.norm(np.vstack([one.x, other.x]), axis=1)) / shape.row_bound
    if kind == "huge row":
        assert longest > 1e7
    else:
        assert longest <= 1.0 + 1e-13
    if shape.task == "binary":
        assert set(np.append(one.y, other.y)) <= {-1.0, 1.0}
    if shape.task == "multiclass":
        assert set(np.append(one.y, other.y)) <= {0.0, 1.0, 2.0}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("last", [True, False])
def test_a_record_goes_and_the_others_stay(kind, last):
    shape = SHAPES[0]
    pair = hard_pairs.make(kind, shape, "add_remove", seed=2, drop=True, last=last)
    assert pair.second.n == shape.n - 1
    assert pair.index == (5 if last else 2)
    mine, theirs = pair.list_shared()
    assert len(mine) == shape.n - 1
    assert np.array_equal(pair.first.x[mine], pair.second.x[theirs])
    assert np.array_equal(pair.first.y[mine], pair.second.y[theirs])
    stays = hard_pairs.make(kind, shape, "add_remove", seed=2, last=last)
    assert np.all(stays.second.x[stays.index] == 0.0)
    assert stays.second.n == shape.n


def test_kinds_are_what_they_say():
    shape = Shape(6, 8, "binary", 2.0)

    def record(kind):
        pair = hard_pairs.make(kind, shape, "replace_one", seed=1)
        one, other = pair.first, pair.second
        return pair, one.x[pair.index], other.x[pair.index]

    _, row, other = record("opposite rows")
    assert np.array_equal(row, -other)
    _, row, other = record("orthogonal rows")
    assert abs(row @ other) < 1e-12
    assert np.linalg.norm(other) == pytest.approx(2.0)
    pair, _, _ = record("one class")
    assert len(set(pair.first.y)) == 1
    assert len(set(pair.second.y)) == 2
    pair, row, _ = record("cancelling")
    assert np.any(np.all(pair.first.x == -row, axis=1))
    pair, _, _ = record("alone")
    assert np.count_nonzero(np.any(pair.first.x != 0.0, axis=1)) == 1
    assert not np.any(pair.second.x)
    norms = [
        np.linalg.norm(
            hard_pairs.make("norm above the bound", shape, "replace_one", s).first.x, axis=1
        )
        for s in range(8)
    ]
    assert np.max(norms) > 2.0


def test_zeros_have_no_gradient():
    for shape in SHAPES[:3]:
        found = hard_pairs.zeros(shape)
        assert not np.any(found.x)
        assert found.n == shape.n


BINARY = Shape(6, 2, "binary", 1.0)


def test_two_records_are_read(tmp_path):
    table = tmp_path / "two.csv"
    table.write_text("a,b,y\n0.5,0.25,1\n-0.5,0,-1\n")
    (one, y), (other, z) = pair_file.read(str(table), BINARY)
    assert one.tolist() == [0.5, 0.25]
    assert other.tolist() == [-0.5, 0.0]
    assert (y, z) == (1.0, -1.0)
    archive = tmp_path / "two.npz"
    np.savez(archive, x=np.array([[1.0, 0.0], [0.0, 7.0]]), y=np.array([1, -1]))
    (_, _), (far, _) = pair_file.read(str(archive), BINARY)
    assert far.tolist() == [0.0, 7.0]  # longer than the bound: the reader shortens it
    table.write_text("1,2\n3,4\n")
    (row, _), _ = pair_file.read(str(table), Shape(3, 2, "location", 1.0))
    assert row.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds 0"),
        ("1,2,1\n", "holds 1"),
        ("1,2,1\n1,2,1\n1,2,1\n", "holds 3"),
        ("1,2,1\n1,x,1\n", "record 2 holds something that is no number"),
        ("1,2,1\n1,2\n", "different numbers of columns"),
        ("1,1\n2,1\n", "has 2 columns and a label, and one here has 1"),
        ("1,2,1\n1,2,3\n", "labels must be among -1, 1"),
        ("1,nan,1\n1,2,1\n", "record 1 holds something that is no number"),
        ("\x00\xff", "is not UTF-8 text"),
    ],
)
def test_a_bad_pair_is_one_line(text, said, tmp_path):
    path = tmp_path / "bad.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError) as caught:
        pair_file.read(str(path), BINARY)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_other_bad_files(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        pair_file.read(str(tmp_path / "none.csv"), BINARY)
    path = tmp_path / "bad.npz"
    np.savez(path, rows=np.zeros((2, 2)))
    with pytest.raises(InputError, match="npz archive with numbers"):
        pair_file.read(str(path), BINARY)
    np.savez(path, x=np.zeros((3, 2)), y=np.ones(3))
    with pytest.raises(InputError, match="must hold two records"):
        pair_file.read(str(path), BINARY)
    np.savez(path, x=np.array([[np.inf, 0.0], [0.0, 0.0]]), y=np.ones(2))
    with pytest.raises(InputError, match="finite"):
        pair_file.read(str(path), BINARY)
