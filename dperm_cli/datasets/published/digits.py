"""Handwritten digits as 8x8 images: 1797 records, 64 pixels, two or ten classes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.fields import Choices, Help
from dperm_cli.datasets.shared import embedded_files
from dperm_cli.datasets.shared.row_pipeline import Centred, Raw, RowOptions, Scaling

CONTRASTS = ("parity", "high", "classes")


@dataclass(frozen=True, kw_only=True)
class Digits(RowOptions):
    """Which digits are told apart: ``parity`` (odd +1, even -1), ``high`` (5-9 +1, 0-4 -1) or
    ``classes`` (all ten).

    A pixel counts the ink in a 4x4 block, 0..16 by construction; it is mapped to [0, 1].

    >>> [Digits(contrast=contrast).default_loss for contrast in CONTRASTS]
    ['logistic', 'logistic', 'multinomial']
    """

    size: ClassVar[tuple[int, int]] = (1797, 64)
    where: ClassVar[str] = "embedded"

    contrast: Annotated[str, Choices(*CONTRASTS), Help("odd, 5-9, or all ten")] = "parity"
    scaling: Scaling = "bounds"
    centred: Centred = False

    @property
    def task(self) -> str:
        return "multiclass" if self.contrast == "classes" else "binary"

    def bounds(self) -> np.ndarray:
        """The range of a pixel."""
        return np.array([0.0, 16.0])

    def raw(self, data_dir: Path | None = None) -> Raw:
        """The 1797 images as published; ``data_dir`` is not used."""
        digest = "90c361a1caa4b57caf82f197be98e6e2"
        table = embedded_files.read("digits", "digits.csv.gz", digest, delimiter=",")
        digit = table[:, -1]
        positive = digit % 2 == 1 if self.contrast == "parity" else digit >= 5
        every = self.contrast == "classes"
        return Raw(
            x=table[:, :-1], y=digit if every else np.where(positive, 1.0, -1.0),
            bounds=self.bounds(), longest=16.0 * 8.0, classes=10 if every else 2,
        )  # fmt: skip
