"""Noise on the second moments of rows and targets, of which the squared loss is a function."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from dperm_cli.core import registry
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.fields import Choices, Help
from dperm_cli.core.symmetric import pack_symmetric, triangle_size, unpack_symmetric
from dperm_cli.mechanisms.adversary import FAR_RADIUS, Adversary
from dperm_cli.mechanisms.base import Mechanism, Plan, Release
from dperm_cli.mechanisms.shared.moment_sensitivity import joint_sensitivity
from dperm_cli.mechanisms.shared.quadratic_model import minimise_models, shrink_to_centre
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Event, GaussianMoments, WishartDifference
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem, ProblemSpec
from dperm_cli.sets import make_ball
from dperm_cli.views.central import CentralView

NOISES = ("auto", "gaussian", "wishart")
TARGET_SHARE = 0.5  # s^2: the squared weight of targets beside rows, under Wishart noise
WISHART_EDGE = math.sqrt((11.0 + 5.0 * math.sqrt(5.0)) / 2.0)  # of W - W', over c q
TYPICAL_RADIUS = 2.0  # of an optimum, at most, where the two noises are compared
MOST_PARAMETERS = 1000
_CALM = 1e3  # moments over their noise, in the adversary's records: theta is linear in the noise
_MOST_RECORDS = 200_000  # of them
LEAST_SQUARE, MOST_SQUARE = 1e-200, 1e200  # of bounds, so that sums can be computed

Moments = GaussianMoments | WishartDifference


@dataclass(frozen=True)
class SufficientStatistics(Mechanism):
    """theta = argmin over C of theta^T M theta / 2 - b^T theta, M and b noisy moments.

    Algorithm: X^T X and X^T y are released once [DTTZ14, Alg. 1]; eigenvalues below the edge of the
    noise's spectrum are raised to it, and the rest (ridge, lasso, any set) is post-processing. With
    rows over their bound and targets over theirs the noise is Gaussian, of joint sensitivity D =
    2.12132 (replace_one) or sqrt 2 (add_remove), or the difference of two Wishart matrices of
    order p + 1. Guarantee: (epsilon, delta), exactly mu-GDP, or pure epsilon; trust: central.
    ``noise_scale`` is D / mu, or the nuclear sensitivity over epsilon, in the unit of row_bound^2.
    Shapes: theta [trials, p]. Cost: n p^2 once, p^3 a trial. Unsupported: losses that are not
    quadratic, p > 1000, Gaussian noise at delta = 0.

    ``noise=auto`` compares the variances of the noise in the normal equations, from public facts.

    >>> from dperm_cli.losses.squared import Squared
    >>> data = Data.of_records("toy", "regression", np.eye(3), np.ones(3), 1.0, 1.0, fingerprint="")
    >>> spec = Problem(data, Squared(), make_ball(1.0, 3)).spec()
    >>> round(SufficientStatistics("gaussian").plan(spec, Budget(1.0, 1e-6)).noise_scale, 4)
    8.9619
    """

    noise: Annotated[
        str, Choices(*NOISES), Help("auto = the smaller; wishart is pure, gaussian needs delta > 0")
    ] = "auto"

    guarantees: ClassVar[tuple[str, ...]] = ("pure", "approx")
    requires: ClassVar[tuple[str, ...]] = ("margin", "quadratic")

    def check(self, spec: ProblemSpec, budget: Budget) -> None:
        """A quadratic loss of the margin, few enough parameters, a delta for Gaussian noise."""
        _check_loss(spec)
        if self.noise == "gaussian" and budget.delta == 0.0:
            raise Unsupported("Gaussian noise needs delta > 0; use mechanism.noise=wishart")

    def scale(self, spec: ProblemSpec, budget: Budget) -> float:
        """D / mu, or the nuclear sensitivity over epsilon."""
        return _find_scale(self._choose(spec, budget), budget)

    def events(self, spec: ProblemSpec, scale: float, budget: Budget) -> tuple[Moments]:
        """One release of all moments."""
        return (_make_event(self._choose(spec, budget), scale),)

    def settings(self, spec: ProblemSpec, events: tuple[Moments], budget: Budget) -> dict[str, Any]:
        """The kind of noise, and what eigenvalues are raised to, in the unit of X^T X."""
        return {
            "noise": self._choose(spec, budget),
            "edge": find_edge(events[0], spec.p) * spec.row_bound**2,
        }

    def release(self, view: CentralView, plan: Plan, gate: Gate) -> Release:
        """One release of the moments, and the minimiser of each trial's quadratic model."""
        spec, event, form = view.spec, plan.events[0], view.loss
        gram, cross = _release_moments(view, event, gate)
        values, basis = np.linalg.eigh(gram)
        curved = (form.smoothness * spec.row_bound**2) * np.maximum(
            values, find_edge(event, spec.p)
        )
        slope = spec.row_bound * bound_targets(spec) * cross
        found = minimise_models(curved, basis, slope, spec)
        variance = _noise_of_gradient(event, spec, form.smoothness, np.sum(found**2, axis=1))
        return Release(shrink_to_centre(found, curved, basis, slope, variance, spec))

    def adversary(self, budget: Budget) -> Adversary:
        """Least squares whose minimiser moves, in units of its noise, as far as all moments do.

        Public records hold X^T X = a I and theta = (0, -1), or -1 on a line. The first coordinate
        then moves by that of (b - A theta) / a, to which the move and the noise of A add.
        Under replace_one two rows at 60 degrees with opposite targets are the worst pair of both
        noises; under add_remove the record (1, 1).
        """
        law = self.noise
        if law == "auto":
            law = "gaussian" if budget.delta > 0.0 else "wishart"
        n = math.ceil(min(_CALM * _find_scale(law, budget), _MOST_RECORDS))
        removed = budget.relation == "add_remove"
        if removed:
            first, second = (_make_problem(n, [[1.0]], [-1.0], [one], 1.0) for one in (1.0, 0.0))
        else:
            rows, targets, across = [[1.0, 0.0], [0.0, 1.0]], [0.0, -1.0], math.sqrt(0.75)
            first, second = (
                _make_problem(n, rows, targets, [across, side / 2.0], side) for side in (1.0, -1.0)
            )
        mechanism = replace(self, noise=law)
        if law == "gaussian":
            return Adversary(first, second, mechanism, kind="gaussian", floor=0.8)
        # the ratio of two such densities comes near its bound far out in their tails alone
        floor = 0.6 if removed else 0.4
        return Adversary(
            first, second, mechanism, kind="threshold", floor=floor, must_catch=removed
        )

    def _choose(self, spec: ProblemSpec, budget: Budget) -> str:
        """The noise asked for, or the one that adds less to the normal equations at an optimum.

        Per coordinate, targets scaled to the bound of rows: sigma^2 (r^2 / 2 + 1), and
        2 c^2 (p + 2) (r^2 + 1 / s^2) with c half the scale.
        """
        if self.noise != "auto":
            return self.noise
        if budget.delta == 0.0:
            return "wishart"
        target = bound_targets(spec)
        reach = spec.constraint.radius * spec.row_bound
        square = min(reach / target if target > 0.0 else math.inf, TYPICAL_RADIUS) ** 2
        gaussian = _find_scale("gaussian", budget) ** 2 * (square / 2.0 + 1.0)
        half = _find_scale("wishart", budget) / 2.0
        wishart = 2.0 * half**2 * (spec.p + 2.0) * (square + 1.0 / TARGET_SHARE)
        return "wishart" if wishart < gaussian else "gaussian"


