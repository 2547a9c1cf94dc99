"""California housing, census of 1990: 20640 districts, 8 measures, regression, from StatLib."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.datasets.shared import text_tables
from dperm_cli.datasets.shared.published_file import Registered, Source
from dperm_cli.datasets.shared.row_pipeline import Intercept, Scaling

# Longitude and latitude of the state, age of the houses (52 is the census' top code), rooms,
# bedrooms, people and households of a district in round numbers (larger ones are clipped), median
# income in tens of thousands (15 is the top code).
BOUNDS = np.array([
    [-125, -114], [32, 42], [0, 52], [0, 10000], [0, 2000], [0, 5000], [0, 2000], [0, 15],
])  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class CalHousing(Registered):
    """Median house value in dollars from the raw columns (not from ratios of them).

    Values above 500000 are recorded as 500001, so the target is censored.

    >>> CalHousing().task, CalHousing().size, CalHousing().target_bounds
    ('regression', (20640, 8), (0.0, 500001.0))
    """

    upstream: ClassVar[str] = "StatLib's houses, file cal_housing.data of cal_housing.tgz"
    target_bounds: ClassVar[tuple[float, float]] = (0.0, 500001.0)
    facts: ClassVar[tuple[str, ...]] = ("targets are censored at 500001",)
    train: ClassVar[Source] = Source(
        names=("cal_housing.data", "cal_housing.tgz"), n=20640, p=8, limit=1 << 25,
        digest="0e5840927975054805040a899e8bdd74", url="https://ndownloader.figshare.com/files/5976036",
        sha256=("aaa5c9a6afe2225cc2aed2723682ae403280c4a3695a2ddda4ffb5d8215ea681",),
        member="cal_housing.data", archive_limit=1 << 24,
    )  # fmt: skip

    scaling: Scaling = "bounds"
    intercept: Intercept = True

    def bounds(self) -> np.ndarray:
        return BOUNDS

    @classmethod
    def parse(cls, path: Path, source: Source) -> tuple[np.ndarray, np.ndarray]:
        table = text_tables.read(path, source, width=9).to_numpy()
        return np.ascontiguousarray(table[:, :8]), table[:, 8].copy()
