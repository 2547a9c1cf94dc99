"""The mean logistic loss of labels with known chances, for many margins, with fixed bits."""

from __future__ import annotations

import numpy as np

from dperm_cli.loops.jit import compile_loop
from dperm_cli.loops.slopes import exp, log_of_one_plus


def find_chances(z: np.ndarray) -> np.ndarray:
    """s(z) = 1 / (1 + exp(-z)): the chances of a label 1 at log odds ``z`` [n]."""
    out = np.empty(len(z))
    _fill_chances(np.ascontiguousarray(z, dtype=float), out)
    return out


def find_mean_losses(z: np.ndarray, chances: np.ndarray) -> np.ndarray:
    """log(1 + exp(z)) - chance z: mean losses at margins ``z`` [n] where y = 1 has ``chances``."""
    if z.shape != chances.shape or z.ndim != 1:  # the loop checks no bounds
        raise ValueError(f"margins {z.shape} do not fit chances {chances.shape}")
    out = np.empty(len(z))
    _fill_mean_losses(
        np.ascontiguousarray(z, dtype=float), np.ascontiguousarray(chances, dtype=float), out
    )
    return out


@compile_loop
def _fill_chances(z, out):
    for i in range(z.size):
        e = exp(-abs(z[i]))
        out[i] = (1.0 if z[i] >= 0.0 else e) / (1.0 + e)


@compile_loop
def _fill_mean_losses(z, chances, out):
    for i in range(z.size):
        positive = z[i] if z[i] > 0.0 else 0.0
        out[i] = (positive + log_of_one_plus(exp(-abs(z[i])))) - chances[i] * z[i]
