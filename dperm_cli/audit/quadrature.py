"""Gauss-Legendre quadrature on an interval that is cut into pieces, and what it is for."""

from __future__ import annotations

import math

import numpy as np

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)


def place_nodes(low: float, high: float, pieces: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights: 20 on each of the pieces, which are equally long."""
    edges = np.linspace(low, high, pieces + 1)
    half = (edges[1:] - edges[:-1])[:, None] / 2.0
    middle = (edges[1:] + edges[:-1])[:, None] / 2.0
    return (middle + half * _NODES).ravel(), (half * _WEIGHTS).ravel()


def delta_at(epsilon: float, first: np.ndarray, second: np.ndarray, weight: np.ndarray) -> float:
    """The larger of the integrals of (f - e^epsilon g)_+ and (g - e^epsilon f)_+, densities [m]."""
    factor = math.exp(epsilon)
    sides = ((first, second), (second, first))
    return max(float(np.maximum(f - factor * g, 0.0) @ weight) for f, g in sides)
