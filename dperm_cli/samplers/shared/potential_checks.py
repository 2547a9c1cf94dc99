"""Evaluate the potential f of a law in blocks, cache values, and check envelopes."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from dperm_cli.samplers.base import Potential

_NUMBERS = 1 << 21  # entries of the margins of one block of points
_ROUNDING = 1e-10
_held: dict[str, tuple[weakref.ref, Any, Any]] = {}


def remember(kind: str, potential: Potential, key: Any, make: Callable[[], Any]) -> Any:
    """Cache ``make()`` for one potential object and key.

    It is only for values that no random number enters, since all trials share them.
    """
    held = _held.get(kind)
    if held is not None and held[0]() is potential and held[1] == key:
        return held[2]
    value = make()
    _held[kind] = (weakref.ref(potential, lambda _: _held.pop(kind, None)), key, value)
    return value


def evaluate_in_blocks(potential: Potential, points: np.ndarray, n: int) -> np.ndarray:
    """f at points [m, p], a few at a time; ``n`` is the number of records."""
    return _in_blocks(potential.value, points, n, np.zeros(len(points)))


def differentiate_in_blocks(potential: Potential, points: np.ndarray, n: int) -> np.ndarray:
    """Subgradients of f at points [m, p]."""
    return _in_blocks(potential.gradient, points, n, np.zeros(points.shape))


def _in_blocks(
    one: Callable[[np.ndarray], np.ndarray], points: np.ndarray, n: int, out: np.ndarray
) -> np.ndarray:
    block = max(1, _NUMBERS // max(n, 1))
    for start in range(0, len(points), block):
        out[start : start + block] = one(points[start : start + block])
    return out


def check_envelope(potential: Potential, gap: Any) -> None:
    """Check that f - envelope = ``gap`` is not negative by more than rounding.

    A violation would change the law that the privacy guarantee is about.

    Raises:
        ArithmeticError: an envelope lies above f.
    """
    least = float(np.min(gap, initial=np.inf))
    if not least >= -_ROUNDING * (1.0 + potential.magnitude):
        raise ArithmeticError("an envelope lies above f: not a private outcome")
