"""Adult income as 123 binary features: 32561 training and 16281 test records, from LIBSVM."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.datasets.shared.published_file import LIBSVM, Registered, Source
from dperm_cli.datasets.shared.row_pipeline import Centred


@dataclass(frozen=True, kw_only=True)
class A9a(Registered):
    """Income above 50K (+1) or not (-1), with the published train/test split.

    The test file never mentions the last feature, so p = 123 is imposed on both. Rows stay
    sparse. test_fraction and split_seed matter only where the test file is missing.

    >>> A9a().size, [source.n for source in A9a.sources()]
    ((32561, 123), [32561, 16281])
    """

    upstream: ClassVar[str] = "LIBSVM data page, binary: a9a"
    train: ClassVar[Source] = Source(
        names=("a9a",), n=32561, p=123, nnz=451592, labels={-1: 24720, 1: 7841},
        limit=1 << 24, url=f"{LIBSVM}/binary/a9a", digest="277390cba46ebbf57b23b41626f8f70d",
    )  # fmt: skip
    test: ClassVar[Source] = Source(
        names=("a9a.t",), n=16281, p=123, nnz=225731, labels={-1: 12435, 1: 3846},
        limit=1 << 24, url=f"{LIBSVM}/binary/a9a.t", digest="5fe089d887dcd65f1f9423fa15892243",
    )  # fmt: skip

    centred: Centred = False

    def bounds(self) -> np.ndarray:
        """Indicators."""
        return np.array([0.0, 1.0])

    def longest(self) -> float:
        """Fourteen attributes, at most one indicator each."""
        return math.sqrt(14.0)
