"""Records in an svmlight (LIBSVM) text file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dperm_cli.core import checks
from dperm_cli.problem.datasets import _svmlight
from dperm_cli.problem.datasets._files import FileOptions


@dataclass(frozen=True, kw_only=True)
class Svmlight(FileOptions):
    """``label index:value ...`` lines, indices from 1; kept as CSR unless storage=dense.

    n_features : the declared number of columns; None takes the largest index in the file, which
        is a fact about the data (two files of one data set may then disagree).
    cache : keep the parsed arrays in the cache folder (a copy of the data, readable by you only).
    """

    name: ClassVar[str] = "svmlight"

    n_features: int | None = None
    storage: str = "sparse"
    cache: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_features is not None:
            checks.integer("dataset.n_features", self.n_features, low=1, high=2**31 - 2)
        checks.choice("dataset.storage", self.storage, ("sparse", "dense"))
        checks.boolean("dataset.cache", self.cache)

    def read(self, key: str, path: Path) -> tuple[Any, np.ndarray]:
        declared = None if self.n_features is None else int(self.n_features)
        x, labels = _svmlight.read(key, path, declared, self.cache, self.limit)
        return (x.toarray() if self.storage == "dense" else x), labels

    def _notes(self) -> tuple[str, ...]:
        if self.n_features is None:
            return ("p is the largest index in the file (n_features was not declared)",)
        return ()
