"""What the arithmetic of plans, certificates and bounds is good for: the same for all verbs.

Squares and products of these constants and n have to stay within float64.
"""

from __future__ import annotations

from dperm_cli.core.errors import InputError

EPSILONS = (1e-9, 1e6)
CONSTANTS = (1e-50, 1e50)


def check_epsilon(epsilon: float) -> float:
    """The epsilon itself; InputError beyond the limits."""
    low, high = EPSILONS
    if not low <= epsilon <= high:
        raise InputError("epsilon", epsilon, f"must be between {low:g} and {high:g}")
    return epsilon


def check_bound(key: str, given: object, bound: float) -> None:
    """InputError where what was ``given`` for a key makes a bound beyond the limits."""
    low, high = CONSTANTS
    if not low <= bound <= high:
        raise InputError(key, given, f"must make a bound between {low:g} and {high:g}")


def check_constant(key: str, value: float) -> float:
    """The constant itself; InputError above the limit. 0 is allowed."""
    if not value <= CONSTANTS[1]:
        raise InputError(key, value, f"must be a finite number >= 0 and <= {CONSTANTS[1]:g}")
    return value
