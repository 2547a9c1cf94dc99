"""The capacity of a finite channel by Blahut and Arimoto's iteration: it knows no formula."""

from __future__ import annotations

import numpy as np


def capacity(laws: np.ndarray, gap: float = 1e-8, most: int = 20_000) -> tuple[float, float]:
    """Bounds (low, high), in nats, on sup over P of I(P, Q) for the rows Q(. | x) of ``laws``.

    With the answers' law under P, low is I(P, Q) and high the largest divergence of a row from
    it: the capacity lies between for every P. Steps P <- P exp(speed * divergence) are the
    iteration's at speed 1, and longer while I(P, Q) rises. Stops at high - low <= gap.
    """
    weight = 1.0 + 0.5 * np.cos(np.arange(len(laws)))  # away from the answer
    weight /= weight.sum()
    own = np.sum(laws * np.log(np.where(laws > 0, laws, 1.0)), axis=1)
    kept, speed, best = weight, 1.0, -np.inf
    low = high = np.nan
    for _ in range(most):
        far = own - laws @ np.log(weight @ laws)
        low, high = float(weight @ far), float(np.max(far))
        if high - low <= gap:
            break
        if low < best and speed > 1.0:  # too long a step: back
            weight, speed = kept, max(1.0, speed / 4.0)
            continue
        kept, best, speed = weight, low, 1.3 * speed
        weight = weight * np.exp(speed * (far - high))
        weight /= weight.sum()
    return low, high
