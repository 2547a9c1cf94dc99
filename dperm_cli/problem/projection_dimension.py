"""Choose the number of dimensions to project to [KJ16, Thm 3.11]."""

from __future__ import annotations

import math

FAILURE = 0.05  # the probability beta of [KJ16, Thm 3.11]


def balanced_dimension(n: int, epsilon: float, delta: float, width: float) -> float:
    """The m that minimises the two risk terms with unit constants, a real number > 0.

    ``width`` is w(C) / |C|_2. In units of lambda |C|_2 the terms are the distortion w / sqrt(m)
    (gamma, with m = (w / gamma)^2) and the private minimiser's m / (n epsilon), or sqrt(m log(1 /
    delta)) / (n epsilon) under (epsilon, delta) [KJ16, Prop. 3.7].
    """
    if delta == 0.0:
        return (0.5 * n * epsilon * width) ** (2.0 / 3.0)
    return n * epsilon * width / math.sqrt(math.log(1.0 / delta))


def paper_dimension(n: int, epsilon: float, delta: float, width: float) -> float:
    """m of [KJ16, Thm 3.11] with psi and the constant of Theta taken as 1, a real number.

    It is epsilon n (w + sqrt(log n))^2 log(n / beta) / w, and for pure privacy
    (n epsilon)^(2/3) (w + sqrt(log n))^2 log(n / beta) / w^(4/3). ``width`` is w(C) / |C|_2.
    """
    common = (width + math.sqrt(math.log(n))) ** 2 * math.log(n / FAILURE)
    if delta == 0.0:
        return (n * epsilon) ** (2.0 / 3.0) * common / width ** (4.0 / 3.0)
    return epsilon * n * common / width
