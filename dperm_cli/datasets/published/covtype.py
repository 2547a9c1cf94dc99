"""Forest cover type from 54 cartographic measures: 581012 records, from LIBSVM."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.datasets.shared.published_file import LIBSVM, Registered, Source
from dperm_cli.datasets.shared.row_pipeline import Centred, Scaling, TestFraction

# Elevation, aspect, slope, horizontal and vertical distance to water, distance to roads, hillshade
# at 9, 12 and 15 h, distance to fire points; the other 44 columns are indicators. These are the
# published minima and maxima of these very records: for others, declare your own bounds.
MEASURES = np.array([
    [1859, 3858], [0, 360], [0, 66], [0, 1397], [-173, 601],
    [0, 7117], [0, 254], [0, 254], [0, 254], [0, 7173],
])  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Covtype(Registered):
    """Lodgepole pine (file label 2, +1) against the other six cover types (1, -1).

    The file is in spatial order, so it is always shuffled; the default split trains on 500000
    records. Columns are mapped to [0, 1] by MEASURES and stay sparse.

    >>> Covtype().size, Covtype.train.n - int(Covtype.train.n * Covtype().test_fraction)
    ((581012, 54), 500000)
    """

    upstream: ClassVar[str] = "LIBSVM data page, binary: covtype.binary, unscaled"
    signs: ClassVar = {1.0: -1.0, 2.0: 1.0}
    train: ClassVar[Source] = Source(
        names=("covtype.libsvm.binary",), n=581012, p=54, nnz=6901775,
        labels={1: 297711, 2: 283301}, limit=1 << 28,
        url=f"{LIBSVM}/binary/covtype.libsvm.binary.bz2", digest="98984023507b067375a0df4ecab05636",
    )  # fmt: skip

    scaling: Scaling = "bounds"
    centred: Centred = False
    test_fraction: TestFraction = 0.139433

    def bounds(self) -> np.ndarray:
        return np.vstack([MEASURES, np.tile([0.0, 1.0], (44, 1))])
