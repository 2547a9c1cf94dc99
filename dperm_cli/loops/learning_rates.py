"""Learning rates of the step number, by integer code."""

from __future__ import annotations

import math

from dperm_cli.loops.jit import compile_loop

CONSTANT, INV_SQRT, INV = 0, 1, 2


@compile_loop(forceinline=True)
def learning_rate(kind, eta0, number):
    """eta(number) for number = 1, 2, ...: eta0, eta0 / sqrt(number) or eta0 / number."""
    if kind == INV_SQRT:
        return eta0 / math.sqrt(number)
    if kind == INV:
        return eta0 / number
    return eta0
