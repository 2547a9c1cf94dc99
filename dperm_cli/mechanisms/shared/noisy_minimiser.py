"""Noise added to the minimiser of a strongly convex sum [BST14, Alg. 3 and App. B]."""

from __future__ import annotations

import math
import sys

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Event, GammaNorm, Gaussian
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.problem import ProblemSpec
from dperm_cli.solvers import perturbed_minimiser
from dperm_cli.views.central import CentralView

INFLATION = 1e-3  # of the sensitivity, for a minimiser that is found up to a gap
_EPS = sys.float_info.epsilon
_ROOM = 4.0  # factor between the rounding error of certificates and the gap asked for


@dataclass(frozen=True)
class Stability:
    """How far the minimiser found moves when a record changes, from public facts alone.

    Attributes
    ----------
    record : bound under add_remove: L / (n Delta), and twice the error of the minimiser.
    gap : bound under replace_one: sup |grad l_d - grad l_d'| / (n Delta), and the same.
    certificate : the duality gap to which the minimiser must be found, in the unit of the sum.
    error : sqrt(2 (certificate + r) / (n Delta)) >= the distance to the exact minimiser, r what
        rounding may do to a gap, proved (``perturbed_minimiser.gap_error``).
    """

    record: float
    gap: float
    certificate: float
    error: float

    def event(self, scale: float, gamma: bool) -> GammaNorm | Gaussian:
        """The minimiser plus noise of this kind and scale."""
        return (GammaNorm if gamma else Gaussian)(scale, self.record, gap=self.gap)


def stability(spec: ProblemSpec, inflation: float = INFLATION) -> Stability:
    """``Stability`` of a problem; Unsupported where nothing makes the sum strongly convex, and for
    a loss whose duality gap cannot be closed.

    The exact minimisers of neighbouring data sets are at most S = |grad l_d - grad l_d'| / (n
    Delta) apart. A gap g leaves a distance of sqrt(2 g / (n Delta)) to them, on both sides, and g,
    of which rounding has its part, is chosen so that this adds ``inflation`` S, or more where
    floating point proves no such gap.
    """
    modulus = spec.n * spec.strong_convexity
    if not modulus > 0:
        raise Unsupported(
            "the minimiser is not stable without strong convexity: set ridge to a number above 0"
        )
    if spec.form is not None and not spec.form.closes_gap:
        raise Unsupported(
            f"{spec.loss} has kinks and offers no pieces of them: no minimiser is certain to be "
            "found as near as the noise is made for; use mechanism=noisy_gd"
        )
    record, gap = spec.lipschitz / modulus, spec.gradient_gap / modulus
    wanted = modulus * (inflation * min(record, gap)) ** 2 / 8.0
    lost = perturbed_minimiser.gap_error(spec, modulus)
    whole = max(wanted, provable_gap(spec) + lost)
    error = math.sqrt(2.0 * whole / modulus)
    return Stability(record + 2.0 * error, gap + 2.0 * error, whole - lost, error)


def provable_gap(spec: ProblemSpec) -> float:
    """A gap that a certificate can show on every data set within the declared bounds.

    It follows ``solvers.optimum.negligible``, with the largest values that its terms can have.
    """
    n, radius, penalty = spec.n, spec.constraint.radius, spec.penalty
    size = 2.0 * spec.lipschitz * radius + spec.target_bound**2 + spec.row_bound + 1.0
    terms = 2.0 * n * size + penalty.value(np.array([radius]))
    terms += penalty.ridge * radius**2 + penalty.lasso * math.sqrt(spec.p) * radius
    products = 2.0 * n * spec.lipschitz * radius
    rounding = _EPS * ((math.sqrt(max(n, spec.p)) + 16.0) * products + 16.0 * float(terms))
    span = 1e-12 * n * spec.lipschitz_total * spec.constraint.diameter
    return _ROOM * max(2.0 * rounding, span)


def scale_for(stable: Stability, budget: Budget, gamma: bool) -> float:
    """The least noise: S / epsilon of a Gamma norm, S / mu(epsilon, delta) of a Gaussian."""
    sensitivity = stable.event(1.0, gamma).sensitivity(budget.relation)
    if gamma:
        return calibrate.pure_scale(budget.epsilon, sensitivity)
    return calibrate.gaussian_scale(budget.epsilon, budget.delta, sensitivity)


def release_minimiser(
    view: CentralView,
    event: Event,
    certificate: float | None,
    gate: Gate,
    distance: float | None = None,
) -> np.ndarray:
    """The minimiser plus the event's noise, projected to the set, [trials, p].

    It is found to a gap of ``certificate``, or within a ``distance`` where one is given.
    """
    noise = gate.stream(event, view.spec.p)
    if distance is None:
        assert certificate is not None
        found = view.minimiser(certificate)
    else:
        found = view.find_perturbed_minimisers(np.zeros((1, view.spec.p)), 0.0, distance)[0]
    noisy = noise.add(np.tile(found, (gate.trials, 1)), 0)
    return view.spec.constraint.project(noisy)
