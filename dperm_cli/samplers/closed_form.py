"""Laws that can be drawn from exactly, without a chain.

* ``line``: a set of one dimension and a loss that is piecewise quadratic along it: the law is
  piecewise exponential (or Gaussian), and its distribution function is inverted in O(n log n).
* ``coordinates``: a box and a loss that is a sum over coordinates: a line for each of them.
* ``gaussian``: a linear loss and a quadratic regulariser: a Gaussian restricted to the set.
* ``ball``: a linear loss on a ball or an ellipsoid. The first p coordinates of a uniform point of
  the sphere in R^{p+2} are uniform on the unit ball of R^p [Archimedes], so the law is that of the
  first p coordinates of a von Mises-Fisher vector there [Wood 1994].

A hinge that no margin on the set reaches (row_bound * radius <= 1) is a linear loss.
"""

from __future__ import annotations

import math

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.samplers.base import Certificate, Potential, Sampler, Source, Target
from dperm_cli.samplers.shared.interval_pieces import law
from dperm_cli.samplers.shared.potential import piecewise
from dperm_cli.samplers.shared.potential_checks import remember
from dperm_cli.samplers.shared.truncated_gaussian import Segment, choose_truncated_sampler

_COVERS = (
    "closed_form covers linear losses (and hinges with row_bound * radius <= 1) on a ball, an "
    "ellipsoid or a box, l1_median on a box, and hinge, absolute, positive_part, l1_median, "
    "linear and squared losses on sets of one dimension; use proximal"
)
_MOST_PROPOSALS = 100_000


@dataclass(frozen=True)
class ClosedForm(Sampler):
    """``conf/sampler/closed_form.yaml`` has no keys besides the name.

    >>> from dperm_cli.mechanisms.adversary import linear_pair
    >>> problem, _ = linear_pair("replace_one", n=10, radius=1.0)
    >>> certificate = ClosedForm().plan(Target(problem.spec(), exponent=0.5), 0.0)
    >>> certificate.exact, certificate.facts["case"]
    (True, 'line')
    """

    def plan(self, target: Target, dist_inf: float) -> Certificate:
        """The case, from public facts; ``dist_inf`` is not used up: the law is exact."""
        found = case(target)
        if found is None:
            raise Unsupported(_COVERS)
        return Certificate(
            sampler="closed_form",
            theorem=f"closed_form {found}",
            dist_inf=0.0,
            constant_time=found == "coordinates" and linear(target),
            facts={"case": found},
        )

    def draw(
        self, potential: Potential, target: Target, certificate: Certificate, source: Source
    ) -> np.ndarray:
        """One draw [p]."""
        return _CASES[certificate.facts["case"]](potential, target, source)


def linear(target: Target) -> bool:
    """Whether every record's loss is affine on the set."""
    spec = target.spec
    if spec.form is None:
        return False
    return spec.row_bound * spec.constraint.radius <= spec.form.affine_margin


def case(target: Target) -> str | None:
    """Which of the laws above this is, None for others."""
    body, form = target.constraint.inner_body, target.spec.form
    if target.dimension <= 1:
        return "line" if piecewise(target.spec) else None
    affine = linear(target)
    by_coordinates = affine or (form is not None and form.distance_power == 1.0)
    if body.half_side is not None and by_coordinates:
        return "coordinates"
    if not affine or target.lasso > 0:
        return None
    if target.ridge > 0:
        return None if choose_truncated_sampler(body).narrow else "gaussian"
    return "ball" if body.root() is not None else None


def _line(potential: Potential, target: Target, source: Source) -> np.ndarray:
    def prepare():
        segment = Segment(target.constraint)
        pieces = potential.along(segment.origin, segment.direction)
        return segment, law(pieces, segment.low, segment.high)

    segment, along = remember("line", potential, target, prepare)
    return segment.origin + along.draw(source) * segment.direction


def _coordinates(potential: Potential, target: Target, source: Source) -> np.ndarray:
    def prepare():
        axes, origin = np.eye(target.spec.p), np.zeros(target.spec.p)
        half_widths = np.asarray(target.constraint.support(axes))
        return [
            law(potential.along(origin, axis), -half_width, half_width)
            for axis, half_width in zip(axes, half_widths, strict=True)
        ]

    laws = remember("coordinates", potential, target, prepare)
    return np.array([along.draw(source) for along in laws])


def _gaussian(potential: Potential, target: Target, source: Source) -> np.ndarray:
    centre = target.constraint.centre()
    mean = centre - potential.gradient(centre) / target.ridge
    return choose_truncated_sampler(target.constraint)(mean, 1.0 / target.ridge, source)


def _ball(potential: Potential, target: Target, source: Source) -> np.ndarray:
    root = target.constraint.root()
    slope = root.T @ potential.gradient(target.constraint.centre())
    return root @ tilted_ball(-slope, source)


def tilted_ball(pull: np.ndarray, source: Source) -> np.ndarray:
    """One point of density proportional to exp(<pull, u>) on the unit ball of R^k, [k].

    With w the part along ``pull`` of a unit vector of R^{k+2}, the rest of that vector has length
    sqrt(1 - w^2) and a uniform direction in the k + 1 other dimensions, of which two are dropped.
    """
    k, strength = len(pull), float(np.linalg.norm(pull))
    axis = pull / strength if strength > 0 else np.eye(k)[0]
    short = _short_of_one(k + 2, strength, source)
    g = source.normal(k + 2)
    across = g[:k] - float(g[:k] @ axis) * axis
    # k - 1 normals across and two more make up the direction
    length = math.sqrt(float(across @ across) + float(g[k:] @ g[k:]))
    return (1.0 - short) * axis + math.sqrt(short * (2.0 - short)) * across / length


def _short_of_one(m: int, strength: float, source: Source) -> float:
    """1 - w, w = <mu, x> for a von Mises-Fisher vector x on the sphere of R^m [Wood 1994].

    The density of w is proportional to exp(strength w) (1 - w^2)^{(m - 3) / 2}; it is proposed from
    a quotient of chi-squares and kept with probability 0.6 or more.
    """
    b = (m - 1.0) / (2.0 * strength + math.sqrt(4.0 * strength**2 + (m - 1.0) ** 2))
    x0, start = (1.0 - b) / (1.0 + b), 2.0 * b / (1.0 + b)
    for _ in range(_MOST_PROPOSALS):
        squares = source.normal(2, m - 1) ** 2
        share = float(np.sum(squares[0]) / np.sum(squares))
        short = 2.0 * b * share / (1.0 - (1.0 - b) * share)
        bent = math.log((start + x0 * short) / (start * (1.0 + x0)))
        if math.log(float(source.uniform(1)[0])) <= strength * (start - short) + (m - 1) * bent:
            return short
    raise ArithmeticError("no proposal was accepted: not a private outcome")


_CASES = {"line": _line, "coordinates": _coordinates, "gaussian": _gaussian, "ball": _ball}
