"""From one record to all records of a person: group privacy.

A mechanism that is (epsilon, delta)-private for one record is (k epsilon, delta (e^(k epsilon) - 1)
/ (e^epsilon - 1))-private for a person with at most k records, by k steps of one record each, whose
deltas grow by e^epsilon a step. It holds for every mechanism and both relations.
"""

from __future__ import annotations

import math
from dataclasses import replace

from dperm_cli.privacy.budget import Budget, Guarantee


def sum_of_steps(epsilon: float, size: int) -> float:
    """(e^(size epsilon) - 1) / (e^epsilon - 1), which is ``size`` for epsilon 0.

    >>> sum_of_steps(0.0, 3), round(sum_of_steps(1.0, 2), 6)
    (3.0, 3.718282)
    """
    if epsilon == 0.0:
        return float(size)
    if size * epsilon > 700.0:
        return math.inf
    return math.expm1(size * epsilon) / math.expm1(epsilon)


def guarantee_for_person(found: Guarantee, size: int) -> Guarantee:
    """What holds for a person with at most ``size`` records.

    Args:
        found: what holds for one record, pure or approximate.
        size: records of a person that count, at most.

    Returns:
        The same for one record; otherwise the guarantee of the group.
    """
    if size == 1:
        return found
    delta = min(1.0, found.delta * sum_of_steps(found.epsilon, size)) if found.delta else 0.0
    source = f"{found.source}, for groups of {size} records"
    return replace(found, epsilon=size * found.epsilon, delta=delta, source=source)


def budget_for_record(budget: Budget, size: int) -> Budget:
    """The budget for one record that keeps a person with at most ``size`` records in ``budget``.

    >>> one = budget_for_record(Budget(1.0, 1e-6), 2)
    >>> one.epsilon, round(one.delta * sum_of_steps(one.epsilon, 2), 12)
    (0.5, 1e-06)
    """
    if size == 1:
        return budget
    epsilon = budget.epsilon / size
    # rounded down, so that the group's delta does not exceed the one asked for
    delta = budget.delta / sum_of_steps(epsilon, size) * (1.0 - 1e-12) if budget.delta else 0.0
    return replace(budget, epsilon=epsilon, delta=delta)
