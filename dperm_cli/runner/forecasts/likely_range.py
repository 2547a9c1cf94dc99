"""The range that a median risk is foreseen in where nothing but public numbers is known.

What n, p and the set do not tell, how fast the eigenvalues fall and how much there is to learn,
moves the risk by a factor that grows with the set: on a wide set with little noise a direction in
which records hardly differ costs hundreds of times the others. The factors were fitted once, to
the cells of benchmarks/utility_medium.csv and to the first round of benchmarks/judge_plan.py.
"""

from __future__ import annotations

import math

import numpy as np

from dperm_cli.problem.problem import ProblemSpec

NARROW = 0.88  # on either side, of the log of a median on a set of reach 1 or less
WIDE_REACH = 10.0  # from which the factors below hold in full
# Powers of ten by which the risk is below that of the centre, and what the log of a median may be
# below and above the middle of the simulated ones on a wide set.
DECADES = (0.0, 1.0, 2.0, 3.0, 4.0)
BELOW = {"regression": (2.0, 1.6, 1.4, 1.3, 0.9), "": (2.2, 1.6, 1.6, 1.6, 1.2)}
ABOVE = {"regression": (1.0, 2.4, 3.4, 4.2, 5.4), "": (1.0, 1.1, 1.4, 2.2, 2.8)}
MOST = 1.2  # of a risk over that of the centre


def find_likely_range(
    spec: ProblemSpec, medians: np.ndarray, floors: np.ndarray
) -> tuple[float, float]:
    """Where the median of a real problem may lie.

    Args:
        spec: its public facts.
        medians: of the simulated problems, excess risk per record, [problems].
        floors: excess risk per record of the centre of the set, [problems].

    Returns:
        The lower and the upper end.
    """
    middle, floor = (float(np.exp(np.mean(np.log(some)))) for some in (medians, floors))
    decades = math.log10(max(1.0, floor / middle))
    wide = min(1.0, max(0.0, math.log(max(_reach(spec), 1.0)) / math.log(WIDE_REACH)))
    below, above = (
        NARROW + wide * (np.interp(decades, DECADES, ends.get(spec.task, ends[""])) - NARROW)
        for ends in (BELOW, ABOVE)
    )
    most = max(MOST * float(np.max(floors)), middle)
    return middle * math.exp(-below), min(middle * math.exp(above), most)


def _reach(spec: ProblemSpec) -> float:
    """The largest prediction over the bound on targets; the largest margin."""
    unit = spec.target_bound if spec.task == "regression" else 1.0
    return spec.row_bound * spec.constraint.outer_radius / unit
