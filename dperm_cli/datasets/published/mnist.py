"""Handwritten digits as 28x28 images: 60000 training and 10000 test records, from LIBSVM."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.datasets.shared.published_file import LIBSVM, Classes, Source, WithClasses
from dperm_cli.datasets.shared.row_pipeline import Centred, Scaling

TRAIN = (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949)
TEST = (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009)


@dataclass(frozen=True, kw_only=True)
class Mnist(WithClasses):
    """All ten digits, or odd (+1) against even (-1); grey levels 0..255 mapped to [0, 1].

    The last pixels are never inked, so the file's largest index is 780 (778 in the test file).

    >>> Mnist().size, Mnist().task, Mnist(classes="binary").task
    ((60000, 780), 'multiclass', 'binary')
    """

    upstream: ClassVar[str] = "LIBSVM data page, multi-class: mnist, unscaled"
    signs: ClassVar = {float(k): 1.0 if k % 2 else -1.0 for k in range(10)}
    class_labels: ClassVar[tuple[float, ...]] = tuple(float(k) for k in range(10))
    train: ClassVar[Source] = Source(
        names=("mnist",), n=60000, p=780, labels=dict(enumerate(TRAIN)), limit=1 << 28,
        url=f"{LIBSVM}/multiclass/mnist.bz2",
    )  # fmt: skip
    test: ClassVar[Source] = Source(
        names=("mnist.t",), n=10000, p=780, labels=dict(enumerate(TEST)), limit=1 << 26,
        url=f"{LIBSVM}/multiclass/mnist.t.bz2",
    )  # fmt: skip

    classes: Classes = "all"
    scaling: Scaling = "bounds"
    centred: Centred = False

    def bounds(self) -> np.ndarray:
        return np.array([0.0, 255.0])
