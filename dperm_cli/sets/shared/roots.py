"""Find roots of many one-dimensional functions at once, by bracketing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

_STEPS = 200


def falling_root(
    function: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    low: np.ndarray,
    high: np.ndarray,
) -> np.ndarray:
    """Roots of decreasing functions with f(low) >= 0 >= f(high), one for each entry.

    ``function`` returns (values, derivatives). A Newton step that leaves the bracket is replaced by
    bisection.
    """
    at = low.copy()
    for _ in range(_STEPS):
        value, slope = function(at)
        low, high = np.where(value >= 0, at, low), np.where(value <= 0, at, high)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = at - value / slope
        inside = (newton >= low) & (newton <= high)
        following = np.where(value == 0, at, np.where(inside, newton, 0.5 * (low + high)))
        if np.all(np.abs(following - at) <= 4e-16 * np.abs(at)):
            return following
        at = following
    return at


def rising_crossing(
    function: Callable[[np.ndarray], np.ndarray],
    low: np.ndarray,
    high: np.ndarray,
    near: float,
) -> np.ndarray:
    """Roots of increasing functions with f(low) <= 0 <= f(high), by bracketed secant steps.

    A point where the value is within ``near`` of 0 is accepted.
    """
    f_low, f_high = function(low), function(high)
    for step in range(_STEPS):
        gap = np.where(f_high > f_low, f_high - f_low, 1.0)
        share = np.clip(-f_low / gap, 0.02, 0.98) if step % 3 else np.full_like(low, 0.5)
        at = low + share * (high - low)
        value = function(at)
        below = value <= 0
        low, f_low = np.where(below, at, low), np.where(below, value, f_low)
        high, f_high = np.where(below, high, at), np.where(below, f_high, value)
        closest = np.minimum(-f_low, f_high)
        if np.all((high - low <= 4e-16 * np.abs(high)) | (closest <= near)):
            break
    return np.where(-f_low <= f_high, low, high)
