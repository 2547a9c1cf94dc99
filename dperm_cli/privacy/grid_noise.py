"""Noise of the operating system's generator on a grid, added to values in integers."""

from __future__ import annotations

import numpy as np

from dperm_cli.privacy import secure_gamma, secure_noise, secure_wishart

# Largest multiple of a grid that a value may be: sums with noise stay exact integers.
_MOST_UNITS = 2.0**52


class GridNoise:
    """Exact noise on multiples of ``step``: Gaussian, Laplace, of a Gamma norm, or Wishart."""

    def __init__(self, trials: int, step: float, source: secure_noise.Source) -> None:
        self._trials, self._step, self._source = trials, step, source

    def add(
        self, value: np.ndarray, kind: str, scale: float, dim: int, step: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """The value rounded to the grid, and the sum. Never raises: an error would depend on
        the value."""
        units = np.clip(np.rint(np.nan_to_num(value / self._step)), -_MOST_UNITS, _MOST_UNITS)
        drawn = self._draw(kind, scale / self._step, dim)
        total = units.astype(np.int64) + drawn
        return units * self._step, total.astype(np.float64) * self._step

    def _draw(self, kind: str, ratio: float, dim: int) -> np.ndarray:
        """Noise [trials, dim] in steps, of ``ratio`` steps."""
        if kind == secure_gamma.GAMMA_NORM:
            return secure_gamma.draw_gamma_norms(ratio, self._trials, dim, self._source)
        if kind == secure_wishart.WISHART:
            return secure_wishart.draw_wishart_differences(ratio, self._trials, dim, self._source)
        drawn = secure_noise.draw_rounded_noise(kind, ratio, self._trials * dim, self._source)
        return drawn.reshape(self._trials, dim)
