"""The digits 4 and 9 in 5000 features, many of them uninformative: 6000 + 1000 records, LIBSVM."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.datasets.shared.published_file import LIBSVM, Registered, Source


@dataclass(frozen=True, kw_only=True)
class Gisette(Registered):
    """Digit 4 against 9, with the published split: the validation part is the test set.

    The published columns already lie in [-1, 1].

    >>> Gisette().size, Gisette().bounds().tolist()
    ((6000, 5000), [-1.0, 1.0])
    """

    upstream: ClassVar[str] = "LIBSVM data page, binary: gisette, scaled"
    train: ClassVar[Source] = Source(
        names=("gisette_scale",), n=6000, p=5000, labels={-1: 3000, 1: 3000}, limit=1 << 30,
        url=f"{LIBSVM}/binary/gisette_scale.bz2",
    )  # fmt: skip
    test: ClassVar[Source] = Source(
        names=("gisette_scale.t",), n=1000, p=5000, labels={-1: 500, 1: 500}, limit=1 << 28,
        url=f"{LIBSVM}/binary/gisette_scale.t.bz2",
    )  # fmt: skip

    def bounds(self) -> np.ndarray:
        return np.array([-1.0, 1.0])
