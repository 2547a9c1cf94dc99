"""Normals from uniforms [BM58], by the arithmetic of ``gaussian_noise``: equal bytes everywhere."""

from __future__ import annotations

import math

import numpy as np

from dperm_cli.loops.gaussian_noise import half_turn, minus_log
from dperm_cli.loops.jit import compile_inline, compile_loop


def normals(uniforms: np.ndarray) -> np.ndarray:
    """Two independent standard normals for every two uniforms in (0, 1); shape [2 m] -> [2 m]."""
    out = np.empty(uniforms.shape)
    _normals(uniforms, out)
    return out


@compile_inline
def pair(first, second):
    """Two independent standard normals from two uniforms in (0, 1)."""
    length, turn = math.sqrt(2.0 * minus_log(first)), 2.0 * second
    # the first bit chooses the half-plane
    if turn >= 1.0:
        length, turn = -length, turn - 1.0
    cosine, sine = half_turn(turn - 0.5)
    return length * cosine, length * sine


@compile_loop
def _normals(uniforms, out):
    for i in range(0, uniforms.size - 1, 2):
        out[i], out[i + 1] = pair(uniforms[i], uniforms[i + 1])
