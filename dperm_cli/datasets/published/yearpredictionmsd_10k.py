"""A published subset of the release years: 10000 of 515345 songs, 90 features, regression."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.datasets.shared import text_tables
from dperm_cli.datasets.shared.published_file import Source
from dperm_cli.datasets.shared.row_pipeline import Raw
from dperm_cli.datasets.shared.song_years import N_TRAIN, SongYears, split


@dataclass(frozen=True, kw_only=True)
class Yearpredictionmsd10k(SongYears):
    """Records with their row number in the full file, which decides the split and is no feature.

    8984 records train, 1016 test. There is no stable address to download it from.

    >>> Yearpredictionmsd10k().size, Yearpredictionmsd10k.train.names[0]
    ((10000, 90), 'yearpredictionmsd_10k.csv')
    """

    upstream: ClassVar[str] = "10000 rows of UCI 203 with the columns orig_row, year, v1 ... v90"
    # orig_row is kept among the parsed columns, for the split alone.
    train: ClassVar[Source] = Source(
        names=("yearpredictionmsd_10k.csv", "yearpredictionmsd_10k"), n=10000, p=91,
        limit=1 << 25, digest="58753fb9896c9d931d30fe4af2cfda04",
    )  # fmt: skip

    @property
    def size(self) -> tuple[int, int]:
        return self.train.n, 90

    def raw(self, data_dir: Path | None = None) -> Raw:
        raw: Any = super().raw(data_dir)
        original = raw.x[:, 0]
        return split(replace(raw, x=raw.x[:, 1:]), original <= N_TRAIN)

    @classmethod
    def parse(cls, path: Path, source: Source) -> tuple[np.ndarray, np.ndarray]:
        table = text_tables.read(path, source, width=92).to_numpy()
        return np.hstack([table[:, :1], table[:, 2:]]), table[:, 1].copy()
