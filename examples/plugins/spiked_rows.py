"""A data set generator as a plug-in of dperm: linear regression with a few informative columns.

    dperm check spiked_rows.py
    dperm run --plugin spiked_rows.py dataset=spiked_rows mechanism=noisy_gd -m dataset.seed=0,1,2

Rows are Gaussian with one direction (the spike) in which they vary more, and every row is shortened
to the unit ball by itself. Targets are a sparse linear function plus noise, clipped to [-1, 1]. All
bounds hold whatever is drawn: none is measured.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from dperm_cli import Data, DataSet, Help, Range

__version__ = "1.0"


@dataclass(frozen=True)
class SpikedRows(DataSet):
    """y = clip(<x, theta*> + noise w), where theta* has ``informative`` entries other than 0."""

    n: Annotated[int, Range(1, 10**7), Help("training records")] = 2000
    p: Annotated[int, Range(1, 10**4), Help("columns")] = 20
    n_test: Annotated[int, Range(1, 10**6), Help("held-out records")] = 500
    informative: Annotated[int, Range(1, "p"), Help("columns that y depends on")] = 3
    spike: Annotated[float, Range(1), Help("how much more rows vary along one direction")] = 3.0
    noise: Annotated[float, Range(0), Help("standard deviation of what is added to y")] = 0.1
    seed: Annotated[int, Range(0), Help("of the records")] = 0

    task = "regression"

    @property
    def size(self):
        """(records, columns), known before anything is drawn."""
        return self.n + self.n_test, self.p

    def load(self, data_dir=None):
        """The records: a function of the keys alone."""
        rng = np.random.default_rng(self.seed)
        direction = rng.standard_normal(self.p)
        direction /= np.linalg.norm(direction)
        x = rng.standard_normal((self.n + self.n_test, self.p))
        x += (self.spike - 1.0) * np.outer(x @ direction, direction)
        x /= np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True))
        theta = np.zeros(self.p)
        theta[: self.informative] = rng.choice([-1.0, 1.0], self.informative)
        y = np.clip(x @ theta + self.noise * rng.standard_normal(len(x)), -1.0, 1.0)
        keys = (self.n, self.p, self.n_test, self.informative, self.spike, self.noise, self.seed)
        return Data.of_records(
            name="spiked_rows",
            task=self.task,
            x=x[: self.n],
            y=y[: self.n],
            x_test=x[self.n :],
            y_test=y[self.n :],
            row_bound=1.0,
            target_bound=1.0,
            fingerprint="spiked_rows 1 " + " ".join(map(repr, keys)),
        )
