"""A data set that is made from a seed."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from dperm_cli import Data, DataSet, Range


@dataclass(frozen=True)
class Cloud(DataSet):
    """Rows on the unit sphere; the label is the side of a plane on which a row lies."""

    n: Annotated[int, Range(1, 10**6)] = 60
    p: Annotated[int, Range(1, 100)] = 3
    seed: Annotated[int, Range(0)] = 0
    task = "binary"

    def load(self, data_dir=None):
        x = np.random.default_rng(self.seed).standard_normal((self.n, self.p))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        return Data.of_records(
            name="cloud",
            task="binary",
            x=x,
            y=np.where(x[:, 0] < 0, -1.0, 1.0),
            row_bound=1.0,
            target_bound=1.0,
            fingerprint=f"cloud-{self.n}-{self.p}-{self.seed}",
        )
