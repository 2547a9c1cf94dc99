"""Release years of 515345 songs from 90 timbre features, regression, from UCI."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.datasets.shared import text_tables
from dperm_cli.datasets.shared.published_file import Source
from dperm_cli.datasets.shared.row_pipeline import Raw
from dperm_cli.datasets.shared.song_years import N_TRAIN, SongYears, split


@dataclass(frozen=True, kw_only=True)
class Yearpredictionmsd(SongYears):
    """The published split: the first 463715 records train, the last 51630 test.

    A file whose records are in another order has another split.

    >>> Yearpredictionmsd().task, N_TRAIN, Yearpredictionmsd.train.n - N_TRAIN
    ('regression', 463715, 51630)
    """

    upstream: ClassVar[str] = "UCI Machine Learning Repository, 203: YearPredictionMSD.txt"
    train: ClassVar[Source] = Source(
        names=("YearPredictionMSD", "YearPredictionMSD.txt", "yearpredictionmsd"),
        n=515345, p=90, limit=1 << 30,
        url="https://archive.ics.uci.edu/static/public/203/yearpredictionmsd.zip",
        member="YearPredictionMSD.txt",
    )  # fmt: skip

    def raw(self, data_dir: Path | None = None) -> Raw:
        raw = super().raw(data_dir)
        return split(raw, np.arange(raw.x.shape[0]) < N_TRAIN)

    @classmethod
    def parse(cls, path: Path, source: Source) -> tuple[np.ndarray, np.ndarray]:
        table = text_tables.read(path, source, width=91).to_numpy()
        return np.ascontiguousarray(table[:, 1:]), table[:, 0].copy()
