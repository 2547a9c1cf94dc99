"""Noise on the second moments of rows and targets, of which the squared loss is a function."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar

import numpy as np

from dperm_cli.bounds.noisy_moments import TARGET_SHARE
from dperm_cli.core import registry
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.fields import Choices, Help
from dperm_cli.core.symmetric import triangle_size, unpack_symmetric
from dperm_cli.mechanisms.adversary import FAR_RADIUS, Adversary
from dperm_cli.mechanisms.base import Mechanism, Plan, Release
from dperm_cli.mechanisms.shared.moment_sensitivity import joint_sensitivity
from dperm_cli.mechanisms.shared.point_noise import PointNoise
from dperm_cli.mechanisms.shared.predicted_risk import predict_from_noise
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
WISHART_EDGE = math.sqrt((11.0 + 5.0 * math.sqrt(5.0)) / 2.0)  # of W - W', over c q
TYPICAL_RADIUS = 2.0  # of an optimum, at most, where the two noises are compared
# where the risk is foreseen, and what it was of that in 60 cells (docs/proofs/auto.md)
FORESEEN_RADIUS, FORESEEN = 1.0, 0.6
MOST_PARAMETERS = 1000
_COUPLING, _COPIES = 1.0, 16  # tau of free validation, and over how many copies it goes
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
    free_of_radius: ClassVar[bool] = True
    by_sums: ClassVar[bool] = True
    secure: ClassVar[bool] = True

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
        event: Any = plan.events[0]
        gram, cross = _unpack(_release_moments(view, event, gate)[0], view.spec, event)
        return Release(_fit_moments(gram, cross, view.spec, event))

    def share_statistics(self, budget: Budget) -> SufficientStatistics | None:
        """Itself with Gaussian noise, of which one release makes two that are independent."""
        if budget.delta == 0.0 or self.noise == "wishart":
            return None
        return replace(self, noise="gaussian")

    def release_best(
        self, view: CentralView, plan: Plan, gate: Gate, specs: Sequence[ProblemSpec]
    ) -> tuple[np.ndarray, np.ndarray]:
        """The points of the candidates that free validation takes, and which these are.

        With Z a fresh copy of the noise, moments + tau Z and moments - Z / tau are independent:
        points made of the first are compared by the objective that the second makes, over several
        copies. All of it is post-processing of the one release.
        """
        spec, event = view.spec, plan.events[0]
        released, stream = _release_moments(view, event, gate)
        trials = np.arange(gate.trials)
        scores = np.zeros((len(specs), gate.trials))
        if len(specs) > 1:
            for number in range(_COPIES):
                copy = stream.draw_copy(number)
                first = _unpack(released + _COUPLING * copy, spec, event)
                second = _unpack(released - copy / _COUPLING, spec, event)
                wider = math.hypot(1.0, _COUPLING)
                for each, candidate in enumerate(specs):
                    points = _fit_moments(*first, candidate, event, wider)
                    scores[each] += _score_points(points, *second, spec)
        chosen = np.argmin(scores, axis=0)
        fitted = [_fit_moments(*_unpack(released, spec, event), one, event) for one in specs]
        return np.stack(fitted)[chosen, trials], chosen

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

    def predict_risk(self, spec: ProblemSpec, plan: Plan) -> float:
        """That of the noise in the normal equations at an optimum."""
        law = plan.settings["noise"]
        variance = _find_variance(law, plan.noise_scale, spec, FORESEEN_RADIUS)
        curved: Any = spec.form
        size = curved.smoothness * spec.row_bound * bound_targets(spec)
        return FORESEEN * predict_from_noise(spec, math.sqrt(variance) * size)

    def point_noise(self, spec: ProblemSpec, plan: Plan, theta: np.ndarray) -> PointNoise:
        """That of the moments, in the normal equations at the released point."""
        form: Any = spec.form
        square = np.array([float(theta @ theta)])
        variance = _noise_of_gradient(plan.events[0], spec, form.smoothness, square)
        law = "gaussian", math.sqrt(float(variance[0]))
        return PointNoise((law,), (), spec.penalty.ridge)

    def _choose(self, spec: ProblemSpec, budget: Budget) -> str:
        """The noise asked for, or the one that adds less to the normal equations at an optimum.

        Per coordinate, targets scaled to the bound of rows: sigma^2 (r^2 / 2 + 1), and
        2 c^2 (p + 2) (r^2 + 1 / s^2) with c half the scale.
        """
        if self.noise != "auto":
            return self.noise
        if budget.delta == 0.0:
            return "wishart"
        gaussian, wishart = (
            _find_variance(law, _find_scale(law, budget), spec) for law in ("gaussian", "wishart")
        )
        return "wishart" if wishart < gaussian else "gaussian"


def _find_variance(
    law: str, scale: float, spec: ProblemSpec, radius: float = TYPICAL_RADIUS
) -> float:
    """The variance per coordinate in the normal equations, rows and targets over their bounds, at
    an optimum of the radius of the set, and of ``radius`` at most."""
    target = bound_targets(spec)
    reach = spec.constraint.radius * spec.row_bound
    square = min(reach / target if target > 0.0 else math.inf, radius) ** 2
    if law == "gaussian":
        return scale**2 * (square / 2.0 + 1.0)
    return 2.0 * (scale / 2.0) ** 2 * (spec.p + 2.0) * (square + 1.0 / TARGET_SHARE)


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


def _release_moments(view: CentralView, event: Event, gate: Gate) -> tuple[np.ndarray, Any]:
    """Packed moments [trials, m] with noise, rows and targets over their bounds; their stream."""
    target = bound_targets(view.spec)
    if event.law == "wishart":
        sums = view.packed_joint_moments(target, TARGET_SHARE)
    else:
        sums = view.packed_moments(target)
    stream = gate.stream(event, len(sums))
    return stream.add(np.tile(sums, (gate.trials, 1)), 0), stream


def _unpack(noisy: np.ndarray, spec: ProblemSpec, event: Event) -> tuple[np.ndarray, np.ndarray]:
    """X^T X [trials, p, p] and X^T y [trials, p] of packed moments."""
    if event.law == "wishart":
        found = unpack_symmetric(noisy, spec.p + 1)
        return found[:, :-1, :-1], found[:, :-1, -1] / math.sqrt(TARGET_SHARE)
    size = triangle_size(spec.p)
    return unpack_symmetric(noisy[:, :size], spec.p), noisy[:, size:]


def _fit_moments(
    gram: np.ndarray, cross: np.ndarray, spec: ProblemSpec, event: Any, spread: float = 1.0
) -> np.ndarray:
    """The points [trials, p] of moments whose noise is ``spread`` times that of the event.

    Eigenvalues are raised to the edge of the noise, and minimisers drawn to the centre by it.
    """
    form: Any = spec.form
    values, basis = np.linalg.eigh(gram)
    raised = np.maximum(values, spread * find_edge(event, spec.p))
    curved = (form.smoothness * spec.row_bound**2) * raised
    slope = spec.row_bound * bound_targets(spec) * cross
    found = minimise_models(curved, basis, slope, spec)
    variance = _noise_of_gradient(event, spec, form.smoothness, np.sum(found**2, axis=1))
    return shrink_to_centre(found, curved, basis, slope, spread**2 * variance, spec)


def _score_points(
    theta: np.ndarray, gram: np.ndarray, cross: np.ndarray, spec: ProblemSpec
) -> np.ndarray:
    """The objective of each trial's point [trials] by the moments, which need not be convex."""
    form: Any = spec.form
    curved = form.smoothness * spec.row_bound**2
    bent = np.einsum("ti,tij,tj->t", theta, gram, theta) * curved / 2.0
    slope = spec.row_bound * bound_targets(spec) * cross
    return bent - np.sum(slope * theta, axis=1) + spec.penalty.value(theta)


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