def bound_targets(spec: ProblemSpec) -> float:
    """The bound on |l'(0; y)|, which is that of |y| for the squared loss."""
    form: Any = spec.form
    return float(form.slope_bound(0.0, spec.target_bound))


def find_edge(event: Any, p: int) -> float:
    """How far the noise moves eigenvalues of X^T X, about: the edge of its spectrum."""
    if event.law == "wishart":
        return WISHART_EDGE * event.scale / 2.0 * (p + 1.0)
    return event.scale * math.sqrt(2.0 * p)


def _noise_of_gradient(
    event: Any, spec: ProblemSpec, smoothness: float, square: np.ndarray
) -> np.ndarray:
    """The variance per coordinate of M theta - b as released, about; |theta|^2 = ``square``."""
    entry, target = event.scale**2 / 2.0, event.scale**2
    if event.law == "wishart":
        entry = 2.0 * (event.scale / 2.0) ** 2 * (spec.p + 2.0)
        target = entry / TARGET_SHARE
    rows = smoothness * spec.row_bound**2
    return rows**2 * entry * square + (spec.row_bound * bound_targets(spec)) ** 2 * target


def _find_scale(law: str, budget: Budget) -> float:
    """The least scale of one release, rows and targets over their bounds."""
    if law == "gaussian":
        moved = joint_sensitivity(budget.relation)
        return calibrate.gaussian_scale(budget.epsilon, budget.delta, moved)
    moved = _make_event(law, 1.0).sensitivity(budget.relation)
    return calibrate.pure_scale(budget.epsilon, moved)


