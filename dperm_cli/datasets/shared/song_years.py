"""Read the Million Song release years; both published forms share this code."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.datasets.shared.published_file import Registered
from dperm_cli.datasets.shared.row_pipeline import Intercept, Raw, Scaling

# Twelve averages of timbre and the 78 entries of their covariance. No ranges are published: these
# are round numbers for features whose loudness is 0 to 60 dB and whose other eleven averages are of
# the order of 100; longer tails are clipped.
BOUNDS = np.array([[0, 60]] + [[-100, 100]] * 11 + [[0, 2000]] * 12 + [[-1000, 1000]] * 66)
# The years that the data set covers.
YEARS = (1922.0, 2011.0)
# The first records of the file, in the published order, are for training; the split keeps every
# song of an artist on one side.
N_TRAIN = 463715


@dataclass(frozen=True, kw_only=True)
class SongYears(Registered):
    """The release year of a song from 90 timbre features; the published split."""

    target_bounds: ClassVar[tuple[float, float]] = YEARS

    scaling: Scaling = "bounds"
    intercept: Intercept = True

    def bounds(self) -> np.ndarray:
        return BOUNDS


def split(raw: Raw, training: np.ndarray) -> Raw:
    """The records apart, by a mask [n]."""
    held = ~training
    return replace(
        raw, x=raw.x[training], y=raw.y[training], x_test=raw.x[held], y_test=raw.y[held]
    )
