"""Diabetes progression after one year: 442 records, 10 baseline measures, regression."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.datasets.shared import embedded_files
from dperm_cli.datasets.shared.row_pipeline import Raw, RowOptions, Scaling

# Round ranges of adult medicine (blood values in mg/dl), chosen without the data.
BOUNDS = np.array([
    [18, 80],  # age in years
    [1, 2],  # sex, two codes
    [15, 45],  # body mass index, kg/m^2
    [60, 140],  # mean blood pressure, mmHg
    [80, 320],  # total cholesterol
    [30, 250],  # low-density lipoproteins
    [15, 105],  # high-density lipoproteins
    [1, 10],  # total cholesterol / HDL
    [3, 6.5],  # natural logarithm of triglycerides (20 to 665 mg/dl)
    [50, 130],  # glucose
])  # fmt: skip

# The published range of the progression measure is 25 to 346.
TARGET_BOUNDS = (0.0, 350.0)


@dataclass(frozen=True, kw_only=True)
class Diabetes(RowOptions):
    """The raw measures (not the standardised ones), columns to [-1, 1] by BOUNDS, unit rows.

    >>> Diabetes().load().preprocessing[-2:]
    ('targets from [0, 350] to [-1, 1], clipped', 'rows scaled to norm 1')
    """

    task: ClassVar[str] = "regression"
    size: ClassVar[tuple[int, int]] = (442, 10)
    where: ClassVar[str] = "embedded"
    target_bounds: ClassVar[tuple[float, float]] = TARGET_BOUNDS

    scaling: Scaling = "bounds"

    def bounds(self) -> np.ndarray:
        """The public bounds of the columns, [10, 2]."""
        return BOUNDS

    def raw(self, data_dir: Path | None = None) -> Raw:
        """The 442 records as published; ``data_dir`` is not used."""
        x = embedded_files.read(
            "diabetes", "diabetes_data_raw.csv.gz", "685f203d35f25f68ad4af8e49919f415",
            delimiter=None,
        )  # fmt: skip
        y = embedded_files.read(
            "diabetes", "diabetes_target.csv.gz", "cf63a79792e15b5f324e076313ebc204",
            delimiter=None,
        )  # fmt: skip
        return Raw(x=x, y=y, bounds=self.bounds(), target_bounds=self.target_bounds)