def _make_event(law: str, scale: float) -> Moments:
    if law == "wishart":
        return WishartDifference(scale, 1.0 + TARGET_SHARE)
    return GaussianMoments(
        scale, joint_sensitivity("add_remove"), gap=joint_sensitivity("replace_one")
    )


def _release_moments(view: CentralView, event: Event, gate: Gate) -> tuple[np.ndarray, np.ndarray]:
    """X^T X [trials, p, p] and X^T y [trials, p] with noise, rows and targets over their bounds."""
    spec, target = view.spec, bound_targets(view.spec)
    weight = math.sqrt(TARGET_SHARE) if event.law == "wishart" else 1.0
    unit = np.full(spec.p + 1, 1.0 / spec.row_bound)
    unit[-1] = weight / target if target > 0.0 else 0.0
    whole = view.moment_sum() * unit * unit[:, None]
    if event.law == "wishart":
        sums = pack_symmetric(whole)
        noisy = gate.stream(event, len(sums)).add(np.tile(sums, (gate.trials, 1)), 0)
        found = unpack_symmetric(noisy, spec.p + 1)
        return found[:, :-1, :-1], found[:, :-1, -1] / weight
    sums = np.append(pack_symmetric(whole[:-1, :-1]), whole[:-1, -1])
    noisy = gate.stream(event, len(sums)).add(np.tile(sums, (gate.trials, 1)), 0)
    size = triangle_size(spec.p)
    return unpack_symmetric(noisy[:, :size], spec.p), noisy[:, size:]


def _check_loss(spec: ProblemSpec) -> None:
    form = spec.form
    if form is None or not form.quadratic or not form.smoothness > 0.0:
        raise Unsupported(
            f"sufficient_statistics needs a quadratic loss, and loss={spec.loss} is none: "
            "use loss=squared or mechanism=noisy_gd"
        )
    if spec.p > MOST_PARAMETERS:
        raise Unsupported(
            f"{spec.p} parameters: a matrix of {spec.p**2:.2g} entries; at most {MOST_PARAMETERS}, "
            "use noisy_gd"
        )
    bounds = [spec.row_bound**2, spec.row_bound * bound_targets(spec)]
    if not all(bound == 0.0 or LEAST_SQUARE <= bound <= MOST_SQUARE for bound in bounds):
        raise Unsupported(
            f"moments of up to {max(bounds):.3g} are beyond what can be computed with: check "
            "row_bound and the bounds of the targets"
        )


def _make_problem(n: int, rows: Any, targets: Any, row: Any, target: float) -> Problem:
    """Least squares of one record beside n copies of public ones, in a set that plays no part."""
    x, y = np.vstack([row, *[rows] * n]), np.append(target, np.tile(targets, n))
    name = "adversarial pair"
    data = Data.of_records(name, "regression", x, y, 1.0, 1.0, fingerprint=name)
    losses = (registry.load("loss", each) for each in registry.names("loss"))
    loss = next(each for each in losses if each.quadratic and data.task in each.default_of)()
    return Problem(data, loss, make_ball(FAR_RADIUS, x.shape[1]))
