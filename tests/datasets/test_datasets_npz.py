"""NumPy archives: named arrays, and nothing that is ever unpickled."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from dperm_cli.datasets.files.npz import Npz
from tests.datasets.files_data import plain, refused


def test_npz_reads_named_arrays(tmp_path):
    path = tmp_path / "f.npz"
    np.savez(path, rows=np.arange(6, dtype=np.int32).reshape(3, 2), kind=np.array(["u", "v", "u"]))
    raw = plain(Npz, path, x="rows", y="kind", labels={"u": 1, "v": -1})
    assert (raw.x.tolist(), raw.y.tolist()) == ([[0, 1], [2, 3], [4, 5]], [1, -1, 1])
    assert "did you mean 'rows'" in refused(Npz, path, "dataset.x", x="row", y="kind")


class Bomb:
    """Unpickling this creates a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return (open, (self.path, "w"))


def test_npz_never_unpickles(tmp_path):
    objects = np.array([Bomb(tmp_path / "fired")] * 2, dtype=object)
    np.savez(tmp_path / "f.npz", x=objects.reshape(2, 1), y=np.ones(2))
    assert "pickled" in refused(Npz, tmp_path / "f.npz")
    (tmp_path / "g.npz").write_bytes(pickle.dumps(Bomb(tmp_path / "fired")))
    refused(Npz, tmp_path / "g.npz")
    assert not (tmp_path / "fired").exists()


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (np.ones(3), np.ones(3)),
        (np.ones((3, 2, 1)), np.ones(3)),
        (np.ones((3, 2)), np.ones(2)),
        (np.ones((3, 2)), np.ones((3, 2))),
        (np.ones((3, 2), dtype=complex), np.ones(3)),
        (np.array([["a"]] * 3), np.ones(3)),
        (np.ones((0, 2)), np.ones(0)),
        (np.ones((3, 0)), np.ones(3)),
        (np.full((3, 2), np.nan), np.ones(3)),
        (np.full((3, 2), np.inf), np.ones(3)),
    ],
)
def test_npz_bad_arrays(x, y, tmp_path):
    np.savez(tmp_path / "f.npz", x=x, y=y)
    refused(Npz, tmp_path / "f.npz")


def test_npz_damaged(tmp_path):
    path = tmp_path / "f.npz"
    np.savez(path, x=np.ones((30, 2)), y=np.ones(30))
    content = bytearray(path.read_bytes())
    path.write_bytes(content[:-30])
    refused(Npz, path)
    content[300] ^= 255
    path.write_bytes(content)
    refused(Npz, path)


def test_huge_entries_are_bounded(tmp_path):
    np.savez(tmp_path / "f.npz", x=np.array([[1e308, 1e308], [5e-324, 0], [0, 0]]), y=np.ones(3))
    data = Npz(path=str(tmp_path / "f.npz"), test_fraction=0, intercept=False).load()
    assert np.allclose(data.x, [[0.5**0.5, 0.5**0.5], [1, 0], [0, 0]])
