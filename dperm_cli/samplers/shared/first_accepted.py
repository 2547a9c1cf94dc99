"""Rejection sampling: make proposals in batches, and return the first one that is accepted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dperm_cli.samplers.base import Source

# Numbers of proposals: in the first batch, in the largest batch, and in all before giving up.
BLOCK, _LARGEST, MOST = 16, 512, 2_000_000


def draw_first_accepted(
    propose: Callable[[int], tuple[np.ndarray, np.ndarray]],
    log_accept: Callable[[np.ndarray], np.ndarray],
    source: Source,
) -> np.ndarray:
    """The first accepted proposal."""
    count, made = BLOCK, 0
    while made < MOST:
        z, facts = propose(count)
        take = np.log(source.uniform(count)) <= log_accept(facts)
        first = int(take.argmax())
        if take[first]:
            return z[first]
        made, count = made + count, min(2 * count, _LARGEST)
    raise endless()


def endless() -> ArithmeticError:
    return ArithmeticError(f"no proposal of {MOST} was accepted: not a private outcome")
