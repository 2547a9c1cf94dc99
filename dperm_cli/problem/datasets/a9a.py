"""Adult income as 123 binary features: 32561 training and 16281 test records, from LIBSVM."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from scipy import sparse

from dperm_cli.core.errors import InputError
from dperm_cli.problem.data import Data
from dperm_cli.problem.datasets import _svmlight
from dperm_cli.problem.datasets._files import PLUS_MINUS, data_folder, map_labels, reading
from dperm_cli.problem.datasets._prepare import Raw, RowOptions, prepare

ENDINGS = ("", ".bz2", ".gz", ".xz", ".txt")
P = 123
# n, stored entries and positive labels of each file.
FACTS = {"a9a": (32561, 451592, 7841), "a9a.t": (16281, 225731, 3846)}
# Fourteen attributes, at most one indicator each.
LONGEST = math.sqrt(14.0)


@dataclass(frozen=True, kw_only=True)
class A9a(RowOptions):
    """Income above 50K (+1) or not (-1), with the published train/test split.

    The test file never mentions the last feature, so p = 123 is imposed on both. Rows stay
    sparse. test_fraction and split_seed matter only where the test file is missing.
    """

    task: ClassVar[str] = "binary"
    default_loss: ClassVar[str] = "logistic"
    size: ClassVar[tuple[int, int]] = (32561, P)
    where: ClassVar[str] = "DPERM_DATA_DIR"

    centred: bool = False

    def locate(self, data_dir: Path | None = None) -> Path:
        """The training file in the data folder."""
        folder = data_folder(data_dir)
        if folder is None:
            allowed = "set DPERM_DATA_DIR to the folder that holds the file a9a; " + _origin()
            raise InputError("dataset", "a9a", allowed)
        path = _find(folder, "a9a")
        if path is None:
            allowed = f"no a9a, a9a.bz2 or a9a.gz in the data folder {folder}; " + _origin()
            raise InputError("dataset", "a9a", allowed)
        return path

    def raw(self, data_dir: Path | None = None) -> Raw:
        """Both files, checked against the published counts."""
        path = self.locate(data_dir)
        x, y = _read(path, "a9a")
        test_path = _find(path.parent, "a9a.t")
        x_test, y_test = (None, None) if test_path is None else _read(test_path, "a9a.t")
        return Raw(
            x=x, y=y, x_test=x_test, y_test=y_test, bounds=np.array([0.0, 1.0]), longest=LONGEST
        )

    def load(self, data_dir: Path | None = None) -> Data:
        return prepare("a9a", self.task, self, self.raw(data_dir))


def _find(folder: Path, stem: str) -> Path | None:
    candidates = (folder / f"{stem}{ending}" for ending in ENDINGS)
    return next((path for path in candidates if os.path.isfile(path)), None)


def _read(path: Path, stem: str) -> tuple[sparse.csr_array, np.ndarray]:
    with reading("dataset", path):
        x, labels = _svmlight.read("dataset", path, P, cache=True)
    y = map_labels(labels, PLUS_MINUS)
    found = (labels.size, x.nnz, int(np.sum(y > 0)))
    if found != FACTS[stem] or not np.all(x.data == 1.0):
        words = "records, entries and positive labels are {}, {} and {}; published: {}, {} and {}"
        allowed = f"{path.name} is not LIBSVM's {stem}: " + words.format(*found, *FACTS[stem])
        raise InputError("dataset", "a9a", allowed)
    return x, y


def _origin() -> str:
    return "get a9a and a9a.t from the LIBSVM data page (binary: a9a)"
