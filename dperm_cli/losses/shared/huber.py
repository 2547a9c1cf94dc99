"""The positive part u_+ rounded off on [-h, h] [BST14, App. A].

f(u) = 0 below -h, (u + h)^2 / (4 h) on [-h, h], u above h. It is convex, once continuously
differentiable, and between u_+ and u_+ + h / 4.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from dperm_cli.core.fields import Help, Positive

KinkWidth = Annotated[Positive, Help("half-width h of the rounding: at most h / 4 is added")]


def value(u: np.ndarray, h: float) -> np.ndarray:
    """f(u)."""
    bent = np.clip(u + h, 0.0, 2.0 * h)
    return np.where(u > h, u, bent * bent / (4.0 * h))


def slope(u: np.ndarray, h: float) -> np.ndarray:
    """f'(u) = (u + h) / (2 h), clipped to [0, 1]."""
    return np.clip((u + h) / (2.0 * h), 0.0, 1.0)


def span(middle: float, margin: float, h: float) -> float:
    """f(middle + margin) - f(middle - margin), also where the two are nearly equal.

    Their difference as it stands loses every digit where the margin is small beside the rest.
    """
    low, high = middle - margin, middle + margin
    if low >= h:
        return 2.0 * margin
    if high <= h:
        bent = max(high + h, 0.0)
        return margin * (middle + h) / h if low >= -h else bent * bent / (4.0 * h)
    # high is above h: what is subtracted is less than half of the rest
    return high if low <= -h else 2.0 * margin - (h - low) ** 2 / (4.0 * h)


def majoriser(u: np.ndarray, h: float) -> np.ndarray:
    """1 / (2 max(h, |u|)): f(u) - u / 2 is even, and its slope over u falls with |u|."""
    return 0.5 / np.maximum(h, np.abs(u))


def curvature(u: np.ndarray, h: float) -> np.ndarray:
    """f''(u): 1 / (2 h) on (-h, h), 0 elsewhere (the limit from outside at the ends)."""
    return np.where(np.abs(u) < h, 1.0 / (2.0 * h), 0.0)


def conjugate(s: np.ndarray, h: float) -> np.ndarray:
    """f*(s) = -h s (1 - s) for s in [0, 1], +inf outside."""
    s = np.asarray(s)
    inside = (s >= 0) & (s <= 1)
    s = np.where(inside, s, 0.0)
    return np.where(inside, -h * s * (1.0 - s), np.inf)
