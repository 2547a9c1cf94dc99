"""Vectors so short that the squares of their entries lose digits, or vanish."""

from __future__ import annotations

from dperm_cli.loops.jit import compile_inline

SHORT_SQUARE = 1e-200  # of a length; a square above it has lost nothing that counts


@compile_inline
def scale_to_peak(v):
    """Divide v [p] by its largest modulus, in place; the square of its length then, 0 for zeros."""
    peak, square = 0.0, 0.0
    for k in range(v.size):
        peak = max(peak, abs(v[k]))
    if not peak > 0.0:
        return 0.0
    for k in range(v.size):
        v[k] /= peak
        square += v[k] * v[k]
    return square
