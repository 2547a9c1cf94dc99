"""Proved bounds on rounding errors, from public facts alone.

u = 2^-53 and gam(k) = k u / (1 - k u). A sum of k products, in any order and with or without fused
operations, has an error of at most gam(k) times the sum of the moduli. There is one assumption:
functions of the C library have a relative error of at most 4 u.
"""

from __future__ import annotations

import math

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.problem.normal_cones import U
from dperm_cli.problem.problem import ProblemSpec

LEAST_BLOCK = 128  # records whose gradients are summed in any order
MOST_BLOCKS = 4096  # whose sums are added in halves; with more records blocks are larger
MOST_STEPS = 10**9  # most steps of projected gradient descent, which always converges
LEAST_CONVEXITY = 1e-8  # least strong convexity over curvature: else it would need more steps
_SECOND_ORDER = 1.0 + 1e-6  # products of two rounding errors, and rows a hair above their bound


def block_size(n: int) -> int:
    """How many records have their gradients summed in any order; sums of blocks add in halves."""
    return max(LEAST_BLOCK, math.ceil(n / MOST_BLOCKS))


def most_additions(n: int) -> int:
    """The most additions that the gradient of one of n records goes through."""
    block = block_size(n)
    return min(n, block) + max(0, math.ceil(math.log2(max(1.0, n / block)))) + 1


def gam(k: float) -> float:
    """k u / (1 - k u), for k u < 1 / 2."""
    return k * U / (1.0 - k * U)


@dataclass(frozen=True)
class RoundingBounds:
    """What rounding may do to a problem of strong convexity ``modulus``, its tilt included.

    Attributes
    ----------
    modulus : m, the strong convexity of the objective.
    steep : M, a bound on the curvature of its smooth part.
    slope : E, an error of its gradient in double precision, in the 2-norm.
    length : a bound on its gradient over the set.
    off_set : how far a computed point of the set may be from one whose normals are known exactly.
    step : an error of one projected gradient step, its gradient's apart.
    """

    modulus: float
    steep: float
    slope: float
    length: float
    off_set: float
    step: float

    @property
    def condition(self) -> float:
        return self.steep / self.modulus

    @property
    def stall_distance(self) -> float:
        """How far from the minimiser rounded projected gradient steps end, at most.

        A step of 2 / (M + m) shrinks the distance by q = (kappa - 1) / (kappa + 1), kappa = M / m,
        and rounding adds 2 E / (M + m) + ``step``: the sum of that times q^t is this.
        """
        return (self.slope + 0.5 * (self.steep + self.modulus) * self.step) / self.modulus

    def distance(self, residual: float) -> float:
        """The largest distance to the minimiser at a computed residual of this norm."""
        found = residual + self.slope + self.steep * self.off_set
        return (self.off_set + found / self.modulus) * _SECOND_ORDER


def rounding(spec: ProblemSpec, modulus: float, tilt: float) -> RoundingBounds:
    """``RoundingBounds`` of the sum with a linear term of norm at most ``tilt``.

    E = n (beta gam(k) R + eta X + gam(N) L) + 16 u (Lam R + |b| + n L): margins, slopes, their sum
    with N of ``most_additions``, and the regulariser, the tilt and the normal that are added.
    """
    n, p, radius = spec.n, spec.p, spec.constraint.radius
    beta = spec.smoothness or 0.0
    classes = spec.bounds.classes
    lasso = spec.penalty.lasso * math.sqrt(p)
    length = modulus * radius + tilt + n * spec.lipschitz + lasso
    row = max(spec.row_bound, 1e-300)
    bent, slope = beta / row**2, spec.lipschitz / row
    one = (8.0 + 4.0 * classes) * U * (slope + bent * (2.0 + spec.target_bound) + 2.0)
    margins = beta * gam(p + 4.0 * classes + 2.0) * radius
    slopes = n * (margins + one * spec.row_bound + gam(most_additions(n) + 3.0) * spec.lipschitz)
    error = (slopes + 16.0 * U * length) * _SECOND_ORDER
    normals, accuracy = spec.constraint.normals, spec.constraint.accuracy * radius
    off_set, step = (accuracy, accuracy) if normals is None else (normals.off_set, normals.step)
    # theta - slope / steep, in three operations
    step += 6.0 * U * (radius + 2.0 * length / (n * beta + modulus))
    return RoundingBounds(modulus, n * beta + modulus, error, length, off_set, step)


def has_exact_normals(spec: ProblemSpec) -> bool:
    """Whether the normals of the set are known exactly at the points that are computed.

    With a lasso as well: on the simplex its value is constant.
    """
    return spec.constraint.normals is not None


def steps(facts: RoundingBounds, diameter: float, distance: float) -> int:
    """T with q^T diameter <= distance / 2; ``Unsupported`` where there are too many of them."""
    if facts.condition * LEAST_CONVEXITY > 1.0 + 1e-9:
        least = LEAST_CONVEXITY * facts.steep
        raise Unsupported(
            f"a strong convexity of {facts.modulus:.3g} beside a curvature of {facts.steep:.3g}: "
            "no minimiser is certain to be found to a distance that noise can be made for; "
            f"set ridge or mechanism.strength so that it is at least {least:.3g}"
        )
    wanted = 0.5 * (facts.condition + 1.0) * math.log(max(2.0 * diameter / distance, 1.0))
    return min(math.ceil(wanted) + 1, 4 * MOST_STEPS)


def of_values(spec: ProblemSpec, modulus: float, tilt: float) -> float:
    """What rounding may do to a duality gap: to the objective and to the bound below it.

    Both are sums over n records of terms of at most L R + the loss at 0, products with at most p
    numbers, and the regulariser; the bound's slope is a sum over all records.
    """
    n, p, radius = spec.n, spec.p, spec.constraint.radius
    terms = n * (2.0 * spec.lipschitz * radius + spec.target_bound**2 + spec.row_bound + 1.0)
    terms += modulus * radius**2 + spec.penalty.lasso * math.sqrt(p) * radius + tilt * radius
    return 2.0 * gam(n + p + 32.0) * terms * _SECOND_ORDER
