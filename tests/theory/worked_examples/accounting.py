"""Worked examples of the pages on accounting, budgets and noise on a grid."""

from __future__ import annotations

import math

from dperm_cli.privacy.accounting import hidden_state
from tests.theory.worked_examples.pages import Worked, agree, works_out


def bound_last(count: int, c: float) -> float:
    """Theorem 1 of the page for S = 2, steps of 0.01, noise of 100 and D = 1."""
    found = [2 * math.sqrt(count) / 100]
    for k in range(1, count + 1):
        total = k if c == 1 else (1 - c**k) / (1 - c)
        square = k if c == 1 else (1 - c ** (2 * k)) / (1 - c * c)
        if k == count:
            found.append(2 * total / (100 * math.sqrt(square)))
        found.append((c**k + 0.02 * total) / (math.sqrt(square)))
    return min(found)


@works_out("_hidden_state")
def hide_iterates() -> Worked:
    results = [50.0]
    for count, c in ((100, 1.0), (1000, 1.0), (10, 0.9), (30, 0.9), (100, 0.9)):
        last = hidden_state.bound_last_iterate(count, 0.01, 2.0, 100.0, 1.0, c)
        every = hidden_state.compose_steps(count, 2.0, 100.0)
        results += [agree(bound_last(count, c), last), agree(2 * math.sqrt(count) / 100, every)]
    assert results[0] == 1 / (2 * 0.01)
    return Worked((0.01, 100, 1000, 0.9, 30), tuple(results))
