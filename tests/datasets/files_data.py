"""What the tests of the file formats share: small files, and the one line a bad one must get."""

from __future__ import annotations

import numpy as np
import pytest

from dperm_cli.core.errors import InputError
from dperm_cli.datasets.files.csv import Csv
from dperm_cli.datasets.files.npz import Npz
from dperm_cli.datasets.files.parquet import Parquet
from dperm_cli.datasets.files.svmlight import Svmlight
from dperm_cli.datasets.shared import svmlight_reader

SVM = b"1 1:0.5 3:2\n-1 2:-1e-1 # a comment\n\n+1\n-1 3:.25 1:1.\r\n"
SVM_X = np.array([[0.5, 0, 2], [0, -0.1, 0], [0, 0, 0], [1, 0, 0.25]])
SVM_Y = [1, -1, 1, -1]
KINDS = {"svmlight": Svmlight, "csv": Csv, "parquet": Parquet, "npz": Npz}


def made(kind, path, **fields):
    """A data set of a file, without an intercept; svmlight files have three columns unless the
    fields say otherwise."""
    declared = {"n_features": 3} if kind is Svmlight else {}
    return kind(path=str(path), **{"intercept": False} | declared | fields)


def plain(kind, path, **fields):
    """Records as read: no row rule, no split."""
    return made(kind, path, **fields).raw()


def read_whole(key, path, *size, **options):
    """(rows, labels) of an svmlight file."""
    blocks = svmlight_reader.read_blocks(key, path, *size, **options)
    return svmlight_reader.join_blocks(blocks, path)


def refused(kind, path, key="dataset.path", **fields):
    """The message of the one-line InputError that loading must raise."""
    with pytest.raises(InputError) as caught:
        made(kind, path, **fields).load()
    assert caught.value.key == key
    assert "\n" not in str(caught.value)
    return str(caught.value)
