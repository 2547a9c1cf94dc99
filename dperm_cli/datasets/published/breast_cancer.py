"""Wisconsin diagnostic breast cancer: 569 records, 30 measures of cell nuclei."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.datasets.shared import embedded_files
from dperm_cli.datasets.shared.row_pipeline import Raw, RowOptions, Scaling

# radius, texture, perimeter, area, smoothness, compactness, concavity, concave points, symmetry
# and fractal dimension: first of the mean nucleus, then the standard error, then the worst.
# Origin: the table of minima and maxima published with the data set. Each low is the published
# minimum rounded down; each high is a round number near the middle of the published range, since
# the measures are skewed to the right: longer tails are clipped, and a centred column then
# straddles zero. The table describes these very records; for others, declare your own bounds.
BOUNDS = np.array([
    [5, 18], [5, 23], [40, 120], [100, 1500], [0.04, 0.12],
    [0, 0.2], [0, 0.25], [0, 0.12], [0.1, 0.22], [0.04, 0.07],
    [0, 1.5], [0, 2.5], [0, 12], [0, 300], [0, 0.02],
    [0, 0.08], [0, 0.2], [0, 0.03], [0, 0.04], [0, 0.015],
    [5, 22], [10, 30], [50, 175], [100, 2500], [0.05, 0.15],
    [0, 0.6], [0, 0.65], [0, 0.15], [0.1, 0.4], [0.05, 0.15],
])  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class BreastCancer(RowOptions):
    """Malignant (+1) against benign (-1); columns to [-1, 1] by BOUNDS, rows to norm 1.

    >>> data = BreastCancer(test_fraction=0.2).load()
    >>> data.n, data.p, data.row_bound
    (456, 30, 1.0)
    """

    task: ClassVar[str] = "binary"
    size: ClassVar[tuple[int, int]] = (569, 30)
    where: ClassVar[str] = "embedded"

    scaling: Scaling = "bounds"

    def bounds(self) -> np.ndarray:
        """The public bounds of the columns, [30, 2]."""
        return BOUNDS

    def raw(self, data_dir: Path | None = None) -> Raw:
        """The 569 records as published; ``data_dir`` is not used."""
        digest = "988ac75087cf3487bf8ba1c5d035dd13"
        table = embedded_files.read(
            "breast_cancer", "breast_cancer.csv", digest, delimiter=",", skip=1
        )
        # The file's label is 0 for malignant, 1 for benign.
        return Raw(x=table[:, :-1], y=1.0 - 2.0 * table[:, -1], bounds=self.bounds())
